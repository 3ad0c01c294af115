//! The parts of a deployment that runs need: store, executor, models, and the profile of each agent.

use std::collections::HashMap;
use std::sync::Arc;

use claw_core::port::{AgentDirectory, Clock, Models, ResolvedAgent, Traces};
use claw_core::provenance::UntrustedMemory;
use claw_core::store::{AgentKind, Store, StoreError};
use claw_core::{AgentId, TenantId};
use claw_policy::sandbox_mode::Sandboxing;
use claw_registry::Executor;
use serde::Deserialize as _;
use serde_json::Value;
use smol_str::SmolStr;

use crate::{Chronicle, ProjectFiles, RunLimits};

/// The parts of a deployment that runs need. Cheap to clone.
#[derive(Clone)]
pub struct Deployment {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The executor of tools. Its listener is the chronicle.
    pub executor: Executor,
    /// The models.
    pub models: Arc<dyn Models>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Writes the events of calls to their sessions.
    pub chronicle: Arc<Chronicle>,
    /// The directory of agents.
    pub agents: Arc<dyn AgentDirectory>,
    /// The profile that all agents share, and model overrides for some.
    pub profiles: Arc<Profiles>,
    /// Takes the spans of runs; `None` if no traces are wanted.
    pub traces: Option<Arc<dyn Traces>>,
}

/// The profile that all agents share, and model overrides for some.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    /// The profile of an agent without settings of its own.
    pub common: Profile,
    /// Models that replace those of agents as long as this process runs.
    pub instead: HashMap<(TenantId, AgentId), ModelChoice>,
}

/// A model, by provider and name; `None` leaves the choice to the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelChoice {
    /// The provider.
    pub provider: Option<SmolStr>,
    /// The model.
    pub model: Option<SmolStr>,
}

impl ModelChoice {
    /// Parses `PROVIDER` or `PROVIDER/MODEL`.
    pub fn parse(text: &str) -> Self {
        match text.split_once('/') {
            Some((provider, model)) => Self { provider: Some(provider.into()), model: Some(model.into()) },
            None => Self { provider: Some(text.into()), model: None },
        }
    }
}

/// The settings of an agent for its runs.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The name for people; `None` for its id.
    pub name: Option<String>,
    /// Its purpose.
    pub about: String,
    /// The owner of its context files.
    pub kind: AgentKind,
    /// The provider of its model; `None` for the deployment's.
    pub provider: Option<SmolStr>,
    /// Its model; `None` for the deployment's.
    pub model: Option<SmolStr>,
    /// The limits of its runs.
    pub limits: RunLimits,
    /// The most tokens of its tools' definitions; `None` for no limit.
    pub tool_tokens: Option<usize>,
    /// The most tokens of the list of skills in its prompt.
    pub skill_tokens: usize,
    /// The use of untrusted memory documents in its prompt.
    pub untrusted_memory: UntrustedMemory,
    /// The project's files in its prompt; `None` for none.
    pub project: Option<ProjectFiles>,
    /// Settings of its tools, by name.
    pub tools: Arc<Value>,
    /// The rules that decide whether its commands run in a sandbox, and in which.
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
            skill_tokens: 1_500,
            untrusted_memory: UntrustedMemory::default(),
            project: None,
            tools: Arc::new(Value::Null),
            sandbox: Sandboxing::default(),
        }
    }
}

impl Deployment {
    /// Returns the present profile of an agent.
    pub async fn profile(&self, tenant: &TenantId, agent: &AgentId) -> Result<Profile, StoreError> {
        let mut profile = self.profiles.common.clone();
        let found = self.agents.agent(tenant, agent).await.map_err(|error| StoreError::Database {
            what: "could not read the agent",
            why: error.to_string(),
            transient: true,
        })?;
        if let Some(agent) = found {
            profile.limits = limits(&agent, &profile.limits);
            profile.name = Some(agent.name);
            profile.about = agent.about;
            profile.kind = agent.kind;
            profile.provider = agent.provider.or(profile.provider);
            profile.model = agent.model.or(profile.model);
        }
        if let Some(instead) = self.profiles.instead.get(&(tenant.clone(), agent.clone())) {
            profile.provider = instead.provider.clone().or(profile.provider);
            profile.model = instead.model.clone();
        }
        Ok(profile)
    }
}

/// Returns an agent's limits, field by field over the deployment's.
fn limits(agent: &ResolvedAgent, common: &RunLimits) -> RunLimits {
    if agent.limits.is_empty() {
        return common.clone();
    }
    let merged = serde_json::to_value(common).map(|mut merged| {
        if let Value::Object(fields) = &mut merged {
            fields.extend(agent.limits.clone());
        }
        merged
    });
    match merged.and_then(RunLimits::deserialize) {
        Ok(limits) => limits,
        Err(error) => {
            tracing::warn!(agent = %agent.id, %error, "the agent's `runs` settings are invalid; using the deployment's");
            common.clone()
        }
    }
}

impl std::fmt::Debug for Deployment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deployment").field("executor", &self.executor).finish_non_exhaustive()
    }
}
