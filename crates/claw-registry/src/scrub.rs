//! Scrubs secrets from texts, whole ones and those that come in pieces.
//!
//! [`Scrubbers`] holds the values of the deployment and of each tenant and makes a [`CallScrubber`] for one
//! call. A scrubber never changes once it is made.

mod scrubbers;
mod values;

use std::borrow::Cow;
use std::sync::Arc;

use claw_core::image::Image;
use claw_core::redact::{Redaction, Redactor, StreamRedactor};
use claw_core::tool::Secrets;
use claw_policy::scrub::{Scrubber, Stream, Value as SecretValue, ValueError, is_settings_file};
use serde_json::Value;

pub use self::scrubbers::Scrubbers;

/// The reason why a value cannot be made secret.
pub type SecretError = ValueError;

fn call_values(secrets: &Secrets) -> Vec<SecretValue> {
    secrets.reveal().into_iter().map(|text| SecretValue::new(text, "value")).collect()
}

/// Scrubs the results of one call.
#[derive(Clone)]
pub struct CallScrubber {
    /// `None` withholds everything: a guard that cannot decide refuses.
    scrubber: Option<Scrubber>,
    output: bool,
}

const WITHHELD: &str = "[REDACTED]";

impl CallScrubber {
    /// Returns whether all text is withheld.
    pub(crate) fn withholds(&self) -> bool {
        self.scrubber.is_none()
    }

    /// The same for text that model and user see, which a deployment may leave unscrubbed.
    pub(crate) fn for_output(&self) -> OutputScrubber<'_> {
        OutputScrubber { scrubber: self, open: !self.output }
    }

    /// The same as an owned redactor.
    pub(crate) fn into_redactor(self) -> Arc<dyn Redactor> {
        Arc::new(OutputRedactor(self))
    }

    /// The same for the text of the file at `path`: in a configuration file more is secret.
    #[must_use]
    pub(crate) fn for_file(&self, path: &str) -> Self {
        self.for_settings(is_settings_file(path))
    }

    /// The same for text that may be a configuration file's.
    #[must_use]
    pub(crate) fn for_settings(&self, settings: bool) -> Self {
        let mut scrubber = self.clone();
        if settings {
            scrubber.scrubber = scrubber.scrubber.map(|scrubber| scrubber.for_settings());
        }
        scrubber
    }

    /// The text of the file at `path` as the tools show it, without its secrets.
    pub fn file_text(&self, path: &str, text: &str) -> String {
        claw_core::text::mask(text, &self.for_file(path).for_output()).text
    }

    /// Returns whether a person's image may be stored and sent; an image without its bytes passes.
    pub fn passes_image(&self, image: &Image) -> bool {
        image.data().is_none_or(|data| self.for_output().passes(data))
    }

    /// Removes the secrets from a text.
    pub fn text(&self, text: &str) -> String {
        self.scrubbed(text).into_owned()
    }

    /// Returns whether a text contains a known value, in any encoding that values are known by.
    pub fn knows(&self, text: &str) -> bool {
        self.scrubber.as_ref().is_none_or(|scrubber| scrubber.knows(text.as_bytes()))
    }

    /// Scrubs what a model or a person says, unless the deployment leaves that open.
    pub fn said(&self, text: &str) -> String {
        if self.output { self.text(text) } else { text.to_owned() }
    }

    /// The same, piece by piece; a secret split over pieces is still found.
    pub fn saying(&self) -> Saying {
        let stream = self.scrubber.as_ref().map(Scrubber::stream);
        Saying { stream, open: !self.output, rest: Vec::new() }
    }

    /// Scrubs a value: each string by itself, then the whole as text, in which a key can mark the following
    /// value as secret.
    pub fn json(&self, value: &Value) -> Value {
        self.json_in(Cow::Borrowed(value)).value
    }

    /// The same, with the scrubbed value's text. A value of one's own is copied only if it holds a secret.
    pub(crate) fn json_in(&self, value: Cow<'_, Value>) -> ScrubbedJson {
        if self.scrubber.is_none() {
            let value = Value::String(WITHHELD.to_owned());
            return ScrubbedJson { text: value.to_string(), value };
        }
        let text = text_of(&value);
        // Without escapes every string occurs literally in the text, so a clean text has only clean strings.
        if !text.contains('\\') && matches!(self.scrubbed(&text), Cow::Borrowed(_)) {
            return ScrubbedJson { value: value.into_owned(), text };
        }
        let mut value = value.into_owned();
        self.strings(&mut value);
        let text = text_of(&value);
        let scrubbed = match self.scrubbed(&text) {
            Cow::Borrowed(_) => return ScrubbedJson { value, text },
            Cow::Owned(text) => text,
        };
        let value = serde_json::from_str(&scrubbed).unwrap_or(Value::String(scrubbed));
        ScrubbedJson { text: text_of(&value), value }
    }

    fn strings(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.in_place(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.strings(item)),
            Value::Object(fields) => {
                let scrubbed = std::mem::take(fields).into_iter().map(|(mut key, mut field)| {
                    self.in_place(&mut key);
                    self.strings(&mut field);
                    (key, field)
                });
                *fields = scrubbed.collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn in_place(&self, text: &mut String) {
        if let Cow::Owned(scrubbed) = self.scrubbed(text) {
            *text = scrubbed;
        }
    }

    fn scrubbed<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.scrubber {
            Some(scrubber) => scrubber.scrub(text),
            None => Cow::Owned(WITHHELD.to_owned()),
        }
    }
}

/// A value without its secrets.
pub(crate) struct ScrubbedJson {
    pub(crate) value: Value,
    /// The value as text.
    pub(crate) text: String,
}

/// Scrubs text for model and user, unless the deployment leaves it open.
#[derive(Clone, Copy)]
pub(crate) struct OutputScrubber<'a> {
    scrubber: &'a CallScrubber,
    open: bool,
}

impl OutputScrubber<'_> {
    pub(crate) fn in_place(&self, text: &mut String) {
        if !self.open {
            self.scrubber.in_place(text);
        }
    }

    pub(crate) fn json(&self, value: Value) -> Value {
        if self.open { value } else { self.scrubber.json_in(Cow::Owned(value)).value }
    }

    /// Returns whether bytes that are not text may be shown. They cannot be scrubbed, so they pass whole or
    /// not at all: they may contain no known value, and no readable part that would be scrubbed, such as a
    /// comment in an image.
    pub(crate) fn passes(&self, bytes: &[u8]) -> bool {
        let is_clean = |scrubber: &Scrubber| {
            let is_kept = |part: &str| matches!(scrubber.scrub(part), Cow::Borrowed(_));
            !scrubber.knows(bytes) && readable(bytes).all(is_kept)
        };
        self.open || self.scrubber.scrubber.as_ref().is_some_and(is_clean)
    }
}

/// Returns a value as compact JSON.
fn text_of(value: &Value) -> String {
    // Formatting takes twice as long as serialising, and gives the same text.
    serde_json::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// The shortest readable run of characters; compressed data has shorter ones everywhere.
const READABLE: usize = 12;

/// The runs of readable characters in bytes.
fn readable(bytes: &[u8]) -> impl Iterator<Item = &str> {
    let is_other = |byte: &u8| !matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
    let runs = bytes.split(is_other).filter(|run| run.len() >= READABLE);
    runs.filter_map(|run| std::str::from_utf8(run).ok())
}

/// A view of a file hides what scrubbing would remove from its text.
impl Redactor for OutputScrubber<'_> {
    fn find(&self, text: &[u8], found: &mut Vec<Redaction>) {
        match &self.scrubber.scrubber {
            _ if self.open => {}
            Some(scrubber) => scrubber.find(text, found),
            None if text.is_empty() => {}
            None => found.push(Redaction { range: 0..text.len(), kind: "value" }),
        }
    }

    fn find_before(&self, text: &[u8], end: usize, found: &mut Vec<Redaction>) {
        match &self.scrubber.scrubber {
            Some(scrubber) if !self.open => scrubber.find_before(text, end, found),
            _ => self.find(text, found),
        }
    }
}

/// An [`OutputScrubber`] that can go to other threads.
struct OutputRedactor(CallScrubber);

impl Redactor for OutputRedactor {
    fn find(&self, text: &[u8], found: &mut Vec<Redaction>) {
        self.0.for_output().find(text, found);
    }

    fn find_before(&self, text: &[u8], end: usize, found: &mut Vec<Redaction>) {
        self.0.for_output().find_before(text, end, found);
    }

    fn find_in_file(&self, path: &str, text: &[u8], found: &mut Vec<Redaction>) {
        self.0.for_file(path).for_output().find(text, found);
    }
}

/// Scrubs the progress of a running call, piece by piece; a secret split over pieces is still found.
pub(crate) struct Telling {
    scrubbers: CallScrubber,
    secrets: Secrets,
    seen: usize,
    /// Made with the first piece: most calls tell nothing.
    stream: Option<Stream>,
    /// Nothing more is told.
    is_over: bool,
}

impl Telling {
    pub(crate) fn new(base: CallScrubber, secrets: Secrets) -> Self {
        let is_over = base.withholds();
        Self { scrubbers: base, secrets, seen: 0, stream: None, is_over }
    }

    /// Takes a piece and returns the text that can be shown by now.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        if self.stream.is_none() && !self.is_over {
            self.stream = self.scrubbers.scrubber.as_ref().map(Scrubber::stream);
        }
        self.learn();
        let mut out = Vec::new();
        if let Some(stream) = &mut self.stream {
            stream.push(piece.as_bytes(), &mut out);
        }
        text(out)
    }

    /// Returns the text held back.
    pub(crate) fn end(&mut self) -> String {
        if self.stream.is_some() {
            self.learn();
        }
        self.is_over = true;
        let mut out = Vec::new();
        if let Some(stream) = self.stream.take() {
            stream.finish(&mut out);
        }
        text(out)
    }

    /// Adds secrets that the call has opened since: text not told yet is scrubbed of them too. If one cannot
    /// be scrubbed, nothing more is told.
    fn learn(&mut self) {
        if self.secrets.len() == self.seen {
            return;
        }
        let values = call_values(&self.secrets);
        self.seen = values.len();
        let base = self.scrubbers.scrubber.as_ref();
        match (base.and_then(|base| base.with_values(values).ok()), &mut self.stream) {
            (Some(scrubber), Some(stream)) => stream.go_on_with(&scrubber),
            _ => (self.stream, self.is_over) = (None, true),
        }
    }
}

/// Scrubs text that comes piece by piece.
pub struct Saying {
    stream: Option<Stream>,
    open: bool,
    /// The beginning of a character whose end is still missing.
    rest: Vec<u8>,
}

impl Saying {
    /// Takes a piece and returns the text that can be shown by now.
    pub fn push(&mut self, piece: &str) -> String {
        if self.open {
            return piece.to_owned();
        }
        if let Some(stream) = &mut self.stream {
            stream.push(piece.as_bytes(), &mut self.rest);
        }
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(_) => self.rest.len(),
            Err(error) => error.valid_up_to(),
        };
        let after = self.rest.split_off(whole);
        text(std::mem::replace(&mut self.rest, after))
    }

    /// Returns the text held back.
    pub fn end(mut self) -> String {
        if let Some(stream) = self.stream.take() {
            stream.finish(&mut self.rest);
        }
        text(self.rest)
    }
}

impl StreamRedactor for Saying {
    fn push(&mut self, piece: &str) -> String {
        Self::push(self, piece)
    }

    fn unfinished(&self) -> String {
        let line = self.stream.as_ref().map(Stream::prompt).unwrap_or_default();
        String::from_utf8_lossy(line).into_owned()
    }

    fn end(self: Box<Self>) -> String {
        Self::end(*self)
    }
}

/// Decodes scrubbed bytes. Scrubbing never breaks UTF-8 at the end of a text; a piece may end inside a
/// character.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;
