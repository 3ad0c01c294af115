//! The interface of a wire format: writes requests and reads the stream of an answer.

use claw_core::port::{ModelCard, Question};
use claw_net::Url;
use serde_json::Value;

use crate::collect_answer::Gather;
use crate::provider_error::Trouble;

/// A wire format.
pub(crate) trait Wire: Send + Sync {
    /// The URL for requests to this model.
    fn url(&self, base: &Url, model: &str) -> Url;
    /// The header that carries a key, and its value.
    fn key(&self, key: &str) -> (&'static str, String);
    /// Headers that every request has.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
    /// The request body. The same question gives the same bytes.
    fn body(&self, question: &Question, card: &ModelCard) -> Value;
    /// A reader for one answer.
    fn reader(&self) -> Box<dyn Reader>;
}

/// Reads one answer.
pub(crate) trait Reader: Send {
    /// Reads the data of one event, or a whole answer that came without a stream.
    fn event(&mut self, data: &str, gather: &mut Gather<'_>) -> Result<(), Trouble>;
    /// Returns whether the answer was complete when the stream ended.
    fn is_whole(&self) -> bool;
}

/// Appends segments to a URL. The base may or may not end in a slash.
pub(crate) fn below(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

/// The data of an event as JSON.
pub(crate) fn json(data: &str) -> Result<Value, Trouble> {
    serde_json::from_str(data).map_err(|error| {
        let beginning: String = data.chars().take(80).collect();
        Trouble::garbled(format!("an event is not JSON ({error}): {beginning}"))
    })
}

/// A count of tokens.
pub(crate) fn count(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests;
