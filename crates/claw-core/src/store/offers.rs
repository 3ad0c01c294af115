//! The inputs of an offer of tools: the session's earlier offer, and the tools its agent uses.

use std::collections::HashMap;

use async_trait::async_trait;

use super::StoreError;
use crate::id::{AgentId, SessionKey, TenantId, ToolName};

/// Stores the offers of sessions, and the tool uses of agents.
#[async_trait]
pub trait Offers: Send + Sync {
    /// Returns the tools that a session was offered, in the order in which its model got them.
    async fn offered(&self, tenant: &TenantId, session: &SessionKey) -> Result<Vec<ToolName>, StoreError>;
    /// Replaces the tools that the session was offered. To extend an offer, pass the earlier tools first.
    async fn set_offered(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        tools: &[ToolName],
    ) -> Result<(), StoreError>;
    /// Adds to an agent's use counts of these tools, in one transaction. A tool named twice counts twice; a
    /// count stops at its maximum.
    async fn count_tool_uses(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        uses: &[(ToolName, u64)],
    ) -> Result<(), StoreError>;
    /// Returns the use counts of an agent's tools; unused ones are missing.
    async fn tool_uses(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
    ) -> Result<HashMap<ToolName, u64>, StoreError>;
}
