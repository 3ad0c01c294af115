//! MCP servers: their transports, the grants of access, and the accepted tool definitions.
//!
//! A tool of a server can be called while its definition is the accepted one. If a server changes a
//! definition, calls of that tool are refused on every node until a person accepts the new one.

mod accepted;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

pub use self::accepted::{McpTool, McpToolState, compare_tools};
use super::{Changes, StoreError};
use crate::id::{AccessRequestId, AgentId, ServerName, TenantId, UserId};
use crate::port::UnixMillis;

/// An MCP server of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct McpServer {
    /// The name, which is part of the names of its tools.
    pub name: ServerName,
    /// The transport, with its address or program.
    #[serde(flatten)]
    pub transport: McpTransport,
    /// Timeout of one call, in seconds.
    #[serde(default = "call_timeout")]
    pub timeout_secs: u32,
    /// The prefix of its tools' names; `mcp_NAME_` if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// True to accept new tools when they are first seen. A changed tool is never accepted automatically.
    #[serde(default = "yes")]
    pub accept_new: bool,
    /// The server offers resources.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resources: bool,
    /// The server offers prompts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prompts: bool,
    /// False disables the server for everyone.
    #[serde(default = "yes")]
    pub enabled: bool,
}

impl McpServer {
    /// Creates an enabled server with the defaults of everything else.
    pub const fn new(name: ServerName, transport: McpTransport) -> Self {
        Self {
            name,
            transport,
            timeout_secs: call_timeout(),
            prefix: None,
            accept_new: true,
            resources: false,
            prompts: false,
            enabled: true,
        }
    }
}

/// The transport of a server. Values of variables and headers are sealed secrets; this holds only their
/// names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "transport", rename_all = "lowercase")]
pub enum McpTransport {
    /// A program that speaks on its standard input and output, run in the sandbox.
    Stdio(McpProgram),
    /// Streamable HTTP.
    Http(McpEndpoint),
    /// The older transport of an event stream and a second address for messages.
    Sse(McpEndpoint),
}

/// A program that is an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct McpProgram {
    /// The program.
    pub command: String,
    /// The arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The names of the variables that it is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The program may reach other machines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Absolute paths that it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Absolute paths that it may read and write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
}

/// The address of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct McpEndpoint {
    /// The URL.
    pub url: String,
    /// The names of the headers that every request carries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// The address may be non-public, such as loopback. Only the owner of the deployment can set this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// The OAuth login; `None` if the server needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<McpOAuth>,
}

/// A login by OAuth 2.1 at the authorization server that an MCP server names. Tokens are sealed, never stored here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpOAuth {
    /// True if each user logs in separately; otherwise one login serves everyone with access.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_user: bool,
    /// The id of a client registered beforehand, or the HTTPS address of a client's metadata; `None`
    /// registers a client with the first login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The scopes to request, besides those that the server itself requires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

impl McpTransport {
    /// The transport as a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
        }
    }
}

const fn call_timeout() -> u32 {
    60
}

const fn yes() -> bool {
    true
}

/// The agent or user of a grant or a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum McpSubject {
    /// An agent.
    Agent(AgentId),
    /// A user.
    User(UserId),
}

impl schemars::JsonSchema for McpSubject {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "McpSubject".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "`agent:NAME` or `user:NAME`", "pattern": "^(agent|user):" })
    }

    fn inline_schema() -> bool {
        true
    }
}

impl fmt::Display for McpSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(agent) => write!(f, "agent:{agent}"),
            Self::User(user) => write!(f, "user:{user}"),
        }
    }
}

impl FromStr for McpSubject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.split_once(':') {
            Some(("agent", id)) => AgentId::new(id).map(Self::Agent),
            Some(("user", id)) => UserId::new(id).map(Self::User),
            _ => return Err(format!("`{text}` names nobody; write `agent:NAME` or `user:NAME`")),
        };
        parsed.map_err(|error| error.to_string())
    }
}

impl Serialize for McpSubject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for McpSubject {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SmolStr::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Access of an agent or a user to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct McpGrant {
    /// The server.
    pub server: ServerName,
    /// The agent or user.
    pub subject: McpSubject,
    /// The only tools that may be used, by the server's names; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_allow: Option<Vec<String>>,
    /// Tools that may not be used. They win over `tool_allow`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_deny: Vec<String>,
    /// Settings of the agent's own connection. A user's grant has none.
    #[serde(default, skip_serializing_if = "McpOverrides::is_empty")]
    pub config_overrides: McpOverrides,
    /// A grant that is not enabled denies access, whatever other grants say.
    #[serde(default = "yes")]
    pub enabled: bool,
}

impl McpGrant {
    /// Returns a grant of every tool.
    pub fn new(server: ServerName, subject: McpSubject) -> Self {
        let (tool_allow, tool_deny) = (None, Vec::new());
        let config_overrides = McpOverrides::default();
        Self { server, subject, tool_allow, tool_deny, config_overrides, enabled: true }
    }
}

/// A server and the grants of one caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpAccess {
    /// The server.
    pub server: McpServer,
    /// The grants of the caller's agent and user.
    pub grants: Vec<McpGrant>,
}

/// Settings of a connection that differ from the server's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpOverrides {
    /// Timeout of one call, in seconds; `None` for the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u32>,
    /// The names of variables with values of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The names of headers with values of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
}

impl McpOverrides {
    /// Returns whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A user's request for access to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct McpRequest {
    /// The id.
    pub id: AccessRequestId,
    /// The server.
    pub server: ServerName,
    /// The user who asks.
    pub user: UserId,
    /// The agent or user to get access.
    pub subject: McpSubject,
    /// The requested tools; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The user's reason.
    pub reason: String,
    /// The time of the request.
    pub at: UnixMillis,
    /// The answer; `None` while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<McpReview>,
}

/// The answer to a request for access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct McpReview {
    /// Access is granted.
    pub approved: bool,
    /// The user who answered.
    pub by: UserId,
    /// A reason or remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The time of the answer.
    pub at: UnixMillis,
}

/// Stores MCP servers, grants, accepted tools and requests; a change is announced as
/// [`Topic::Mcp`](super::Topic::Mcp).
#[async_trait]
pub trait McpStore: Changes {
    /// Returns the tenant's servers, by name.
    async fn mcp_servers(&self, tenant: &TenantId) -> Result<Vec<McpServer>, StoreError>;
    /// Writes a server, replacing the one with its name.
    async fn put_mcp_server(
        &self,
        tenant: &TenantId,
        server: &McpServer,
        at: UnixMillis,
    ) -> Result<(), StoreError>;
    /// Removes a server with its grants, tools and requests; `false` if there is none.
    async fn remove_mcp_server(&self, tenant: &TenantId, name: &ServerName) -> Result<bool, StoreError>;

    /// Returns the tenant's grants, by server and subject.
    async fn mcp_grants(&self, tenant: &TenantId) -> Result<Vec<McpGrant>, StoreError>;
    /// Returns a server with its grants of this agent and this user, as stored now, in one read; `None` if there
    /// is no such server.
    async fn mcp_access(
        &self,
        tenant: &TenantId,
        server: &ServerName,
        agent: &AgentId,
        user: Option<&UserId>,
    ) -> Result<Option<McpAccess>, StoreError>;
    /// Writes a grant, replacing the one of its subject. Refused if there is no such server.
    async fn put_mcp_grant(
        &self,
        tenant: &TenantId,
        grant: &McpGrant,
        at: UnixMillis,
    ) -> Result<(), StoreError>;
    /// Removes a grant; `false` if there is none.
    async fn remove_mcp_grant(
        &self,
        tenant: &TenantId,
        server: &ServerName,
        subject: &McpSubject,
    ) -> Result<bool, StoreError>;

    /// Returns the tools of all the tenant's servers, by server and name.
    async fn mcp_tools(&self, tenant: &TenantId) -> Result<Vec<McpTool>, StoreError>;
    /// Compares the tools that a server lists with the known ones, as [`compare_tools`] does, and stores the
    /// outcome. Returns the changed tools. Refused if there is no such server.
    async fn list_mcp_tools(
        &self,
        tenant: &TenantId,
        server: &ServerName,
        listed: &BTreeMap<String, Value>,
        at: UnixMillis,
    ) -> Result<Vec<McpTool>, StoreError>;
    /// Accepts exactly this definition of a tool; `false` if it is not the proposed one.
    async fn accept_mcp_tool(
        &self,
        tenant: &TenantId,
        tool: &McpTool,
        at: UnixMillis,
    ) -> Result<bool, StoreError>;

    /// Returns the tenant's requests, newest first.
    async fn mcp_requests(&self, tenant: &TenantId) -> Result<Vec<McpRequest>, StoreError>;
    /// Stores a request. Refused if there is no such server.
    async fn add_mcp_request(&self, tenant: &TenantId, request: &McpRequest) -> Result<(), StoreError>;
    /// Answers a pending request and, if it is approved, writes its grant in the same transaction. Refused if
    /// it was answered before.
    async fn review_mcp_request(
        &self,
        tenant: &TenantId,
        id: AccessRequestId,
        review: &McpReview,
    ) -> Result<McpRequest, StoreError>;
}

/// The state of a request for access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpRequestState {
    /// It waits for an administrator.
    Requested,
    /// An administrator approved it, and the grant is written.
    Approved,
    /// An administrator rejected it.
    Rejected,
}

/// A request for access that was made or reviewed, as the user who asked and the administrators are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct McpRequestEvent {
    /// The state that the request came to.
    pub state: McpRequestState,
    /// The time at which it did.
    pub at: UnixMillis,
    /// The request; with its review, once it is reviewed.
    pub request: McpRequest,
}

impl McpRequest {
    /// Returns the events of the request so far: that it was made, and that it was reviewed.
    pub fn events(&self) -> Vec<McpRequestEvent> {
        let event =
            |state, at, review| McpRequestEvent { state, at, request: Self { review, ..self.clone() } };
        let mut events = vec![event(McpRequestState::Requested, self.at, None)];
        if let Some(review) = &self.review {
            let approved = review.approved;
            let state = if approved { McpRequestState::Approved } else { McpRequestState::Rejected };
            events.push(event(state, review.at, Some(review.clone())));
        }
        events
    }

    /// Returns the grant that an approval gives, merged into the existing one.
    pub fn grant(&self, over: Option<McpGrant>) -> McpGrant {
        let mut grant = over.unwrap_or_else(|| McpGrant {
            tool_allow: Some(Vec::new()),
            ..McpGrant::new(self.server.clone(), self.subject.clone())
        });
        grant.enabled = true;
        grant.tool_allow = match (grant.tool_allow.take(), &self.tools) {
            (Some(mut allowed), Some(wanted)) => {
                allowed.extend(
                    wanted.iter().filter(|tool| !allowed.contains(tool)).cloned().collect::<Vec<_>>(),
                );
                Some(allowed)
            }
            _ => None,
        };
        if let Some(wanted) = &self.tools {
            grant.tool_deny.retain(|denied| !wanted.contains(denied));
        }
        grant
    }
}

#[cfg(test)]
mod tests;
