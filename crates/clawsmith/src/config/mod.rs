//! `clawsmith.toml`: its content, its location, and its problems.
//!
//! The types here are the reference: their doc comments become the JSON Schema, and a key that they do not
//! have is refused with its line and the nearest name. Every key can be overridden by environment. Secrets do
//! not belong in the file: it names the variables that hold them.

mod check;
mod document;
mod env;
mod find;
mod flat;
mod load;
mod memory;
mod problem;
mod sandbox;
mod schema;
mod skills;
mod store;
mod trust;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use claw_agent::RunLimits;
use claw_core::port::ApplyMode;
use claw_core::store::AgentKind;
use claw_core::{NodeId, TenantId};
use claw_host::ArtifactKeeping;
use claw_host::files::UndoLimits;
use claw_llm::{EndpointConfig, ModelsConfig};
use claw_policy::approval::ApprovalConfig;
use claw_policy::config::{AgentProviderTools, AgentTools, PolicyConfig, ToolsPolicy};
use claw_policy::rate::RateConfig;
use claw_policy::shell::{RuleError, Rules, ShellConfig};
use claw_registry::{Limits, ProcessLimits};
use claw_web::WebConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use check::unknown_provider;
pub use check::warnings;
pub use env::KEYS;
pub use find::NAME;
pub use find::{Found, FoundBy, Surroundings, candidates, find};
pub use flat::{Origin, Setting};
pub use load::Loaded;
pub use memory::{GraphConfig, MemoryConfig};
pub use problem::{Place, Problem, Problems};
pub use sandbox::{DockerConfig, SandboxBackend, SandboxConfig, ShownWorkspace};
pub use schema::schema;
pub use skills::SkillsConfig;
pub use store::{StoreConfig, StoreUrl};
pub use trust::Trust;

/// The shortest secret, in bytes; a shorter one cannot be told from ordinary text.
pub const SHORTEST_SECRET: usize = 6;

/// The configuration of Clawsmith.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The tenant of the data; each has its own ledger and artifacts.
    pub tenant: TenantId,
    /// The name of this machine; each machine writes its own ledger chain.
    pub node: NodeId,
    /// The directory of artifacts, and of the store by default. Left out: `$XDG_DATA_HOME/clawsmith`, or
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
    /// Secrets to redact.
    pub scrub: ScrubConfig,
    /// Skills: their directories, and their share of prompts.
    pub skills: SkillsConfig,
    /// The address of `clawsmith serve`.
    pub gateway: GatewayConfig,
    /// Traces for a collector of OpenTelemetry.
    pub telemetry: TelemetryConfig,
    /// Settings of single tools, by the tool's name; each tool defines its own.
    pub settings: BTreeMap<String, Map<String, Value>>,
}

/// An agent: its public description, and its differences from `tools`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    /// The display name. Left out: its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Purpose, in a sentence.
    pub about: String,
    /// The provider of its model. Left out: that of `models`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model. Left out: that of `models`, or the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The owner of its context files, unless the store says it. Left out: `open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<KindOfAgent>,
    /// Only these tools are kept, of those that `tools` keeps. Left out: all of them; an empty list: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// These tools are removed, besides those in `tools.deny`.
    pub deny: Vec<String>,
    /// These tools are added, besides those in `tools.also_allow`.
    pub also_allow: Vec<String>,
    /// Tool rules for this agent with a model of a provider, by the provider's name.
    pub by_provider: BTreeMap<String, AgentProviderTools>,
    /// Paths hidden from this agent, besides those in `files.deny`.
    pub deny_paths: Vec<PathBuf>,
    /// Directories that this agent's tools and commands may read, besides those in `files.read`.
    pub read_paths: Vec<PathBuf>,
    /// Directories that this agent's tools and commands may read and change, besides those in `files.write`.
    pub write_paths: Vec<PathBuf>,
    /// Hosts that this agent does not fetch from, besides those in `web.block`.
    pub block_hosts: Vec<String>,
    /// Rules for this agent's shell commands that differ from `shell`.
    pub shell: ShellConfig,
    /// Limits of this agent's runs; if given, they replace `runs`. Left out: those of `runs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<RunLimits>,
}

/// Owner of an agent's context files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KindOfAgent {
    /// Each user has their own.
    Open,
    /// The agent's creator; a user has `USER.md`, and tools only read the others.
    Predefined,
}

impl From<KindOfAgent> for AgentKind {
    fn from(kind: KindOfAgent) -> Self {
        match kind {
            KindOfAgent::Open => Self::Open,
            KindOfAgent::Predefined => Self::Predefined,
        }
    }
}

/// The files that tools may reach, workspace quotas, and the history kept for undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// Paths hidden from every tool; a relative one is denied in every workspace. The data directory and
    /// `.clawsmith` are always denied.
    pub deny: Vec<PathBuf>,
    /// Directories beside the workspace that tools and commands of every agent may read, such as those of
    /// toolchains: `~/.cargo/bin`, `~/.rustup`. Commands find the programs in them. Files in them whose names
    /// mark secrets (`.npmrc`, `credentials.toml`, keys) are hidden from agents.
    pub read: Vec<PathBuf>,
    /// Directories beside the workspace that tools and commands of every agent may read and change.
    pub write: Vec<PathBuf>,
    /// The most bytes a workspace may hold. Left out: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// The most files and directories a workspace may hold. Left out: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_files: Option<u64>,
    /// Workspaces whose context files (`AGENTS.md`, `USER.md`, ...) and memory are in the store.
    pub context: ContextFiles,
    /// The most bytes in prompts of a project's own `AGENTS.md` and `CLAUDE.md`, from the workspace up to the
    /// repository's root; 0 for none.
    #[schemars(range(max = 1_048_576))]
    pub project_bytes: u32,
    /// Days for which changes of files can be undone.
    #[schemars(range(min = 1, max = 36500))]
    pub undo_days: u32,
    /// The most MiB of files kept for undo; beyond that the oldest are forgotten.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub undo_mib: u32,
}

/// Workspaces whose context files and memory are in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContextFiles {
    /// Those that Clawsmith made, below `workspaces` in the data directory. Elsewhere they are files.
    Managed,
    /// All; files of those names are out of reach.
    Store,
}

/// Custom tools: tools that are defined at run time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CustomToolsConfig {
    /// Administrators of tenants may define custom tools over HTTP. Such tools run programs on this host, so
    /// without this only the deployment's owner may.
    pub tenant_admins: bool,
    /// A directory whose `*.json` files define custom tools of `tenant`. Its writers define
    /// programs that run on this host. Read at start. Left out: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Servers at addresses that are not public that requests of custom tools may reach, such as
    /// `http://127.0.0.1:8080`.
    pub private_origins: Vec<String>,
}

/// The address of `clawsmith serve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// The address and port that it listens on: a loopback address, unless `tls` is set or `proxies` are named.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// The host names of the gateway, besides loopback ones: a request with another `Host` or `Origin` is
    /// refused.
    pub hosts: Vec<String>,
    /// Other names of agents in `model` of a request: each name with its agent.
    pub aliases: BTreeMap<String, String>,
    /// The certificate to speak TLS with. Left out: plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// The addresses of proxies that speak TLS on other machines. Without `tls`, connections to a
    /// non-loopback address are accepted from these alone.
    #[schemars(with = "Vec<String>")]
    pub proxies: Vec<IpAddr>,
    /// How many seconds requests and runs have to finish when it is told to end. A run that takes longer is parked, and
    /// the next start, or another gateway on the same store, goes on with it at once.
    #[schemars(range(max = 3600))]
    pub drain_secs: u32,
}

/// Traces for a collector of OpenTelemetry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// The collector's address for OTLP over HTTP, to which `/v1/traces` is added. Left out: nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The environment variable with a bearer token for the collector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The `service.name` of the spans.
    pub service: String,
    /// Send messages, arguments and results too, scrubbed.
    pub content: bool,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { endpoint: None, token_env: None, service: "clawsmith".to_owned(), content: false }
    }
}

/// The certificate of the gateway. Paths start from the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate in PEM, followed by its chain.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

/// Limits of calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Calls that one session may make in any 60 seconds; 0 means no limit.
    pub rate: RateConfig,
    /// The timeout of a call, in seconds, unless the tool has its own.
    #[schemars(range(min = 1))]
    pub timeout_secs: u32,
    /// Seconds that a tool may take to clean up after it was told to stop.
    pub grace_secs: u32,
    /// The most bytes of a result sent to the model; the whole is kept as an artifact.
    #[schemars(range(min = 256))]
    pub output_bytes: u32,
    /// The most bytes of arguments of a call.
    #[schemars(range(min = 2))]
    pub argument_bytes: u32,
    /// The most tokens of all listed tools; tools beyond it are found with `tool_search`. Left out: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_tokens: Option<u32>,
    /// Days for which whole results are kept.
    #[schemars(range(min = 1, max = 36500))]
    pub result_days: u32,
    /// The most MiB of whole results kept for a tenant; beyond that the oldest are forgotten.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub result_mib: u32,
    /// Commands of one session that may run in the background at a time; 0 allows none.
    #[schemars(range(max = 256))]
    pub background_commands: u32,
    /// The most bytes kept of a background command's output; the newest.
    #[schemars(range(min = 1024, max = 67_108_864))]
    pub background_bytes: u32,
}

/// Secrets beyond those recognised by their form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScrubConfig {
    /// Remove secrets from what models and users see. Logs, ledger and events stay scrubbed.
    pub output: bool,
    /// Environment variables whose values are secret. An unset variable is skipped; a value shorter than 6
    /// bytes is refused, since it could not be told from ordinary text.
    pub values_from_env: Vec<String>,
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
            skills: SkillsConfig::default(),
            gateway: GatewayConfig::default(),
            telemetry: TelemetryConfig::default(),
            settings: BTreeMap::new(),
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            rate: RateConfig::default(),
            timeout_secs: 60,
            grace_secs: 2,
            output_bytes: 32 * 1024,
            argument_bytes: 4 * 1024 * 1024,
            tool_tokens: None,
            result_days: 30,
            result_mib: 1024,
            background_commands: 8,
            background_bytes: 1 << 20,
        }
    }
}

impl Default for FilesConfig {
    fn default() -> Self {
        Self {
            deny: Vec::new(),
            read: Vec::new(),
            write: Vec::new(),
            quota_bytes: None,
            quota_files: None,
            context: ContextFiles::Managed,
            project_bytes: 32 * 1024,
            undo_days: 30,
            undo_mib: 1024,
        }
    }
}

impl FilesConfig {
    /// Returns the limits on changes kept for undo.
    pub fn undo_limits(&self) -> UndoLimits {
        UndoLimits { age: days(self.undo_days), bytes: mib(self.undo_mib) }
    }
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7373)),
            hosts: Vec::new(),
            aliases: BTreeMap::new(),
            tls: None,
            proxies: Vec::new(),
            drain_secs: 10,
        }
    }
}

impl Default for ScrubConfig {
    fn default() -> Self {
        Self { output: true, values_from_env: Vec::new() }
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

impl AgentConfig {
    /// The agent's tool rules.
    pub fn tools(&self) -> AgentTools {
        AgentTools {
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            also_allow: self.also_allow.clone(),
            by_provider: self.by_provider.clone(),
        }
    }
}

impl LimitsConfig {
    /// Converts the limits for the executor.
    pub fn for_calls(&self) -> Limits {
        Limits {
            timeout: Duration::from_secs(self.timeout_secs.into()),
            grace: Duration::from_secs(self.grace_secs.into()),
            output_bytes: usize::try_from(self.output_bytes).unwrap_or(usize::MAX),
            argument_bytes: usize::try_from(self.argument_bytes).unwrap_or(usize::MAX),
        }
    }

    /// Returns the limits of background commands and their output.
    pub fn for_processes(&self) -> ProcessLimits {
        ProcessLimits {
            per_session: usize::try_from(self.background_commands).unwrap_or(usize::MAX),
            output_bytes: usize::try_from(self.background_bytes).unwrap_or(usize::MAX),
            ..ProcessLimits::default()
        }
    }

    /// Returns the limits on kept whole results.
    pub fn artifact_keeping(&self) -> ArtifactKeeping {
        ArtifactKeeping { age: days(self.result_days), bytes: mib(self.result_mib) }
    }
}

fn days(days: u32) -> Duration {
    Duration::from_secs(u64::from(days) * 24 * 60 * 60)
}

fn mib(mib: u32) -> u64 {
    u64::from(mib) * 1024 * 1024
}

#[cfg(test)]
mod tests;
