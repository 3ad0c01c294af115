//! A tool of an MCP server, on our road.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::store::McpServer;
use claw_core::tool::{AnyTool, Call, Digest, ErrorKind, Facts, Meta, Output, Plan, Spec, ToolError};
use serde_json::Value;

use crate::connection::TimedCall;
use crate::content;
use crate::hub::WeakHub;

/// A server's tool as it was accepted.
pub(crate) struct BridgedTool {
    pub(crate) hub: WeakHub,
    pub(crate) server: Arc<McpServer>,
    /// The server's name of the tool.
    pub(crate) name: String,
    /// The digest of the accepted definition.
    pub(crate) accepted: Digest,
    pub(crate) meta: Meta,
    pub(crate) spec: Spec,
}

#[async_trait]
impl AnyTool for BridgedTool {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn plan(&self, _facts: &Facts, _args: &Value) -> Result<Plan, ToolError> {
        Ok(Plan::opaque(self.meta.effects))
    }

    async fn run_erased(&self, call: &Call, args: Value) -> Result<Output, ToolError> {
        let Value::Object(args) = args else {
            return Err(ToolError::new(ErrorKind::Invalid, "the arguments must be an object"));
        };
        let closed = || ToolError::new(ErrorKind::Unavailable, "MCP servers are no longer connected here");
        let hub = self.hub.upgrade().ok_or_else(closed)?;
        let (connection, limit) = hub.connection_for(call.caller(), &self.server.name, &self.name).await?;
        let live = connection.live().await?;
        // The definition is compared with the one that the server has now, whatever the store says.
        if live.digest(&self.name) != Some(self.accepted) {
            let server = &self.server.name;
            let message = format!(
                "the definition of `{}` at MCP server `{server}` is not the one that was accepted",
                self.name
            );
            // A connection with values or a login of its own does not store what it lists: it would block the tool for
            // everyone else.
            return Err(ToolError::new(ErrorKind::Forbidden, message).try_instead(format!(
                "ask the administrator to run `clawsmith mcp test {server}`, which reads the definitions again, and \
                 then `clawsmith mcp pin {server}`, which shows the difference"
            )));
        }
        let result = live.call(&self.server, &self.name, args, TimedCall { call, limit }).await?;
        content::output(self.server.name.as_str(), result)
    }
}
