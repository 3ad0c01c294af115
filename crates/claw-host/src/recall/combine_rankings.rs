//! Fuses two result lists into one: passages found by words, and similar passages.
//!
//! Ranks are fused, never scores: the scores of two lists share no scale. Passages found by words have two
//! ranks, which count as one: the database's, which favours short passages, and one by how many of the rarer
//! words a passage has, longer passages first among equals. Where there are fewer hits than asked for, text beside them
//! fills up their number.

mod beside;

use std::collections::{HashMap, HashSet};

use claw_core::port::{MemoryHit, MemoryMode, MemoryOwner, MemoryReason};
use claw_core::provenance::Provenance;
use claw_core::store::{DocumentKey, FoundPassage, Passage, PassagePlace, SimilarPassage};

/// Softens how much the first ranks differ, as reciprocal rank fusion is commonly used.
const SOFT: f64 = 60.0;
/// Bytes of a hit that was joined of neighbours: about 400 tokens.
const LONGEST: usize = 1_600;
/// The most lines without text between neighbours.
const GAP: u64 = 3;
/// The ranks by which a passage may lie behind the hit that it joins: text that ranks far below would only take up room.
const BEHIND: usize = 10;
/// The share of common runs of three words above which passages count as the same.
const SAME: f64 = 0.8;

/// A passage that one list or both found.
struct Candidate {
    found: FoundPassage,
    score: f64,
    similarity: Option<f32>,
}

/// Passages that make one hit.
struct Group {
    /// The rank of its best passage, counted from 0.
    rank: usize,
    key: DocumentKey,
    version: u64,
    provenance: Provenance,
    heading: String,
    /// The passages in the order of the document.
    parts: Vec<Passage>,
    score: f64,
    words: Vec<String>,
    similarity: Option<f32>,
}

/// The best hits, before text beside them fills up their number.
pub(super) struct Fused {
    groups: Vec<Group>,
    limit: usize,
}

impl Fused {
    pub(super) fn new(by_words: Vec<FoundPassage>, similar: Vec<SimilarPassage>, limit: usize) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for (rank, candidate) in different(fused(by_words, similar)).enumerate() {
            // What ranks this far below makes no hit and joins none; it need not be compared with the others.
            if groups.len() >= limit && groups.last().is_none_or(|last| rank > last.rank + BEHIND) {
                break;
            }
            let joins =
                groups.iter().position(|group| rank <= group.rank + BEHIND && group.takes(&candidate));
            if let Some(at) = joins {
                if let Some(group) = groups.get_mut(at) {
                    group.add(candidate);
                }
            } else if groups.len() < limit {
                groups.push(Group::of(rank, candidate));
            }
        }
        Self { groups, limit }
    }

    /// The number of hits that are missing.
    pub(super) fn missing(&self) -> usize {
        self.limit - self.groups.len()
    }

    /// The places of the hits, best first.
    pub(super) fn places(&self) -> Vec<PassagePlace> {
        self.groups.iter().map(Group::place).collect()
    }

    /// Returns the hits, best first, and then as many of the passages `near` their places as are missing. `mode` says
    /// how many lists there could have been.
    pub(super) fn hits(self, mode: MemoryMode, near: Vec<Vec<FoundPassage>>) -> Vec<MemoryHit> {
        let lists = match mode {
            MemoryMode::Hybrid => 2.0,
            MemoryMode::Words => 1.0,
        };
        // The score is scaled so that a user's passage that is first in every list has 1.
        let best = lists / (SOFT + 1.0) * weight(MemoryOwner::User);
        let more = beside::filling(&self, near);
        self.groups.into_iter().map(|group| group.hit(best)).chain(more).collect()
    }
}

/// Fuses both lists, best first.
fn fused(by_words: Vec<FoundPassage>, similar: Vec<SimilarPassage>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::with_capacity(by_words.len() + similar.len());
    let covering = covering(&by_words);
    for ((found, rank), other) in by_words.into_iter().zip(1_u32..).zip(covering) {
        let score = (score(&found, rank) + score(&found, other)) / 2.0;
        all.push(Candidate { found, score, similarity: None });
    }
    for (SimilarPassage { found, similarity }, rank) in similar.into_iter().zip(1_u32..) {
        let more = score(&found, rank);
        let is_it =
            |known: &&mut Candidate| known.found.key == found.key && known.found.passage == found.passage;
        match all.iter_mut().find(is_it) {
            Some(known) => {
                known.score += more;
                known.similarity = Some(similarity);
            }
            None => all.push(Candidate { found, score: more, similarity: Some(similarity) }),
        }
    }
    // Equal ones stay in the order of the first list.
    all.sort_by(|one, other| other.score.total_cmp(&one.score));
    all
}

/// The rank of each passage by the words that it has, the rarer among these passages the better.
fn covering(by_words: &[FoundPassage]) -> Vec<u32> {
    let mut counts: HashMap<&str, f64> = HashMap::new();
    for word in by_words.iter().flat_map(|found| &found.words) {
        *counts.entry(word).or_default() += 1.0;
    }
    let all = by_words.len() as f64;
    let weight = |found: &FoundPassage| -> f64 {
        let of = |word: &String| counts.get(word.as_str()).map_or(0.0, |count| (1.0 + all / count).ln());
        found.words.iter().map(of).sum()
    };
    let mut order: Vec<(f64, usize, usize)> = by_words
        .iter()
        .enumerate()
        // Sums of the same weights in another order are the same.
        .map(|(at, found)| ((weight(found) * 1e6).round(), found.passage.text.len(), at))
        .collect();
    order.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)).then(one.2.cmp(&other.2)));
    let mut ranks = vec![0; by_words.len()];
    for ((_, _, at), rank) in order.into_iter().zip(1_u32..) {
        if let Some(own) = ranks.get_mut(at) {
            *own = rank;
        }
    }
    ranks
}

fn score(found: &FoundPassage, rank: u32) -> f64 {
    weight(super::owner(&found.key)) * reciprocal(rank)
}

/// Returns the weight of a rank.
pub(super) fn reciprocal(rank: u32) -> f64 {
    1.0 / (SOFT + f64::from(rank))
}

/// Weights of owners: documents that are nearer to the caller count for more.
pub(super) fn weight(owner: MemoryOwner) -> f64 {
    match owner {
        MemoryOwner::User => 1.2,
        MemoryOwner::Agent => 1.1,
        MemoryOwner::Tenant => 1.0,
    }
}

/// Drops candidates that say nearly the same as a better one.
fn different(candidates: Vec<Candidate>) -> impl Iterator<Item = Candidate> {
    let mut seen: Vec<HashSet<u64>> = Vec::with_capacity(candidates.len());
    candidates.into_iter().filter(move |candidate| {
        let runs = runs(&candidate.found.passage.text);
        if seen.iter().any(|other| share(other, &runs) >= SAME) {
            return false;
        }
        seen.push(runs);
        true
    })
}

/// Hashes of the runs of three words of a text.
fn runs(text: &str) -> HashSet<u64> {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let hash = |run: &[String]| {
        let mut hasher = DefaultHasher::new();
        run.hash(&mut hasher);
        hasher.finish()
    };
    if words.len() < 3 { HashSet::from([hash(&words)]) } else { words.windows(3).map(hash).collect() }
}

/// The share that two sets have in common.
fn share(one: &HashSet<u64>, other: &HashSet<u64>) -> f64 {
    let (small, large) = if one.len() < other.len() { (one, other) } else { (other, one) };
    if (small.len() as f64) < large.len() as f64 * SAME {
        return 0.0;
    }
    let common = small.iter().filter(|run| large.contains(run)).count();
    common as f64 / (one.len() + other.len() - common).max(1) as f64
}

impl Group {
    fn of(rank: usize, Candidate { found, score, similarity }: Candidate) -> Self {
        let FoundPassage { key, version, provenance, passage, words } = found;
        let heading = passage.heading.clone();
        Self { rank, key, version, provenance, heading, parts: vec![passage], score, words, similarity }
    }

    /// Returns whether a passage directly precedes or follows this group, in the same section, and fits.
    fn takes(&self, candidate: &Candidate) -> bool {
        let FoundPassage { key, version, passage, .. } = &candidate.found;
        let (Some(first), Some(last)) = (self.parts.first(), self.parts.last()) else { return false };
        let follows = |before: &Passage, after: &Passage| {
            after.first_line > before.last_line && after.first_line - before.last_line <= GAP
        };
        let bytes: usize = self.parts.iter().map(|part| part.text.len()).sum();
        *key == self.key
            && *version == self.version
            && passage.heading == self.heading
            && (follows(last, passage) || follows(passage, first))
            && bytes + passage.text.len() <= LONGEST
    }

    fn add(&mut self, candidate: Candidate) {
        let FoundPassage { passage, words, .. } = candidate.found;
        let is_before = self.parts.first().is_some_and(|first| passage.first_line < first.first_line);
        self.parts.insert(if is_before { 0 } else { self.parts.len() }, passage);
        for word in words {
            if !self.words.contains(&word) {
                self.words.push(word);
            }
        }
        self.similarity = match (self.similarity, candidate.similarity) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
    }

    /// Lines of the group in its document.
    fn place(&self) -> PassagePlace {
        PassagePlace {
            key: self.key.clone(),
            version: self.version,
            first_line: self.parts.first().map_or(0, |part| part.first_line),
            last_line: self.parts.last().map_or(0, |part| part.last_line),
        }
    }

    fn hit(self, best: f64) -> MemoryHit {
        let owner = super::owner(&self.key);
        let mut text = String::new();
        let mut last = None;
        for part in &self.parts {
            if let Some(last) = last {
                // Blank lines between them are part of the range.
                text.extend(std::iter::repeat_n('\n', usize::try_from(part.first_line - last).unwrap_or(1)));
            }
            text.push_str(&part.text);
            last = Some(part.last_line);
        }
        MemoryHit {
            path: self.key.path,
            start_line: self.parts.first().map_or(0, |part| part.first_line),
            end_line: self.parts.last().map_or(0, |part| part.last_line),
            score: self.score / best,
            heading: self.heading,
            text,
            why: MemoryReason { words: self.words, beside: false, similarity: self.similarity, owner },
            provenance: self.provenance,
        }
    }
}

#[cfg(test)]
mod tests;
