//! Which agents there are.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, TenantId};
use crate::tool::ToolError;

/// The agents of the caller's tenant.
#[async_trait]
pub trait Agents: Send + Sync {
    /// All of them, by id.
    async fn list(&self) -> Result<Vec<AgentCard>, ToolError>;
}

/// The agents of every tenant.
#[async_trait]
pub trait AgentDirectory: Send + Sync {
    /// Those of one tenant, by id.
    async fn list(&self, tenant: &TenantId) -> Result<Vec<AgentCard>, ToolError>;
}

/// What others may know of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCard {
    /// Its id.
    pub id: AgentId,
    /// What people call it.
    pub name: String,
    /// What it is for.
    pub about: String,
}
