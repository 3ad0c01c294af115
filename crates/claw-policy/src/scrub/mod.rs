//! An immutable scrubber: finds secrets in text and replaces them by `[REDACTED]`, in one pass over a whole
//! text or over a stream of pieces, with the same result.
//!
//! `docs/scrubbing.md` defines what counts as a secret and what does not. The scrubber does not guess where a
//! secret came from, keeps no text, and changes no byte that is not part of a secret.
//!
//! ```
//! use claw_policy::scrub::{Scrubber, Value};
//!
//! let deployment = Scrubber::compile([Value::new("corr3ct-horse", "deployment")])?;
//! let call = deployment.with_values([Value::new("10.20.30.40", "server-address")])?;
//! assert_eq!(call.scrub("pw is corr3ct-horse on 10.20.30.40"), "pw is [REDACTED] on [REDACTED]");
//! assert_eq!(call.scrub(r#"{"password": "hunter2"}"#), r#"{"password": "[REDACTED]"}"#);
//! # Ok::<(), claw_policy::scrub::ValueError>(())
//! ```

mod config_file_names;
mod encoding;
mod engine;
mod guessable;
mod known_values;
mod prefilter;
mod report;
mod rules;
mod stream;
mod values;
mod view;

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt, sync::Arc};

use claw_core::redact::{PLACEHOLDER, Redaction, Redactor};

use engine::{LINE, Pass};
use known_values::Dictionary;

pub use config_file_names::is_settings_file;
pub use guessable::Weakness;
pub use report::Report;
pub use stream::Stream;
pub use values::{Value, ValueError};

/// Every kind of secret that is found without knowing its value: the name used in reports, and a description.
pub fn kinds() -> &'static [(&'static str, &'static str)] {
    rules::KINDS
}

/// Finds and replaces secrets. Immutable and cheap to clone.
#[derive(Clone, Default)]
pub struct Scrubber {
    dictionaries: Arc<[Arc<Dictionary>]>,
    /// The text is a configuration file's.
    settings: bool,
}

impl Scrubber {
    /// A scrubber with the patterns of secrets and no particular values.
    pub fn new() -> Self {
        Self::default()
    }

    /// A scrubber with the patterns and these `values`.
    pub fn compile(values: impl IntoIterator<Item = Value>) -> Result<Self, ValueError> {
        Self::new().with_values(values)
    }

    /// This scrubber with more `values`; the compiled ones are shared, not copied.
    pub fn with_values(&self, values: impl IntoIterator<Item = Value>) -> Result<Self, ValueError> {
        let more = Dictionary::compile(values)?;
        let dictionaries = self.dictionaries.iter().cloned().chain([Arc::new(more)]).collect();
        Ok(Self { dictionaries, settings: self.settings })
    }

    /// This scrubber with all values of `other`; nothing is compiled or copied. It finds the same as a
    /// scrubber compiled from the values of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        match (self.dictionaries.is_empty(), other.dictionaries.is_empty()) {
            (true, _) => Self { settings: self.settings || other.settings, ..other.clone() },
            (_, true) => Self { settings: self.settings || other.settings, ..self.clone() },
            _ => Self {
                dictionaries: self.dictionaries.iter().chain(&*other.dictionaries).cloned().collect(),
                settings: self.settings || other.settings,
            },
        }
    }

    /// A scrubber with the values of all of these; nothing is compiled.
    pub fn join<'a>(scrubbers: impl IntoIterator<Item = &'a Arc<Self>>) -> Self {
        let (mut dictionaries, mut settings) = (Vec::new(), false);
        for scrubber in scrubbers {
            dictionaries.extend(scrubber.dictionaries.iter().cloned());
            settings |= scrubber.settings;
        }
        Self { dictionaries: dictionaries.into(), settings }
    }

    /// This scrubber for the text of a configuration file ([`is_settings_file`]): there the value of a
    /// secret's key is redacted however plain it looks.
    #[must_use]
    pub fn for_settings(&self) -> Self {
        Self { settings: true, ..self.clone() }
    }

    /// `text` without its secrets; borrowed if it has none.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.scrub_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Secrets start and end at characters, so this never replaces anything.
            Cow::Owned(bytes) => Cow::Owned(
                String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            ),
        }
    }

    /// `text` without its secrets; borrowed if it has none. Bytes that are not UTF-8 pass through.
    pub fn scrub_bytes<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        self.scrub_reporting(text, &mut Report::default())
    }

    /// Like [`Scrubber::scrub_bytes`]; adds the counts to `report`.
    pub fn scrub_reporting<'t>(&self, text: &'t [u8], report: &mut Report) -> Cow<'t, [u8]> {
        let known = self.find_values(text);
        report.count(&known);
        let text = redact(text, &known);
        let found = find_patterns(&text, self.settings);
        report.count(&found);
        match (redact(&text, &found), &text) {
            (Cow::Owned(bytes), _) => Cow::Owned(bytes),
            (Cow::Borrowed(_), _) => text,
        }
    }

    /// Returns whether `text` contains a known value, in any form. Patterns of secrets are not searched: for
    /// bytes that are not text, such as images in base64.
    pub fn knows(&self, text: &[u8]) -> bool {
        !self.find_values(text).is_empty()
    }

    /// A stream that scrubs text piece by piece.
    pub fn stream(&self) -> Stream {
        Stream::new(self.dictionaries.clone(), self.settings)
    }

    /// Memory use of the known values in bytes.
    pub fn memory(&self) -> usize {
        self.dictionaries.iter().map(|dictionary| dictionary.memory()).sum()
    }

    fn find_values(&self, text: &[u8]) -> Vec<Redaction> {
        let mut found = Vec::new();
        for dictionary in self.dictionaries.iter() {
            dictionary.find(text, 0, &mut found);
        }
        merge(found)
    }
}

/// Shows the number of lists of values; never a value.
impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrubber").field("lists", &self.dictionaries.len()).finish_non_exhaustive()
    }
}

impl Redactor for Scrubber {
    fn find(&self, text: &[u8], found: &mut Vec<Redaction>) {
        let known = self.find_values(text);
        if known.is_empty() {
            found.extend(find_patterns(text, self.settings));
            return;
        }
        let patterns = find_patterns(&redact(text, &known), self.settings);
        let back = patterns.into_iter().map(|found| Redaction {
            range: original(&known, found.range.start, Edge::Start)
                ..original(&known, found.range.end, Edge::End),
            kind: found.kind,
        });
        found.extend(merge(back.chain(known.iter().cloned()).collect()));
    }

    fn find_before(&self, text: &[u8], end: usize, found: &mut Vec<Redaction>) {
        // Like a stream that gets just enough text to be certain.
        if let Some(piece) = text.get(..end.saturating_add(2 * LINE))
            && self.find_values(text).is_empty()
        {
            let (mut pass, mut early) = (Pass::new(self.settings), Vec::new());
            pass.advance(piece, false, &mut early);
            if pass.certain(piece) >= end {
                found.extend(early);
                return;
            }
        }
        self.find(text, found);
    }

    fn find_in_file(&self, path: &str, text: &[u8], found: &mut Vec<Redaction>) {
        match is_settings_file(path) {
            true => self.for_settings().find(text, found),
            false => self.find(text, found),
        }
    }
}

fn find_patterns(text: &[u8], settings: bool) -> Vec<Redaction> {
    let mut found = Vec::new();
    Pass::new(settings).advance(text, true, &mut found);
    found
}

/// `text` with a placeholder for each of `found`.
fn redact<'t>(text: &'t [u8], found: &[Redaction]) -> Cow<'t, [u8]> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut redacted = Vec::with_capacity(text.len() + found.len() * PLACEHOLDER.len());
    let mut kept = 0;
    for Redaction { range, .. } in found {
        redacted.extend_from_slice(text.get(kept..range.start).unwrap_or_default());
        redacted.extend_from_slice(PLACEHOLDER.as_bytes());
        kept = range.end;
    }
    redacted.extend_from_slice(text.get(kept..).unwrap_or_default());
    Cow::Owned(redacted)
}

/// Sorts redactions and joins those that overlap or touch.
fn merge(mut found: Vec<Redaction>) -> Vec<Redaction> {
    found.sort_by(|a, b| (a.range.start, b.range.end).cmp(&(b.range.start, a.range.end)));
    found.dedup_by(|next, kept| {
        let one = next.range.start <= kept.range.end;
        if one {
            kept.range.end = kept.range.end.max(next.range.end);
        }
        one
    });
    found
}

#[derive(Clone, Copy, PartialEq)]
enum Edge {
    Start,
    End,
}

/// The original position of the byte at `at` of the redacted text; inside a placeholder, an edge of the
/// replaced text.
fn original(known: &[Redaction], at: usize, edge: Edge) -> usize {
    let (mut before, mut after) = (0, 0);
    for Redaction { range, .. } in known {
        let placeholder = after + (range.start - before);
        if at <= placeholder {
            break;
        }
        if at < placeholder + PLACEHOLDER.len() {
            return if edge == Edge::Start { range.start } else { range.end };
        }
        (before, after) = (range.end, placeholder + PLACEHOLDER.len());
    }
    before + (at - after)
}
