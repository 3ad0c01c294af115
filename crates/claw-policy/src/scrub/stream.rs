//! Scrubs text that comes in pieces, cut anywhere.
//!
//! The output of all pieces is the scrubbed whole. The text held back is bounded: an unfinished line, the
//! start of a known value, a block of base64 lines that may turn out to be a key. An open secret is
//! swallowed, not held.

use std::{mem, sync::Arc};

use claw_core::redact::{PLACEHOLDER, Redaction};

use super::{Report, Scrubber, engine::Pass, known_values::Dictionary, merge, view::BEHIND};

/// A stream of text through a scrubber.
pub struct Stream {
    values: Values,
    patterns: Patterns,
    passed: Vec<u8>,
    report: Report,
}

impl Stream {
    pub(super) fn new(dictionaries: Arc<[Arc<Dictionary>]>, settings: bool) -> Self {
        Self {
            values: Values { dictionaries, text: Vec::new(), judged: 0, sent: 0, redacted: false },
            patterns: Patterns { text: Vec::new(), pass: Pass::new(settings), sent: 0 },
            passed: Vec::new(),
            report: Report::default(),
        }
    }

    /// Takes the next piece and adds the text that is certain by now to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        self.advance(chunk, false, out);
    }

    /// Continues with the values of `scrubber`. A secret that began before is still followed to its end, and
    /// the text held back is searched for the new values too.
    pub fn go_on_with(&mut self, scrubber: &Scrubber) {
        let values = &mut self.values;
        values.dictionaries = scrubber.dictionaries.clone();
        // A value that extends past the searched text is half redacted: then the text held back stays as it
        // is.
        if values.sent <= values.judged
            && let Some(back) = self.patterns.take_back()
        {
            values.text.splice(..values.sent, back);
            (values.judged, values.sent, values.redacted) = (self.patterns.sent, self.patterns.sent, false);
        }
    }

    /// Ends the stream and adds the rest to `out`.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Report {
        self.advance(&[], true, out);
        self.report
    }

    /// The counts so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// An unfinished line that looks like a prompt, so that it can be shown before its end is known. Text
    /// that may become a secret is not a prompt.
    pub fn prompt(&self) -> &[u8] {
        let Patterns { text, pass, sent } = &self.patterns;
        // Text held back because of a known value is not even here.
        let tail = text.get(*sent..).unwrap_or_default();
        let mut found = Vec::new();
        pass.same_kind().advance(tail, true, &mut found);
        if found.is_empty() && !pass.is_inside() && is_prompt(tail) { tail } else { &[] }
    }

    /// Number of bytes held back.
    pub fn held(&self) -> usize {
        self.values.text.len() + self.patterns.text.len()
    }

    fn advance(&mut self, chunk: &[u8], last: bool, out: &mut Vec<u8>) {
        if self.values.dictionaries.is_empty() {
            self.patterns.advance(chunk, last, out, &mut self.report);
            return;
        }
        let mut passed = mem::take(&mut self.passed);
        self.values.advance(chunk, last, &mut passed, &mut self.report);
        self.patterns.advance(&passed, last, out, &mut self.report);
        passed.clear();
        self.passed = passed;
    }
}

/// The first stage: known values.
struct Values {
    dictionaries: Arc<[Arc<Dictionary>]>,
    text: Vec<u8>,
    /// All matches that start before this position are known.
    judged: usize,
    /// Everything before has been sent; after `judged` if a match extends beyond it.
    sent: usize,
    /// The sent text ends with a redaction.
    redacted: bool,
}

impl Values {
    fn advance(&mut self, chunk: &[u8], last: bool, out: &mut Vec<u8>, report: &mut Report) {
        self.text.extend_from_slice(chunk);
        let mut found = Vec::new();
        for dictionary in self.dictionaries.iter() {
            dictionary.find(&self.text, self.judged, &mut found);
        }
        let certain = if last { self.text.len() } else { self.certain(&mut found) };
        found.retain(|known| (self.judged..certain).contains(&known.range.start));
        self.send(merge(found), certain, out, report);
        self.judged = certain;
        let forgotten = self.judged.min(self.sent).saturating_sub(PLACEHOLDER.len());
        self.text.drain(..forgotten);
        (self.judged, self.sent) = (self.judged - forgotten, self.sent - forgotten);
    }

    fn send(&mut self, found: Vec<Redaction>, certain: usize, out: &mut Vec<u8>, report: &mut Report) {
        for redaction in found {
            let range = redaction.range.clone();
            if !(self.redacted && range.start <= self.sent) {
                out.extend_from_slice(self.text.get(self.sent..range.start).unwrap_or_default());
                out.extend_from_slice(PLACEHOLDER.as_bytes());
                report.count(&[redaction]);
            }
            self.sent = self.sent.max(range.end);
            self.redacted = true;
        }
        if let Some(kept) = self.text.get(self.sent..certain).filter(|kept| !kept.is_empty()) {
            out.extend_from_slice(kept);
            (self.sent, self.redacted) = (certain, false);
        }
    }

    /// The end of the certain text. Removes uncertain matches from `found`.
    fn certain(&self, found: &mut Vec<Redaction>) -> usize {
        let partial = self.dictionaries.iter().filter_map(|list| list.partial(&self.text, self.judged)).min();
        let mut certain = partial.unwrap_or(self.text.len());
        // A placeholder that began before the end may still cancel a match.
        let begun = (1..PLACEHOLDER.len()).rev().find(|&n| self.text.ends_with(&PLACEHOLDER.as_bytes()[..n]));
        if let Some(placeholder) = begun.map(|n| self.text.len() - n) {
            certain = certain.min(placeholder);
            found.retain(|known| {
                let sure = known.range.end <= placeholder;
                if !sure {
                    certain = certain.min(known.range.start);
                }
                sure
            });
        }
        certain
    }
}

/// The second stage: patterns of secrets.
struct Patterns {
    text: Vec<u8>,
    pass: Pass,
    /// Everything before has been sent or swallowed.
    sent: usize,
}

impl Patterns {
    fn advance(&mut self, chunk: &[u8], last: bool, out: &mut Vec<u8>, report: &mut Report) {
        self.text.extend_from_slice(chunk);
        let mut found = Vec::new();
        let swallowed = self.pass.advance(&self.text, last, &mut found);
        self.sent = self.sent.max(swallowed);
        report.count(&found);
        for Redaction { range, .. } in found {
            self.send(range.start, out);
            out.extend_from_slice(PLACEHOLDER.as_bytes());
            self.sent = range.end;
        }
        let certain = if last { self.text.len() } else { self.pass.certain(&self.text) };
        self.send(certain, out);
        let forgotten = self.sent.saturating_sub(BEHIND);
        self.text.drain(..forgotten);
        self.sent -= forgotten;
        self.pass.forget(forgotten);
    }

    /// Takes back the text not sent yet, if it can be judged again; text sent before it stays.
    fn take_back(&mut self) -> Option<Vec<u8>> {
        self.pass.go_back(self.sent).then(|| {
            let text = self.text.clone();
            self.text.truncate(self.sent);
            text
        })
    }

    fn send(&mut self, until: usize, out: &mut Vec<u8>) {
        if let Some(kept) = self.text.get(self.sent..until) {
            out.extend_from_slice(kept);
            self.sent = until;
        }
    }
}

/// The longest prompt that is shown.
const PROMPT: usize = 60;

/// Returns whether this looks like a prompt: short words, and at the end a sign that no secret ends with.
fn is_prompt(tail: &[u8]) -> bool {
    let Some(last) = tail.iter().rposition(|byte| *byte != b' ') else { return false };
    let asked = tail.get(..last).unwrap_or_default();
    let plain = |byte: &u8| (b' '..=b'~').contains(byte) && !b"\"'`=".contains(byte);
    // A path may precede the sign of a shell prompt; elsewhere the text after a colon may be a value.
    let shell = b"$#%>".contains(&tail[last]);
    let is_path =
        |rest: &[u8]| rest.starts_with(b"~") || (rest.starts_with(b"/") && !rest.starts_with(b"//"));
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let is_short = |run: &[u8]| run.len() < 16 && run.iter().filter(|byte| byte.is_ascii_digit()).count() < 6;
    tail.len() <= PROMPT
        && b":>$#%?])}".contains(&tail[last])
        && asked.iter().all(plain)
        && asked.split(|byte| !is_part(byte)).all(is_short)
        && asked.split(|byte| *byte == b':').skip(1).all(|rest| shell && is_path(rest))
}
