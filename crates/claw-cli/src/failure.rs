//! The failures of a command, and their exit codes.

use std::fmt;
use std::io;
use std::process::ExitCode;

use claw_core::InvalidId;
use claw_core::store::StoreError;
use claw_terminal::AskError;
use clawsmith::app;
use clawsmith::config::Problems;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    message: String,
    hint: Option<String>,
    cause: Option<anyhow::Error>,
}

/// The kind of failure; each has an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An operation failed: 1.
    Failed,
    /// The command line or the configuration is wrong: 2.
    Usage,
    /// A call was turned away: 3.
    Refused,
    /// The reader of the output is gone, which is not an error: 0.
    Unread,
}

/// A command's own exit code, if it ends without an error message.
pub(crate) type Outcome = Result<ExitCode, Failure>;

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, cause: None }
    }

    /// Marks the failure as the refusal of a call: it failed at a step required before the call may run.
    pub(crate) fn refusing(mut self) -> Self {
        self.kind = Kind::Refused;
        self
    }

    /// Adds a hint: what to try.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Keeps the cause, which is shown after the message.
    pub(crate) fn because(mut self, cause: impl Into<anyhow::Error>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Returns the message with its cause, without the hint.
    pub(crate) fn what(&self) -> String {
        match &self.cause {
            Some(cause) => format!("{}: {cause:#}", self.message),
            None => self.message.clone(),
        }
    }

    /// Returns the hint: what to try.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the message on one line: its first line, and the first place that it names.
    pub(crate) fn in_short(&self) -> String {
        self.message.lines().take(2).collect::<Vec<_>>().join(": ")
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::Unread => 0,
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::Refused => 3,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        match &self.hint {
            Some(hint) => write!(f, "\n  try: {hint}"),
            None => Ok(()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(Kind::Unread, ""),
            _ => Self::failed("the output could not be written").because(error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(io::ErrorKind::BrokenPipe) => Self::new(Kind::Unread, ""),
            _ => Self::failed("the output could not be written as JSON").because(error),
        }
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        let message = error.to_string();
        match error {
            AskError::Unread(cause) | AskError::Shown(cause) => Self::failed(message).because(cause),
            AskError::NotText { .. } => Self::usage(message).hint("encode it, for example with base64"),
            AskError::Empty | AskError::TooLong { .. } => Self::usage(message),
        }
    }
}

impl From<InvalidId> for Failure {
    fn from(error: InvalidId) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<StoreError> for Failure {
    /// A store's error says itself what happened and what to try.
    fn from(error: StoreError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        app::Error::from(problems).into()
    }
}

impl From<app::Error> for Failure {
    fn from(error: app::Error) -> Self {
        let kind = match error.kind() {
            app::Kind::Failed | app::Kind::Conflict => Kind::Failed,
            app::Kind::Invalid | app::Kind::NotFound => Kind::Usage,
            app::Kind::Refused => Kind::Refused,
        };
        let (message, hint) = (error.what(), error.advice().map(str::to_owned));
        Self { kind, message, hint, cause: None }
    }
}
