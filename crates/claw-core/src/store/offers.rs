//! What an offer of tools is made from: what the session was offered before, what its agent uses.

use std::collections::HashMap;

use async_trait::async_trait;

use super::StoreError;
use crate::id::{AgentId, SessionKey, TenantId, ToolName};

/// Keeps what sessions were offered, and what agents use.
#[async_trait]
pub trait Offers: Send + Sync {
    /// The tools that a session was offered, in the order in which its model was told of them.
    async fn offered(&self, tenant: &TenantId, session: &SessionKey) -> Result<Vec<ToolName>, StoreError>;
    /// Puts these in place of what the session was offered. Whoever offers more gives those of before first.
    async fn set_offered(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        tools: &[ToolName],
    ) -> Result<(), StoreError>;
    /// Adds to how often an agent used each of these tools, all of them together. One that is named twice
    /// counts twice; a count that has reached the end stays there.
    async fn count_tool_uses(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        uses: &[(ToolName, u64)],
    ) -> Result<(), StoreError>;
    /// How often an agent used each tool; one that it never used is not among them.
    async fn tool_uses(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
    ) -> Result<HashMap<ToolName, u64>, StoreError>;
}
