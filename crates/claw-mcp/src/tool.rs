//! A tool of an MCP server, on our road.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::store::McpServer;
use claw_core::tool::{AnyTool, Call, Digest, ErrorKind, Facts, Meta, Output, Plan, Spec, ToolError};
use serde_json::Value;

use crate::accepted_definition::check_accepted;
use crate::connection::{CallArguments, TimedCall};
use crate::content;
use crate::error::McpError;
use crate::hub::WeakHub;

/// The attempts at a call whose session the server had dropped. Such a call has not run.
pub(crate) const ATTEMPTS: usize = 2;

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
        let mut args = CallArguments::new(&self.server, args)?;
        for _ in 0..ATTEMPTS {
            let (connection, limit) =
                hub.connection_for(call.caller(), &self.server.name, &self.name).await?;
            let live = connection.live().await?;
            check_accepted(&self.server.name, &self.name, self.accepted, live.digest(&self.name))?;
            let timed = TimedCall { call, limit };
            if let Some(result) = live.call(&self.server, &self.name, &mut args, timed).await? {
                return content::output(self.server.name.as_str(), result);
            }
        }
        Err(McpError::SessionEnded { server: self.server.name.to_string() }.into())
    }
}
