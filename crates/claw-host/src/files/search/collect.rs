//! The files with hits, in the order of their paths, whichever thread found them. Memory is bounded: of many
//! hits the first are kept, the others counted.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use claw_core::port::{Hits, Searched};

use super::super::walk::by_path;

/// The most files with hits that are named.
const MOST_FILES: usize = 10_000;

/// The files with hits that were found so far.
#[derive(Debug)]
pub struct Collected {
    limit: usize,
    files: BTreeMap<Key, Hits>,
    /// The number of hits kept with their lines.
    shown: usize,
    /// The first file whose lines were dropped or not kept: nothing from there on is shown.
    cut: Option<Key>,
    with_hits: u64,
    hits: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key(String);

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        by_path(&self.0, &other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Collected {
    /// Keeps the lines of `limit` hits at most.
    pub fn new(limit: usize) -> Self {
        Self { limit, files: BTreeMap::new(), shown: 0, cut: None, with_hits: 0, hits: 0 }
    }

    /// Returns how many hits of a file are wanted with their lines.
    pub(super) fn wanted(&self, path: &str) -> usize {
        match &self.cut {
            Some(cut) if by_path(path, &cut.0) == Ordering::Greater => 0,
            _ => self.limit,
        }
    }

    /// Adds the hits of one file.
    pub fn add(&mut self, hits: Hits) {
        self.with_hits += 1;
        self.hits += hits.count;
        self.shown += shown(&hits);
        self.files.insert(Key(hits.path.clone()), hits);
        while self.files.len() > MOST_FILES {
            if let Some((_, dropped)) = self.files.pop_last() {
                self.shown -= shown(&dropped);
            }
        }
        self.drop_lines();
    }

    /// Drops the lines of the last files while those before have enough.
    fn drop_lines(&mut self) {
        while self.shown > self.limit {
            let Some((key, last)) = self.files.iter_mut().rev().find(|(_, hits)| !hits.lines.is_empty())
            else {
                return;
            };
            let without = self.shown - shown(last);
            if without < self.limit {
                return;
            }
            last.lines = Vec::new();
            self.cut = Some(key.clone());
            self.shown = without;
        }
    }

    /// Moves all results into `into`.
    pub fn give(self, into: &mut Searched) {
        (into.hits, into.with_hits) = (self.hits, self.with_hits);
        let mut left = self.limit;
        let mut give = |mut hits: Hits| {
            shorten(&mut hits, left);
            left -= shown(&hits).min(left);
            hits
        };
        into.files = self.files.into_values().map(&mut give).collect();
    }
}

fn shown(hits: &Hits) -> usize {
    hits.lines.iter().filter(|line| line.hit).count()
}

/// Keeps so many hits, and the context before the next one.
fn shorten(hits: &mut Hits, most: usize) {
    if most == 0 {
        hits.lines.clear();
    } else if let Some((first, _)) = hits.lines.iter().enumerate().filter(|(_, line)| line.hit).nth(most) {
        hits.lines.truncate(first);
    }
}

#[cfg(test)]
mod tests;
