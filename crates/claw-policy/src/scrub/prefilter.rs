//! Finds candidate positions for the rules: the next literal, or the start of a long run.
//!
//! The text is folded to lower case block by block into a buffer that stays in the cache, and searched there
//! for all literals at once. The prefilter decides nothing: it may report positions in vain, but never misses
//! one.

use std::{cmp::Ordering, sync::LazyLock};

use aho_corasick::{AhoCorasick, Span, packed};

use super::{
    rules::{self, Rule},
    view::{BASE64, BASE64_URL, Class, HEX},
};

/// Bytes folded at a time.
const BLOCK: usize = 16 * 1024;
/// The shortest run that a rule without a literal needs is 35 bytes, so each contains a whole probe.
const PROBE: usize = 16;

/// A position at which rules are tried.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) at: usize,
    /// The rule of the literal at this position.
    pub(super) rule: Option<Rule>,
    /// A long run starts there.
    pub(super) run: bool,
}

/// Bytes of a literal that the search compares at once. Shorter literals are searched separately: together,
/// the search would compare fewer bytes and stop in vain four times as often.
const COMPARED: usize = 4;
/// Buckets of the search: a literal goes into the one of its position in the list, counted round.
const BUCKETS: usize = 16;

/// The compiled literals, the same for every scrubber: the short ones, and the rest.
struct Literals {
    groups: [Group; 2],
    longest: usize,
}

/// Literals that are searched together.
struct Group {
    rules: Vec<Rule>,
    search: Search,
}

enum Search {
    Packed(packed::Searcher),
    /// For processors without vector instructions for the packed search.
    Automaton(AhoCorasick),
    None,
}

static LITERALS: LazyLock<Literals> = LazyLock::new(|| {
    let literals = rules::literals();
    let longest = literals.iter().map(|(literal, _)| literal.len()).max().unwrap_or(0);
    let (short, long) = literals.into_iter().partition(|(literal, _)| literal.len() < COMPARED);
    Literals { groups: [Group::new(short), Group::new(arranged(long))], longest }
});

/// Orders literals so that those whose last compared bytes are alike share a bucket.
///
/// A bucket stops the search at any mixture of its literals' bytes, and with like bytes in the last place
/// fewer mixtures occur in logs and code. In the order of the rules, it stops at least twice as often.
fn arranged(mut literals: Vec<(String, Rule)>) -> Vec<(String, Rule)> {
    literals.sort_by(|(a, _), (b, _)| (last_compared(a), a).cmp(&(last_compared(b), b)));
    let count = literals.len();
    let mut rounds = vec![Vec::new(); count.div_ceil(BUCKETS)];
    let mut literals = literals.into_iter();
    for bucket in 0..BUCKETS {
        let size = count / BUCKETS + usize::from(bucket < count % BUCKETS);
        rounds.iter_mut().take(size).for_each(|round| round.extend(literals.next()));
    }
    rounds.concat()
}

fn last_compared(literal: &str) -> Option<&u8> {
    literal.as_bytes().get(COMPARED - 1)
}

impl Group {
    fn new(literals: Vec<(String, Rule)>) -> Self {
        let (literals, rules): (Vec<_>, Vec<_>) = literals.into_iter().unzip();
        let search = match packed::Searcher::new(&literals) {
            Some(searcher) => Search::Packed(searcher),
            None => AhoCorasick::new(&literals).map_or(Search::None, Search::Automaton),
        };
        Self { rules, search }
    }

    fn find(&self, folded: &[u8], from: usize) -> Option<(usize, Rule)> {
        let span = Span { start: from, end: folded.len() };
        let found = match &self.search {
            Search::Packed(searcher) => searcher.find_in(folded, span),
            Search::Automaton(automaton) => automaton.find(aho_corasick::Input::new(folded).span(span)),
            Search::None => None,
        }?;
        Some((found.start(), *self.rules.get(found.pattern().as_usize())?))
    }
}

/// Finds the candidates of one text in order.
pub(super) struct Scout {
    folded: Vec<u8>,
    /// Start of the folded part, and of the next one.
    block: std::ops::Range<usize>,
    /// The next literal of each group in that part, if it was searched.
    in_block: [Option<Candidate>; 2],
    literal: Option<Candidate>,
    run: Option<Candidate>,
}

const NOWHERE: Candidate = Candidate { at: usize::MAX, rule: None, run: false };

impl Scout {
    pub(super) fn new() -> Self {
        Self { folded: Vec::new(), block: 0..0, in_block: [None; 2], literal: None, run: None }
    }

    /// The first candidate in `from..until`.
    ///
    /// `floor` is the end of the last redaction: runs start there anew.
    pub(super) fn next(
        &mut self,
        text: &[u8],
        from: usize,
        until: usize,
        floor: Option<usize>,
    ) -> Option<Candidate> {
        let literal = match self.literal {
            Some(known) if known.at >= from => known,
            _ => self.next_literal(text, from).unwrap_or(NOWHERE),
        };
        self.literal = Some(literal);
        let run = match self.run {
            Some(known) if known.at >= from => known,
            _ => Runs { text, from, floor }.next().unwrap_or(NOWHERE),
        };
        self.run = Some(run);
        let first = match literal.at.cmp(&run.at) {
            Ordering::Less => literal,
            Ordering::Equal => Candidate { run: run.run, ..literal },
            Ordering::Greater => run,
        };
        (first.at < until).then_some(first)
    }

    fn next_literal(&mut self, text: &[u8], from: usize) -> Option<Candidate> {
        let literals = &*LITERALS;
        let mut from = from;
        while from < text.len() {
            if !self.block.contains(&from) {
                self.fold(text, from, literals.longest);
            }
            let mut first = NOWHERE;
            for (group, known) in literals.groups.iter().zip(&mut self.in_block) {
                let next = match *known {
                    Some(next) if next.at >= from => next,
                    _ => match group.find(&self.folded, from - self.block.start) {
                        Some((at, rule)) if self.block.start + at < self.block.end => {
                            Candidate { at: self.block.start + at, rule: Some(rule), run: false }
                        }
                        _ => NOWHERE,
                    },
                };
                *known = Some(next);
                // No literal is a prefix of another, so no two occur at the same position.
                if next.at < first.at {
                    first = next;
                }
            }
            if first.at < NOWHERE.at {
                return Some(first);
            }
            from = self.block.end;
        }
        None
    }

    fn fold(&mut self, text: &[u8], from: usize, overlap: usize) {
        self.block = from..text.len().min(from + BLOCK);
        self.in_block = [None; 2];
        let end = text.len().min(self.block.end + overlap);
        self.folded.clear();
        self.folded.extend_from_slice(text.get(from..end).unwrap_or_default());
        self.folded.make_ascii_lowercase();
    }
}

/// Returns whether all bytes could belong to a run; written so that it compiles to a few vector instructions.
fn is_all_word(probe: &[u8; PROBE]) -> bool {
    let mut all = true;
    for &byte in probe {
        let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        let digit_or_slash = byte.wrapping_sub(b'/') < 11;
        all &= letter | digit_or_slash | (byte == b'_') | (byte == b'-') | (byte == b'+');
    }
    all
}

/// Finds the starts of runs that [`rules::judge_run`] may want.
struct Runs<'t> {
    text: &'t [u8],
    from: usize,
    floor: Option<usize>,
}

impl Runs<'_> {
    fn next(&self) -> Option<Candidate> {
        let mut at = self.from;
        loop {
            if self.is_word(at)?
                && let Some(start) = self.wanted(at)
            {
                return Some(Candidate { at: start, rule: None, run: true });
            }
            at += PROBE;
        }
    }

    /// Returns whether the probe at `at` is in a run; `None` past the end of the text.
    fn is_word(&self, at: usize) -> Option<bool> {
        Some(is_all_word(self.text.get(at..at + PROBE)?.try_into().ok()?))
    }

    /// The first start of a wanted run that contains the probe at `at`, the first probe in that run.
    fn wanted(&self, at: usize) -> Option<usize> {
        // A run of 64 bytes contains the next two probes as well.
        let long = self.is_word(at + PROBE) == Some(true) && self.is_word(at + 2 * PROBE) == Some(true);
        let of_64 = |class| self.start(at, class).filter(|&start| self.is_run(start, 64, class));
        let before = self.text.get(at.saturating_sub(PROBE)..at).unwrap_or_default();
        let colon = before.contains(&b':').then(|| self.start(at, &BASE64_URL)).flatten();
        let colon = colon.filter(|&start| start > 0 && self.text.get(start - 1) == Some(&b':'));
        match long {
            true => [of_64(&HEX), of_64(&BASE64), colon].into_iter().flatten().min(),
            false => colon,
        }
    }

    /// The start of the run of `class` through `at`; `None` if it contained an earlier probe.
    fn start(&self, at: usize, class: &Class) -> Option<usize> {
        let before = self.text.get(self.from.max(at.saturating_sub(PROBE))..at)?;
        let start = at - before.iter().rev().take_while(|byte| class[**byte as usize]).count();
        let goes_on = start > 0 && self.floor != Some(start) && class[*self.text.get(start - 1)? as usize];
        (!goes_on).then_some(start)
    }

    /// Returns whether `least` bytes of `class` start at `start`, as far as the text goes.
    fn is_run(&self, start: usize, least: usize, class: &Class) -> bool {
        self.text.iter().skip(start).take(least).all(|byte| class[*byte as usize])
    }
}
