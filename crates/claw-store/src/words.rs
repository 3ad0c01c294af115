//! Splits texts and queries into words, the same ones for both databases: an index holds exactly these words,
//! and no database splits, folds or drops anything by itself.
//!
//! A word is in lower case, without diacritics, and holds only letters, digits and marks, so that nothing in
//! it can be an operator. `snake_case`, `camelCase` and `foo.bar` are each one word plus its parts. Scripts
//! without blanks are split into characters and pairs. Inflections are one word ([`stem`](crate::stem)), and
//! a date has the name of its month.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::ops::ControlFlow::{self, Break, Continue};

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::stem::stem;

/// The most characters of a word; a longer one is known by its beginning.
const LONGEST: usize = 64;
/// The most words of a passage that are indexed, and their bytes together: within the limits of a `tsvector`.
const MOST_WORDS: usize = 16_000;
const MOST_BYTES: usize = 512 * 1024;
/// The most places of one word that PostgreSQL keeps.
const MOST_PLACES: usize = 255;
/// The most words of a query; further ones are ignored.
const MOST_ASKED: usize = 32;

/// Words without meaning of their own (stop words), sorted. They are in no index and no query; other common
/// words are found by counting.
const EMPTY: [&str; 83] = [
    "a", "about", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "hers", "him", "his",
    "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "mine", "my", "of", "on", "or", "our",
    "ours", "please", "shall", "she", "should", "so", "some", "than", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "to", "too", "us", "very", "was", "we", "were", "what", "when",
    "where", "which", "who", "whom", "whose", "why", "will", "with", "would", "you", "your", "yours",
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Calls `take` with each word of a text, until told to stop.
pub(crate) fn each(text: &str, mut take: impl FnMut(&str) -> ControlFlow<()>) {
    each_as_written(text, |word, _| take(word));
}

/// Calls `take` with each word of a text and its spelling.
fn each_as_written(text: &str, take: impl FnMut(&str, &str) -> ControlFlow<()>) {
    let mut scanner = Scanner::new(take);
    // The second way gives the same for such text, slowly.
    let _ = if text.is_ascii() { scanner.scan(text.chars()) } else { scanner.scan(plain(text)) };
}

/// Returns the different words of a query in their order, up to the limit.
#[cfg(test)]
pub(crate) fn asked(question: &str) -> Vec<String> {
    asked_as_written(question).into_iter().map(|(word, _)| word).collect()
}

/// Returns the words of a query that are in a text, as the query spells them.
pub(crate) fn matched(asked: &[(String, String)], text: &str) -> Vec<String> {
    let mut there = vec![false; asked.len()];
    let mut missing = asked.len();
    // A text is read until all are found.
    if missing > 0 {
        each(text, |word| {
            let found = asked.iter().position(|(known, _)| known == word);
            if let Some(is_there) = found.and_then(|at| there.get_mut(at)) {
                missing -= usize::from(!std::mem::replace(is_there, true));
            }
            if missing == 0 { Break(()) } else { Continue(()) }
        });
    }
    let matched = asked.iter().zip(there).filter(|(_, is_there)| *is_there);
    matched.map(|((_, written), _)| written.clone()).collect()
}

/// Returns the different words of a query with their spellings.
pub(crate) fn asked_as_written(question: &str) -> Vec<(String, String)> {
    let mut words: Vec<(String, String)> = Vec::new();
    each_as_written(question, |word, written| {
        if !words.iter().any(|(known, _)| known == word) {
            words.push((word.to_owned(), written.to_lowercase().chars().take(LONGEST).collect()));
        }
        if words.len() < 2 * MOST_ASKED { Continue(()) } else { Break(()) }
    });
    // A character of a pair that is asked would find far more than is meant.
    let pairs: Vec<String> =
        words.iter().filter(|(word, _)| is_pair(word)).map(|(word, _)| word.clone()).collect();
    words.retain(|(word, _)| !is_single(word) || !pairs.iter().any(|pair| pair.contains(word.as_str())));
    words.truncate(MOST_ASKED);
    words
}

/// Returns the words of a passage, each with its owner's prefix, separated by blanks: for FTS5's `ascii`
/// tokenizer.
pub(crate) fn spaced(owner: i64, passage: &str) -> String {
    let mut all = String::with_capacity(passage.len() + passage.len() / 2);
    indexed(passage, |place, word| {
        let blank = if place == 1 { "" } else { " " };
        let _ = write!(all, "{blank}{}", owned(owner, word));
    });
    all
}

/// Prefixes a word with its owner: unambiguous, since the number ends at the `x`.
pub(crate) fn owned(owner: i64, word: &str) -> impl Display {
    std::fmt::from_fn(move |f| write!(f, "{owner}x{word}"))
}

/// Returns the words of a passage, each with its owner's prefix and its places, in the syntax of a
/// `tsvector`.
pub(crate) fn vector(owner: i64, passage: &str) -> String {
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    indexed(passage, |place, word| match places.get_mut(word) {
        Some(known) if known.len() < MOST_PLACES => known.push(place),
        Some(_) => {}
        None => drop(places.insert(word.to_owned(), vec![place])),
    });
    let mut vector = String::with_capacity(passage.len() * 2);
    for (word, places) in &places {
        let _ = write!(vector, "'{}'", owned(owner, word));
        for (n, place) in places.iter().enumerate() {
            let _ = write!(vector, "{}{place}", if n == 0 { ':' } else { ',' });
        }
        vector.push(' ');
    }
    vector
}

/// Calls `take` with the words of a passage that are indexed, numbered from 1.
fn indexed(passage: &str, mut take: impl FnMut(usize, &str)) {
    let (mut count, mut bytes) = (0, 0);
    each(passage, |word| {
        (count, bytes) = (count + 1, bytes + word.len());
        if count > MOST_WORDS || bytes > MOST_BYTES {
            return Break(());
        }
        take(count, word);
        Continue(())
    });
}

/// Returns the characters of a text without diacritics, ligatures and full width forms.
pub(crate) fn plain(text: &str) -> impl Iterator<Item = char> {
    text.nfkd().filter(|c| !is_diacritic(*c)).flat_map(spelled).nfc()
}

/// Returns whether a character is a mark of Latin, Greek, Cyrillic, Hebrew or Arabic, which people leave out.
/// Marks of other scripts are part of a word's spelling.
fn is_diacritic(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{640}')
}

/// Spells letters that do not decompose as people without such a key write them.
fn spelled(c: char) -> impl Iterator<Item = char> {
    let (first, second) = match c {
        'ß' | 'ẞ' => ('s', Some('s')),
        'æ' | 'Æ' => ('a', Some('e')),
        'œ' | 'Œ' => ('o', Some('e')),
        'ø' | 'Ø' => ('o', None),
        'ł' | 'Ł' => ('l', None),
        'đ' | 'Đ' => ('d', None),
        'ı' => ('i', None),
        'ς' => ('σ', None),
        _ => (c, None),
    };
    std::iter::once(first).chain(second)
}

/// Returns whether a character belongs to a script without blanks between words: Thai, Lao, Burmese, Khmer,
/// Chinese, Japanese, and Korean, whose particles are attached to the word.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3100}'..='\u{318f}' | '\u{31a0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

fn is_single(word: &str) -> bool {
    word.chars().count() == 1 && word.chars().all(is_unspaced)
}

fn is_pair(word: &str) -> bool {
    word.chars().count() == 2 && word.chars().all(is_unspaced)
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

/// Returns whether a character may stand between the parts of one word.
fn is_joint(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '\'' | '\u{2019}' | '\u{2010}' | '\u{2011}')
}

/// Reads characters and gives words.
struct Scanner<F> {
    take: F,
    /// The word being read, without its joints, in its original case.
    word: String,
    /// The offsets at which its parts begin, after the first.
    parts: Vec<usize>,
    /// True if a joint follows the last letter.
    is_joined: bool,
    /// The last two characters of the part.
    last: [Option<char>; 2],
    /// The last character, if its script has no blanks.
    unspaced: Option<char>,
    /// A buffer for the word that is emitted.
    given: String,
}

impl<F: FnMut(&str, &str) -> ControlFlow<()>> Scanner<F> {
    fn new(take: F) -> Self {
        let (word, given) = (String::new(), String::new());
        Self { take, word, parts: Vec::new(), is_joined: false, last: [None; 2], unspaced: None, given }
    }

    fn scan(&mut self, characters: impl Iterator<Item = char>) -> ControlFlow<()> {
        for c in characters {
            if is_letter(c) && is_unspaced(c) {
                self.end()?;
                self.take_unspaced(c)?;
                continue;
            }
            self.unspaced = None;
            if is_letter(c) {
                self.push(c);
            } else if is_joint(c) && !self.word.is_empty() && !self.is_joined {
                self.is_joined = true;
            } else {
                self.end()?;
            }
        }
        self.end()
    }

    fn push(&mut self, c: char) {
        let [before, last] = self.last;
        let is_upper = |c: Option<char>| c.is_some_and(char::is_uppercase);
        if self.is_joined {
            self.begin_part(self.word.len());
        } else if c.is_uppercase() && last.is_some_and(|last| !last.is_uppercase()) {
            // `camelCase`
            self.begin_part(self.word.len());
        } else if let (Some(last), true) = (last, c.is_lowercase() && is_upper(last) && is_upper(before)) {
            // `HTTPServer`
            self.begin_part(self.word.len() - last.len_utf8());
        }
        self.word.push(c);
        self.last = [self.last[1], Some(c)];
    }

    fn begin_part(&mut self, at: usize) {
        self.parts.push(at);
        (self.last, self.is_joined) = ([None; 2], false);
    }

    /// Emits the word that has been read, and its parts.
    fn end(&mut self) -> ControlFlow<()> {
        let (word, parts) = (std::mem::take(&mut self.word), std::mem::take(&mut self.parts));
        (self.last, self.is_joined) = ([None; 2], false);
        if !word.is_empty() {
            self.give(&word)?;
        }
        let mut begin = 0;
        for end in parts.iter().copied().chain([word.len()]).filter(|_| !parts.is_empty()) {
            let part = &word[begin..end];
            begin = end;
            // The `s` of `user's` says nothing.
            if part.len() > 1 || part.bytes().all(|byte| byte.is_ascii_digit()) {
                self.give(part)?;
            }
        }
        if let Some(month) = month(&word, &parts) {
            self.give(month)?;
        }
        (self.word, self.parts) = (word, parts);
        self.word.clear();
        self.parts.clear();
        Continue(())
    }

    fn give(&mut self, word: &str) -> ControlFlow<()> {
        self.given.clear();
        self.given.extend(word.chars().flat_map(char::to_lowercase).take(LONGEST));
        if self.given.is_empty() || EMPTY.binary_search(&self.given.as_str()).is_ok() {
            return Continue(());
        }
        stem(&mut self.given);
        (self.take)(&self.given, word)
    }

    /// Emits a character, and the pair it makes with the one before.
    fn take_unspaced(&mut self, c: char) -> ControlFlow<()> {
        let before = self.unspaced.replace(c);
        self.given.clear();
        self.given.push(c);
        (self.take)(&self.given, &self.given)?;
        let Some(before) = before else { return Continue(()) };
        self.given.clear();
        self.given.extend([before, c]);
        (self.take)(&self.given, &self.given)
    }
}

/// Returns the month of a date such as `2026-01-31` or `2026-01`, which is in `word` without its joints.
fn month(word: &str, parts: &[usize]) -> Option<&'static str> {
    let is_date = matches!((word.len(), parts), (8, [4, 6]) | (6, [4]))
        && word.bytes().all(|byte| byte.is_ascii_digit());
    let number: usize = word.get(4..6).filter(|_| is_date)?.parse().ok()?;
    MONTHS.get(number.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests;
