//! `[agents.NAME]`: one agent, and its differences from the tools of all.

use std::collections::BTreeMap;
use std::path::PathBuf;

use claw_agent::RunLimits;
use claw_core::store::AgentKind;
use claw_policy::config::{AgentProviderTools, AgentTools};
use claw_policy::shell::ShellConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The model. Left out: that of `models`, or the provider's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The owner of its context files; a value in the store takes precedence. Left out: `open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<KindOfAgent>,
    /// Only these tools are kept, of those that `tools` keeps. Left out: all of them; an empty list: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// These tools are removed, besides those in `tools.deny`.
    pub deny: Vec<String>,
    /// These tools are added, besides those in `tools.also_allow`.
    pub also_allow: Vec<String>,
    /// Tool rules that apply when this agent uses a model of a provider, by the provider's name.
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
