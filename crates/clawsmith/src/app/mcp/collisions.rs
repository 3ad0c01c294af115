//! Names of servers' tools that other tools have already.

use std::collections::BTreeMap;

use claw_core::ToolName;
use claw_core::store::{McpServer, McpToolState};
use claw_mcp::{ServerReport, tool_name, tool_prefix};

use crate::app::{App, Error};

impl App {
    /// Refuses a server whose tools' names begin like those of another server, or like a custom tool's.
    pub(super) async fn check_prefix(&self, server: &McpServer) -> Result<(), Error> {
        let prefix = tool_prefix(server);
        let servers = self.store.mcp_servers(self.tenant()).await?;
        let mut others = servers.iter().filter(|other| other.name != server.name);
        let overlap = |other: &str| other.starts_with(&prefix) || prefix.starts_with(other);
        // A tool that one of them lists later could have the name of the other's.
        if let Some(other) = others.find(|other| overlap(&tool_prefix(other))) {
            let theirs = tool_prefix(other);
            let why = match theirs == prefix {
                true => format!("the tools of MCP server `{}` begin with `{prefix}` too", other.name),
                false => format!(
                    "the tools of MCP server `{}` begin with `{theirs}`, which overlaps with `{prefix}`",
                    other.name
                ),
            };
            return Err(taken(server, &why));
        }
        let names = self.custom_tool_names().await?;
        match names.iter().find(|name| name.as_str().starts_with(&prefix)) {
            Some(name) => Err(taken(
                server,
                &format!("the name of the custom tool `{name}` begins with the prefix `{prefix}`"),
            )),
            None => Ok(()),
        }
    }

    /// Refuses a server with a tool that would have the name of another server's tool.
    pub(super) async fn check_tool_names(
        &self,
        server: &McpServer,
        report: &ServerReport,
    ) -> Result<(), Error> {
        let mut names: BTreeMap<ToolName, String> = BTreeMap::new();
        for view in self.mcp_servers().await?.into_iter().filter(|view| view.server.name != server.name) {
            let listed = view.tools.iter().filter(|tool| tool.state() != McpToolState::Gone);
            let named = listed.filter_map(|tool| tool_name(&view.server, &tool.name).ok());
            names.extend(named.map(|name| (name, view.server.name.to_string())));
        }
        for tool in report.tools.keys() {
            let Ok(name) = tool_name(server, tool) else { continue };
            if let Some(other) = names.get(&name) {
                let why = format!(
                    "its tool `{tool}` would be called `{name}`, like a tool of MCP server `{other}`"
                );
                return Err(taken(server, &why));
            }
        }
        Ok(())
    }

    /// Refuses a custom tool whose name begins like the names of a server's tools.
    pub(in crate::app) async fn check_custom_name(&self, name: &ToolName) -> Result<(), Error> {
        let servers = self.store.mcp_servers(self.tenant()).await?;
        match servers.iter().find(|server| name.as_str().starts_with(&tool_prefix(server))) {
            Some(server) => Err(Error::conflict(format!(
                "`{name}` begins with `{}`, the prefix of the tools of MCP server `{}`",
                tool_prefix(server),
                server.name
            ))
            .hint("use another name")),
            None => Ok(()),
        }
    }
}

fn taken(server: &McpServer, why: &str) -> Error {
    Error::conflict(format!("MCP server `{}`: {why}", server.name))
        .hint("use another prefix: `--prefix PREFIX`")
}
