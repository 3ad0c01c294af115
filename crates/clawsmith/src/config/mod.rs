//! `clawsmith.toml`: its content, its location, and its problems.
//!
//! The types here are the reference: their doc comments become the JSON Schema, and a key that they do not
//! have is refused with its line and the nearest name. Every key can be overridden by environment. Secrets do
//! not belong in the file: it names the variables that hold them.

mod agents;
mod check;
mod custom_tools;
mod document;
mod effective;
mod env;
mod files;
mod find;
mod gateway;
mod limits;
mod load;
mod mcp;
mod memory;
mod outside_names;
mod problem;
mod sandbox;
mod schema;
mod scrub;
mod skills;
mod store;
mod telemetry;
mod trust;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use claw_agent::RunLimits;
use claw_core::port::ApplyMode;
use claw_core::{NodeId, TenantId};
use claw_llm::{EndpointConfig, ModelsConfig};
use claw_policy::approval::ApprovalConfig;
use claw_policy::config::{PolicyConfig, ToolsPolicy};
use claw_policy::shell::{RuleError, Rules, ShellConfig};
use claw_web::WebConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use agents::{AgentConfig, KindOfAgent};
#[cfg(not(feature = "otel"))]
pub(crate) use check::NOT_BUILT_IN;
pub use check::{unknown_provider, warnings};
pub use custom_tools::CustomToolsConfig;
pub use effective::{Origin, Setting};
pub use env::KEYS;
pub use files::{ContextFiles, FilesConfig};
pub use find::{Found, FoundBy, NAME, Surroundings, candidates, find};
pub use gateway::{GatewayConfig, TlsConfig};
pub use limits::LimitsConfig;
pub use load::Loaded;
pub use mcp::McpConfig;
pub use memory::{GraphConfig, MemoryConfig};
pub use problem::{Problem, ProblemPlace, Problems};
pub use sandbox::{DockerConfig, SandboxBackend, SandboxConfig, ShownWorkspace};
pub use schema::schema;
pub use scrub::ScrubConfig;
pub use skills::SkillsConfig;
pub use store::{StoreConfig, StoreUrl};
pub use telemetry::TelemetryConfig;
pub use trust::Trust;

/// The shortest secret, in bytes; a shorter one cannot be told from ordinary text.
pub const SHORTEST_SECRET: usize = 6;

/// The configuration of Clawsmith.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The tenant of the data; each has its own ledger and kept results.
    pub tenant: TenantId,
    /// The name of this machine; each machine writes its own ledger chain.
    pub node: NodeId,
    /// The directory of kept results, and of the store by default. Left out: `$XDG_DATA_HOME/clawsmith`, or
    /// `~/.local/share/clawsmith`. Machines that share a store share this directory too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<PathBuf>,
    /// The store of all state.
    pub store: StoreConfig,
    /// The tools of agents.
    pub tools: ToolsPolicy,
    /// The agents, by id.
    pub agents: BTreeMap<String, AgentConfig>,
    /// Calls that need a person's approval.
    pub approvals: ApprovalConfig,
    /// Rules for shell commands.
    pub shell: ShellConfig,
    /// The sandbox of commands.
    pub sandbox: SandboxConfig,
    /// Models and their providers.
    pub models: ModelsConfig,
    /// Endpoints that `openai_compat_call` sends requests to, by name.
    pub endpoints: BTreeMap<String, EndpointConfig>,
    /// Web access of tools.
    pub web: WebConfig,
    /// Search of memory documents.
    pub memory: MemoryConfig,
    /// Limits of calls.
    pub limits: LimitsConfig,
    /// Limits of one run of an agent: one message and all work to answer it.
    pub runs: RunLimits,
    /// Files that tools may reach.
    pub files: FilesConfig,
    /// Custom tools: tools that are defined at run time.
    pub custom_tools: CustomToolsConfig,
    /// MCP servers.
    pub mcp: McpConfig,
    /// Secrets to redact.
    pub scrub: ScrubConfig,
    /// Skills: their directories, and their share of prompts.
    pub skills: SkillsConfig,
    /// The address of `clawsmith serve`.
    pub gateway: GatewayConfig,
    /// Traces that are sent to an OpenTelemetry collector.
    pub telemetry: TelemetryConfig,
    /// Settings of single tools, by the tool's name; each tool defines its own.
    pub settings: BTreeMap<String, Map<String, Value>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tenant: TenantId::main(),
            node: NodeId::local(),
            data_dir: None,
            store: StoreConfig::default(),
            tools: ToolsPolicy::default(),
            agents: BTreeMap::new(),
            approvals: ApprovalConfig::default(),
            shell: ShellConfig::default(),
            sandbox: SandboxConfig::default(),
            models: ModelsConfig::default(),
            endpoints: BTreeMap::new(),
            web: WebConfig::default(),
            memory: MemoryConfig::default(),
            limits: LimitsConfig::default(),
            runs: RunLimits::default(),
            files: FilesConfig::default(),
            scrub: ScrubConfig::default(),
            custom_tools: CustomToolsConfig::default(),
            mcp: McpConfig::default(),
            skills: SkillsConfig::default(),
            gateway: GatewayConfig::default(),
            telemetry: TelemetryConfig::default(),
            settings: BTreeMap::new(),
        }
    }
}

impl Config {
    /// The part that the policy decides by.
    pub fn policy(&self) -> PolicyConfig {
        let agents = self.agents.iter().map(|(id, agent)| (id.clone(), agent.tools()));
        PolicyConfig {
            tools: self.tools.clone(),
            tenant: self.tenant.clone(),
            agents: agents.collect(),
            tenants: BTreeMap::new(),
        }
    }

    /// Returns the settings of tools, by name; those of `openai_compat_call` include the address of each
    /// endpoint, those of `web_search` the address of each provider.
    pub fn tool_settings(&self) -> Value {
        let settings = self.settings.clone().into_iter();
        let mut tools: Map<String, Value> =
            settings.map(|(tool, settings)| (tool, Value::Object(settings))).collect();
        let origins: Map<String, Value> = self
            .endpoints
            .iter()
            .filter_map(|(name, endpoint)| {
                Some((name.clone(), serde_json::to_value(endpoint.origin()?).ok()?))
            })
            .collect();
        if !origins.is_empty() {
            let own = tools.entry("openai_compat_call").or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(own) = own {
                own.insert("origins".to_owned(), Value::Object(origins));
            }
        }
        let providers: Vec<_> = self.web.search_origins();
        let own = tools.entry("web_search").or_insert_with(|| Value::Object(Map::new()));
        if let (Value::Object(own), Ok(origins)) = (own, serde_json::to_value(providers)) {
            own.insert("origins".to_owned(), origins);
        }
        Value::Object(tools)
    }

    /// The rules by which an agent's shell commands are judged.
    pub fn shell_rules(&self, agent: &str) -> Result<Rules, RuleError> {
        match self.agents.get(agent) {
            Some(agent) => Rules::compile(&self.shell.and(&agent.shell)),
            None => Rules::compile(&self.shell),
        }
    }

    /// Returns when the changes of an agent's commands are applied to the workspace.
    pub fn shell_apply(&self, agent: &str) -> ApplyMode {
        let own = self.agents.get(agent).and_then(|agent| agent.shell.apply);
        own.or(self.shell.apply).unwrap_or_default()
    }

    /// Returns whether an agent's shell commands reach other machines without asking.
    pub fn shell_network(&self, agent: &str) -> bool {
        let own = self.agents.get(agent).and_then(|agent| agent.shell.network);
        own.or(self.shell.network).unwrap_or(false)
    }
}

fn days(days: u32) -> Duration {
    Duration::from_secs(u64::from(days) * 24 * 60 * 60)
}

fn mib(mib: u32) -> u64 {
    u64::from(mib) * 1024 * 1024
}

/// The whole days of a time.
fn in_days(time: Duration) -> u32 {
    in_u32(time.as_secs() / days(1).as_secs())
}

/// The whole MiB of a number of bytes.
fn in_mib(bytes: u64) -> u32 {
    in_u32(bytes / mib(1))
}

/// A number of a library, as the configuration file holds it.
fn in_u32(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
