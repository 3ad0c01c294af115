//! The agent directory: agents of the configuration and of the store, resolved into one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{AgentDirectory, AgentEntry, ResolvedAgent};
use claw_core::store::AgentStore;
use claw_core::tool::ToolError;
use claw_core::{AgentId, TenantId};

/// The agents of a configuration, and of a store over them.
#[derive(Clone, Default)]
pub struct AgentResolver {
    configured: BTreeMap<TenantId, BTreeMap<AgentId, AgentEntry>>,
    store: Option<Arc<dyn AgentStore>>,
}

impl AgentResolver {
    /// Adds a store, whose entries win field by field.
    #[must_use]
    pub fn over(mut self, store: Arc<dyn AgentStore>) -> Self {
        self.store = Some(store);
        self
    }
}

impl FromIterator<(TenantId, AgentId, AgentEntry)> for AgentResolver {
    fn from_iter<I: IntoIterator<Item = (TenantId, AgentId, AgentEntry)>>(agents: I) -> Self {
        let mut configured = BTreeMap::<_, BTreeMap<_, _>>::new();
        for (tenant, id, entry) in agents {
            configured.entry(tenant).or_default().insert(id, entry);
        }
        Self { configured, store: None }
    }
}

#[async_trait]
impl AgentDirectory for AgentResolver {
    async fn list(&self, tenant: &TenantId) -> Result<Vec<ResolvedAgent>, ToolError> {
        let nothing = BTreeMap::new();
        let configured = self.configured.get(tenant).unwrap_or(&nothing);
        let stored: BTreeMap<AgentId, AgentEntry> = match &self.store {
            Some(store) => {
                let stored = store.agents(tenant).await.map_err(ToolError::internal)?;
                stored.into_iter().map(|agent| (agent.id, AgentEntry::from(&agent.setup))).collect()
            }
            None => BTreeMap::new(),
        };
        let ids: BTreeSet<&AgentId> = configured.keys().chain(stored.keys()).collect();
        Ok(ids
            .into_iter()
            .filter_map(|id| ResolvedAgent::resolve(id, configured.get(id), stored.get(id)))
            .collect())
    }

    async fn agent(&self, tenant: &TenantId, id: &AgentId) -> Result<Option<ResolvedAgent>, ToolError> {
        let configured = self.configured.get(tenant).and_then(|agents| agents.get(id));
        let stored = match &self.store {
            Some(store) => store.agent(tenant, id).await.map_err(ToolError::internal)?,
            None => None,
        };
        let stored = stored.map(|agent| AgentEntry::from(&agent.setup));
        Ok(ResolvedAgent::resolve(id, configured, stored.as_ref()))
    }
}

impl std::fmt::Debug for AgentResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentResolver").field("configured", &self.configured).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
