//! A text with line ends of one kind, and the way back to the text with its own.

use std::borrow::Cow;
use std::ops::Range;

use claw_core::port::Splice;
use claw_core::redact::PLACEHOLDER;

/// A text whose lines end with `\n` alone.
pub(super) struct Plain<'t> {
    pub(super) text: Cow<'t, str>,
    /// Where in it a line ended with `\r\n`.
    crlf: Vec<usize>,
    /// Where in it lines begin.
    starts: Vec<usize>,
}

/// A piece of the plain text, and what to put there.
pub(super) struct Replacement {
    pub(super) range: Range<usize>,
    pub(super) text: String,
    /// What asked for it, for people.
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

    /// Where a line begins, counted from 0; the end of the text where there is none.
    pub(super) fn start_of(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }

    /// The same change of the text with its own line ends. Lines at both ends that stay as they are, and hide
    /// nothing, are left out of it.
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

/// How many bytes of whole lines are the same, up to one that hides something.
fn same_lines<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    let same = |(old, new): &(&str, &str)| old == new && old.ends_with('\n') && !old.contains(PLACEHOLDER);
    pairs.take_while(same).map(|(old, _)| old.len()).sum()
}
