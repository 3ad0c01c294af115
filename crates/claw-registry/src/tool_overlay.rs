//! Tools that a tenant or one of its agents has on top of the common ones.
//!
//! An agent's tools shadow its tenant's, and those shadow the common ones. Nothing is copied: the layers are
//! stacked when one of them is set, so that finding a caller's registry is a lookup.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use claw_core::tool::Caller;
use claw_core::{AgentId, TenantId};

use crate::Registry;

/// The callers that an overlay is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OverlayScope {
    /// All agents of a tenant.
    Tenant(TenantId),
    /// A single agent of a tenant.
    Agent(TenantId, AgentId),
}

/// The overlays of all tenants.
#[derive(Default)]
pub(crate) struct Overlays(ArcSwap<HashMap<TenantId, Arc<OfTenant>>>);

/// The overlays of one tenant.
#[derive(Clone, Default)]
struct OfTenant {
    /// For all its agents.
    tenant: Option<Arc<Registry>>,
    agents: HashMap<AgentId, OfAgent>,
}

/// The overlay of one agent.
#[derive(Clone)]
struct OfAgent {
    /// As set, over the common tools.
    set: Arc<Registry>,
    /// The same over the tenant's overlay, if there is one.
    stacked: Arc<Registry>,
}

impl Overlays {
    /// Sets an overlay; `None` removes it.
    pub(crate) fn set(&self, common: &Arc<Registry>, scope: &OverlayScope, overlay: Option<&Arc<Registry>>) {
        self.0.rcu(|all| {
            let mut all = HashMap::clone(all);
            let (OverlayScope::Tenant(tenant) | OverlayScope::Agent(tenant, _)) = scope;
            let mut of_tenant =
                all.get(tenant).map(|of_tenant| OfTenant::clone(of_tenant)).unwrap_or_default();
            of_tenant.set(common, scope, overlay);
            match of_tenant.is_empty() {
                true => all.remove(tenant),
                false => all.insert(tenant.clone(), Arc::new(of_tenant)),
            };
            all
        });
    }

    /// The caller's tools: the agent's overlay, else the tenant's, else the common ones.
    pub(crate) fn of(&self, common: &Arc<Registry>, caller: &Caller) -> Arc<Registry> {
        let all = self.0.load();
        let Some(of_tenant) = (!all.is_empty()).then(|| all.get(&caller.tenant)).flatten() else {
            return Arc::clone(common);
        };
        let agent = of_tenant.agents.get(&caller.agent).map(|of_agent| &of_agent.stacked);
        Arc::clone(agent.or(of_tenant.tenant.as_ref()).unwrap_or(common))
    }
}

impl OfTenant {
    fn set(&mut self, common: &Arc<Registry>, scope: &OverlayScope, overlay: Option<&Arc<Registry>>) {
        match (scope, overlay) {
            (OverlayScope::Tenant(_), overlay) => self.tenant = overlay.cloned(),
            (OverlayScope::Agent(_, agent), Some(overlay)) => {
                let (set, stacked) = (Arc::clone(overlay), Arc::clone(overlay));
                self.agents.insert(agent.clone(), OfAgent { set, stacked });
            }
            (OverlayScope::Agent(_, agent), None) => {
                self.agents.remove(agent);
            }
        }
        for OfAgent { set, stacked } in self.agents.values_mut() {
            *stacked = match &self.tenant {
                Some(tenant) => set.moved(common, tenant),
                None => Arc::clone(set),
            };
        }
    }

    fn is_empty(&self) -> bool {
        self.tenant.is_none() && self.agents.is_empty()
    }
}
