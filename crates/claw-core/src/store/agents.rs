//! Stored agents, beside those of the configuration file.
//!
//! An agent has a version that rises with every change, including its removal, and never falls. A writer
//! states the version it has seen, and gets an error if the stored one differs.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::{Changes, StoreError};
use crate::id::{AgentId, TenantId};
use crate::port::UnixMillis;

/// The owner of an agent's context files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// Each user has their own.
    Open,
    /// The agent's administrator; a user has `USER.md`.
    Predefined,
}

/// The settings of an agent. A write replaces all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentSetup {
    /// The name for people.
    pub name: String,
    /// The owner of its context files.
    pub kind: AgentKind,
    /// The provider of its model; `None` for the deployment's.
    pub provider: Option<SmolStr>,
    /// Its model; `None` for the deployment's.
    pub model: Option<SmolStr>,
    /// Its tool rules, over those of all agents; `null` if it has none.
    pub policy: Value,
    /// Further settings that parts of the system store for it.
    pub other_config: Map<String, Value>,
}

impl AgentSetup {
    /// Returns the agent's purpose, in a sentence; stored in `other_config`.
    pub fn about(&self) -> &str {
        self.other_config.get("about").and_then(Value::as_str).unwrap_or_default()
    }
}

/// The new settings of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentWrite {
    /// All its settings.
    pub setup: AgentSetup,
    /// The version that the writer has seen; `None` to add the agent.
    pub seen: Option<u64>,
}

/// A stored agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agent {
    /// The tenant that owns the agent.
    pub tenant: TenantId,
    /// Its id.
    pub id: AgentId,
    /// Its settings.
    #[serde(flatten)]
    pub setup: AgentSetup,
    /// Its version.
    pub version: u64,
    /// The time it was added.
    pub created: UnixMillis,
    /// The time of the last change.
    pub updated: UnixMillis,
}

/// Stores agents; a change is announced as [`Topic::Agents`](super::Topic::Agents).
#[async_trait]
pub trait AgentStore: Changes {
    /// Returns one agent; `None` if this tenant has no agent with that id.
    async fn agent(&self, tenant: &TenantId, id: &AgentId) -> Result<Option<Agent>, StoreError>;
    /// Returns the agents of a tenant, by id.
    async fn agents(&self, tenant: &TenantId) -> Result<Vec<Agent>, StoreError>;
    /// Writes an agent whose version is `write.seen`, or adds it if that is `None`; returns its new state.
    /// [`StoreError::Stale`], and nothing written, if the stored version differs.
    async fn put_agent(
        &self,
        tenant: &TenantId,
        id: &AgentId,
        write: AgentWrite,
        at: UnixMillis,
    ) -> Result<Agent, StoreError>;
    /// Removes an agent whose version is `seen`. [`StoreError::Stale`] if the stored version differs or the
    /// agent is gone. Nothing but its version is kept.
    async fn remove_agent(
        &self,
        tenant: &TenantId,
        id: &AgentId,
        seen: u64,
        at: UnixMillis,
    ) -> Result<(), StoreError>;
}
