//! A text with its secrets taken out, and the way back.

use std::ops::Range;

use super::whole_characters;
use crate::redact::{PLACEHOLDER, Redaction, Redactor};

/// A text as it may be seen, and where it differs from its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked {
    /// The text with a placeholder in place of each secret.
    pub text: String,
    /// Where they are, in order.
    pub marks: Vec<Mark>,
}

/// One placeholder that stands for something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Where the placeholder is in what is seen.
    pub seen: Range<usize>,
    /// What it stands for in the source.
    pub source: Range<usize>,
}

/// Takes the secrets out of a text.
pub fn mask(source: &str, redactor: &dyn Redactor) -> Masked {
    let mut found = Vec::new();
    redactor.find(source.as_bytes(), &mut found);
    without(source, found)
}

/// What may be seen of a part of a text, which begins and ends between two characters, and where its placeholders are.
/// What is around it tells what is secret in it; a secret that it touches is seen as a whole placeholder.
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
    /// What is seen of this part of the source. A secret that it touches is seen as a whole placeholder.
    pub fn shown(&self, source: Range<usize>) -> Range<usize> {
        self.seen_at(source.start, |mark| mark.seen.start)..self.seen_at(source.end, |mark| mark.seen.end)
    }

    /// Where in the source a place of what is seen is; `None` inside a placeholder.
    pub fn source_of(&self, seen: usize) -> Option<usize> {
        match self.marks.iter().rev().find(|mark| mark.seen.start < seen) {
            None => Some(seen),
            Some(mark) if seen < mark.seen.end => None,
            Some(mark) => Some(mark.source.end + (seen - mark.seen.end)),
        }
    }

    /// The placeholders within a part of what is seen, counted from its start.
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
