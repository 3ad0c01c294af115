//! Bytes as text: their encoding, their secrets, and windows of lines.

mod encoding;
mod mask;

use std::ops::Range;

pub use self::encoding::{Encoding, Text, decode, decode_owned};
pub use self::mask::{Mark, Masked, mask, shown};
use crate::port::{Binary, From, Reading, Version, View, Window};
use crate::redact::Redactor;

/// Returns a window of a file whose bytes are all loaded, without its secrets.
pub fn window(bytes: Vec<u8>, version: Version, window: &Window, redactor: &dyn Redactor) -> Reading {
    let size = bytes.len() as u64;
    let text = match decode_owned(bytes) {
        Ok(text) => text,
        Err(mime) => return Reading::Binary(Binary { mime, size, version }),
    };
    let start = begin(&text, window.from);
    let first_line = 1 + count_lines(&text.text[..start]);
    let (end, cut) = end(&text.text, start, window);
    let (shown, redacted) = shown(&text.text, start..end, redactor);
    let bytes = text.offset_in_file(start)..text.offset_in_file(end);
    Reading::Text(View {
        redacted,
        lines: count_shown(&text.text[start..end]),
        text: shown,
        first_line: Some(first_line),
        bytes,
        size,
        cut,
        encoding: text.encoding.name(),
        bom: text.bom,
        version,
    })
}

/// Returns the start of a window.
fn begin(text: &Text, from: From) -> usize {
    let lines = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let text_of = &text.text;
    match from {
        From::Line(line) => nth_line(text_of, lines(line.saturating_sub(1))),
        From::End(count) => {
            let all = count_shown(text_of);
            nth_line(text_of, lines(all.saturating_sub(count)))
        }
        From::Byte(byte) => {
            let mut at = text.offset_in_text(byte);
            while !text_of.is_char_boundary(at) {
                at -= 1;
            }
            at
        }
    }
}

/// Returns the start of the line after `skip` lines; the end of the text if there are fewer.
fn nth_line(text: &str, skip: usize) -> usize {
    match skip.checked_sub(1) {
        None => 0,
        Some(before) => {
            memchr::memchr_iter(b'\n', text.as_bytes()).nth(before).map_or(text.len(), |at| at + 1)
        }
    }
}

/// Returns the end of a window, and whether its last line was cut.
fn end(text: &str, start: usize, window: &Window) -> (usize, bool) {
    let rest = &text[start..];
    let lines = match window.lines.checked_sub(1) {
        None => 0,
        Some(before) => {
            memchr::memchr_iter(b'\n', rest.as_bytes()).nth(before).map_or(rest.len(), |newline| newline + 1)
        }
    };
    if lines <= window.bytes {
        return (start + lines, false);
    }
    let mut most = window.bytes;
    while !rest.is_char_boundary(most) {
        most -= 1;
    }
    // Whole lines if one fits; else as much of the line as fits.
    match rest[..most].rfind('\n') {
        Some(newline) => (start + newline + 1, false),
        None => (start + most, true),
    }
}

/// Counts line ends.
fn count_lines(text: &str) -> u64 {
    memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64
}

/// Counts lines as a person does: the last one needs no line end.
pub fn count_shown(text: &str) -> u64 {
    count_lines(text) + u64::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Widens a range to whole characters.
fn whole_characters(text: &str, range: Range<usize>) -> Range<usize> {
    let (mut start, mut end) = (range.start.min(text.len()), range.end.min(text.len()));
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

#[cfg(test)]
mod tests;
