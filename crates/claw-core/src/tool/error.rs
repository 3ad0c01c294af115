//! A tool's failure, told apart by reader.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What went wrong, in the words of each reader: the model gets what happened and what to try, the user a
/// sentence, the operator the cause in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    /// What sort of failure.
    pub kind: ErrorKind,
    /// What happened, with the values. Model and user read this.
    pub message: String,
    /// What to try instead. The model reads this.
    pub advice: Option<String>,
    /// The setting by which a person would allow it, such as `files.read`. People read this, the model does not: it cannot
    /// change settings.
    pub setting: Option<String>,
    /// The cause, for the log alone.
    pub cause: Option<String>,
    /// Structured facts for a program: exit codes, conflicting versions, ...
    pub details: Option<Box<Value>>,
}

/// What sort of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The arguments cannot mean what was wanted.
    Invalid,
    /// The thing asked for is not there.
    NotFound,
    /// A port refused what the plan or the scope does not cover.
    Forbidden,
    /// The thing changed meanwhile.
    Conflict,
    /// Something this tool needs is missing or down.
    Unavailable,
    /// The call ran out of time.
    TimedOut,
    /// The caller gave up.
    Cancelled,
    /// The work itself failed: a command's exit code, a server's answer.
    Failed,
    /// A mistake of ours.
    Internal,
}

impl ToolError {
    /// A failure of this kind; the message says what happened, with the values.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), advice: None, setting: None, cause: None, details: None }
    }

    /// The arguments cannot mean what was wanted.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// The thing asked for is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// The work itself failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// A mistake of ours; the cause goes to the log.
    pub fn internal(cause: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Internal, "something went wrong inside Clawsmith").because(cause)
    }

    /// Says what to try.
    #[must_use]
    pub fn try_instead(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Names the setting by which a person would allow it.
    #[must_use]
    pub fn allowed_by(mut self, setting: impl Into<String>) -> Self {
        self.setting = Some(setting.into());
        self
    }

    /// Keeps the cause for the log.
    #[must_use]
    pub fn because(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// Adds structured facts.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// What the model reads: what happened; what to try.
    pub fn for_model(&self) -> String {
        match &self.advice {
            Some(advice) => format!("{}; {advice}", self.message),
            None => self.message.clone(),
        }
    }

    /// What the operator's log reads: all of it.
    pub fn for_log(&self) -> String {
        match &self.cause {
            Some(cause) => format!("{}: {cause}", self.message),
            None => self.message.clone(),
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.for_model())
    }
}

impl std::error::Error for ToolError {}
