//! The agents that the configuration names.

use std::collections::BTreeMap;

use async_trait::async_trait;
use claw_core::port::{AgentCard, AgentDirectory};
use claw_core::tool::ToolError;
use claw_core::{AgentId, TenantId};

/// A fixed list of agents.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredAgents(BTreeMap<TenantId, BTreeMap<AgentId, AgentCard>>);

impl FromIterator<(TenantId, AgentCard)> for ConfiguredAgents {
    fn from_iter<I: IntoIterator<Item = (TenantId, AgentCard)>>(agents: I) -> Self {
        let mut tenants = BTreeMap::<_, BTreeMap<_, _>>::new();
        for (tenant, card) in agents {
            tenants.entry(tenant).or_default().insert(card.id.clone(), card);
        }
        Self(tenants)
    }
}

#[async_trait]
impl AgentDirectory for ConfiguredAgents {
    async fn list(&self, tenant: &TenantId) -> Result<Vec<AgentCard>, ToolError> {
        Ok(self.0.get(tenant).map(|agents| agents.values().cloned().collect()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
