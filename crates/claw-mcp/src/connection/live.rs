//! Calls over a connection that is up.

use std::collections::BTreeMap;
use std::time::Duration;

use claw_core::ServerName;
use claw_core::store::McpServer;
use claw_core::tool::{Call, Digest, ToolError};
use claw_registry::TimeLimit;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ErrorCode, ErrorData,
    GetPromptRequestParams, JsonObject, PaginatedRequestParams, Prompt, PromptMessage,
    ReadResourceRequestParams, Resource, ResourceContents, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::Value;
use tokio::time::timeout;

use super::dial::deepest;
use super::{Live, ServerReport};
use crate::elicitation::answer_all;
use crate::error::McpError;

/// The most rounds in which a server asks for input during one call.
const MOST_ROUNDS: usize = 10;
/// The most resources or prompts that are listed, and the most pages that are read for them.
const MOST_LISTED: usize = 1_000;
const MOST_PAGES: usize = 100;
/// The code of an error that names pages for a person to visit.
const PAGE_REQUIRED: ErrorCode = ErrorCode(-32042);

/// A call of a tool, and the time that the server has for it.
#[derive(Clone, Copy)]
pub(crate) struct TimedCall<'a> {
    pub(crate) call: &'a Call,
    pub(crate) limit: Duration,
}

impl Live {
    /// The server as it introduced itself, without its tools.
    pub(crate) const fn report(&self) -> &ServerReport {
        &self.report
    }

    /// The digest of a tool's definition as the server lists it now; `None` if it does not.
    pub(crate) fn digest(&self, tool: &str) -> Option<Digest> {
        self.digests.get(tool).copied()
    }

    /// The definitions of the server's tools, where the connection was made to read them.
    pub(crate) const fn definitions(&self) -> &BTreeMap<String, Value> {
        &self.definitions
    }

    /// The contents of a resource.
    pub(crate) async fn resource(
        &self,
        server: &ServerName,
        uri: String,
    ) -> Result<Vec<ResourceContents>, McpError> {
        let read = self.peer.read_resource(ReadResourceRequestParams::new(uri)).await;
        read.map(|result| result.contents).map_err(|error| failed(server.as_str(), error))
    }

    /// The resources of the server, of as many pages as are read.
    pub(crate) async fn resources(&self, server: &ServerName) -> Result<Vec<Resource>, McpError> {
        let (mut resources, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_resources(Some(params)).await;
            let page = page.map_err(|error| failed(server.as_str(), error))?;
            resources.extend(page.resources);
            cursor = page.next_cursor;
            if cursor.is_none() || resources.len() >= MOST_LISTED {
                break;
            }
        }
        resources.truncate(MOST_LISTED);
        Ok(resources)
    }

    /// The messages of a prompt.
    pub(crate) async fn prompt(
        &self,
        server: &ServerName,
        name: String,
        arguments: JsonObject,
    ) -> Result<Vec<PromptMessage>, McpError> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let got = self.peer.get_prompt(params).await;
        got.map(|result| result.messages).map_err(|error| failed(server.as_str(), error))
    }

    /// The prompts of the server, of as many pages as are read.
    pub(crate) async fn prompts(&self, server: &ServerName) -> Result<Vec<Prompt>, McpError> {
        let (mut prompts, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_prompts(Some(params)).await;
            let page = page.map_err(|error| failed(server.as_str(), error))?;
            prompts.extend(page.prompts);
            cursor = page.next_cursor;
            if cursor.is_none() || prompts.len() >= MOST_LISTED {
                break;
            }
        }
        prompts.truncate(MOST_LISTED);
        Ok(prompts)
    }

    /// Calls a tool by the server's name of it. A server that wants input of a person gets it, in a bounded number of rounds.
    pub(crate) async fn call(
        &self,
        server: &McpServer,
        tool: &str,
        args: JsonObject,
        timed: TimedCall<'_>,
    ) -> Result<CallToolResult, ToolError> {
        // Few servers ask for input, and text is cheaper to keep than a copy of the arguments.
        let kept = serde_json::to_vec(&args).map_err(|error| unkept(server, &error))?;
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        for _ in 0..MOST_ROUNDS {
            let required = match self.call_once(server, params, timed).await? {
                ServerResult::CallToolResult(result) => return Ok(result),
                ServerResult::InputRequiredResult(required) => required,
                _ => {
                    let why = "it is not a tool result".to_owned();
                    return Err(McpError::Invalid { server: server.name.to_string(), why }.into());
                }
            };
            let requests = required.input_requests.unwrap_or_default();
            let responses = answer_all(timed.call, server.name.as_str(), &self.watcher, requests).await?;
            let args = serde_json::from_slice(&kept).map_err(|error| unkept(server, &error))?;
            params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
            params.input_responses = (!responses.is_empty()).then_some(responses);
            params.request_state = required.request_state;
        }
        let why = format!("it asked for input {MOST_ROUNDS} times in a row");
        Err(McpError::Invalid { server: server.name.to_string(), why }.into())
    }

    /// Sends one request and waits for its result.
    async fn call_once(
        &self,
        server: &McpServer,
        params: CallToolRequestParams,
        TimedCall { call, limit }: TimedCall<'_>,
    ) -> Result<ServerResult, McpError> {
        let name = || server.name.to_string();
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut handle = sent.map_err(|error| failed(&name(), error))?;
        let time = TimeLimit::new(limit);
        let _following = self.watcher.follow(&handle.progress_token, call.clone(), time.clone());
        let (why, error) = tokio::select! {
            answered = &mut handle.rx => return match answered {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(error)) => Err(failed(&name(), error)),
                Err(_) => Err(McpError::Dropped { server: name() }),
            },
            () = call.cancel().cancelled() => ("cancelled by the caller", McpError::Cancelled { server: name() }),
            () = time.over() => ("timed out", McpError::TimedOut { server: name(), limit }),
        };
        // The server is told, so that it stops working; it may not listen.
        let _ = timeout(Duration::from_secs(2), handle.cancel(Some(why.to_owned()))).await;
        Err(error)
    }
}

/// The error for arguments that cannot be written or read again.
fn unkept(server: &McpServer, error: &serde_json::Error) -> McpError {
    McpError::Invalid { server: server.name.to_string(), why: format!("its arguments are not JSON: {error}") }
}

fn failed(server: &str, error: ServiceError) -> McpError {
    let server = server.to_owned();
    match error {
        ServiceError::McpError(error) => McpError::Refused { server, why: refused(&error) },
        ServiceError::TransportClosed => McpError::Dropped { server },
        ServiceError::Timeout { timeout } => McpError::TimedOut { server, limit: timeout },
        error => McpError::Invalid { server, why: deepest(&error) },
    }
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
