//! `[custom_tools]`: who may define tools at run time, and where they are read from.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Custom tools: tools that are defined at run time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CustomToolsConfig {
    /// Administrators of tenants may define custom tools over HTTP. Such tools run programs on this host, so
    /// without this only the deployment's owner may.
    pub tenant_admins: bool,
    /// A directory whose `*.json` files define custom tools of `tenant`. It is read at start. Whoever can write
    /// there can run programs on this host. Left out: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Origins at private addresses that requests of custom tools may reach, such as `http://127.0.0.1:8080`.
    pub private_origins: Vec<String>,
}
