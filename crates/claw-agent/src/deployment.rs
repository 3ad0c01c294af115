//! What runs are made with: store, road, models, and what is known of each agent.

use std::collections::HashMap;
use std::sync::Arc;

use claw_core::port::{Clock, Models};
use claw_core::store::{AgentKind, Store, StoreError};
use claw_core::{AgentId, TenantId};
use claw_policy::sandbox::Sandboxing;
use claw_registry::Executor;
use serde::Deserialize as _;
use serde_json::Value;
use smol_str::SmolStr;

use crate::{Chronicle, RunLimits};

/// Where an agent keeps its limits, in what the store calls its other configuration.
const RUNS: &str = "runs";

/// What runs are made with. Cheap to clone.
#[derive(Clone)]
pub struct Deployment {
    /// What is remembered.
    pub store: Arc<dyn Store>,
    /// The one road to a tool. Its listener is the chronicle.
    pub executor: Executor,
    /// Who can be asked.
    pub models: Arc<dyn Models>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Writes down what calls do.
    pub chronicle: Arc<Chronicle>,
    /// What the configuration says of agents.
    pub profiles: Arc<Profiles>,
}

/// What the configuration says of agents.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    /// Of all that are not named.
    pub common: Profile,
    /// Of some.
    pub agents: HashMap<AgentId, Profile>,
}

/// What an agent is to its runs.
#[derive(Debug, Clone)]
pub struct Profile {
    /// What people call it; `None` for its id.
    pub name: Option<String>,
    /// What it is for.
    pub about: String,
    /// Whose its context files are.
    pub kind: AgentKind,
    /// Who runs its model; `None` for the deployment's.
    pub provider: Option<SmolStr>,
    /// Its model; `None` for the deployment's.
    pub model: Option<SmolStr>,
    /// How far its runs may go.
    pub limits: RunLimits,
    /// How many tokens its tools may cost; `None` for no limit.
    pub tool_tokens: Option<usize>,
    /// Settings of its tools, by name.
    pub tools: Arc<Value>,
    /// Whose commands run in a sandbox, and in which.
    pub sandbox: Sandboxing,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: None,
            about: String::new(),
            kind: AgentKind::Open,
            provider: None,
            model: None,
            limits: RunLimits::default(),
            tool_tokens: None,
            tools: Arc::new(Value::Null),
            sandbox: Sandboxing::default(),
        }
    }
}

impl Deployment {
    /// What holds for this agent now: what was stored of it lies over what the configuration says.
    pub async fn profile(&self, tenant: &TenantId, agent: &AgentId) -> Result<Profile, StoreError> {
        let profiles = &self.profiles;
        let mut profile = profiles.agents.get(agent).unwrap_or(&profiles.common).clone();
        let Some(stored) = self.store.agent(tenant, agent).await? else { return Ok(profile) };
        profile.name = Some(stored.setup.name);
        profile.kind = stored.setup.kind;
        profile.provider = stored.setup.provider.or(profile.provider);
        profile.model = stored.setup.model.or(profile.model);
        if let Some(limits) = stored.setup.other_config.get(RUNS) {
            match RunLimits::deserialize(limits) {
                Ok(limits) => profile.limits = limits,
                Err(error) => {
                    tracing::warn!(%agent, %error, "the agent's `runs` do not read; the defaults hold");
                }
            }
        }
        Ok(profile)
    }
}

impl std::fmt::Debug for Deployment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deployment").field("executor", &self.executor).finish_non_exhaustive()
    }
}
