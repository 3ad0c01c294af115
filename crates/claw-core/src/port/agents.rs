//! Agents: the one place that says what an agent is.
//!
//! The configuration file and the store may both describe an agent. [`ResolvedAgent::resolve`] merges the
//! two, and everything that needs an agent's name, kind, provider, model or limits asks an
//! [`AgentDirectory`].

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use smol_str::SmolStr;

use crate::id::{AgentId, TenantId};
use crate::store::{AgentKind, AgentSetup};
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
    /// The agents of one tenant, by id.
    async fn list(&self, tenant: &TenantId) -> Result<Vec<ResolvedAgent>, ToolError>;
    /// Returns one agent; `None` if this tenant has no agent with that id.
    async fn agent(&self, tenant: &TenantId, id: &AgentId) -> Result<Option<ResolvedAgent>, ToolError>;
}

/// The part of an agent that other agents may know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCard {
    /// The agent's id.
    pub id: AgentId,
    /// The name that people use.
    pub name: String,
    /// The agent's purpose, in a sentence.
    pub about: String,
}

/// The description of an agent in one source. `None` leaves a field to the other source or to the default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentEntry {
    /// The name that people use.
    pub name: Option<String>,
    /// The agent's purpose, in a sentence.
    pub about: Option<String>,
    /// The owner of its context files.
    pub kind: Option<AgentKind>,
    /// The provider of its model.
    pub provider: Option<SmolStr>,
    /// Its model.
    pub model: Option<SmolStr>,
    /// Limits of its runs, by name.
    pub limits: Map<String, Value>,
}

/// The key of an agent's run limits in [`AgentSetup::other_config`].
const RUNS: &str = "runs";

impl From<&AgentSetup> for AgentEntry {
    fn from(setup: &AgentSetup) -> Self {
        Self {
            name: Some(setup.name.clone()),
            about: Some(setup.about().to_owned()).filter(|about| !about.is_empty()),
            kind: Some(setup.kind),
            provider: setup.provider.clone(),
            model: setup.model.clone(),
            limits: setup.other_config.get(RUNS).and_then(Value::as_object).cloned().unwrap_or_default(),
        }
    }
}

/// An agent as every part of the system sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResolvedAgent {
    /// The agent's id.
    pub id: AgentId,
    /// The name that people use.
    pub name: String,
    /// The agent's purpose, in a sentence.
    pub about: String,
    /// The owner of its context files.
    pub kind: AgentKind,
    /// The provider of its model; `None` for the deployment's.
    pub provider: Option<SmolStr>,
    /// Its model; `None` for the deployment's or the provider's.
    pub model: Option<SmolStr>,
    /// Limits of its runs that differ from the deployment's, by name.
    pub limits: Map<String, Value>,
    /// The sources that describe it.
    pub from: AgentSource,
}

/// The sources that describe an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentSource {
    /// The configuration file alone.
    Configuration,
    /// The store alone.
    Store,
    /// Both; the store's entry wins field by field.
    Both,
}

impl ResolvedAgent {
    /// Merges the configuration's entry and the store's, which wins field by field; `None` if neither
    /// describes the agent.
    pub fn resolve(
        id: &AgentId,
        configured: Option<&AgentEntry>,
        stored: Option<&AgentEntry>,
    ) -> Option<Self> {
        let from = match (configured, stored) {
            (None, None) => return None,
            (Some(_), None) => AgentSource::Configuration,
            (None, Some(_)) => AgentSource::Store,
            (Some(_), Some(_)) => AgentSource::Both,
        };
        let nothing = AgentEntry::default();
        let (under, over) = (configured.unwrap_or(&nothing), stored.unwrap_or(&nothing));
        let mut limits = under.limits.clone();
        limits.extend(over.limits.clone());
        Some(Self {
            id: id.clone(),
            name: over.name.clone().or_else(|| under.name.clone()).unwrap_or_else(|| id.to_string()),
            about: over.about.clone().or_else(|| under.about.clone()).unwrap_or_default(),
            kind: over.kind.or(under.kind).unwrap_or(AgentKind::Open),
            provider: over.provider.clone().or_else(|| under.provider.clone()),
            model: over.model.clone().or_else(|| under.model.clone()),
            limits,
            from,
        })
    }

    /// The part that other agents may know.
    pub fn card(self) -> AgentCard {
        AgentCard { id: self.id, name: self.name, about: self.about }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(fields: [Option<&str>; 4], limits: Value) -> AgentEntry {
        let [name, about, provider, model] = fields;
        AgentEntry {
            name: name.map(str::to_owned),
            about: about.map(str::to_owned),
            kind: None,
            provider: provider.map(Into::into),
            model: model.map(Into::into),
            limits: limits.as_object().cloned().unwrap_or_default(),
        }
    }

    #[test]
    fn the_stored_entry_wins_field_by_field() {
        let id = AgentId::new("a").unwrap();
        let file = entry(
            [Some("File"), Some("of the file"), Some("openai"), None],
            json!({ "calls": 1, "seconds": 2 }),
        );
        let stored = entry([Some("Store"), None, None, Some("m")], json!({ "calls": 3 }));
        let agent = ResolvedAgent::resolve(&id, Some(&file), Some(&stored)).unwrap();
        assert_eq!((agent.name.as_str(), agent.about.as_str()), ("Store", "of the file"));
        assert_eq!((agent.provider.as_deref(), agent.model.as_deref()), (Some("openai"), Some("m")));
        assert_eq!(Value::Object(agent.limits), json!({ "calls": 3, "seconds": 2 }));
        assert_eq!(agent.from, AgentSource::Both);
        assert_eq!(ResolvedAgent::resolve(&id, None, None), None);
        let named = ResolvedAgent::resolve(&id, Some(&AgentEntry::default()), None).unwrap();
        assert_eq!((named.name.as_str(), named.kind), ("a", AgentKind::Open));
    }
}
