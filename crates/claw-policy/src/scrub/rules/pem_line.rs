//! A line of a PEM body as tools print it: indented, numbered, quoted, with the sign of a diff, or with its
//! line break written `\n` inside a JSON string.

use crate::scrub::view::{BASE64, BLANK, Class, DIGIT, View, bytes};

/// The shortest full line.
pub(super) const FULL: usize = 64;
/// The longest full line.
const WIDEST: usize = 76;
/// The longest line that is considered.
const LINE: usize = 100;

static SIGN: Class = bytes(b"->");
static QUOTE: Class = bytes(b"\"'`");
static SUFFIX: Class = bytes(b" \t\"',+;");
static PAD: Class = bytes(b"=");

/// The base64 of one line.
pub(super) struct Line {
    pub(super) start: usize,
    /// The end, after the padding.
    pub(super) end: usize,
    /// The start of the next line, unless the text ends here.
    pub(super) next: Option<usize>,
    pub(super) quoted: bool,
    length: usize,
    mixed: bool,
}

impl Line {
    /// The line at `line_start` if it contains only base64.
    pub(super) fn parse(view: &View<'_>, line_start: usize) -> Option<Self> {
        let start = prefix_end(view, line_start);
        let run = view.run(start, LINE, &BASE64);
        let end = view.run(run, 2, &PAD);
        let next = line_break(view, end);
        let long = run - start == LINE;
        if run == start || (next.is_none() && !long && view.get(end).is_some()) {
            return None;
        }
        Some(Self {
            start,
            end,
            next,
            quoted: view.follows(start, &QUOTE),
            length: run - start,
            mixed: is_mixed(view.slice(start..run), 8),
        })
    }

    /// Returns whether it is as wide as all lines of a body but the last.
    pub(super) fn is_full(&self) -> bool {
        self.mixed && (FULL..=WIDEST).contains(&self.length)
    }

    /// Returns whether it may be the rest of a cut first or last line.
    pub(super) fn is_part(&self) -> bool {
        self.mixed || self.end - self.start > self.length
    }

    /// Returns whether it looks like a line of a body, full or not.
    pub(super) fn is_body(&self) -> bool {
        self.mixed && (self.length >= 16 || self.end - self.start > self.length)
    }
}

/// Returns whether `run` has at least `least` bytes, with upper case, lower case and digits.
pub(super) fn is_mixed(run: &[u8], least: usize) -> bool {
    run.len() >= least
        && run.iter().any(u8::is_ascii_uppercase)
        && run.iter().any(u8::is_ascii_lowercase)
        && run.iter().any(u8::is_ascii_digit)
}

/// The end of the indentation, line number, sign and quote before a line.
pub(super) fn prefix_end(view: &View<'_>, line_start: usize) -> usize {
    let mut at = view.run(line_start, 12, &BLANK);
    let number = view.run(at, 7, &DIGIT);
    if number > at && matches!(view.get(number), Some(b' ' | b'\t' | b':' | b'|' | b'-')) {
        at = view.run(number + 1, 4, &BLANK);
        if view.get(at) == Some(b'|') {
            at = view.run(at + 1, 4, &BLANK);
        }
    }
    // Five dashes are a marker, not a sign.
    if view.is(at, &SIGN) && view.get(at + 1) != Some(b'-') {
        at = view.run(at + 1, 4, &BLANK);
    }
    view.run(at, 1, &QUOTE)
}

/// The start of the line after `at` if only closing characters follow on this one.
pub(super) fn line_break(view: &View<'_>, at: usize) -> Option<usize> {
    if view.starts_with(at, b"\\n") || view.starts_with(at, b"\\r\\n") {
        let escaped = if view.starts_with(at, b"\\n") { at + 2 } else { at + 4 };
        // In source code a quoted line ends after the escape.
        let closed = view.run(escaped, 8, &SUFFIX);
        return Some(if closed > escaped && view.get(closed) == Some(b'\n') { closed + 1 } else { escaped });
    }
    let at = view.run(at, 8, &SUFFIX);
    match view.get(at)? {
        b'\n' => Some(at + 1),
        b'\r' if view.get(at + 1) == Some(b'\n') => Some(at + 2),
        _ => None,
    }
}

/// The start of the line that contains the byte before `at`.
pub(super) fn start_of(view: &View<'_>, at: usize) -> Option<usize> {
    let mut start = at;
    loop {
        match view.before(start) {
            None | Some(b'\n') => return Some(start),
            Some(b'n') if view.before(start - 1) == Some(b'\\') => return Some(start),
            Some(b'[' | b']') => return None,
            Some(_) => start -= 1,
        }
    }
}

/// The base64 of the line before the one at `line_start`.
pub(super) fn before(view: &View<'_>, line_start: usize) -> Option<Line> {
    let broken = match view.before(line_start)? {
        b'\n' => line_start - 1,
        b'n' if view.before(line_start - 1) == Some(b'\\') => line_start - 2,
        _ => return None,
    };
    let line = Line::parse(view, start_of(view, broken)?)?;
    (line.next == Some(line_start)).then_some(line)
}
