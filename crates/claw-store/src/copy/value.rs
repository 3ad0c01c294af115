//! A cell of a table, independent of the database.

use serde::{Deserialize, Serialize};

/// A row, in the order of the columns that were asked for.
pub(crate) type Row = Vec<Value>;

/// The value of a column, in the form in which two databases are compared: an id is its bytes, JSON its text,
/// a boolean 0 or 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    /// Returns its approximate size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        let held = match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Null | Self::Integer(_) | Self::Real(_) => 0,
        };
        size_of::<Self>() + held
    }
}

/// Formats a key for people: names and numbers as they are, ids in hexadecimal.
pub(crate) fn show(key: &[Value]) -> String {
    let one = |value: &Value| match value {
        Value::Null => "null".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    key.iter().map(one).collect::<Vec<_>>().join(", ")
}
