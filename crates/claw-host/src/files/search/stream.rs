//! Reads a file in chunks, with enough context around each chunk to recognize secrets in it.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use claw_core::port::{Hits, Search};
use claw_core::redact::Redactor;
use claw_core::text;
use rustix::buffer::spare_capacity;

use super::CONTEXT;
use super::judge::{Chunk, Judge};
use super::pattern::Pattern;

/// The bytes searched at once.
const CHUNK: usize = 1024 * 1024;
/// The most bytes held in memory as a whole: a line, a file searched over several lines or a file that is not
/// UTF-8.
const WHOLE: usize = 16 * 1024 * 1024;
/// The bytes at the beginning that decide whether a file is text.
const LOOKED_AT: usize = 8 * 1024;

/// Searches one file after the other.
pub(super) struct Scanner<'a> {
    judge: Judge<'a>,
    stop: &'a AtomicBool,
    buffer: Vec<u8>,
}

/// The result of searching one file.
#[derive(Debug)]
pub(super) enum Looked {
    Text(Hits),
    Binary,
    TooLong,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(
        pattern: &'a Pattern,
        search: &'a Search,
        redactor: &'a dyn Redactor,
        stop: &'a AtomicBool,
    ) -> Self {
        Self { judge: Judge::new(pattern, search, redactor), stop, buffer: Vec::new() }
    }

    /// Searches the complete text of the file at `path`; at most `wanted` hits keep their lines.
    pub(super) fn text(&mut self, path: &str, bytes: &[u8], wanted: usize) -> Looked {
        self.judge.name(path);
        if is_utf16(bytes) {
            return match text::decode(bytes) {
                Ok(text) => self.whole(text.text.as_bytes(), 0, wanted),
                Err(_) => Looked::Binary,
            };
        }
        if is_binary(bytes) {
            return Looked::Binary;
        }
        let start = bom(bytes);
        let found = self.whole(bytes, start, wanted);
        if let Looked::Text(hits) = &found
            && hits.count > 0
            && str::from_utf8(bytes).is_err()
            && let Ok(text) = text::decode(bytes)
        {
            return self.whole(text.text.as_bytes(), 0, wanted);
        }
        found
    }

    fn whole(&mut self, bytes: &[u8], start: usize, wanted: usize) -> Looked {
        self.judge.begin(wanted);
        self.judge.chunk(&Chunk { bytes, core: start..bytes.len(), first_line: 1 });
        Looked::Text(self.judge.end())
    }

    /// The hits in the file at `path`, which is read from its beginning.
    pub(super) fn file(&mut self, path: &str, file: &mut File, wanted: usize) -> io::Result<Looked> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        self.judge.name(path);
        let found = self.read(path, file, &mut buffer, wanted);
        // Not kept where a long line has made it large.
        if buffer.capacity() <= 4 * CHUNK {
            self.buffer = buffer;
        }
        found
    }

    fn read(
        &mut self,
        path: &str,
        file: &mut File,
        buffer: &mut Vec<u8>,
        wanted: usize,
    ) -> io::Result<Looked> {
        let most = CHUNK + 2 * CONTEXT;
        let mut at_end = fill(file, buffer, most)?;
        if is_binary(buffer) && !is_utf16(buffer) {
            return Ok(Looked::Binary);
        }
        if at_end {
            return Ok(self.text(path, buffer, wanted));
        }
        if is_utf16(buffer) || self.judge.is_multiline() {
            return match fill(file, buffer, WHOLE)? {
                true => Ok(self.text(path, buffer, wanted)),
                false => Ok(Looked::TooLong),
            };
        }
        self.judge.begin(wanted);
        let (mut start, mut line) = (bom(buffer), 1);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let Some(end) = core_end(buffer, start, at_end) else {
                let more = (buffer.len() * 2).min(WHOLE + 2 * CONTEXT);
                at_end = fill(file, buffer, more)?;
                continue;
            };
            self.judge.chunk(&Chunk { bytes: buffer, core: start..end, first_line: line });
            if at_end {
                break;
            }
            line += memchr::memchr_iter(b'\n', &buffer[start..end]).count() as u64;
            let keep = end.saturating_sub(CONTEXT);
            buffer.drain(..keep);
            start = end - keep;
            at_end = fill(file, buffer, most)?;
        }
        Ok(Looked::Text(self.judge.end()))
    }
}

/// Returns the end of a chunk of whole lines that has enough context after it; `None` if more must be read.
fn core_end(buffer: &[u8], start: usize, at_end: bool) -> Option<usize> {
    if at_end {
        return Some(buffer.len());
    }
    let most = buffer.len().saturating_sub(CONTEXT).max(start);
    match memchr::memrchr(b'\n', &buffer[start..most]) {
        Some(newline) => Some(start + newline + 1),
        // A line without end is searched in parts.
        None if buffer.len() - start >= WHOLE => Some(most),
        None => None,
    }
}

/// Reads until the buffer holds so much; returns whether the end was reached.
fn fill(file: &mut File, buffer: &mut Vec<u8>, most: usize) -> io::Result<bool> {
    // A small file needs one read that finds its end.
    if buffer.is_empty() && buffer.capacity() < CHUNK {
        let size = file.metadata()?.len();
        let room = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1).min(most);
        buffer.reserve(room);
    }
    while buffer.len() < most {
        if buffer.capacity() == buffer.len() {
            buffer.reserve((most - buffer.len()).min(CHUNK));
        }
        let had = buffer.len();
        rustix::io::retry_on_intr(|| rustix::io::read(&*file, spare_capacity(buffer)))?;
        if buffer.len() == had {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff")
}

fn is_binary(bytes: &[u8]) -> bool {
    let looked_at = &bytes[..bytes.len().min(LOOKED_AT)];
    memchr::memchr(0, looked_at).is_some() || looked_at.starts_with(b"%PDF-")
}

fn bom(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }
}
