//! Matches the placeholders of a new text with those of the old text.
//!
//! All placeholders look alike, so a secret is identified by its surroundings: its line, the lines that are
//! equal on both sides, the text before it. If a doubt remains, nothing is guessed: a secret in the wrong
//! position is worse than a refusal.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use claw_core::redact::PLACEHOLDER;

/// A side of the match: the lines in question, and the placeholders to be matched.
pub(super) struct Side<'t> {
    pub(super) lines: Vec<&'t str>,
    /// Sorted.
    pub(super) sites: Vec<Site>,
}

/// A placeholder: its line and its position in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The way to treat a single unmatched placeholder on each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// Match them: one replaces the other.
    Pair,
    /// Refuse: the match is uncertain.
    Doubt,
}

/// For each new placeholder, the old one that it stands for, each at most once; `Err` is the first uncertain
/// one.
pub(super) fn align(old: &Side<'_>, new: &Side<'_>, last: Last) -> Result<Vec<usize>, usize> {
    let mut pairs = Pairs { old, new, taken: vec![false; old.sites.len()], of: vec![None; new.sites.len()] };
    // A line that occurs once on both sides identifies its placeholder.
    pairs.match_single(|side, site| Some((side.line(site), site.column)));
    if pairs.open() {
        pairs.match_anchored();
    }
    pairs.match_single(|side, site| Some((side.line(site), site.column)));
    pairs.match_single(|side, site| Some(side.before(site)).filter(|before| !before.trim().is_empty()));
    pairs.match_single(|side, site| squeezed(side.before(site)));
    pairs.match_single(|side, site| squeezed(side.before(site).rsplit(PLACEHOLDER).next()?));
    if last == Last::Pair {
        pairs.match_single(|_, _| Some(()));
    }
    pairs.of.iter().enumerate().map(|(at, old)| old.ok_or(at)).collect()
}

/// Normalises the words before a value, regardless of spacing and list marks.
fn squeezed(before: &str) -> Option<String> {
    let words: String = before.trim_start_matches([',', ';']).split_whitespace().collect();
    words.chars().any(char::is_alphanumeric).then_some(words)
}

impl<'t> Side<'t> {
    fn line(&self, site: Site) -> &'t str {
        self.lines.get(site.line).copied().unwrap_or_default()
    }

    fn before(&self, site: Site) -> &'t str {
        self.line(site).get(..site.column).unwrap_or_default()
    }

    /// The placeholders in these lines.
    fn within(&self, lines: &Range<usize>) -> Range<usize> {
        let start = self.sites.partition_point(|site| site.line < lines.start);
        start..self.sites.partition_point(|site| site.line < lines.end)
    }
}

struct Pairs<'a, 't> {
    old: &'a Side<'t>,
    new: &'a Side<'t>,
    taken: Vec<bool>,
    of: Vec<Option<usize>>,
}

impl<'t> Pairs<'_, 't> {
    fn open(&self) -> bool {
        self.of.contains(&None)
    }

    fn pair(&mut self, old: usize, new: usize) {
        if !self.taken[old] && self.of[new].is_none() {
            self.taken[old] = true;
            self.of[new] = Some(old);
        }
    }

    /// Pairs the remaining placeholders with the same key, if there is one on each side.
    fn match_single<K: Eq + Hash>(&mut self, key: impl Fn(&Side<'t>, Site) -> Option<K>) {
        self.match_single_in(0..self.old.sites.len(), 0..self.new.sites.len(), key);
    }

    fn match_single_in<K: Eq + Hash>(
        &mut self,
        old: Range<usize>,
        new: Range<usize>,
        key: impl Fn(&Side<'t>, Site) -> Option<K>,
    ) {
        let mut keys: HashMap<K, [Vec<usize>; 2]> = HashMap::new();
        for at in old.filter(|at| !self.taken[*at]) {
            if let Some(key) = key(self.old, self.old.sites[at]) {
                keys.entry(key).or_default()[0].push(at);
            }
        }
        for at in new.filter(|at| self.of[*at].is_none()) {
            if let Some(key) = key(self.new, self.new.sites[at]) {
                keys.entry(key).or_default()[1].push(at);
            }
        }
        for sides in keys.into_values() {
            if let [[old], [new]] = sides.each_ref().map(Vec::as_slice) {
                self.pair(*old, *new);
            }
        }
    }

    /// Pairs equal lines by their surroundings: lines that occur once on both sides, in the same order,
    /// divide the text; each part is treated the same way, recursively.
    fn match_anchored(&mut self) {
        let mut parts = vec![(0..self.old.lines.len(), 0..self.new.lines.len())];
        while let Some((old, new)) = parts.pop() {
            let sites = (self.old.within(&old), self.new.within(&new));
            if sites.0.is_empty() || sites.1.is_empty() {
                continue;
            }
            if self.old.lines[old.clone()] == self.new.lines[new.clone()] {
                if sites.0.len() == sites.1.len() {
                    sites.0.zip(sites.1).for_each(|(old, new)| self.pair(old, new));
                }
                continue;
            }
            let anchors = anchors(&self.old.lines, &old, &self.new.lines, &new);
            if anchors.is_empty() {
                self.match_single_in(sites.0, sites.1, |side, site| Some((side.line(site), site.column)));
                continue;
            }
            let (mut old_from, mut new_from) = (old.start, new.start);
            for (at_old, at_new) in anchors.into_iter().chain([(old.end, new.end)]) {
                parts.push((old_from..at_old, new_from..at_new));
                (old_from, new_from) = (at_old + 1, at_new + 1);
            }
        }
    }
}

/// Lines without a placeholder that occur once in both parts, as many as are in the same order.
fn anchors(
    old: &[&str],
    old_part: &Range<usize>,
    new: &[&str],
    new_part: &Range<usize>,
) -> Vec<(usize, usize)> {
    let mut once: HashMap<&str, (Count, Count)> = HashMap::new();
    for at in old_part.clone().filter(|at| is_anchor(old[*at])) {
        once.entry(old[at]).or_default().0.add(at);
    }
    for at in new_part.clone().filter(|at| is_anchor(new[*at])) {
        if let Some(counts) = once.get_mut(new[at]) {
            counts.1.add(at);
        }
    }
    let mut both: Vec<(usize, usize)> =
        once.into_values().filter_map(|(old, new)| Some((old.single()?, new.single()?))).collect();
    both.sort_unstable();
    longest_rising(&both)
}

fn is_anchor(line: &str) -> bool {
    !line.trim().is_empty() && !line.contains(PLACEHOLDER)
}

/// Number of occurrences of a line, and the last position.
#[derive(Default)]
struct Count {
    met: usize,
    at: usize,
}

impl Count {
    fn add(&mut self, at: usize) {
        (self.met, self.at) = (self.met + 1, at);
    }

    fn single(&self) -> Option<usize> {
        (self.met == 1).then_some(self.at)
    }
}

/// The longest subsequence of pairs, sorted by their first, whose second rises too.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The best subsequence of each length, by its last pair.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (at, (_, new)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *new);
        before[at] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut chosen = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(at) = next {
        chosen.push(pairs[at]);
        next = before[at];
    }
    chosen.reverse();
    chosen
}

#[cfg(test)]
mod tests;
