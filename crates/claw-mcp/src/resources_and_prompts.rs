//! `mcp_resource_read` and `mcp_prompt_get`: the resources and prompts of servers.
//!
//! These tools are given to callers with a grant of a server that offers such things. A grant with an allow
//! list has to name `resources/read` or `prompts/get` in it.

use async_trait::async_trait;
use claw_core::ServerName;
use claw_core::tool::{
    AnyTool, Block, Call, Effect, Effects, ErrorKind, Facts, Group, Meta, Output, Plan, Source, Spec,
    ToolError,
};
use claw_core::{InvalidId, ToolName};
use rmcp::model::{JsonObject, Role};
use serde::Deserialize;
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::connection::Live;
use crate::content;
use crate::error::McpError;
use crate::hub::WeakHub;
use crate::tool::ATTEMPTS;

/// The kind of thing that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfferKind {
    /// Resources.
    Resources,
    /// Prompts.
    Prompts,
}

impl OfferKind {
    /// The protocol's name of the request, by which grants name it.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Resources => "resources/read",
            Self::Prompts => "prompts/get",
        }
    }
}

/// A tool that reads resources or prompts of any granted server.
pub(crate) struct OfferTool {
    hub: WeakHub,
    kind: OfferKind,
    meta: Meta,
    spec: Spec,
}

#[derive(Deserialize)]
struct Args {
    server: String,
    uri: Option<String>,
    name: Option<String>,
    #[serde(default)]
    arguments: JsonObject,
}

impl OfferTool {
    pub(crate) fn new(hub: WeakHub, kind: OfferKind) -> Self {
        let server = json!({ "type": "string", "description": "Name of the MCP server." });
        let (name, about, properties) = match kind {
            OfferKind::Resources => (
                ToolName::literal("mcp_resource_read"),
                "Read a resource of an MCP server, or list its resources.",
                json!({
                    "server": server,
                    "uri": { "type": "string", "description": "Address of the resource; omit to list all." },
                }),
            ),
            OfferKind::Prompts => (
                ToolName::literal("mcp_prompt_get"),
                "Get a prompt of an MCP server, or list its prompts.",
                json!({
                    "server": server,
                    "name": { "type": "string", "description": "Name of the prompt; omit to list all." },
                    "arguments": {
                        "type": "object",
                        "description": "Arguments of the prompt.",
                        "additionalProperties": { "type": "string" },
                    },
                }),
            ),
        };
        let mut meta = Meta::of(name, Group::Named(SmolStr::new_static("mcp")));
        meta.about = SmolStr::new_static(about);
        meta.effects = Effects::of(&[Effect::Read, Effect::Network]);
        // The result is fenced like that of any server's tool.
        meta.source = Source::Mcp { server: SmolStr::new_static("any") };
        let schema = json!({
            "type": "object", "properties": properties, "required": ["server"], "additionalProperties": false,
        });
        let spec = Spec::with_schema(&meta, schema);
        Self { hub, kind, meta, spec }
    }
}

#[async_trait]
impl AnyTool for OfferTool {
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
        let args: Args =
            serde_json::from_value(args).map_err(|error| ToolError::invalid(error.to_string()))?;
        let server = ServerName::new(&args.server)
            .map_err(|error: InvalidId| ToolError::invalid(error.to_string()))?;
        let closed = || ToolError::new(ErrorKind::Unavailable, "MCP servers are no longer connected here");
        let hub = self.hub.upgrade().ok_or_else(closed)?;
        for _ in 0..ATTEMPTS {
            let (connection, limit) = hub.connection_for(call.caller(), &server, self.kind.method()).await?;
            let live = connection.live().await?;
            let read = tokio::select! {
                read = self.read(&live, &server, &args) => read,
                () = call.cancel().cancelled() => {
                    return Err(ToolError::new(ErrorKind::Cancelled, "the call was cancelled"));
                }
                () = tokio::time::sleep(limit) => {
                    Err(McpError::TimedOut { server: server.to_string(), limit, unread: None })
                }
            };
            match read {
                Err(McpError::SessionEnded { .. }) => {}
                read => return Ok(read?),
            }
        }
        Err(McpError::SessionEnded { server: server.to_string() }.into())
    }
}

impl OfferTool {
    /// Reads what the arguments name, or lists what there is.
    async fn read(&self, live: &Live, server: &ServerName, args: &Args) -> Result<Output, McpError> {
        match (self.kind, &args.uri, &args.name) {
            (OfferKind::Resources, Some(uri), _) => {
                let contents = live.resource(server, uri.clone()).await?;
                Ok(blocks(contents.into_iter().map(content::contents).collect()))
            }
            (OfferKind::Resources, None, _) => {
                let lines = live.resources(server).await?.into_iter().map(|resource| {
                    let about = resource.description.or(resource.title).unwrap_or_default();
                    format!("{} {} {about}", resource.uri, resource.name)
                });
                Ok(lines_of(lines.collect(), "it has no resources"))
            }
            (OfferKind::Prompts, _, Some(name)) => {
                let messages = live.prompt(server, name.clone(), args.arguments.clone()).await?;
                let messages = messages.into_iter().flat_map(|message| {
                    let role = if message.role == Role::User { "user:" } else { "assistant:" };
                    let role = Block::Text { text: role.to_owned() };
                    std::iter::once(role).chain(content::blocks(message.content))
                });
                Ok(blocks(messages.collect()))
            }
            (OfferKind::Prompts, _, None) => {
                let lines = live.prompts(server).await?.into_iter().map(|prompt| {
                    let arguments = prompt.arguments.unwrap_or_default().into_iter();
                    let names: Vec<_> = arguments.map(|argument| argument.name).collect();
                    let about = prompt.description.unwrap_or_default();
                    format!("{}({}) {about}", prompt.name, names.join(", "))
                });
                Ok(lines_of(lines.collect(), "it has no prompts"))
            }
        }
    }
}

fn blocks(content: Vec<Block>) -> Output {
    let mut output = Output::default();
    output.content = content;
    output
}

fn lines_of(lines: Vec<String>, none: &str) -> Output {
    Output::text(if lines.is_empty() { none.to_owned() } else { lines.join("\n") })
}
