//! A model's text, read as arguments.

use serde_json::{Map, Value, error::Category};

use super::ArgsError;

/// Reads the text that a model wrote, at most so many bytes of it. No text at all is an empty object: that
/// is how some models call a tool without arguments.
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
