//! `[mcp]`: who may define MCP servers that are programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MCP servers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// Administrators of tenants may define MCP servers that are programs. Such servers run on this host, so without this
    /// only the deployment's owner may. Servers at private addresses may be defined only by the owner in any case.
    pub tenant_admins: bool,
}
