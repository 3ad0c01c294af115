//! Shows paths and values, always shortened.

use std::fmt::Write as _;
use std::io;

use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

/// Names and options listed at once.
const MAX_LISTED: usize = 24;
/// Stands for a withheld value.
const WITHHELD: &str = "[REDACTED]";
/// Characters of a value that are shown.
const MAX_SHOWN: usize = 60;

/// A position in the arguments, as people write it: `edits[0].old_text`.
#[derive(Debug, Default)]
pub(super) struct ArgumentPath(String);

impl ArgumentPath {
    /// Enters a field; returns the length to go back to.
    pub(super) fn enter_field(&mut self, name: &str) -> usize {
        let back = self.0.len();
        if back > 0 {
            self.0.push('.');
        }
        self.0.push_str(&clipped(name));
        back
    }

    pub(super) fn enter_item(&mut self, index: usize) -> usize {
        let back = self.0.len();
        let _ = write!(self.0, "[{index}]");
        back
    }

    pub(super) fn leave(&mut self, back: usize) {
        self.0.truncate(back);
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }

    /// A message about this position.
    pub(super) fn say(&self, what: &str) -> String {
        if self.0.is_empty() { what.to_owned() } else { format!("`{}`: {what}", self.0) }
    }
}

/// Arguments as they may be shown: secrets are removed from the whole, before anything is shortened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<'a>(Option<&'a Value>);

impl<'a> Shown<'a> {
    /// A value that is withheld altogether.
    pub(super) const NOTHING: Self = Self(None);

    pub(super) fn new(redacted: &'a Value) -> Self {
        Self(Some(redacted))
    }

    /// A field, with the name that may be shown.
    pub(super) fn field(self, name: &str) -> (Self, &str) {
        match self.0.and_then(|value| value.get(name)) {
            Some(field) => (Self(Some(field)), name),
            None => (Self::NOTHING, WITHHELD),
        }
    }

    pub(super) fn item(self, index: usize) -> Self {
        Self(self.0.and_then(|value| value.get(index)))
    }

    /// A position below, and its value.
    pub(super) fn at(self, location: &Location) -> (ArgumentPath, Self) {
        let start = (ArgumentPath::default(), self);
        location.segments().fold(start, |(mut place, shown), segment| match segment {
            LocationSegment::Property(name) => {
                let (field, name) = shown.field(&name);
                place.enter_field(name);
                (place, field)
            }
            LocationSegment::Index(index) => {
                place.enter_item(index);
                (place, shown.item(index))
            }
        })
    }

    /// Returns whether the value is shown unchanged.
    pub(super) fn is(self, value: &Value) -> bool {
        self.0 == Some(value)
    }

    /// Describes the given value, such as "the string \"ten\"": always its kind, and as much of it as may be
    /// shown.
    pub(super) fn described(self, value: &Value) -> String {
        let kind = match value {
            Value::Null | Value::Bool(_) => return value.to_string(),
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "list",
            Value::Object(_) => "object",
        };
        match self.0 {
            Some(shown) => format!("the {kind} {}", shortened(shown)),
            None => format!("{} {kind}", if kind == "object" { "an" } else { "a" }),
        }
    }

    /// The value alone.
    pub(super) fn text(self) -> String {
        self.0.map_or_else(|| WITHHELD.to_owned(), shortened)
    }
}

/// A value as JSON, at most [`MAX_SHOWN`] characters of it.
pub(super) fn shortened(value: &Value) -> String {
    let mut start = Start(Vec::new());
    let whole = serde_json::to_writer(&mut start, value).is_ok();
    let text = String::from_utf8_lossy(&start.0);
    if whole && text.chars().count() <= MAX_SHOWN {
        return text.into_owned();
    }
    text.chars().take(MAX_SHOWN).chain("...".chars()).collect()
}

/// Text, at most [`MAX_SHOWN`] characters of it.
pub(super) fn clipped(text: &str) -> String {
    if text.chars().count() <= MAX_SHOWN {
        return text.to_owned();
    }
    text.chars().take(MAX_SHOWN).chain("...".chars()).collect()
}

/// A list of at most [`MAX_LISTED`] items.
pub(super) fn listed(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(MAX_LISTED);
    let mut list = items.take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(list, " and {more} more");
    }
    list
}

/// Takes the start of the output and stops the writer: a value of 10 MB is not copied to show a line.
struct Start(Vec<u8>);

impl io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (4 * MAX_SHOWN + 4).saturating_sub(self.0.len());
        let taken = bytes.len().min(room);
        self.0.extend(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
