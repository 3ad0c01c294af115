//! The agents that were set up, beside those of the configuration file.
//!
//! An agent has a version that rises with every change and never falls, its removal included; who writes says
//! which version they saw, and is told when it is another one by now.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::{Changes, StoreError};
use crate::id::{AgentId, TenantId};
use crate::port::UnixMillis;

/// Whose an agent's context files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// Each user shapes their own.
    Open,
    /// Whoever set it up; a user has `USER.md`.
    Predefined,
}

/// What an agent is. What is written is all of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentSetup {
    /// What people call it.
    pub name: String,
    /// Whose its context files are.
    pub kind: AgentKind,
    /// Who runs its model; `None` for whoever runs the deployment's.
    pub provider: Option<SmolStr>,
    /// Its model; `None` for the deployment's.
    pub model: Option<SmolStr>,
    /// How its tools differ from those of all agents; `null` where they do not.
    pub policy: Value,
    /// Whatever else parts of the system keep of it.
    pub other_config: Map<String, Value>,
}

impl AgentSetup {
    /// What the agent is for, in a sentence; kept among `other_config`.
    pub fn about(&self) -> &str {
        self.other_config.get("about").and_then(Value::as_str).unwrap_or_default()
    }
}

/// A stored agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agent {
    /// Whose it is.
    pub tenant: TenantId,
    /// Its id.
    pub id: AgentId,
    /// What it is.
    #[serde(flatten)]
    pub setup: AgentSetup,
    /// Which version this is.
    pub version: u64,
    /// When it was added.
    pub created: UnixMillis,
    /// When it was written last.
    pub updated: UnixMillis,
}

/// Keeps agents; a change is told as [`Topic::Agents`](super::Topic::Agents).
#[async_trait]
pub trait AgentStore: Changes {
    /// One agent; `None` where this tenant has none of that id.
    async fn agent(&self, tenant: &TenantId, id: &AgentId) -> Result<Option<Agent>, StoreError>;
    /// The agents of a tenant, by id.
    async fn agents(&self, tenant: &TenantId) -> Result<Vec<Agent>, StoreError>;
    /// Writes an agent whose version is `seen`, or that is not there where `seen` is `None`; gives it as it is
    /// then. [`StoreError::Stale`], and nothing written, where it is another by now.
    async fn put_agent(
        &self,
        (tenant, id): (&TenantId, &AgentId),
        setup: AgentSetup,
        seen: Option<u64>,
        at: UnixMillis,
    ) -> Result<Agent, StoreError>;
    /// Removes an agent whose version is `seen`. [`StoreError::Stale`] where it is another by now, or gone. Of
    /// what it was nothing is kept but its version.
    async fn remove_agent(
        &self,
        tenant: &TenantId,
        id: &AgentId,
        seen: u64,
        at: UnixMillis,
    ) -> Result<(), StoreError>;
}
