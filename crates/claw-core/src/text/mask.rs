//! A text without its secrets, and the mapping back to its source.

use std::ops::Range;

use super::whole_characters;
use crate::redact::{PLACEHOLDER, Redaction, Redactor};

/// A text without its secrets, and the places where it differs from its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked {
    /// The text with a placeholder for each secret.
    pub text: String,
    /// The placeholders, in order.
    pub marks: Vec<Mark>,
}

/// One placeholder and the secret it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The placeholder's range in the masked text.
    pub seen: Range<usize>,
    /// The secret's range in the source.
    pub source: Range<usize>,
}

/// Replaces the secrets of a text by placeholders.
pub fn mask(source: &str, redactor: &dyn Redactor) -> Masked {
    let mut found = Vec::new();
    redactor.find(source.as_bytes(), &mut found);
    without(source, found)
}

/// Returns a part of a text without its secrets, and the ranges of its placeholders. The part begins and ends
/// between two characters. The text around it helps to recognise secrets; a secret that the part touches
/// becomes a whole placeholder.
pub fn shown(source: &str, part: Range<usize>, redactor: &dyn Redactor) -> (String, Vec<Range<usize>>) {
    let mut found = Vec::new();
    redactor.find_before(source.as_bytes(), part.end, &mut found);
    found.retain(|secret| secret.range.start < part.end && part.start < secret.range.end);
    if found.is_empty() {
        return (source[part].to_owned(), Vec::new());
    }
    for secret in &mut found {
        secret.range.end = secret.range.end.min(part.end);
    }
    let masked = without(&source[..part.end], found);
    let seen = masked.shown(part);
    (masked.text[seen.clone()].to_owned(), masked.redacted_in(&seen))
}

fn without(source: &str, found: Vec<Redaction>) -> Masked {
    let mut masked =
        Masked { text: String::with_capacity(source.len()), marks: Vec::with_capacity(found.len()) };
    let mut done = 0;
    for redaction in found {
        let range = whole_characters(source, redaction.range);
        let range = range.start.max(done)..range.end;
        if range.is_empty() {
            continue;
        }
        masked.text.push_str(&source[done..range.start]);
        let start = masked.text.len();
        masked.text.push_str(PLACEHOLDER);
        done = range.end;
        masked.marks.push(Mark { seen: start..masked.text.len(), source: range });
    }
    masked.text.push_str(&source[done..]);
    masked
}

impl Masked {
    /// Returns the range of the masked text for a range of the source. A secret that it touches counts as a
    /// whole placeholder.
    pub fn shown(&self, source: Range<usize>) -> Range<usize> {
        self.seen_at(source.start, |mark| mark.seen.start)..self.seen_at(source.end, |mark| mark.seen.end)
    }

    /// Returns the position in the source of a position in the masked text; `None` inside a placeholder.
    pub fn source_of(&self, seen: usize) -> Option<usize> {
        match self.marks.iter().rev().find(|mark| mark.seen.start < seen) {
            None => Some(seen),
            Some(mark) if seen < mark.seen.end => None,
            Some(mark) => Some(mark.source.end + (seen - mark.seen.end)),
        }
    }

    /// Returns the placeholders within a range of the masked text, relative to its start.
    pub fn redacted_in(&self, seen: &Range<usize>) -> Vec<Range<usize>> {
        let within = |mark: &&Mark| seen.start <= mark.seen.start && mark.seen.end <= seen.end;
        let moved = |mark: &Mark| mark.seen.start - seen.start..mark.seen.end - seen.start;
        self.marks.iter().filter(within).map(moved).collect()
    }

    fn seen_at(&self, source: usize, inside: impl Fn(&Mark) -> usize) -> usize {
        match self.marks.iter().rev().find(|mark| mark.source.start < source) {
            None => source,
            Some(mark) if source < mark.source.end => inside(mark),
            Some(mark) => mark.seen.end + (source - mark.source.end),
        }
    }
}
