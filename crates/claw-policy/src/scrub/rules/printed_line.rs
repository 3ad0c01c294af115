//! The line around a setting, as tools print it: numbered, after a file's name, with the sign of a diff, or
//! with its line break written `\n`.

use crate::scrub::{
    config_file_names::is_settings_name,
    view::{BLANK, Class, DIGIT, HEX, Settings, View, bytes, printable_but},
};

/// Bytes of a line that are examined before its key.
const BEFORE: usize = 200;
/// Number of lines that are examined for the head of a section.
const SECTION: usize = 12;
/// Number of empty lines in a row within a YAML block.
const EMPTY_LINES: usize = 4;
/// The deepest indentation that is considered.
const DEEPEST: usize = 64;

/// Words before a setting: in a shell, in a Dockerfile, for Redis.
const LEADS: &[&str] = &[
    "export",
    "set",
    "setx",
    "local",
    "readonly",
    "declare",
    "typeset",
    "env",
    "arg",
    "run",
    "-e",
    "-x",
    "--env",
    "--build-arg",
    "-",
    "config",
];

/// Bytes of a file's name in front of a line.
static NAME: Class = printable_but(b"\"'`=(){}<>,;:");
/// Bytes of a setting in a section: without signs of code.
static SETTING: Class = printable_but(b"\"'`(){}[],\\");

/// The line of a setting.
pub(super) struct Line {
    pub(super) start: usize,
    /// The spaces before its first word, without a tool's prefix.
    pub(super) indent: usize,
    pub(super) numbered: bool,
}

/// The line whose first word starts at `at`; with `comments`, it may be commented out.
pub(super) fn of(view: &View<'_>, at: usize, comments: bool) -> Option<Line> {
    let start = start_of(view, at)?;
    let Prefix { length, numbered, .. } = tool_prefix(view.slice(start..at));
    let text = view.slice(start + length..at);
    let indent = text.iter().take_while(|byte| BLANK[**byte as usize]).count();
    let mut rest = text.get(indent..)?;
    if comments && let [b'#' | b';', after @ ..] = rest {
        rest = after.trim_ascii_start();
    }
    // The quote before a quoted key.
    if let [before @ .., b'"' | b'\''] = rest {
        rest = before;
    }
    let mut words = rest.split(|byte| BLANK[*byte as usize]).filter(|word| !word.is_empty());
    let is_lead = |word: &[u8]| LEADS.iter().any(|lead| word.eq_ignore_ascii_case(lead.as_bytes()));
    (words.clone().count() <= 3 && words.all(is_lead)).then_some(Line { start, indent, numbered })
}

/// Returns whether the line of the key that ends at `key_end` is a configuration file's: the whole text is, a heading above says so,
/// or the line begins with the name of one, as `grep -r` prints it.
pub(super) fn is_of_settings(view: &View<'_>, key_end: usize) -> bool {
    let settings = view.settings();
    if settings == Settings::File {
        return true;
    }
    // Most lines have no sign that could end a name; looking for it is cheaper than reading the line.
    let near = view.slice(view.lowest().max(key_end.saturating_sub(BEFORE))..key_end);
    let line = memchr::memrchr(b'\n', near).map_or(near, |end| &near[end + 1..]);
    if settings == Settings::No && memchr::memchr2(b':', b'-', line).is_none() {
        return false;
    }
    let Some(start) = start_of(view, key_end) else { return settings == Settings::Diff };
    let text = view.slice(start..key_end);
    let in_diff = settings == Settings::Diff && matches!(text, [b'+' | b'-' | b' ', ..]);
    in_diff || tool_prefix(text).file.is_some_and(is_settings_name)
}

/// The text before the key that ends at `key_end`, up to the end of a configuration file's name, with which a tool begins
/// each line of that file: `conf/my.cnf`, `HEAD:.env`.
pub(super) fn settings_prefix<'t>(view: &View<'t>, key_end: usize) -> Option<&'t [u8]> {
    let text = view.slice(start_of(view, key_end)?..key_end);
    let (named, file) = file_prefix(text);
    file.filter(|file| is_settings_name(file))?;
    text.get(..named.checked_sub(1)?)
}

/// The end of the prefix of a line of context before the key that ends at `key_end`: `conf/my.cnf-12-`. The bytes of such a
/// prefix could be a key's.
pub(super) fn context_end(view: &View<'_>, key_end: usize) -> Option<usize> {
    let start = start_of(view, key_end)?;
    let text = view.slice(start..key_end);
    let (named, _) = context_prefix(text)?;
    Some(start + named + number(&text[named..]).unwrap_or(0))
}

/// Returns whether only a comment follows on the line.
pub(super) fn ends(view: &View<'_>, at: usize) -> bool {
    let blank = view.run(at, 8, &BLANK);
    match view.get(blank) {
        None | Some(b'\n' | b'\r') => true,
        Some(b'#' | b';') => blank > at,
        Some(b'\\') => matches!(view.get(blank + 1), Some(b'n' | b'r')),
        _ => false,
    }
}

/// The start of the line after the break at `at`.
pub(super) fn after_break(view: &View<'_>, at: usize) -> Option<usize> {
    match view.get(at)? {
        b'\n' => Some(at + 1),
        b'\r' if view.get(at + 1) == Some(b'\n') => Some(at + 2),
        _ => None,
    }
}

/// The start of the text of the line at `start`, or of the next that is not empty, if it is indented deeper.
pub(super) fn deeper(view: &View<'_>, start: usize, indent: usize, numbered: bool) -> Option<usize> {
    let mut start = start;
    for _ in 0..=EMPTY_LINES {
        let text = if numbered { after_number(view, start)? } else { start };
        let first = view.run(text, DEEPEST, &BLANK);
        match after_break(view, first) {
            Some(next) => start = next,
            None => return (view.get(first).is_some() && first - text > indent).then_some(first),
        }
    }
    None
}

/// The next position inside a YAML block; `None` at its end.
pub(super) fn block_step(view: &View<'_>, at: usize, indent: usize, numbered: bool) -> Option<usize> {
    match after_break(view, at) {
        Some(next) => deeper(view, next, indent, numbered),
        None => view.get(at).map(|_| at + 1),
    }
}

/// Returns whether the line at `start` is in a section: above it are settings, and above them is `[name]` or
/// a redacted value.
pub(super) fn in_section(view: &View<'_>, start: usize) -> bool {
    static SECTION_NAME: Class = bytes(b"-0-9a-zA-Z_. :\"");
    let mut start = start;
    for _ in 0..SECTION {
        let end = match (view.before(start), view.before(start.saturating_sub(1))) {
            (Some(b'\n'), Some(b'\r')) => start - 2,
            (Some(b'\n'), _) => start - 1,
            _ => return false,
        };
        if view.follows_redaction(end) {
            return true;
        }
        if view.before(end) == Some(b']') {
            let name = view.run_before(end - 1, 64, &SECTION_NAME);
            return view.before(name) == Some(b'[') && starts_line(view, name - 1);
        }
        start = view.run_before(end, BEFORE, &SETTING_OR_BLANK);
        let line = view.slice(start..end);
        let number = number(line).unwrap_or(0);
        let line = line[number..].trim_ascii();
        let comment = matches!(line.first(), None | Some(b'#' | b';'));
        if !(comment || line.contains(&b'=') && line.last() != Some(&b';')) {
            return false;
        }
    }
    false
}

/// Returns whether only spaces and a number precede `at` on its line.
fn starts_line(view: &View<'_>, at: usize) -> bool {
    let blank = view.run_before(at, 8, &BLANK);
    match view.before(blank) {
        None | Some(b'\n') => true,
        Some(byte) => byte.is_ascii_digit() && blank < at,
    }
}

static SETTING_OR_BLANK: Class = {
    let mut set = SETTING;
    set[b' ' as usize] = true;
    set[b'\t' as usize] = true;
    set
};

/// Returns whether the word before the one at `at` is the name after `login`, as in `.netrc`.
pub(super) fn follows_login(view: &View<'_>, at: usize) -> bool {
    let end = match of(view, at, false) {
        Some(line) if view.before(line.start) == Some(b'\n') => line.start - 1,
        Some(_) => return false,
        None => at,
    };
    let (name, after_name) = word_before(view, end);
    let (login, after_login) = word_before(view, name);
    if name == after_name || after_login == name || view.slice(login..after_login) != b"login" {
        return false;
    }
    let (host, after_host) = word_before(view, login);
    let (machine, after_machine) = word_before(view, host);
    of(view, login, false).is_some()
        || view.slice(host..after_host) == b"default"
        || view.slice(machine..after_machine) == b"machine"
}

/// Start and end of the word before `at` on its line.
fn word_before(view: &View<'_>, at: usize) -> (usize, usize) {
    let end = view.run_before(at, 8, &BLANK);
    (view.run_before(end, DEEPEST, &NAME), end)
}

/// The start of the line that contains the byte before `at`; `None` if a redaction precedes it.
pub(super) fn start_of(view: &View<'_>, at: usize) -> Option<usize> {
    let mut start = at;
    while at - start < BEFORE {
        match view.before(start) {
            None | Some(b'\n' | b'\r') => return Some(start),
            Some(b'n') if view.before(start - 1) == Some(b'\\') => return Some(start),
            Some(b'[' | b']') => return None,
            Some(_) => start -= 1,
        }
    }
    None
}

/// A tool's prefix to a line: a file's name, a number, the sign of a diff, the origin that `git blame` prints.
struct Prefix<'t> {
    length: usize,
    /// It has a line's number.
    numbered: bool,
    file: Option<&'t [u8]>,
}

fn tool_prefix(text: &[u8]) -> Prefix<'_> {
    let (named, file) = file_prefix(text);
    let named = named + blamed(&text[named..]);
    let number = number(&text[named..]);
    let at = named + number.unwrap_or(0);
    let at = at + column(&text[at..]).filter(|_| file.is_some()).unwrap_or(0);
    let sign = matches!(text.get(at), Some(b'+' | b'-' | b'>' | b'<')) && text.get(at + 1) != Some(&b'-');
    Prefix { length: at + usize::from(sign), numbered: number.is_some(), file }
}

/// The length of a file's name and the sign after it, and the name: `a/b.rs:`. The name of a configuration file may follow
/// a revision of git (`HEAD:.env:`).
fn file_prefix(text: &[u8]) -> (usize, Option<&[u8]>) {
    let name_end = |from: usize| {
        let length =
            text.get(from..).unwrap_or_default().iter().take_while(|byte| NAME[**byte as usize]).count();
        (length > 0 && text.get(from + length) == Some(&b':')).then_some(from + length)
    };
    let first = name_end(0);
    if let Some(start) = first.map(|end| end + 1)
        && let Some(end) = name_end(start)
        && is_settings_name(&text[start..end])
    {
        return (end + 1, Some(&text[start..end]));
    }
    if let Some(end) = first.filter(|end| text[..*end].iter().any(|byte| b"./".contains(byte))) {
        return (end + 1, Some(&text[..end]));
    }
    context_prefix(text).map_or((0, None), |(named, file)| (named, Some(file)))
}

/// The length of a configuration file's name with a dash after it, and the name, before a line of context: `.env-12-`.
fn context_prefix(text: &[u8]) -> Option<(usize, &[u8])> {
    let is_numbered = |at: &usize| {
        let digits = text[at + 1..].iter().take(7).take_while(|byte| DIGIT[**byte as usize]).count();
        digits > 0 && text.get(at + 1 + digits) == Some(&b'-')
    };
    let name = text.iter().take_while(|byte| NAME[**byte as usize]).count();
    let mut dashes = (0..name).filter(|at| text[*at] == b'-').filter(is_numbered);
    let end = dashes.find(|at| is_settings_name(&text[..*at]))?;
    Some((end + 1, &text[..end]))
}

/// The length of the origin that `git blame` prints before a line: `1a2b3c4d (Ann 2024-05-01 10:00:00 +0000 12) `.
fn blamed(text: &[u8]) -> usize {
    let boundary = usize::from(text.first() == Some(&b'^'));
    let hash = text[boundary..].iter().take_while(|byte| HEX[**byte as usize]).count();
    let rest = &text[boundary + hash..];
    if !(7..=40).contains(&hash) || rest.first() != Some(&b' ') || !rest.contains(&b'(') {
        return 0;
    }
    let is_end = |three: &[u8]| matches!(three, [digit, b')', b' '] if DIGIT[*digit as usize]);
    rest.windows(3).position(is_end).map_or(0, |end| boundary + hash + end + 3)
}

/// The length of a column's number and the colon after it.
fn column(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take(7).take_while(|byte| DIGIT[**byte as usize]).count();
    (digits > 0 && text.get(digits) == Some(&b':')).then_some(digits + 1)
}

/// The length of a line's number and the sign after it.
fn number(text: &[u8]) -> Option<usize> {
    let blanks = text.iter().take_while(|byte| BLANK[**byte as usize]).count();
    let digits = text[blanks..].iter().take(7).take_while(|byte| DIGIT[**byte as usize]).count();
    let sign = blanks + digits;
    match text.get(sign) {
        Some(b'\t') if digits > 0 => Some(sign + 1),
        // Padded numbers have a space after their sign.
        Some(b':' | b'-' | b'|') if digits > 0 => {
            let blank = blanks > 0 && text.get(sign + 1) == Some(&b' ');
            Some(sign + 1 + usize::from(blank))
        }
        _ => None,
    }
}

/// The start of the text after the number of the line at `start`.
pub(super) fn after_number(view: &View<'_>, start: usize) -> Option<usize> {
    let digits = view.run(view.run(start, 12, &BLANK), 7, &DIGIT);
    // The sign and the space after it must have been examined.
    view.get(digits + 1)?;
    number(view.slice(start..digits + 2)).map(|length| start + length)
}
