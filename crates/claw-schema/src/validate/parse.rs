//! Parses a model's text as arguments.

use serde_json::{Map, Value, error::Category};

use super::ArgsError;

/// Parses the text that a model wrote, of at most `max_bytes`. Empty text is an empty object: some models
/// call a tool without arguments that way.
pub fn parse(text: &str, max_bytes: usize) -> Result<Value, ArgsError> {
    if text.len() > max_bytes {
        return Err(ArgsError::too_large(max_bytes));
    }
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    serde_json::from_str(text).map_err(|error| match error.classify() {
        Category::Eof => ArgsError::cut_off(error.line(), error.column()),
        _ => ArgsError::malformed(&error),
    })
}
