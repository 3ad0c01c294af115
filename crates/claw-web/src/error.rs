//! Errors of a configuration.

/// The reason why a configuration of the web cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {reason}")]
pub struct WebConfigError {
    /// The key below `web`.
    pub key: String,
    /// The problem with its value.
    pub reason: String,
}

impl WebConfigError {
    pub(crate) fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), reason: reason.into() }
    }
}
