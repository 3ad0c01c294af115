//! The agents that the configuration names, and those that were set up in the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{AgentCard, AgentDirectory};
use claw_core::store::AgentStore;
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

/// The agents of the configuration, and those of a store beside them.
pub struct StoredAgents {
    configured: ConfiguredAgents,
    store: Arc<dyn AgentStore>,
}

impl StoredAgents {
    /// Where both have an agent, the configured one is told.
    pub fn new(configured: ConfiguredAgents, store: Arc<dyn AgentStore>) -> Self {
        Self { configured, store }
    }
}

#[async_trait]
impl AgentDirectory for StoredAgents {
    async fn list(&self, tenant: &TenantId) -> Result<Vec<AgentCard>, ToolError> {
        let mut all = self.configured.0.get(tenant).cloned().unwrap_or_default();
        for agent in self.store.agents(tenant).await.map_err(ToolError::internal)? {
            all.entry(agent.id.clone()).or_insert_with(|| AgentCard {
                about: agent.setup.about().to_owned(),
                id: agent.id,
                name: agent.setup.name,
            });
        }
        Ok(all.into_values().collect())
    }
}

#[cfg(test)]
mod tests;
