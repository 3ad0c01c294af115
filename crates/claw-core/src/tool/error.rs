//! A tool's failure, with a text for each reader.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The failure of a tool: the model gets the event and the advice, the user a sentence, the operator the
/// cause in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The event, with its values. Model and user read this.
    pub message: String,
    /// The advice. The model reads this.
    pub advice: Option<String>,
    /// The setting by which a person would allow it, such as `files.read`. People read this, the model does not: it cannot
    /// change settings.
    pub setting: Option<String>,
    /// The cause, for the log alone.
    pub cause: Option<String>,
    /// Structured facts for a program: exit codes, conflicting versions, ...
    pub details: Option<Box<Value>>,
}

/// The kind of a tool's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The arguments are invalid.
    Invalid,
    /// The requested object does not exist.
    NotFound,
    /// A port refused an operation that the plan or the scope does not cover.
    Forbidden,
    /// The object has changed meanwhile.
    Conflict,
    /// A part that this tool needs is missing or down.
    Unavailable,
    /// The call reached its timeout.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
    /// The work itself failed: a command's exit code, a server's answer.
    Failed,
    /// A bug of Clawsmith.
    Internal,
}

impl ToolError {
    /// Makes a failure of this kind; the message tells the event with its values.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), advice: None, setting: None, cause: None, details: None }
    }

    /// Makes a failure of invalid arguments.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Makes a failure of a missing object.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Makes a failure of the work itself.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Makes a failure of Clawsmith itself; the cause goes to the log.
    pub fn internal(cause: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Internal, "something went wrong inside Clawsmith").because(cause)
    }

    /// Sets the advice.
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

    /// Sets the cause for the log.
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

    /// Returns the text for the model: the event and the advice.
    pub fn for_model(&self) -> String {
        match &self.advice {
            Some(advice) => format!("{}; {advice}", self.message),
            None => self.message.clone(),
        }
    }

    /// Returns the text for the operator's log: the event and the cause.
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
