//! Failures of requests, in words for a person or a model.

use std::error::Error;

use claw_core::store::McpServer;
use claw_net::NetError;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::ServiceError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::Value;

use super::Live;
use super::dial::deepest;
use crate::error::McpError;
use crate::transport::{SendError, SseFailure};

/// The code of an error that names pages for a person to visit.
const PAGE_REQUIRED: ErrorCode = ErrorCode(-32042);

impl Live {
    /// Returns the failure of a request. If the server has ended or forgotten us, calls wait until it was reached again.
    pub(super) fn failed(&self, server: &str, error: ServiceError) -> McpError {
        let failure = failure(server, error);
        match &failure {
            McpError::SessionEnded { .. } => self.watcher.note_lost("the server dropped its session"),
            McpError::Dropped { .. } | McpError::Unreachable { .. } => self.watcher.note_doubt(),
            _ => {}
        }
        failure
    }

    /// Lets calls wait until the server was checked.
    #[cfg(test)]
    pub(crate) fn doubt(&self) {
        self.watcher.note_doubt();
    }
}

fn failure(server: &str, error: ServiceError) -> McpError {
    let server = server.to_owned();
    match error {
        ServiceError::McpError(error) => McpError::Refused { server, why: refused(&error) },
        ServiceError::TransportClosed => McpError::Dropped { server },
        ServiceError::TransportSend(error) => transport_failure(server, &*error.error),
        ServiceError::Timeout { timeout } => McpError::TimedOut { server, limit: timeout, unread: None },
        error => McpError::Invalid { server, why: deepest(&error) },
    }
}

/// The failure of the way to a server.
fn transport_failure(server: String, error: &(dyn Error + Send + Sync + 'static)) -> McpError {
    match error.downcast_ref::<StreamableHttpError<SendError>>() {
        Some(StreamableHttpError::Client(error)) => return send_failure(server, error),
        Some(StreamableHttpError::SessionExpired) => return McpError::SessionEnded { server },
        Some(StreamableHttpError::TransportChannelClosed) => return McpError::Dropped { server },
        Some(StreamableHttpError::UnexpectedServerResponse(why)) => {
            return McpError::Invalid { server, why: why.to_string() };
        }
        Some(error) => return McpError::Invalid { server, why: deepest(error) },
        None => {}
    }
    match error.downcast_ref::<SseFailure>() {
        Some(SseFailure::Send(error)) => send_failure(server, error),
        Some(error @ (SseFailure::Status(_) | SseFailure::Protocol(_))) => {
            McpError::Invalid { server, why: error.to_string() }
        }
        // A program that has ended reads no more.
        Some(SseFailure::Closed) | None => McpError::Dropped { server },
    }
}

fn send_failure(server: String, error: &SendError) -> McpError {
    match error {
        SendError::Login(why) => McpError::Settings { server, why: why.clone() },
        error if error.is_unsent() => McpError::Unreachable { server, why: error.to_string() },
        SendError::Net(NetError::TimedOut { limit, .. }) => {
            McpError::TimedOut { server, limit: *limit, unread: None }
        }
        SendError::Net(_) => McpError::Dropped { server },
    }
}

/// The error for arguments that cannot be written or read again.
pub(super) fn unkept(server: &McpServer, error: &serde_json::Error) -> McpError {
    McpError::Invalid { server: server.name.to_string(), why: format!("its arguments are not JSON: {error}") }
}

/// The words of an error. A server that wants a page visited first names it in the error's data.
fn refused(error: &ErrorData) -> String {
    let pages = error.data.as_ref().filter(|_| error.code == PAGE_REQUIRED);
    let pages = pages.and_then(|data| data.get("elicitations")).and_then(Value::as_array);
    let pages: Vec<&str> =
        pages.into_iter().flatten().filter_map(|page| page.get("url").and_then(Value::as_str)).collect();
    match pages.is_empty() {
        true => error.message.to_string(),
        false => format!("{}; a person has to visit {} first", error.message, pages.join(" and ")),
    }
}
