//! Scripts of sed: finds the commands that they run and the files that they write.

use super::Seen;
use crate::shell::verdict::Argument;
use crate::shell::walk::Input;

/// The effects of a script besides editing.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// The script has `e`, as a command or after `s`.
    pub(super) runs: bool,
    pub(super) writes: Vec<String>,
}

/// Parses the scripts in sed's arguments.
pub(super) fn scripts(seen: &Seen<'_>) -> Vec<Script> {
    let arguments = seen.arguments();
    let (mut scripts, mut given, mut i) = (Vec::new(), false, 0);
    let mut operand = None;
    let from = |file: &str| match (&seen.place.input, file) {
        (Input::Text(text), "-" | "/dev/stdin") => Some(text.clone()),
        _ => None,
    };
    while let Some(text) = arguments.get(i).map(Argument::text) {
        i += 1;
        let next = arguments.get(i).map_or("", Argument::text);
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, next), |(name, value)| (name, value));
            let is = |option: &str| name.len() >= 2 && option.starts_with(name);
            if is("expression") {
                given = true;
                scripts.push(value.to_owned());
            } else if is("file") {
                given = true;
                scripts.extend(from(value));
            }
        } else if let Some(flags) = text.strip_prefix('-').filter(|flags| !flags.is_empty()) {
            // `-i` takes the rest as a suffix; `-e` and `-f` take the rest, or the next argument.
            let Some(at) = flags.find(['i', 'e', 'f', 'l']) else { continue };
            let (flag, rest) = (flags.as_bytes()[at], &flags[at + 1..]);
            if matches!(flag, b'e' | b'f') {
                given = true;
                let value = if rest.is_empty() { next } else { rest };
                i += usize::from(rest.is_empty());
                match flag {
                    b'e' => scripts.push(value.to_owned()),
                    _ => scripts.extend(from(value)),
                }
            }
        } else {
            operand = operand.or(Some(text));
        }
    }
    if !given {
        scripts.extend(operand.map(str::to_owned));
    }
    scripts.iter().map(|script| read(script)).collect()
}

/// Parses a script, as far as it is one.
fn read(script: &str) -> Script {
    let mut found = Script::default();
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}']);
        let Some(after) = address(rest) else { break };
        let mut chars = after.chars();
        let Some(command) = chars.next() else { break };
        let tail = chars.as_str();
        let line = tail.find('\n').unwrap_or(tail.len());
        rest = match command {
            'e' => {
                found.runs = true;
                &tail[line..]
            }
            's' => {
                let Some(flags) = parts(tail, 2) else { break };
                let end = flags.find([';', '\n', '}']).unwrap_or(flags.len());
                let (set, file) = flags[..end].split_once('w').unwrap_or((&flags[..end], ""));
                found.runs |= set.contains('e');
                if !file.is_empty() {
                    found.writes.push(file.trim().to_owned());
                }
                &flags[end..]
            }
            'y' => match parts(tail, 2) {
                Some(rest) => rest,
                None => break,
            },
            'w' | 'W' => {
                found.writes.push(tail[..line].trim().to_owned());
                &tail[line..]
            }
            'a' | 'i' | 'c' | 'r' | 'R' | '#' | ':' => &tail[line..],
            _ => &tail[tail.find([';', '\n', '}']).unwrap_or(tail.len())..],
        };
    }
    found
}

/// The text after an address, if there is one.
fn address(mut text: &str) -> Option<&str> {
    loop {
        text = text.trim_start_matches(|c: char| c.is_ascii_digit() || "$,!~+ \t".contains(c));
        text = match text.chars().next()? {
            '/' => parts(text, 1)?.trim_start_matches(['I', 'M']),
            '\\' => parts(&text[1..], 1)?.trim_start_matches(['I', 'M']),
            '{' => &text[1..],
            _ => return Some(text),
        };
    }
}

/// The text after this many parts between a delimiter, which comes first.
fn parts(text: &str, count: usize) -> Option<&str> {
    let mark = text.chars().next()?;
    let mut left = count;
    let mut chars = text[mark.len_utf8()..].char_indices();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == mark {
            left -= 1;
            if left == 0 {
                return Some(&text[mark.len_utf8() + at + c.len_utf8()..]);
            }
        }
    }
    None
}
