//! Custom tools: tools that an administrator defines at run time.
//!
//! The values of a tool's variables and HTTP headers are sealed as one value. Their names are stored beside
//! it, so that a list can show them.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Changes, Sealed, StoreError};
use crate::id::{AgentId, TenantId, ToolName};
use crate::port::UnixMillis;

/// The key of a custom tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct CustomToolPlace {
    /// Tenant that owns the tool.
    pub tenant: TenantId,
    /// The one agent that has the tool; `None` gives it to every agent of the tenant.
    pub agent: Option<AgentId>,
    /// The name by which a model calls it.
    pub name: ToolName,
}

/// A custom tool as its owner defined it, without the values of its variables and headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomToolDefinition {
    /// The description that the model reads.
    pub description: String,
    /// JSON Schema of the arguments; its root is an object.
    #[serde(default = "no_parameters")]
    pub parameters: Value,
    /// The action of a call.
    pub action: CustomToolAction,
    /// Time limit of one call, in seconds.
    #[serde(default = "timeout")]
    pub timeout_seconds: u32,
    /// Access of the tool's commands beyond that of the agent's own commands.
    #[serde(default)]
    pub grants: CustomToolGrants,
    /// The tool is offered to agents.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

/// The action of a custom tool's call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CustomToolAction {
    /// Runs a shell command.
    Command {
        /// The command with `{{.name}}` where an argument goes.
        template: String,
        /// The directory it starts in, relative to the workspace.
        working_dir: String,
    },
    /// Runs a program without a shell.
    Argv {
        /// The program and its arguments, with `{{.name}}` where an argument goes.
        words: Vec<String>,
        /// The directory it starts in, relative to the workspace.
        working_dir: String,
    },
    /// Calls an HTTP endpoint.
    Http(CustomToolHttp),
}

/// An HTTP request of a custom tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomToolHttp {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: String,
    /// The address with `{{.name}}` in its path or query where an argument goes; scheme and host are fixed.
    pub url: String,
    /// The JSON body; a string that is only `{{.name}}` becomes the argument's value. `None` sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Names of the headers; their values are sealed.
    #[serde(default)]
    pub headers: Vec<String>,
}

/// Access of a custom tool's commands beyond that of the agent's own commands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CustomToolGrants {
    /// The commands reach other machines.
    pub network: bool,
    /// Files and directories outside of the workspace that they reach.
    pub paths: Vec<GrantedPath>,
}

impl CustomToolGrants {
    /// Returns whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        !self.network && self.paths.is_empty()
    }
}

/// A file, or a directory with everything below it, that commands reach outside the workspace.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct GrantedPath {
    /// The absolute path.
    pub path: String,
    /// The commands may change it.
    #[serde(default)]
    pub write: bool,
}

fn no_parameters() -> Value {
    serde_json::json!({ "type": "object", "properties": {} })
}

const fn timeout() -> u32 {
    CustomToolDefinition::TIMEOUT
}

const fn enabled() -> bool {
    true
}

impl CustomToolDefinition {
    /// Default time limit, in seconds.
    pub const TIMEOUT: u32 = 60;

    /// Default arguments: none.
    pub fn no_parameters() -> Value {
        no_parameters()
    }
}

/// A custom tool without the values of its variables and headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CustomToolCard {
    /// Tenant, agent and name.
    #[serde(flatten)]
    pub place: CustomToolPlace,
    /// The definition.
    #[serde(flatten)]
    pub definition: CustomToolDefinition,
    /// Names of the variables that its commands are given, sorted.
    pub variables: Vec<String>,
    /// Rises with each change; 1 at first.
    pub version: u64,
    /// Time of the last change. Sealing with another key does not count.
    pub at: UnixMillis,
}

/// A custom tool with its sealed values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCustomTool {
    /// All but the sealed values.
    pub card: CustomToolCard,
    /// Values of variables and headers.
    pub env: Sealed,
}

/// Stores custom tools; a change is announced as [`Topic::Tools`](super::Topic::Tools).
#[async_trait]
pub trait CustomTools: Changes {
    /// Returns the tool at exactly this place. [`StoreError::Damaged`] if its values are not sealed.
    async fn custom_tool(&self, place: &CustomToolPlace) -> Result<Option<StoredCustomTool>, StoreError>;
    /// Writes a tool and returns its new version; the version on the card is ignored. `seen` is the version
    /// that the writer read; `None` stores a new one. [`StoreError::Stale`] if the stored tool has another
    /// version.
    async fn put_custom_tool(&self, tool: &StoredCustomTool, seen: Option<u64>) -> Result<u64, StoreError>;
    /// Enables or disables a tool, which raises its version; `false` if there is none.
    async fn enable_custom_tool(
        &self,
        place: &CustomToolPlace,
        enabled: bool,
        at: UnixMillis,
    ) -> Result<bool, StoreError>;
    /// Removes a tool; `false` if there is none. [`StoreError::Stale`] if `seen` is given and the tool has
    /// another version.
    async fn remove_custom_tool(
        &self,
        place: &CustomToolPlace,
        seen: Option<u64>,
    ) -> Result<bool, StoreError>;
    /// Returns the tenant's tools and those of its agents, sorted: the tenant's first, then by agent and name. A row
    /// that cannot be read is [`StoreError::Damaged`].
    async fn custom_tools(&self, tenant: &TenantId) -> Result<Vec<StoredCustomTool>, StoreError>;
}
