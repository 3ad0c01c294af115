//! A model's text, read as arguments.

use serde_json::{Map, Value, error::Category};

use super::ArgsError;

/// Arguments as a model sends them: JSON in a string.
#[derive(Debug)]
pub struct Arguments;

impl Arguments {
    /// The size of text that [`parse`](Self::parse) takes.
    pub const MAX_BYTES: usize = 8 * 1024 * 1024;

    /// Reads the text. No text at all is an empty object: that is how some models call a tool without arguments.
    pub fn parse(text: &str) -> Result<Value, ArgsError> {
        Self::parse_within(text, Self::MAX_BYTES)
    }

    /// The same with a limit of one's own.
    pub fn parse_within(text: &str, max_bytes: usize) -> Result<Value, ArgsError> {
        if text.len() > max_bytes {
            return Err(ArgsError::too_large(text.len(), max_bytes));
        }
        if text.trim().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        serde_json::from_str(text).map_err(|error| match error.classify() {
            Category::Eof => ArgsError::cut_off(error.line(), error.column()),
            _ => ArgsError::malformed(&error),
        })
    }
}
