//! Fills a template in one pass over its pieces. A value is written once and never read again, so that
//! nothing in it can open a placeholder or a quote.

use serde_json::Value;

use super::lexer::{Piece, Slot};
use super::parameters::Parameters;

/// Reasons why a template cannot be filled with the given arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// The value would be read as an option.
    #[error("`{key}` is `{value}`, which begins with `-` and would be read as an option")]
    Dash {
        /// The parameter.
        key: String,
        /// The beginning of the value.
        value: String,
    },
    /// The value contains a NUL, which a process cannot be given.
    #[error("`{key}` contains a NUL character, which a command cannot take")]
    Nul {
        /// The parameter.
        key: String,
    },
    /// A required parameter has no value.
    #[error("`{key}` has no value")]
    Missing {
        /// The parameter.
        key: String,
    },
    /// A value leads to another path of the URL.
    #[error(
        "a value puts a `.` or `..` segment into the URL, which would change its path; use another value"
    )]
    Path,
    /// A list within a word.
    #[error("`{key}` is a list; give a single value")]
    List {
        /// The parameter.
        key: String,
    },
}

/// Fills a shell command.
pub(super) fn shell(pieces: &[Piece], parameters: &Parameters, args: &Value) -> Result<String, FillError> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(plain) => text.push_str(plain),
            Piece::Slot(slot) => {
                let values = values(slot, parameters, args)?;
                let values: Vec<_> = values.iter().map(|value| quoted(value)).collect();
                text.push_str(&values.join(" "));
            }
        }
    }
    Ok(text)
}

/// Fills one word of an argument list; it may become none, or several.
pub(super) fn word(
    pieces: &[Piece],
    parameters: &Parameters,
    args: &Value,
) -> Result<Vec<String>, FillError> {
    if let [Piece::Slot(slot)] = pieces {
        return values(slot, parameters, args);
    }
    let mut word = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(plain) => word.push_str(plain),
            Piece::Slot(slot) => {
                word.push_str(&values(slot, parameters, args)?.concat());
            }
        }
    }
    Ok(vec![word])
}

/// Quotes a value for a shell, as one word.
pub(super) fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// The values of one placeholder: none if the call gives none, several for a list.
fn values(slot: &Slot, parameters: &Parameters, args: &Value) -> Result<Vec<String>, FillError> {
    let key = &slot.key;
    let found = match parameters.value(args, key) {
        None if slot.whole && slot.droppable => return Ok(Vec::new()),
        None => return Err(FillError::Missing { key: key.clone() }),
        Some(Value::Array(items)) if slot.whole => items.iter().map(text).collect(),
        Some(Value::Array(_)) => return Err(FillError::List { key: key.clone() }),
        Some(value) => vec![text(value)],
    };
    let allowed = parameters.get(key).is_some_and(|parameter| parameter.allow_dash);
    for value in &found {
        if value.contains('\0') {
            return Err(FillError::Nul { key: key.clone() });
        }
        if slot.leads && !allowed && value.starts_with('-') {
            let value = value.chars().take(40).collect();
            return Err(FillError::Dash { key: key.clone(), value });
        }
    }
    Ok(found)
}

/// A value as text: a string as it is, anything else as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
