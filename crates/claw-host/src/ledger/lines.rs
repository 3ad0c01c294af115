//! Reading the lines of a chain. A last line without its newline is not one yet.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use claw_core::CallId;
use claw_core::store::{EntryEvent, Outcome, Record};
use serde::Deserialize;
use smol_str::SmolStr;

const FIRST_SPAN: u64 = 64 * 1024;

/// What of a line is needed to tell what became of its call.
#[derive(Debug, Deserialize)]
pub(super) struct Gist {
    pub(super) call: CallId,
    pub(super) session: SmolStr,
    event: Kind,
    outcome: Option<Outcome>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Refused,
    Intent,
    Outcome,
}

impl Gist {
    /// The fate of the call after this line; `None` if it was refused.
    pub(super) fn fate(&self) -> Option<Outcome> {
        match self.event {
            Kind::Refused => None,
            Kind::Intent => Some(Outcome::Unknown),
            Kind::Outcome => Some(self.outcome.unwrap_or(Outcome::Unknown)),
        }
    }
}

/// The same for a record that is about to be a line.
pub(super) fn fate(record: &Record) -> Option<Outcome> {
    match record.event {
        EntryEvent::Refused { .. } => None,
        EntryEvent::Intent { .. } => Some(Outcome::Unknown),
        EntryEvent::Outcome { outcome, .. } => Some(outcome),
    }
}

/// Hands each whole line in `range`, without its newline, to `each`, and returns where the last one ends.
pub(super) fn each_line<E: From<io::Error>>(
    mut file: &File,
    range: Range<u64>,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, E> {
    file.seek(SeekFrom::Start(range.start))?;
    let length = range.end.saturating_sub(range.start);
    let mut reader = BufReader::with_capacity(64 * 1024, file.take(length));
    let (mut line, mut end) = (Vec::new(), range.start);
    loop {
        line.clear();
        reader.read_until(b'\n', &mut line)?;
        let Some(whole) = line.strip_suffix(b"\n") else { return Ok(end) };
        end += line.len() as u64;
        each(whole)?;
    }
}

/// The last `limit` whole lines before `end`, reading no more of the file than about four times their size.
pub(super) fn tail(file: &File, end: u64, limit: usize) -> io::Result<Vec<Vec<u8>>> {
    let mut span = FIRST_SPAN;
    loop {
        let start = end.saturating_sub(span);
        let mut bytes = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, start)?;
        let mut lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.last().is_some_and(|line| !line.ends_with(b"\n")) {
            lines.pop();
        }
        // Where the span starts inside the file, its first line may lack its beginning.
        let whole = if start == 0 { &lines[..] } else { lines.get(1..).unwrap_or_default() };
        if whole.len() >= limit || start == 0 {
            let skip = whole.len().saturating_sub(limit);
            return Ok(whole[skip..].iter().map(|line| line[..line.len() - 1].to_vec()).collect());
        }
        span = span.saturating_mul(4);
    }
}

/// Whether `line` holds `text`.
pub(super) fn holds(line: &[u8], text: &str) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| line.contains(text))
}
