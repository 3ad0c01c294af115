//! A text with uniform line ends, and the mapping back to its own line ends.

use std::borrow::Cow;
use std::ops::Range;

use claw_core::port::Splice;
use claw_core::redact::PLACEHOLDER;

/// A text whose lines end with `\n` alone.
pub(super) struct Plain<'t> {
    pub(super) text: Cow<'t, str>,
    /// Positions of `\r\n` line ends of the original, as positions in this text.
    crlf: Vec<usize>,
    /// Positions at which lines begin.
    starts: Vec<usize>,
}

/// A range of the plain text and its replacement.
pub(super) struct Replacement {
    pub(super) range: Range<usize>,
    pub(super) text: String,
    /// The edit or hunk that requested it, for messages.
    pub(super) origin: String,
}

impl<'t> Plain<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let plain = to_plain(text);
        let mut crlf = Vec::new();
        if matches!(plain, Cow::Owned(_)) {
            crlf.extend(text.match_indices("\r\n").enumerate().map(|(before, (at, _))| at - before));
        }
        let starts = std::iter::once(0).chain(plain.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text: plain, crlf, starts }
    }

    /// The number of the line that a place is in.
    pub(super) fn line_of(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place)
    }

    /// The lines, without their ends. After a last line end there is no further line.
    pub(super) fn lines(&self) -> Vec<&str> {
        self.text.lines().collect()
    }

    /// Returns the position of a line, counted from 0; the end of the text if there is no such line.
    pub(super) fn start_of(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }

    /// Returns the same change for the text with its own line ends. Unchanged lines at both ends are left
    /// out, unless they hide a secret.
    pub(super) fn splice(&self, replacement: Replacement) -> Splice {
        let Replacement { range, text, .. } = replacement;
        let new = to_plain(&text);
        let old = &self.text[range.clone()];
        let head = same_lines(old.split_inclusive('\n').zip(new.split_inclusive('\n')));
        let (old, new) = (&old[head..], &new[head..]);
        let tail = same_lines(old.split_inclusive('\n').rev().zip(new.split_inclusive('\n').rev()));
        let (start, end) = (range.start + head, range.end - tail);
        let new = &new[..new.len() - tail];
        // Most line ends of the file decide.
        let text = if self.crlf.len() * 2 > self.starts.len() - 1 {
            new.replace('\n', "\r\n")
        } else {
            new.to_owned()
        };
        Splice { range: self.back(start)..self.back(end), text }
    }

    fn back(&self, place: usize) -> usize {
        place + self.crlf.partition_point(|at| *at < place)
    }
}

/// A text with `\n` at the ends of its lines.
pub(super) fn to_plain(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// Counts the bytes of equal whole lines, up to one that hides a secret.
fn same_lines<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    let same = |(old, new): &(&str, &str)| old == new && old.ends_with('\n') && !old.contains(PLACEHOLDER);
    pairs.take_while(same).map(|(old, _)| old.len()).sum()
}
