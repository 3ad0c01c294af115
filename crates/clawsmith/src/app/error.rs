//! The error that every operation of the application returns: what happened, with values, and what to try.

use std::error::Error as StdError;
use std::fmt;

use claw_core::store::StoreError;

use crate::config::Problems;

/// An operation of the application that failed.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The class of an [`Error`]: a front end maps it to an exit code or a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An operation failed.
    Failed,
    /// The request or the configuration is invalid.
    Invalid,
    /// The request was refused, and nothing happened.
    Refused,
    /// The requested item does not exist.
    NotFound,
    /// The thing changed meanwhile, or exists already.
    Conflict,
}

impl Error {
    /// An invalid request or configuration.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    /// An operation that did not work.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    /// Returns an error for an item that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    /// Returns an error for an item that changed meanwhile, or exists already.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, message)
    }

    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, source: None }
    }

    /// Turns the error into a refusal: the operation was needed before a call may run.
    #[must_use]
    pub fn refusing(mut self) -> Self {
        self.kind = Kind::Refused;
        self
    }

    /// Turns the error into a failed operation: the request was valid.
    #[must_use]
    pub fn failing(mut self) -> Self {
        self.kind = Kind::Failed;
        self
    }

    /// Adds advice on what to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Keeps the cause, which is shown after the message.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(cause.into());
        self
    }

    /// The class of the error.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The message without its cause and advice.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The advice on what to try.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The message with all its causes, without the advice.
    pub fn what(&self) -> String {
        let mut what = self.message.clone();
        let mut cause = self.source.as_deref().map(|cause| cause as &dyn StdError);
        while let Some(error) = cause {
            what.push_str(&format!(": {error}"));
            cause = error.source();
        }
        what
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        match &self.hint {
            Some(hint) => write!(f, "\n  try: {hint}"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|cause| cause as _)
    }
}

impl From<Problems> for Error {
    fn from(problems: Problems) -> Self {
        let what = if problems.0.len() == 1 { "a problem" } else { "problems" };
        Self::invalid(format!("the configuration has {what}\n{problems}"))
    }
}

/// The store's own error already says what happened and what to try.
impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Stale { .. }
            | StoreError::Refused { .. }
            | StoreError::AlreadyBegun { .. }
            | StoreError::ApprovalState { .. }
            | StoreError::RuleState { .. } => Self::conflict(error.to_string()),
            _ => Self::failed(error.to_string()),
        }
    }
}
