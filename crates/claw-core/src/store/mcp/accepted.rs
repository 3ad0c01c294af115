//! Accepted definitions of a server's tools, and how a changed one is proposed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::ServerName;

/// A tool of a server, with its accepted definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct McpTool {
    /// The server.
    pub server: ServerName,
    /// The server's name of the tool.
    pub name: String,
    /// The accepted definition; `None` for a tool that nobody has accepted.
    pub accepted: Option<Value>,
    /// A definition that differs from the accepted one and waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Value>,
    /// The server no longer lists the tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// The state of a server's tool. Only an accepted one can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpToolState {
    /// Its definition is the accepted one.
    Accepted,
    /// The server changed its definition, and nobody has accepted the change.
    Changed,
    /// It is new, and nobody has accepted it.
    New,
    /// The server no longer lists it.
    Gone,
}

impl McpTool {
    /// Returns the tool's state.
    pub const fn state(&self) -> McpToolState {
        match (&self.accepted, &self.proposed, self.gone) {
            (_, _, true) => McpToolState::Gone,
            (None, ..) => McpToolState::New,
            (Some(_), Some(_), _) => McpToolState::Changed,
            (Some(_), None, _) => McpToolState::Accepted,
        }
    }

    /// Accepts the proposed definition; `false` if there is none.
    pub fn accept(&mut self) -> bool {
        let proposed = self.proposed.take();
        let waited = proposed.is_some();
        self.accepted = proposed.or_else(|| self.accepted.take());
        waited
    }
}

/// Compares the known tools of a server with those that it lists now, and returns the changed ones.
///
/// A definition that differs from the accepted one is proposed. A tool seen for the first time is accepted if
/// `accept_new` is true, else proposed. A tool that is back with its accepted definition can be called again.
pub fn compare_tools(
    server: &ServerName,
    known: &[McpTool],
    listed: &BTreeMap<String, Value>,
    accept_new: bool,
) -> Vec<McpTool> {
    let mut changed = Vec::new();
    for tool in known {
        let mut now = McpTool { gone: !listed.contains_key(&tool.name), ..tool.clone() };
        if let Some(definition) = listed.get(&tool.name) {
            let is_accepted = tool.accepted.as_ref() == Some(definition);
            now.proposed = (!is_accepted).then(|| definition.clone());
        }
        if now != *tool {
            changed.push(now);
        }
    }
    for (name, definition) in listed {
        if known.iter().any(|tool| tool.name == *name) {
            continue;
        }
        let definition = Some(definition.clone());
        let (accepted, proposed) = if accept_new { (definition, None) } else { (None, definition) };
        changed.push(McpTool { server: server.clone(), name: name.clone(), accepted, proposed, gone: false });
    }
    changed
}
