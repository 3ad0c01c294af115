//! Failures of MCP servers, in words for a person or a model.

use std::time::Duration;

use claw_core::store::StoreError;
use claw_core::tool::{ErrorKind, ToolError};

/// A failure of a server or of the way to it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum McpError {
    /// The server cannot be reached, or does not speak MCP.
    #[error("MCP server `{server}` cannot be reached: {why}")]
    Unreachable {
        /// The server's name.
        server: String,
        /// The cause.
        why: String,
    },
    /// The connection ended while the call ran.
    #[error(
        "MCP server `{server}` ended the connection during the call; it is unknown whether the call took \
         effect"
    )]
    Dropped {
        /// The server's name.
        server: String,
    },
    /// The server did not answer in time.
    #[error("MCP server `{server}` did not answer within {} seconds", limit.as_secs())]
    TimedOut {
        /// The server's name.
        server: String,
        /// The limit.
        limit: Duration,
    },
    /// The server refused the request.
    #[error("MCP server `{server}` refused the request: {why}")]
    Refused {
        /// The server's name.
        server: String,
        /// The server's message.
        why: String,
    },
    /// The server answered with something that is not valid, or with too much.
    #[error("MCP server `{server}` sent an invalid answer: {why}")]
    Invalid {
        /// The server's name.
        server: String,
        /// The cause.
        why: String,
    },
    /// The caller gave up.
    #[error("the call to MCP server `{server}` was cancelled")]
    Cancelled {
        /// The server's name.
        server: String,
    },
    /// The server's settings do not work.
    #[error("MCP server `{server}` cannot be used: {why}")]
    Settings {
        /// The server's name.
        server: String,
        /// The cause, and what to do.
        why: String,
    },
    /// A login could not be begun or finished.
    #[error("the login at MCP server `{server}` failed: {why}")]
    Login {
        /// The server's name.
        server: String,
        /// The cause.
        why: String,
    },
    /// The store failed.
    #[error("{0}")]
    Store(String),
}

impl From<StoreError> for McpError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

impl From<McpError> for ToolError {
    fn from(error: McpError) -> Self {
        let (kind, advice) = match &error {
            McpError::Unreachable { .. } => (
                ErrorKind::Unavailable,
                Some("the connection is retried in the background; try later or use another tool"),
            ),
            McpError::Dropped { .. } => {
                (ErrorKind::Unavailable, Some("check whether the call took effect before you call it again"))
            }
            McpError::TimedOut { .. } => (ErrorKind::TimedOut, Some("ask for less at once")),
            McpError::Refused { .. } | McpError::Invalid { .. } => (ErrorKind::Failed, None),
            McpError::Cancelled { .. } => (ErrorKind::Cancelled, None),
            McpError::Settings { .. } | McpError::Login { .. } | McpError::Store(_) => {
                (ErrorKind::Unavailable, None)
            }
        };
        let tool_error = ToolError::new(kind, error.to_string());
        match advice {
            Some(advice) => tool_error.try_instead(advice),
            None => tool_error,
        }
    }
}
