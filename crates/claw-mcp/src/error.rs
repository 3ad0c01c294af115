//! Failures of MCP servers, in words for a person or a model.

use std::time::Duration;

use claw_core::store::StoreError;
use claw_core::tool::{ErrorKind, ToolError};

use crate::transport::LARGEST_MESSAGE;

/// Advice where nobody knows whether a call ran.
const CHECK_FIRST: &str = "check whether the call took effect before you call it again";

/// The reason why a server's message was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It is larger than the largest message that is read.
    #[error("has more than {} MiB", LARGEST_MESSAGE >> 20)]
    TooLarge,
    /// It is not JSON.
    #[error("is not valid JSON")]
    NotJson,
}

fn discarded(unread: Option<Unread>) -> String {
    unread.map_or_else(String::new, |problem| format!("; a message that it sent meanwhile {problem}"))
}

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
    /// The server had dropped the session: nothing was done.
    #[error("MCP server `{server}` had already ended the session; the request was not executed")]
    SessionEnded {
        /// The server's name.
        server: String,
    },
    /// The server did not answer in time.
    #[error("MCP server `{server}` did not answer within {} seconds{}", limit.as_secs(), discarded(*unread))]
    TimedOut {
        /// The server's name.
        server: String,
        /// The limit.
        limit: Duration,
        /// The problem of a message that came meanwhile and was discarded; `None` if there was none.
        unread: Option<Unread>,
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
            McpError::Dropped { .. } => (ErrorKind::Unavailable, Some(CHECK_FIRST)),
            McpError::SessionEnded { .. } => (ErrorKind::Unavailable, Some("call it again")),
            McpError::TimedOut { .. } => (ErrorKind::TimedOut, Some("ask for less in one call")),
            // The server answered, so the call has run in all likelihood.
            McpError::Invalid { .. } => (ErrorKind::Failed, Some(CHECK_FIRST)),
            McpError::Refused { .. } => (ErrorKind::Failed, None),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_could_not_be_read_may_be_of_a_call_that_ran() {
        let server = || "s".to_owned();
        let why = format!("its answer {}", Unread::NotJson);
        for error in [McpError::Invalid { server: server(), why }, McpError::Dropped { server: server() }] {
            assert_eq!(ToolError::from(error).advice.as_deref(), Some(CHECK_FIRST));
        }
        let refused = McpError::Refused { server: server(), why: "no such tool".to_owned() };
        assert_eq!(ToolError::from(refused).advice, None);
    }
}
