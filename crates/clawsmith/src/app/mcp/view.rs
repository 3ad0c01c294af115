//! MCP servers as people read them: their tools, grants and changed definitions.

use claw_core::did_you_mean::nearest;
use claw_core::store::{McpGrant, McpServer, McpTool, McpToolState};
use claw_mcp::ConnectionView;
use serde::Serialize;
use serde_json::Value;

use crate::app::Error;

/// The most characters of a tool's description in a list.
const ABOUT: usize = 80;

/// A server with its tools and its grants.
#[derive(Debug, Serialize)]
pub struct ServerView {
    /// The server.
    #[serde(flatten)]
    pub server: McpServer,
    /// The tools that it has listed.
    pub tools: Vec<McpTool>,
    /// The grants of agents and users.
    pub grants: Vec<McpGrant>,
    /// The connections of this process to the server, with their states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionView>,
}

impl ServerView {
    /// The number of accepted tools.
    pub fn accepted(&self) -> usize {
        self.tools.iter().filter(|tool| tool.state() == McpToolState::Accepted).count()
    }

    /// The tools whose definitions wait for acceptance; only the named one, if one is named.
    pub fn waiting(&self, only: Option<&str>) -> Result<Vec<McpTool>, Error> {
        let names = || self.tools.iter().map(|tool| tool.name.as_str());
        if let Some(name) = only.filter(|name| !names().any(|known| known == *name)) {
            let error = Error::not_found(format!("MCP server `{}` lists no tool `{name}`", self.server.name));
            return Err(match nearest(name, names()) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("`clawsmith mcp tools {}` lists its tools", self.server.name)),
            });
        }
        let is_meant = |tool: &&McpTool| only.is_none_or(|only| only == tool.name);
        let waits = |tool: &&McpTool| matches!(tool.state(), McpToolState::Changed | McpToolState::New);
        Ok(self.tools.iter().filter(is_meant).filter(waits).cloned().collect())
    }

    /// The agents and users that may use the server, in a list.
    pub fn grantees(&self) -> String {
        self.grants.iter().map(|grant| grant.subject.to_string()).collect::<Vec<_>>().join(", ")
    }
}

/// A grant in words: the subject, and how far the grant goes.
pub fn grant_words(grant: &McpGrant) -> String {
    let mut words = vec![grant.subject.to_string()];
    if !grant.enabled {
        words.push("refused".to_owned());
    }
    words.extend(grant.tool_allow.as_ref().map(|allow| format!("only {}", allow.join(", "))));
    if !grant.tool_deny.is_empty() {
        words.push(format!("not {}", grant.tool_deny.join(", ")));
    }
    words.join("; ")
}

/// The beginning of a tool's description.
pub fn tool_about(tool: &McpTool) -> String {
    let definition = tool.accepted.as_ref().or(tool.proposed.as_ref());
    let about = definition.and_then(|it| it.get("description")).and_then(Value::as_str);
    about.unwrap_or_default().lines().next().unwrap_or_default().chars().take(ABOUT).collect()
}

/// The difference between the accepted and the waiting definition of a tool. If it is too long to compare, the waiting
/// definition follows whole.
pub fn definition_diff(tool: &McpTool) -> String {
    let shown = |definition: Option<&Value>| {
        definition.and_then(|value| serde_json::to_string_pretty(value).ok()).unwrap_or_default()
    };
    let (before, after) = (shown(tool.accepted.as_ref()), shown(tool.proposed.as_ref()));
    let diff = claw_registry::unified_diff(&tool.name, &before, &after, usize::MAX);
    if diff.lines().count() > 3 { diff } else { format!("{diff}{after}") }
}
