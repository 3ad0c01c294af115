//! Decides which lines of a text are hits, and how much of them is shown.
//!
//! A hit counts if it would be one in the text with its secrets masked, and touches none of their
//! placeholders. So nothing reported depends on a secret's content: neither the count, nor whether another
//! hit on the same line was found in its place.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use claw_core::port::{Hits, Search, SearchLine};
use claw_core::redact::{PLACEHOLDER, Redaction, Redactor};
use grep_matcher::Matcher as _;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};

use super::CONTEXT;
use super::pattern::Pattern;

/// The longest part of a line shown, in bytes.
const MOST_SHOWN: usize = 4 * 1024;

/// A part of a file, with its context.
pub(super) struct Chunk<'a> {
    pub(super) bytes: &'a [u8],
    /// The range to search: whole lines.
    pub(super) core: Range<usize>,
    /// The number of its first line.
    pub(super) first_line: u64,
}

/// Searches the chunks of one file after the other.
pub(super) struct Judge<'a> {
    pattern: &'a Pattern,
    search: &'a Search,
    redactor: &'a dyn Redactor,
    /// The path of the file.
    path: String,
    searcher: Searcher,
    /// The number of hits still wanted with their lines.
    wanted: usize,
    count: u64,
    lines: BTreeMap<u64, SearchLine>,
}

/// A line: its number and its range, line end included.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Numbered {
    number: u64,
    range: Range<usize>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(pattern: &'a Pattern, search: &'a Search, redactor: &'a dyn Redactor) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .bom_sniffing(false)
            .binary_detection(BinaryDetection::none())
            .build();
        Self {
            pattern,
            search,
            redactor,
            path: String::new(),
            searcher,
            wanted: 0,
            count: 0,
            lines: BTreeMap::new(),
        }
    }

    pub(super) fn is_multiline(&self) -> bool {
        self.pattern.multiline
    }

    /// Names the file that is searched next.
    pub(super) fn name(&mut self, path: &str) {
        path.clone_into(&mut self.path);
    }

    /// Begins a file, from which so many hits are wanted with their lines.
    pub(super) fn begin(&mut self, wanted: usize) {
        (self.wanted, self.count) = (wanted, 0);
        self.lines.clear();
    }

    /// Returns the hits found in the file.
    pub(super) fn end(&mut self) -> Hits {
        let lines = std::mem::take(&mut self.lines).into_values().collect();
        Hits { path: String::new(), count: self.count, lines }
    }

    /// Searches a chunk.
    pub(super) fn chunk(&mut self, chunk: &Chunk<'_>) {
        if self.pattern.multiline {
            return self.over_lines(chunk);
        }
        let mut candidates = Candidates { chunk, lines: Vec::new() };
        let core = &chunk.bytes[chunk.core.clone()];
        // It reads memory and its sink never fails.
        let _ = self.searcher.search_slice(&self.pattern.matcher, core, &mut candidates);
        let Candidates { lines, .. } = candidates;
        if lines.is_empty() {
            return;
        }
        let secrets = self.secrets(chunk, &lines);
        for line in lines {
            if self.is_hit(chunk, &line.range, &secrets) {
                self.hit(chunk, &line, &secrets);
            }
        }
    }

    /// Searches a complete text for hits that may span lines.
    fn over_lines(&mut self, chunk: &Chunk<'_>) {
        let core = &chunk.bytes[chunk.core.clone()];
        if !matches!(self.pattern.matcher.is_match(core), Ok(true)) {
            return;
        }
        let mut secrets = Vec::new();
        find(self.redactor, &self.path, chunk.bytes, 0..chunk.bytes.len(), &mut secrets);
        let masked = Masked::of(chunk.bytes, chunk.core.clone(), &secrets);
        let mut spans = Vec::new();
        let _ = self.pattern.matcher.find_iter(&masked.text, |found| {
            let span = found.start()..found.end();
            if !masked.touches(&span, self.pattern.looks_around) {
                spans.push(masked.source_of(span.start)..masked.source_of(span.end));
            }
            true
        });
        let (mut number, mut counted) = (chunk.first_line, chunk.core.start);
        let mut last = 0;
        for span in spans {
            let mut start = line_start(chunk.bytes, span.start).max(chunk.core.start);
            // There is no line after the last line end.
            if start >= chunk.core.end {
                break;
            }
            number += newlines(&chunk.bytes[counted.min(start)..start]);
            counted = start;
            loop {
                let end = line_end(chunk.bytes, start);
                if number > last {
                    self.hit(chunk, &Numbered { number, range: start..end }, &secrets);
                    last = number;
                }
                if end >= span.end || end <= start {
                    break;
                }
                number += 1;
                (start, counted) = (end, end);
            }
        }
    }

    /// Finds the secrets around these lines and their context.
    fn secrets(&self, chunk: &Chunk<'_>, lines: &[Numbered]) -> Vec<Range<usize>> {
        let mut secrets = Vec::new();
        let mut window: Option<Range<usize>> = None;
        for line in lines {
            let shown = self.around(chunk, &line.range);
            let start = shown.start.saturating_sub(CONTEXT);
            let end = (shown.end + CONTEXT).min(chunk.bytes.len());
            match &mut window {
                Some(window) if start <= window.end => window.end = window.end.max(end),
                _ => {
                    if let Some(before) = window.replace(start..end) {
                        find(self.redactor, &self.path, chunk.bytes, before, &mut secrets);
                    }
                }
            }
        }
        if let Some(window) = window {
            find(self.redactor, &self.path, chunk.bytes, window, &mut secrets);
        }
        secrets
    }

    /// Returns the range of a line with the context that may be shown.
    fn around(&self, chunk: &Chunk<'_>, line: &Range<usize>) -> Range<usize> {
        let Range { mut start, mut end } = line.clone();
        if self.wanted > 0 {
            for _ in 0..self.search.before {
                start = line_before(chunk.bytes, start).unwrap_or(start);
            }
            for _ in 0..self.search.after {
                end = line_end(chunk.bytes, end);
            }
        }
        start..end
    }

    /// Returns whether this line has a hit that touches no secret.
    fn is_hit(&self, chunk: &Chunk<'_>, line: &Range<usize>, secrets: &[Range<usize>]) -> bool {
        if touching(secrets, line).is_empty() {
            return true;
        }
        let all = joined(chunk.bytes, line.clone(), secrets);
        let mut masked = Masked::of(chunk.bytes, all, secrets);
        if masked.text.ends_with(b"\n") {
            masked.text.pop();
        }
        // The end of the last line is a place in it, where nothing follows.
        let last = without_end(chunk.bytes, line).end == line.end;
        masked.find(self.pattern, |source| line.contains(&source) || last && source == line.end).is_some()
    }

    /// Counts a line, and keeps it with its context if wanted.
    fn hit(&mut self, chunk: &Chunk<'_>, line: &Numbered, secrets: &[Range<usize>]) {
        self.count += 1;
        if self.wanted == 0 {
            return;
        }
        self.wanted -= 1;
        let (mut number, mut range) = (line.number, line.range.clone());
        for _ in 0..self.search.before {
            let Some(start) = line_before(chunk.bytes, range.start) else { break };
            (number, range) = (number - 1, start..range.start);
            self.keep(chunk, &Numbered { number, range: range.clone() }, secrets, false);
        }
        self.keep(chunk, line, secrets, true);
        (number, range) = (line.number, line.range.clone());
        for _ in 0..self.search.after {
            let end = line_end(chunk.bytes, range.end);
            if end == range.end {
                break;
            }
            (number, range) = (number + 1, range.end..end);
            self.keep(chunk, &Numbered { number, range: range.clone() }, secrets, false);
        }
    }

    fn keep(&mut self, chunk: &Chunk<'_>, line: &Numbered, secrets: &[Range<usize>], hit: bool) {
        if let Some(kept) = self.lines.get_mut(&line.number) {
            kept.hit |= hit;
            return;
        }
        // A line entirely within a secret that began before is not shown again.
        let inside = |secret: &Range<usize>| secret.start < line.range.start && secret.end >= line.range.end;
        if secrets.iter().any(inside) {
            return;
        }
        let masked = Masked::of(chunk.bytes, without_end(chunk.bytes, &line.range), secrets);
        let at = if hit { masked.find(self.pattern, |_| true).unwrap_or(0) } else { 0 };
        let text = excerpt(&masked.text, at);
        self.lines.insert(line.number, SearchLine { number: line.number, text, hit });
    }
}

/// The lines that have hits, secrets or not.
struct Candidates<'a> {
    chunk: &'a Chunk<'a>,
    lines: Vec<Numbered>,
}

impl Sink for &mut Candidates<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let start = usize::try_from(found.absolute_byte_offset()).unwrap_or(usize::MAX);
        let start = self.chunk.core.start.saturating_add(start);
        let number = self.chunk.first_line + found.line_number().unwrap_or(1) - 1;
        self.lines.push(Numbered { number, range: start..start + found.bytes().len() });
        Ok(true)
    }
}

/// A part of a text with its secrets masked.
struct Masked {
    text: Vec<u8>,
    /// The offset of the part in the source.
    start: usize,
    /// The ranges of the placeholders, each with the end of its secret in the source.
    marks: Vec<(Range<usize>, usize)>,
}

impl Masked {
    fn of(bytes: &[u8], range: Range<usize>, secrets: &[Range<usize>]) -> Self {
        let mut masked =
            Self { text: Vec::with_capacity(range.len()), start: range.start, marks: Vec::new() };
        let mut done = range.start;
        for secret in touching(secrets, &range) {
            let (start, end) = (secret.start.max(done), secret.end.min(range.end));
            if start >= end {
                continue;
            }
            masked.text.extend_from_slice(&bytes[done..start]);
            let seen = masked.text.len();
            masked.text.extend_from_slice(PLACEHOLDER.as_bytes());
            masked.marks.push((seen..masked.text.len(), end));
            done = end;
        }
        masked.text.extend_from_slice(&bytes[done..range.end]);
        masked
    }

    /// Returns the offset of the first hit that touches no placeholder and whose source offset satisfies
    /// `asked`.
    fn find(&self, pattern: &Pattern, asked: impl Fn(usize) -> bool) -> Option<usize> {
        let mut place = None;
        let _ = pattern.matcher.find_iter(&self.text, |found| {
            let span = found.start()..found.end();
            if !self.touches(&span, pattern.looks_around) && asked(self.source_of(span.start)) {
                place = Some(span.start);
            }
            place.is_none()
        });
        place
    }

    /// Returns whether a hit overlaps a placeholder or, with `next_to`, is adjacent to one.
    fn touches(&self, span: &Range<usize>, next_to: bool) -> bool {
        self.marks.iter().any(|(mark, _)| match next_to {
            true => span.start <= mark.end && mark.start <= span.end,
            false => {
                let overlaps = span.start < mark.end && mark.start < span.end;
                overlaps || (span.is_empty() && mark.start < span.start && span.start < mark.end)
            }
        })
    }

    fn source_of(&self, at: usize) -> usize {
        match self.marks.iter().rev().find(|(mark, _)| mark.end <= at) {
            Some((mark, source)) => source + (at - mark.end),
            None => self.start + at,
        }
    }
}

/// Adds the secrets of a part of a text.
fn find(
    redactor: &dyn Redactor,
    path: &str,
    bytes: &[u8],
    part: Range<usize>,
    secrets: &mut Vec<Range<usize>>,
) {
    let mut found: Vec<Redaction> = Vec::new();
    redactor.find_in_file(path, &bytes[part.clone()], &mut found);
    let moved = |found: Redaction| found.range.start + part.start..found.range.end + part.start;
    secrets.extend(found.into_iter().map(moved).filter(|secret| !secret.is_empty()));
}

/// The secrets that share a byte with a part of a text, or lie next to it.
fn touching<'s>(secrets: &'s [Range<usize>], part: &Range<usize>) -> &'s [Range<usize>] {
    let first = secrets.partition_point(|secret| secret.end < part.start);
    let last = secrets.partition_point(|secret| secret.start <= part.end);
    secrets.get(first..last).unwrap_or_default()
}

/// Returns the range of a line and of those that join it once the secrets are masked, line ends included.
fn joined(bytes: &[u8], line: Range<usize>, secrets: &[Range<usize>]) -> Range<usize> {
    let mut all = line;
    loop {
        let before = all.clone();
        for secret in touching(secrets, &all) {
            if secret.start < all.start && secret.end >= all.start {
                all.start = line_start(bytes, secret.start);
            }
            if secret.start < all.end && secret.end >= all.end {
                all.end = line_end(bytes, secret.end);
            }
        }
        if all == before {
            return all;
        }
    }
}

/// Returns the start of the line that contains `at`.
fn line_start(bytes: &[u8], at: usize) -> usize {
    memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1)
}

/// Returns the end of the line that contains `at`, including its newline.
fn line_end(bytes: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline + 1)
}

/// Returns the start of the line before the one that begins at `start`.
fn line_before(bytes: &[u8], start: usize) -> Option<usize> {
    (start > 0).then(|| line_start(bytes, start - 1))
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// A line without its end.
fn without_end(bytes: &[u8], line: &Range<usize>) -> Range<usize> {
    let mut end = line.end;
    for byte in [b'\n', b'\r'] {
        if end > line.start && bytes[end - 1] == byte {
            end -= 1;
        }
    }
    line.start..end
}

/// Returns the shown form of a line; of a long one, the part around an offset.
fn excerpt(line: &[u8], at: usize) -> String {
    let text = String::from_utf8_lossy(line);
    if text.len() <= MOST_SHOWN {
        return text.into_owned();
    }
    let start = text.floor_char_boundary(at.saturating_sub(MOST_SHOWN / 4).min(text.len() - MOST_SHOWN / 2));
    let end = text.floor_char_boundary(start + MOST_SHOWN);
    let (before, after) = (if start > 0 { "..." } else { "" }, if end < text.len() { "..." } else { "" });
    format!("{before}{}{after}", &text[start..end])
}

#[cfg(test)]
mod tests;
