//! The failures of a command, and their exit codes.

use std::fmt;
use std::io;
use std::process::ExitCode;

use claw_core::InvalidId;
use claw_core::store::StoreError;
use claw_terminal::AskError;
use clawsmith::app::{Error, Kind};
use clawsmith::config::Problems;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An operation failed, or the command line or the configuration is wrong.
    Error(Error),
    /// The reader of the output is gone, which is not an error.
    Unread,
}

/// A command's own exit code, if it ends without an error message.
pub(crate) type Outcome = Result<ExitCode, Failure>;

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Error(Error::invalid(message))
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Error(Error::failed(message))
    }

    /// Marks the failure as the refusal of a call: it failed at a step required before the call may run.
    pub(crate) fn refusing(self) -> Self {
        self.with(Error::refusing)
    }

    /// Adds a hint: what to try.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        self.with(|error| error.hint(hint))
    }

    /// Keeps the cause, which is shown after the message.
    pub(crate) fn because(self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.with(|error| error.because(cause))
    }

    fn with(self, change: impl FnOnce(Error) -> Error) -> Self {
        match self {
            Self::Error(error) => Self::Error(change(error)),
            Self::Unread => Self::Unread,
        }
    }

    /// Returns the exit code: 1 for a failed operation, 2 for wrong use, 3 for a refused call.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Unread => 0,
            Self::Error(error) => match error.kind() {
                Kind::Failed | Kind::Conflict => 1,
                Kind::Invalid | Kind::NotFound => 2,
                Kind::Refused => 3,
            },
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::Unread => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::failed("the output could not be written").because(error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(io::ErrorKind::BrokenPipe) => Self::Unread,
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
            AskError::Empty | AskError::TooLong { .. } | AskError::Invalid => Self::usage(message),
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
        Error::from(problems).into()
    }
}
