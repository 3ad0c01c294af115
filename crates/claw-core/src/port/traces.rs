//! Traces: what runs did, as spans for a collector. Spans are told when they have ended, scrubbed already.

use std::time::Duration;

use super::UnixMillis;

/// Takes spans. Must not block.
pub trait Traces: Send + Sync {
    /// Returns whether spans are to carry messages, arguments and results.
    fn with_content(&self) -> bool;
    /// Takes a span that has ended.
    fn ended(&self, span: Span);
}

/// A piece of work that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The trace that it is part of.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// The span that it is part of; `None` for the first of its trace.
    pub parent: Option<SpanId>,
    /// Its name, such as `chat gpt-5`.
    pub name: String,
    /// True if it waits for another service.
    pub is_client: bool,
    /// When it began.
    pub start: UnixMillis,
    /// How long it took.
    pub took: Duration,
    /// Its attributes, by the semantic conventions for generative AI where those have a name.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// The reason why it failed; `None` if it did not.
    pub error: Option<String>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// A text.
    Text(String),
    /// Texts.
    Texts(Vec<String>),
    /// A number.
    Number(u64),
}

/// The id of a trace: that of the run at its root, so that every process makes the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(pub u128);

/// The id of a span, of the random half of what it stands for: a run, a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanId(pub u64);

impl TraceId {
    /// Makes the id of a trace from the sixteen bytes of its first run's id.
    pub const fn of(id: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(id))
    }
}

impl SpanId {
    /// Makes the id of a span from the sixteen bytes of an id: its random half.
    pub fn of(id: [u8; 16]) -> Self {
        let [.., a, b, c, d, e, f, g, h] = id;
        Self(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}
