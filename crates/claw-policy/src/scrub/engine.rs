//! A single pass over a text, whole or in pieces.
//!
//! Candidates are judged from left to right; rules do not see text before the end of the last secret. In a
//! piece of a stream, a verdict that looked past the end is postponed, and a line is judged when it is
//! complete.

use std::ops::Range;

use claw_core::redact::Redaction;

use super::{
    prefilter::Scout,
    rules::{self, Secret, Tail},
    view::{BEHIND, Settings, View},
};

/// Bytes of an unfinished line that are kept until its end comes; half of it stays ahead of the judged text,
/// more than the prefilter looks at. Smaller in tests, so that they reach the limit.
pub(super) const LINE: usize = if cfg!(test) { 256 } else { 4096 };

/// The longest plain word; every secret that is known by its form has a longer run, or other characters.
const LETTERS: usize = 15;

/// The state of the pass. Positions count from the start of the text given to [`Pass::advance`].
#[derive(Default)]
pub(super) struct Pass {
    /// The end of the judged text.
    judged: usize,
    /// The end of the last redaction.
    floor: Option<usize>,
    /// Secrets that start after their candidate, the nearest last: the text between is judged first.
    ahead: Vec<Secret>,
    /// The continuation of an unfinished redaction.
    tail: Option<Tail>,
    /// The end, in this piece, of a redaction that an earlier piece began.
    continued: usize,
    /// The whole text is a configuration file's.
    settings: bool,
    /// The lines so far that say which file the text below them is from, with their positions.
    headings: Vec<(usize, Settings)>,
}

impl Pass {
    /// A pass over a text, which may be a configuration file's.
    pub(super) fn new(settings: bool) -> Self {
        Self { settings, ..Self::default() }
    }

    /// A new pass over a text of the same kind.
    pub(super) fn same_kind(&self) -> Self {
        let headings = self.headings.last().map(|(_, below)| (0, *below)).into_iter().collect();
        Self { settings: self.settings, headings, ..Self::default() }
    }

    /// The knowledge about the text that is judged next.
    fn settings(&self) -> Settings {
        match self.headings.last() {
            _ if self.settings => Settings::File,
            Some((_, below)) => *below,
            None => Settings::No,
        }
    }

    /// Judges as much of `text` as is certain, or all of it if it is the `last` of its stream.
    ///
    /// `found` must be empty. Returns the end of an earlier piece's redaction if it continues in this one.
    pub(super) fn advance(&mut self, text: &[u8], last: bool, found: &mut Vec<Redaction>) -> usize {
        self.continued = 0;
        self.judge(text, last, found);
        self.continued
    }

    fn judge(&mut self, text: &[u8], last: bool, found: &mut Vec<Redaction>) {
        let limit = if last { text.len() } else { complete(text, self.judged) };
        let mut scout = Scout::new();
        loop {
            if let Some(tail) = self.tail.take() {
                let (end, done) = tail.swallow(text, self.judged, last);
                self.redact_to(end, found);
                if !done {
                    self.tail = Some(tail);
                    return;
                }
            }
            let until = self.ahead.last().map_or(limit, |secret| secret.start);
            let Some(candidate) = scout.next(text, self.judged, until, self.floor) else {
                if let Some(secret) = self.ahead.pop() {
                    self.redact(secret, found);
                    continue;
                }
                self.judged = self.judged.max(limit);
                return;
            };
            let view = View::new(text, self.floor, candidate.at).of_settings(self.settings());
            let by_literal = candidate.rule.and_then(|rule| rule.judge(&view, candidate.at));
            let secret = match by_literal {
                None if candidate.run => rules::judge_run(&view, candidate.at),
                found => found,
            };
            let heading = candidate.rule.and_then(|rule| rule.heading(&view, candidate.at));
            if view.looked_past_end() && !last {
                self.judged = candidate.at;
                return;
            }
            self.headings.extend(heading.map(|below| (candidate.at, below)));
            match secret {
                Some(secret) if secret.start <= candidate.at => self.redact(secret, found),
                Some(secret) if secret.start < until || self.ahead.is_empty() => {
                    self.judged = candidate.at + 1;
                    self.ahead.push(secret);
                }
                _ => self.judged = candidate.at + 1,
            }
        }
    }

    /// The end of the certain text: no redaction will start before it.
    pub(super) fn certain(&self, text: &[u8]) -> usize {
        if self.tail.is_some() {
            return self.judged;
        }
        let lowest = self.judged.saturating_sub(BEHIND).max(self.floor.unwrap_or(0));
        let line_start = last_break(text, lowest..self.judged).unwrap_or(lowest);
        match rules::held_line_start(text, self.floor, line_start) {
            Some(held) => held,
            None if self.ahead.is_empty() => words_end(text, line_start),
            None => line_start,
        }
    }

    /// Returns whether a secret has begun that continues in the next text.
    pub(super) fn is_inside(&self) -> bool {
        self.tail.is_some() || !self.ahead.is_empty()
    }

    /// Goes back to judge the text after `at` again; not while a secret ahead was found by the text before
    /// it.
    pub(super) fn go_back(&mut self, at: usize) -> bool {
        if !self.ahead.is_empty() {
            return false;
        }
        self.judged = self.judged.min(at);
        self.headings.retain(|(heading, _)| *heading < at);
        true
    }

    /// Forgets the first `count` bytes of the text.
    pub(super) fn forget(&mut self, count: usize) {
        self.judged = self.judged.saturating_sub(count);
        self.floor = self.floor.and_then(|floor| floor.checked_sub(count));
        let last = self.headings.iter().rposition(|(at, _)| *at < count).unwrap_or(0);
        self.headings.drain(..last);
        self.headings.iter_mut().for_each(|(at, _)| *at = at.saturating_sub(count));
        for secret in &mut self.ahead {
            (secret.start, secret.end) = (secret.start - count, secret.end - count);
        }
    }

    /// Redacts the part of `secret` after the last redaction.
    fn redact(&mut self, secret: Secret, found: &mut Vec<Redaction>) {
        let start = secret.start.max(self.floor.unwrap_or(0));
        if start > secret.end {
            return;
        }
        if self.floor != Some(start) {
            found.push(Redaction { range: start..secret.end, kind: secret.kind });
        }
        self.redact_to(secret.end, found);
        self.tail = Some(secret.tail);
    }

    fn redact_to(&mut self, end: usize, found: &mut [Redaction]) {
        self.judged = end;
        self.floor = Some(end);
        match found.last_mut() {
            Some(last) => last.range.end = end,
            None => self.continued = end,
        }
    }
}

/// The end of the plain words at the start of a line: short, of letters only, each followed by a space. No
/// rule makes a secret of such words, whatever follows; so prose is passed on before its line ends.
fn words_end(text: &[u8], line_start: usize) -> usize {
    let mut end = line_start;
    for word in text.get(line_start..).unwrap_or_default().split_inclusive(|byte| *byte == b' ') {
        let Some((b' ', word)) = word.split_last() else { break };
        let letters = word.strip_prefix(b"(").unwrap_or(word);
        let after = letters.iter().rposition(|byte| !b",.;!?)".contains(byte)).map_or(0, |last| last + 1);
        let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'\'';
        let letters = letters.get(..after).unwrap_or_default();
        if letters.len() > LETTERS
            || !letters.iter().all(is_letter)
            || rules::takes_next_word(letters, text.get(line_start..end).unwrap_or_default())
        {
            break;
        }
        end += word.len() + 1;
    }
    end
}

/// The end of the last complete line of `text[from..]`; a very long line counts as complete except for its
/// end.
fn complete(text: &[u8], from: usize) -> usize {
    match last_break(text, from..text.len()) {
        Some(at) if text.len() - at < LINE => at,
        _ if text.len() - from > LINE => text.len() - LINE / 2,
        _ => from,
    }
}

/// The start of the line after the last break in `range`: after `\n`, or after `\r` that no `\n` can follow.
fn last_break(text: &[u8], range: Range<usize>) -> Option<usize> {
    let part = text.get(range.clone())?;
    let at = range.start + memchr::memrchr2(b'\n', b'\r', part)?;
    match (text.get(at), text.get(at + 1)) {
        (Some(b'\r'), None | Some(b'\n')) => last_break(text, range.start..at),
        _ => Some(at + 1),
    }
}
