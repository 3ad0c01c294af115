//! A part of a file, however long the file is.
//!
//! A short file is read whole. Of a long one, only the shown part is read, the context that may show that it
//! is secret, and the part to be counted: from the start for a line's number, from the end for the last
//! lines.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use claw_core::port::{Binary, From, Reading, View, Window};
use claw_core::redact::Redactor;
use claw_core::text::{self, Encoding};
use rustix::fs::Stat as Raw;

use super::Request;
use super::failure::Failure;
use super::handle::{self, size};
use super::read;
use super::resolve::{Missing, again};
use super::search::CONTEXT;

/// The size up to which a file is read whole.
const SHORT: u64 = 256 * 1024;
/// The bytes read at once when scanning for lines. Even, so that no UTF-16 unit is split.
const BLOCK: usize = 256 * 1024;
/// The bytes read first when scanning for the last lines, usually few. Even as well.
const FIRST_BLOCK: usize = 16 * 1024;
/// The bytes at the beginning that decide a file's type.
const HEAD: usize = 16 * 1024;
/// The distance scanned back for the start of a line.
const LONGEST: u64 = 16 * 1024 * 1024;
/// The offset up to which lines are counted for their numbers alone.
const COUNTED: u64 = 64 * 1024 * 1024;
/// The most bytes shown, whatever is requested.
const MOST: usize = 16 * 1024 * 1024;

/// A part of a file, without its secrets.
pub(super) fn window(
    request: &Request,
    window: &Window,
    redactor: &dyn Redactor,
) -> Result<Reading, Failure> {
    let reach = request.reach(false)?;
    again(|| {
        let found = request.find(&reach, Missing::Leave)?;
        let (mut file, raw) = read::open(&reach, &found)?;
        if size(&raw) <= SHORT {
            let (bytes, raw) = read::settled(&mut file, raw)?;
            return Ok(text::window(bytes, handle::version(&raw), window, redactor));
        }
        long(&file, &raw, window, redactor)
    })
}

/// Reads a window of a file that is not read whole.
fn long(file: &File, raw: &Raw, window: &Window, redactor: &dyn Redactor) -> Result<Reading, Failure> {
    let (size, version) = (size(raw), handle::version(raw));
    let head = read_at(file, 0, HEAD)?;
    let binary = |mime| Reading::Binary(Binary { mime, size, version: version.clone() });
    // A file that begins with a hole may end with text, as logs do that were cut while they were written.
    let hole = matches!(window.from, From::End(_)) && is_hole(&head);
    let (encoding, bom) = match look(&head) {
        _ if hole => (Encoding::Utf8, false),
        Ok(looked) => looked,
        Err(mime) => return Ok(binary(mime)),
    };
    let top = if !bom {
        0
    } else if encoding == Encoding::Utf8 {
        3
    } else {
        2
    };
    let lines = Lines { file, encoding, top, size };
    let (mut start, first_line) = lines.begin(window.from)?;
    if hole && read_at(file, start, 1)? == [0] {
        start += read_at(file, start, BLOCK)?.iter().take_while(|byte| **byte == 0).count() as u64;
    }
    let (shown, cut) = lines.end(start, window)?;
    let end = start + shown.len() as u64;
    let encoding = match look(&shown) {
        Err(mime) if hole && !shown.is_empty() => return Ok(binary(mime)),
        Ok((encoding, _)) if hole => encoding,
        _ => encoding,
    };
    let around = start.saturating_sub(CONTEXT as u64).max(top);
    let before = decode(encoding, &read_at(file, around, length(start - around))?);
    let after = decode(encoding, &read_at(file, end, CONTEXT)?);
    let shown = decode(encoding, &shown);
    let place = before.len()..before.len() + shown.len();
    let lines = text::count_shown(&shown);
    let (seen, redacted) = text::shown(&[before, shown, after].concat(), place, redactor);
    Ok(Reading::Text(View {
        redacted,
        lines,
        text: seen,
        first_line,
        bytes: start..end,
        size,
        cut,
        encoding: encoding.name(),
        bom,
        version,
    }))
}

/// Finds the lines of a file.
struct Lines<'a> {
    file: &'a File,
    encoding: Encoding,
    /// The offset at which the text begins.
    top: u64,
    size: u64,
}

impl Lines<'_> {
    /// Returns the offset at which a window begins, and the number of its first line if known.
    fn begin(&self, from: From) -> Result<(u64, Option<u64>), Failure> {
        match from {
            From::Line(line) => {
                let (start, passed) = self.skip(line.saturating_sub(1), self.size)?;
                Ok((start, Some(1 + passed)))
            }
            From::End(count) => {
                let last = read_at(self.file, self.size.saturating_sub(2).max(self.top), 2)?;
                // The end of the last line is not the beginning of another one.
                let ended = self.ends(&last).last() == Some(last.len());
                let start = self.back(self.size, count.saturating_add(u64::from(ended)))?;
                Ok((start, (start == self.top).then_some(1)))
            }
            From::Byte(byte) => {
                let start = self.character(byte.clamp(self.top, self.size))?;
                if start > COUNTED {
                    return Ok((start, None));
                }
                Ok((start, Some(1 + self.skip(u64::MAX, start)?.1)))
            }
        }
    }

    /// Returns the offset after so many lines, at most `limit`, and the number of lines skipped.
    fn skip(&self, lines: u64, limit: u64) -> Result<(u64, u64), Failure> {
        let (mut at, mut passed) = (self.top, 0);
        while passed < lines && at < limit {
            let block = read_at(self.file, at, BLOCK.min(length(limit - at)))?;
            if block.is_empty() {
                break;
            }
            let here = self.ends(&block).count() as u64;
            if passed + here >= lines {
                let last = self.ends(&block).nth(length(lines - passed - 1)).unwrap_or(block.len());
                return Ok((at + last as u64, lines));
            }
            passed += here;
            at += block.len() as u64;
        }
        Ok((at, passed))
    }

    /// Returns the offset after the `count`th line end before `from`.
    fn back(&self, from: u64, count: u64) -> Result<u64, Failure> {
        let (mut left, mut at, mut last, mut step) = (count, from, from, FIRST_BLOCK);
        while left > 0 && at > self.top {
            let start = at.saturating_sub(step as u64).max(self.top);
            step = (2 * step).min(BLOCK);
            let block = read_at(self.file, start, length(at - start))?;
            for end in self.ends(&block).rev() {
                left -= 1;
                last = start + end as u64;
                if left == 0 {
                    return Ok(last);
                }
            }
            if last - start > LONGEST || is_hole(&block) {
                return Ok(at);
            }
            at = start;
        }
        Ok(at)
    }

    /// The bytes from `start` to a window's end, and whether its last line was cut.
    fn end(&self, start: u64, window: &Window) -> Result<(Vec<u8>, bool), Failure> {
        let most = window.bytes.min(MOST);
        // A little more, to see where a character ends.
        let mut bytes = read_at(self.file, start, most + 4)?;
        let lines = match window.lines.checked_sub(1) {
            None => Some(0),
            Some(before) => self.ends(&bytes).nth(before),
        };
        let (end, cut) = match lines {
            Some(end) if end <= most => (end, false),
            _ if bytes.len() <= most => (bytes.len(), false),
            // Whole lines where there is one; else as much of the line as fits.
            _ => match self.ends(&bytes).take_while(|end| *end <= most).last() {
                Some(end) => (end, false),
                None => (self.whole_characters(&bytes, most), true),
            },
        };
        bytes.truncate(end);
        Ok((bytes, cut))
    }

    fn whole_characters(&self, bytes: &[u8], most: usize) -> usize {
        match self.encoding {
            Encoding::Utf8 => {
                let follows = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
                (most.saturating_sub(3)..=most).rev().find(|at| !follows(*at)).unwrap_or(most)
            }
            Encoding::Other(_) => most,
            _ => {
                let even = most - most % 2;
                let high = if self.encoding == Encoding::Utf16Le {
                    even.wrapping_sub(1)
                } else {
                    even.wrapping_sub(2)
                };
                let divides = bytes.get(high).is_some_and(|byte| (0xd8..0xdc).contains(byte));
                if divides { even - 2 } else { even }
            }
        }
    }

    /// Returns the offset of the character that contains a byte.
    fn character(&self, byte: u64) -> Result<u64, Failure> {
        let from = byte.saturating_sub(4).max(self.top);
        // The same as where a text is cut: what is cut there begins here.
        let from = if self.encoding == Encoding::Utf8 { from } else { from - (from - self.top) % 2 };
        let bytes = read_at(self.file, from, length(byte - from) + 4)?;
        Ok(from + self.whole_characters(&bytes, length(byte - from)) as u64)
    }

    /// The places after each line end of a block, which begins with a whole unit.
    fn ends<'b>(&self, block: &'b [u8]) -> impl DoubleEndedIterator<Item = usize> + use<'b> {
        let encoding = self.encoding;
        memchr::memchr_iter(b'\n', block).filter_map(move |at| match encoding {
            Encoding::Utf16Le => (at % 2 == 0 && block.get(at + 1) == Some(&0)).then_some(at + 2),
            Encoding::Utf16Be => (at % 2 == 1 && block[at - 1] == 0).then_some(at + 1),
            _ => Some(at + 1),
        })
    }
}

/// Returns the encoding of text that begins with `head`; for other content, what it looks like.
fn look(head: &[u8]) -> Result<(Encoding, bool), &'static str> {
    let mut whole = head.len();
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        whole -= whole % 2;
        let high = if head[0] == 0xff { whole - 1 } else { whole - 2 };
        if (0xd8..0xdc).contains(&head[high]) {
            whole -= 2;
        }
    } else if let Err(error) = str::from_utf8(head)
        && error.error_len().is_none()
    {
        // It ends within a character.
        whole = error.valid_up_to();
    }
    text::decode(&head[..whole]).map(|text| (text.encoding, text.bom))
}

/// Decodes a part of a text; invalid bytes are shown as such.
fn decode(encoding: Encoding, bytes: &[u8]) -> String {
    let known = match encoding {
        Encoding::Utf8 => return String::from_utf8_lossy(bytes).into_owned(),
        Encoding::Utf16Le => encoding_rs::UTF_16LE,
        Encoding::Utf16Be => encoding_rs::UTF_16BE,
        Encoding::Other(other) => other,
    };
    known.decode_without_bom_handling(bytes).0.into_owned()
}

/// Reads at most so many bytes from an offset; fewer only at the end of the file.
fn read_at(file: &File, place: u64, most: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = vec![0; most];
    let mut had = 0;
    while had < most {
        match file.read_at(&mut bytes[had..], place + had as u64) {
            Ok(0) => break,
            Ok(more) => had += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(had);
    Ok(bytes)
}

/// Returns whether all bytes are NUL. Checks many bytes at a time, since a hole must be read to be
/// recognized.
fn is_hole(bytes: &[u8]) -> bool {
    bytes.chunks(256).all(|part| part.iter().fold(0, |any, byte| any | byte) == 0)
}

fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
