//! MCP, both ways.
//!
//! ```text
//!  McpTools (a CallerTools) ── BridgedTool ──▶ Hub ── Connection ──▶ stdio child in the sandbox, HTTP, SSE
//!  McpServer (ours) ──▶ Offer, Executor: any MCP client calls what the policy gives its caller
//! ```
//!
//! The client half makes third-party servers' tools available under our checks: granted, pinned, fenced and
//! bounded. It starts programs only through a [`ShellHost`](claw_core::port::ShellHost) and reaches addresses
//! only through `claw-net`.

mod accepted_definition;
mod annotations;
mod connection;
mod content;
mod elicitation;
mod error;
mod grants;
mod handler;
mod hub;
mod oauth;
mod resources_and_prompts;
mod secrets;
mod serve;
mod servers;
mod tool;
mod tool_name;
mod transport;

pub use connection::{ConnectionStatus, ConnectionView, ServerReport};
pub use error::{McpError, Unread};
pub use grants::{Access, access};
pub use http::request::Parts;
pub use hub::{Hub, HubOptions, WeakHub, default_threads};
pub use oauth::{LoginView, LoginWish};
pub use secrets::{McpSecrets, SecretKind, secret_name};
pub use serve::{
    ClawServer, ClientAnswer, ClientApprovals, Clients, HttpServer, HttpSessions, Served, http_server,
    serve_stdio,
};
pub use servers::McpTools;
pub use tool_name::{OWN_TOOLS, tool_name, tool_prefix};
