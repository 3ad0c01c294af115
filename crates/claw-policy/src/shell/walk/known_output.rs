//! The output of programs, if it follows from their arguments.

use super::{Input, Output};
use crate::shell::verdict::{Argument, UNKNOWN};

/// The output of a command, if it is known.
pub(super) fn output(name: &str, arguments: &[Argument], input: &Input) -> Output {
    let known: Option<Vec<&str>> = arguments.iter().map(Argument::known).collect();
    match name {
        "echo" => echo(&known?),
        "printf" => printf(&known?),
        "cat" | "tee"
            if name == "tee" || arguments.is_empty() || arguments.iter().all(|a| a.known() == Some("-")) =>
        {
            match input {
                Input::Text(text) => Some(text.clone()),
                _ => None,
            }
        }
        // A name below it, of which only the end is unknown.
        "mktemp" if known?.iter().all(|flag| matches!(*flag, "-d" | "-q" | "--directory" | "--quiet")) => {
            Some(format!("/tmp/tmp.{UNKNOWN}\n"))
        }
        "true" | ":" | "cd" | "mkdir" | "touch" | "sleep" | "export" | "set" | "shopt" | "unset"
        | "alias" => Some(String::new()),
        _ => None,
    }
}

fn echo(arguments: &[&str]) -> Output {
    let (mut line_end, mut escapes, mut first) = ("\n", false, 0);
    for argument in arguments {
        match argument.strip_prefix('-') {
            Some(flags) if !flags.is_empty() && flags.bytes().all(|flag| b"neE".contains(&flag)) => {
                for flag in flags.bytes() {
                    match flag {
                        b'n' => line_end = "",
                        b'e' => escapes = true,
                        _ => escapes = false,
                    }
                }
                first += 1;
            }
            _ => break,
        }
    }
    let text = arguments[first..].join(" ");
    // dash interprets escapes by default, so that text with any has two meanings.
    match text.contains('\\') {
        true if escapes => escaped(&text).map(|text| text + line_end),
        true => None,
        false => Some(text + line_end),
    }
}

fn printf(arguments: &[&str]) -> Output {
    let arguments = if arguments.first() == Some(&"--") { &arguments[1..] } else { arguments };
    let (format, values) = arguments.split_first()?;
    if format.starts_with('-') {
        return None;
    }
    let mut values = values.iter();
    let mut output = String::new();
    loop {
        let mut used = false;
        let format = escaped(format)?;
        let mut rest = format.as_str();
        while let Some(at) = rest.find('%') {
            output.push_str(&rest[..at]);
            match rest[at + 1..].chars().next()? {
                '%' => output.push('%'),
                's' => {
                    output.push_str(values.next().copied().unwrap_or(""));
                    used = true;
                }
                'b' => {
                    output.push_str(&escaped(values.next().copied().unwrap_or(""))?);
                    used = true;
                }
                _ => return None,
            }
            rest = &rest[at + 2..];
        }
        output.push_str(rest);
        if !used || values.len() == 0 {
            return Some(output);
        }
    }
}

/// Text with its escapes interpreted; `None` if one is unknown.
fn escaped(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let (escape, after) = rest.split_first()?;
        rest = after;
        let digits = |radix: u32, most: usize| {
            rest.iter().take(most).take_while(|b| char::from(**b).is_digit(radix)).count()
        };
        let number = |digits: &[u8], radix| u8::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok();
        match escape {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'\\' => bytes.push(b'\\'),
            b'x' => {
                let length = digits(16, 2);
                bytes.push(number(&rest[..length], 16)?);
                rest = &rest[length..];
            }
            b'0' => {
                let length = digits(8, 3);
                bytes.push(number(&rest[..length], 8)?);
                rest = &rest[length..];
            }
            _ => return None,
        }
    }
    // A NUL would stand for an unknown part.
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
