//! Calls over a connection that is up.

use std::collections::BTreeMap;
use std::time::Duration;

use claw_core::ServerName;
use claw_core::store::McpServer;
use claw_core::tool::{Call, Digest, ToolError};
use claw_registry::TimeLimit;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, GetPromptRequestParams,
    JsonObject, PaginatedRequestParams, Prompt, PromptMessage, ReadResourceRequestParams, Resource,
    ResourceContents, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::Value;
use tokio::time::timeout;

use super::failure::unkept;
use super::{Live, ServerReport};
use crate::elicitation::answer_all;
use crate::error::McpError;

/// The most rounds in which a server asks for input during one call.
const MOST_ROUNDS: usize = 10;
/// The most resources or prompts that are listed, and the most pages that are read for them.
const MOST_LISTED: usize = 1_000;
const MOST_PAGES: usize = 100;
/// A call of a tool, and the time that the server has for it.
#[derive(Clone, Copy)]
pub(crate) struct TimedCall<'a> {
    pub(crate) call: &'a Call,
    pub(crate) limit: Duration,
}

/// The arguments of a call, which may have to be sent again.
pub(crate) struct CallArguments {
    whole: Option<JsonObject>,
    /// Few calls are sent again, and text is cheaper to keep than a copy of the arguments.
    text: Vec<u8>,
}

impl CallArguments {
    /// Keeps these arguments.
    pub(crate) fn new(server: &McpServer, args: JsonObject) -> Result<Self, McpError> {
        let text = serde_json::to_vec(&args).map_err(|error| unkept(server, &error))?;
        Ok(Self { whole: Some(args), text })
    }

    fn take(&mut self, server: &McpServer) -> Result<JsonObject, McpError> {
        let again = || serde_json::from_slice(&self.text).map_err(|error| unkept(server, &error));
        self.whole.take().map_or_else(again, Ok)
    }
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
        read.map(|result| result.contents).map_err(|error| self.failed(server.as_str(), error))
    }

    /// The resources of the server, of as many pages as are read.
    pub(crate) async fn resources(&self, server: &ServerName) -> Result<Vec<Resource>, McpError> {
        let (mut resources, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_resources(Some(params)).await;
            let page = page.map_err(|error| self.failed(server.as_str(), error))?;
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
        got.map(|result| result.messages).map_err(|error| self.failed(server.as_str(), error))
    }

    /// The prompts of the server, of as many pages as are read.
    pub(crate) async fn prompts(&self, server: &ServerName) -> Result<Vec<Prompt>, McpError> {
        let (mut prompts, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_prompts(Some(params)).await;
            let page = page.map_err(|error| self.failed(server.as_str(), error))?;
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
    /// Returns `None` if the server had dropped the session: the call did not run.
    pub(crate) async fn call(
        &self,
        server: &McpServer,
        tool: &str,
        args: &mut CallArguments,
        timed: TimedCall<'_>,
    ) -> Result<Option<CallToolResult>, ToolError> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args.take(server)?);
        for round in 0..MOST_ROUNDS {
            let required = match self.call_once(server, params, timed).await {
                Ok(ServerResult::CallToolResult(result)) => return Ok(Some(result)),
                Ok(ServerResult::InputRequiredResult(required)) => required,
                Ok(_) => {
                    let why = "it is not a tool result".to_owned();
                    return Err(McpError::Invalid { server: server.name.to_string(), why }.into());
                }
                Err(McpError::SessionEnded { .. }) if round == 0 => return Ok(None),
                // The server took the call up before it asked for input.
                Err(McpError::SessionEnded { server }) => return Err(McpError::Dropped { server }.into()),
                Err(error) => return Err(error.into()),
            };
            let requests = required.input_requests.unwrap_or_default();
            let responses = answer_all(timed.call, server.name.as_str(), &self.watcher, requests).await?;
            params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args.take(server)?);
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
        let time = TimeLimit::new(limit);
        let mut following = self.watcher.follow(call.clone(), time.clone());
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut handle = sent.map_err(|error| self.failed(&name(), error))?;
        following.sent(&handle.progress_token);
        let (why, error) = tokio::select! {
            biased;
            // An answer that was read comes first: what could not be read was something else then.
            answered = &mut handle.rx => return match answered {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(error)) => Err(self.failed(&name(), error)),
                Err(_) => Err(self.failed(&name(), ServiceError::TransportClosed)),
            },
            problem = following.unreadable() => {
                let why = format!("its answer {problem}");
                ("the answer could not be read", McpError::Invalid { server: name(), why })
            }
            () = call.cancel().cancelled() => ("cancelled by the caller", McpError::Cancelled { server: name() }),
            () = time.over() => {
                let unread = following.unread();
                ("timed out", McpError::TimedOut { server: name(), limit, unread })
            }
        };
        // The server is told, so that it stops working; it may not listen.
        let _ = timeout(Duration::from_secs(2), handle.cancel(Some(why.to_owned()))).await;
        Err(error)
    }
}
