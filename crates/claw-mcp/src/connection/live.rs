//! Calls over a connection that is up.

use std::time::Duration;

use claw_core::ServerName;
use claw_core::store::McpServer;
use claw_core::tool::Call;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, GetPromptRequestParams,
    JsonObject, Prompt, PromptMessage, ReadResourceRequestParams, Resource, ResourceContents, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use tokio::time::{sleep, timeout};

use super::dial::deepest;
use super::{Live, ServerReport};
use crate::error::McpError;

impl Live {
    /// The server as it introduced itself.
    pub(crate) const fn report(&self) -> &ServerReport {
        &self.report
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

    /// The resources of the server, the first page of them.
    pub(crate) async fn resources(&self, server: &ServerName) -> Result<Vec<Resource>, McpError> {
        let listed = self.peer.list_resources(None).await;
        listed.map(|result| result.resources).map_err(|error| failed(server.as_str(), error))
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

    /// The prompts of the server, the first page of them.
    pub(crate) async fn prompts(&self, server: &ServerName) -> Result<Vec<Prompt>, McpError> {
        let listed = self.peer.list_prompts(None).await;
        listed.map(|result| result.prompts).map_err(|error| failed(server.as_str(), error))
    }

    /// Calls a tool by the server's name of it.
    pub(crate) async fn call(
        &self,
        server: &McpServer,
        tool: &str,
        args: JsonObject,
        (call, limit): (&Call, Duration),
    ) -> Result<CallToolResult, McpError> {
        let name = || server.name.to_string();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut handle = sent.map_err(|error| failed(&name(), error))?;
        let _following = self.watcher.follow(&handle.progress_token, call.progress().clone());
        let (why, error) = tokio::select! {
            answered = &mut handle.rx => return match answered {
                Ok(Ok(ServerResult::CallToolResult(result))) => Ok(result),
                Ok(Ok(ServerResult::InputRequiredResult(_))) => Err(McpError::Invalid {
                    server: name(),
                    why: "it asks for input from a person, which is not supported here".to_owned(),
                }),
                Ok(Ok(_)) => Err(McpError::Invalid { server: name(), why: "it is no result of a tool".to_owned() }),
                Ok(Err(error)) => Err(failed(&name(), error)),
                Err(_) => Err(McpError::Dropped { server: name() }),
            },
            () = call.cancel().cancelled() => ("cancelled by the caller", McpError::Cancelled { server: name() }),
            () = sleep(limit) => ("timed out", McpError::TimedOut { server: name(), limit }),
        };
        // The server is told, so that it stops working; it may not listen.
        let _ = timeout(Duration::from_secs(2), handle.cancel(Some(why.to_owned()))).await;
        Err(error)
    }
}

fn failed(server: &str, error: ServiceError) -> McpError {
    let server = server.to_owned();
    match error {
        ServiceError::McpError(error) => McpError::Refused { server, why: error.message.to_string() },
        ServiceError::TransportClosed => McpError::Dropped { server },
        ServiceError::Timeout { timeout } => McpError::TimedOut { server, limit: timeout },
        error => McpError::Invalid { server, why: deepest(&error) },
    }
}
