//! Agents: one list from the configuration file and the store, and the resulting policy.
//!
//! For name, kind, provider, model and limits the store's entry wins field by field
//! ([`ResolvedAgent::resolve`](claw_core::port::ResolvedAgent::resolve)). For tools, denies add up and a stored allow
//! list only narrows. Agents of the configuration file belong to the deployment's own tenant.

use std::collections::BTreeMap;
use std::sync::Arc;

use claw_core::did_you_mean::nearest;
use claw_core::port::{AgentDirectory as _, AgentEntry, AgentSource, Clock as _, ResolvedAgent};
use claw_core::store::{Agent, AgentKind, AgentSetup, AgentWrite, StoreError};
use claw_core::tool::ToolError;
use claw_core::{AgentId, TenantId};
use claw_host::{AgentResolver, SystemClock};
use claw_policy::config::{ANY_AGENT, AgentTools, PolicyConfig, TenantTools};
use claw_policy::lint::Finding;
use claw_policy::pipeline::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::rule_check::{check_agent_rules, new_findings};
use super::{App, Error, Setup};
use crate::config::{AgentConfig, unknown_provider};

/// An agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AgentCard {
    /// Id of the agent.
    pub id: AgentId,
    /// The display name.
    pub name: String,
    /// The agent's purpose, in a sentence.
    pub about: String,
    /// Where it is set up: the configuration file, the store, or both.
    #[schemars(with = "String")]
    pub from: AgentSource,
    /// The owner of its context files: each user, or the person who set it up.
    pub kind: AgentKind,
    /// The provider of its model; `null` for the deployment's.
    pub provider: Option<String>,
    /// The agent's model; `null` for the deployment's or the provider's.
    pub model: Option<String>,
    /// The version of its entry in the store; `null` for an agent of the configuration file alone.
    pub version: Option<u64>,
}

impl From<&AgentView> for AgentCard {
    fn from(view: &AgentView) -> Self {
        let agent = view.agent.clone();
        Self {
            id: agent.id,
            name: agent.name,
            about: agent.about,
            from: agent.from,
            kind: agent.kind,
            provider: agent.provider.map(Into::into),
            model: agent.model.map(Into::into),
            version: view.version,
        }
    }
}

/// A change of an agent; a field that is left out stays.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct AgentChange {
    /// The display name.
    pub name: Option<String>,
    /// The agent's purpose, in a sentence.
    pub about: Option<String>,
    /// The owner of its context files.
    pub kind: Option<AgentKind>,
    /// The provider of its model; an empty text for the deployment's.
    pub provider: Option<String>,
    /// The agent's model; an empty text for the deployment's.
    pub model: Option<String>,
    /// The agent's tool rules.
    pub tools: Option<AgentTools>,
}

impl AgentChange {
    /// A new agent with this change.
    pub fn of_new(self, id: &AgentId) -> Result<AgentSetup, Error> {
        self.over(AgentSetup {
            name: id.to_string(),
            kind: AgentKind::Open,
            provider: None,
            model: None,
            policy: Value::Null,
            other_config: Map::new(),
        })
    }

    /// The agent as it is with this change.
    pub fn over(self, mut setup: AgentSetup) -> Result<AgentSetup, Error> {
        let given = |text: String| Some(text.trim()).filter(|text| !text.is_empty()).map(Into::into);
        setup.name = self.name.unwrap_or(setup.name);
        if let Some(about) = self.about {
            setup.other_config.insert("about".to_owned(), about.into());
        }
        setup.kind = self.kind.unwrap_or(setup.kind);
        if let Some(provider) = self.provider {
            setup.provider = given(provider);
        }
        if let Some(model) = self.model {
            setup.model = given(model);
        }
        if let Some(tools) = self.tools {
            setup.policy = if tools == AgentTools::default() { Value::Null } else { json!(tools) };
        }
        tools_of(&setup)?;
        Ok(setup)
    }
}

impl Setup {
    /// The agents of the configuration file.
    pub(crate) fn agent_resolver(&self) -> AgentResolver {
        let config = self.config();
        let agents = config.agents.iter().filter_map(|(id, agent)| {
            Some((config.tenant.clone(), AgentId::new(id).ok()?, agent_entry(agent)))
        });
        agents.collect()
    }

    /// Returns the provider of an agent's model, if configuration or store name one.
    pub fn provider_of(&self, agent: Option<&AgentView>) -> Option<String> {
        let own = agent.and_then(|view| view.agent.provider.as_ref()).map(ToString::to_string);
        own.or_else(|| self.config().models.provider.clone())
    }

    /// Returns the agents of the configuration file, by id, for use without a store.
    pub fn agents(&self) -> Vec<AgentView> {
        let agents = self.config().agents.iter().filter_map(|(id, agent)| {
            let resolved = ResolvedAgent::resolve(&AgentId::new(id).ok()?, Some(&agent_entry(agent)), None)?;
            let (configured, stored, version) = (Some(agent.tools()), None, None);
            Some(AgentView { agent: resolved, configured, stored, version })
        });
        agents.collect()
    }
}

fn agent_entry(agent: &AgentConfig) -> AgentEntry {
    let limits = agent.runs.as_ref().and_then(|runs| serde_json::to_value(runs).ok());
    AgentEntry {
        name: agent.name.clone(),
        about: Some(agent.about.clone()).filter(|about| !about.is_empty()),
        kind: agent.kind.map(Into::into),
        provider: agent.provider.as_deref().map(Into::into),
        model: agent.model.as_deref().map(Into::into),
        limits: match limits {
            Some(Value::Object(limits)) => limits,
            _ => Map::new(),
        },
    }
}

/// An agent with everything that is known of it.
#[derive(Debug, Clone)]
pub struct AgentView {
    /// The resolved agent.
    pub agent: ResolvedAgent,
    /// The tool rules of the configuration file.
    pub configured: Option<AgentTools>,
    /// The tool rules of the store.
    pub stored: Option<AgentTools>,
    /// The version of the stored entry.
    pub version: Option<u64>,
}

impl AgentView {
    /// The agent as JSON, with its tool rules and those that narrow them.
    pub fn json(&self) -> Value {
        let mut shown = json!(self.agent);
        if let (Value::Object(shown), Value::Object(rules)) = (&mut shown, json!(self.rules())) {
            shown.extend(rules);
        }
        shown["narrowed_by"] = json!(self.narrowing());
        shown
    }

    /// Returns the agent's tool rules: those of the configuration file, or of the store if the file has none.
    pub fn rules(&self) -> AgentTools {
        self.configured.clone().or_else(|| self.stored.clone()).unwrap_or_default()
    }

    /// The stored rules that narrow those of the configuration file.
    pub fn narrowing(&self) -> Option<&AgentTools> {
        self.stored.as_ref().filter(|stored| self.configured.is_some() && **stored != AgentTools::default())
    }
}

impl App {
    /// The agents of the configuration file and of the store.
    pub(crate) fn agent_resolver(&self) -> Arc<AgentResolver> {
        Arc::new(self.setup.agent_resolver().over(Arc::clone(&self.store) as _))
    }

    /// The agents of a tenant, by id.
    pub async fn agents(&self, tenant: &TenantId) -> Result<Vec<AgentView>, Error> {
        let stored = self.store.agents(tenant).await.map_err(unreadable)?;
        let stored: BTreeMap<AgentId, Agent> =
            stored.into_iter().map(|agent| (agent.id.clone(), agent)).collect();
        let resolved = self.agent_resolver().list(tenant).await;
        let resolved = resolved.map_err(|error| Error::failed("the agents cannot be read").because(error))?;
        resolved.into_iter().map(|agent| self.agent_view(tenant, agent, &stored)).collect()
    }

    /// Returns an agent; `None` if the tenant has none of that id.
    pub async fn agent(&self, tenant: &TenantId, id: &AgentId) -> Result<Option<AgentView>, Error> {
        Ok(self.agents(tenant).await?.into_iter().find(|view| view.agent.id == *id))
    }

    fn agent_view(
        &self,
        tenant: &TenantId,
        agent: ResolvedAgent,
        stored: &BTreeMap<AgentId, Agent>,
    ) -> Result<AgentView, Error> {
        let config = self.setup.config();
        let configured = config.agents.get(agent.id.as_str()).filter(|_| *tenant == config.tenant);
        let stored = stored.get(&agent.id);
        let rules = stored.map(|stored| stored_tools(&stored.id, &stored.setup)).transpose()?;
        Ok(AgentView {
            configured: configured.map(AgentConfig::tools),
            stored: rules,
            version: stored.map(|stored| stored.version),
            agent,
        })
    }

    /// Refuses an agent that the tenant of this application does not have. The configuration file's agents belong to the
    /// deployment's own tenant.
    pub async fn must_have_agent(&self, agent: &str) -> Result<(), Error> {
        if agent == ANY_AGENT {
            return Ok(());
        }
        let unreadable = |error: ToolError| Error::failed("the agents cannot be read").because(error);
        let agents = self.agent_resolver();
        if let Ok(id) = AgentId::new(agent)
            && agents.agent(self.tenant(), &id).await.map_err(unreadable)?.is_some()
        {
            return Ok(());
        }
        let all = agents.list(self.tenant()).await.map_err(unreadable)?;
        Err(not_set_up(agent, all.iter().map(|agent| agent.id.as_str())))
    }

    /// The tool policy of every tenant: the configuration file's, with the rules of tenants and agents from the store.
    pub async fn policy_config(&self) -> Result<PolicyConfig, Error> {
        let mut config = self.setup.config().policy();
        let tenants = self.store.tenants().await.map_err(unreadable)?;
        let own = self.setup.tenant().clone();
        let mut ids: Vec<TenantId> = tenants.iter().map(|tenant| tenant.id.clone()).collect();
        if !ids.contains(&own) {
            ids.push(own.clone());
        }
        for id in ids {
            let mut rules = match tenants.iter().find(|tenant| tenant.id == id) {
                Some(tenant) => tenant_tools(&id, &tenant.policy)?,
                None => TenantTools::default(),
            };
            for agent in self.store.agents(&id).await.map_err(unreadable)? {
                let tools = stored_tools(&agent.id, &agent.setup)?;
                // An agent that only the store has is the deployment's own as much as one of the file.
                match id == own && !config.agents.contains_key(agent.id.as_str()) {
                    true => config.agents.insert(agent.id.to_string(), tools),
                    false => rules.agents.insert(agent.id.to_string(), tools),
                };
            }
            if rules != TenantTools::default() {
                config.tenants.insert(id, rules);
            }
        }
        Ok(config)
    }

    /// Returns the compiled policy.
    pub async fn policy(&self) -> Result<Policy, Error> {
        Policy::compile(&self.policy_config().await?).map_err(|error| Error::invalid(error.to_string()))
    }

    /// Refuses a name that is or contains a known secret: names are stored and shown as they are.
    pub(super) async fn must_hold_no_secret(&self, what: &str, name: &str) -> Result<(), Error> {
        match self.scrubber(self.tenant()).await?.knows(name) {
            true => Err(Error::invalid(format!("{what} holds a secret")).hint("use another one")),
            false => Ok(()),
        }
    }

    /// Adds an agent to the store; returns the lint findings about its rules.
    pub async fn add_agent(&self, id: &AgentId, setup: AgentSetup) -> Result<Vec<Finding>, Error> {
        self.must_be_storable(id)?;
        self.must_hold_no_secret("the agent's id", id.as_str()).await?;
        self.must_hold_no_secret("the agent's name", &setup.name).await?;
        let doubts = self.check_agent(id, &setup).await?;
        let put = self
            .store
            .put_agent(self.tenant(), id, AgentWrite { setup, seen: None }, SystemClock.now())
            .await;
        put.map_err(|error| match error {
            StoreError::Stale { .. } => Error::conflict(format!("the agent `{id}` already exists"))
                .hint(format!("clawsmith agent edit {id}")),
            error => error.into(),
        })?;
        Ok(doubts)
    }

    /// Changes an agent of the store; returns the lint findings about its rules. If `seen` is given, the
    /// agent must have that version.
    pub async fn edit_agent(
        &self,
        id: &AgentId,
        seen: Option<u64>,
        change: impl FnOnce(AgentSetup) -> Result<AgentSetup, Error>,
    ) -> Result<Vec<Finding>, Error> {
        self.must_be_storable(id)?;
        let agent = self.stored_agent(id).await?;
        let setup = change(agent.setup)?;
        self.must_hold_no_secret("the agent's name", &setup.name).await?;
        let doubts = self.check_agent(id, &setup).await?;
        let seen = Some(seen.unwrap_or(agent.version));
        self.store.put_agent(self.tenant(), id, AgentWrite { setup, seen }, SystemClock.now()).await?;
        Ok(doubts)
    }

    /// Removes an agent from the store. Its sessions and documents are kept. If `seen` is given, the agent must have that
    /// version.
    pub async fn remove_agent(&self, id: &AgentId, seen: Option<u64>) -> Result<(), Error> {
        self.must_be_storable(id)?;
        let agent = self.stored_agent(id).await?;
        let seen = seen.unwrap_or(agent.version);
        Ok(self.store.remove_agent(self.tenant(), id, seen, SystemClock.now()).await?)
    }

    async fn stored_agent(&self, id: &AgentId) -> Result<Agent, Error> {
        if let Some(agent) = self.store.agent(self.tenant(), id).await? {
            return Ok(agent);
        }
        let views = self.agents(self.tenant()).await?;
        Err(no_agent(id, views.iter().map(|view| view.agent.id.as_str())))
    }

    /// Refuses to store an agent of the configuration file: it is changed there.
    fn must_be_storable(&self, id: &AgentId) -> Result<(), Error> {
        let is_own = self.tenant() == self.setup.tenant();
        if is_own && self.setup.config().agents.contains_key(id.as_str()) {
            let error = Error::invalid(format!("agent `{id}` is set up in the configuration file"));
            return Err(error.hint("change it there; `clawsmith config show` says which file that is"));
        }
        if id.as_str() == ANY_AGENT {
            let error = Error::invalid(format!("`{id}` stands for all agents that are not set up"));
            return Err(error.hint("choose another id"));
        }
        Ok(())
    }

    /// Refuses rules that are too long or cannot work as written; returns findings about doubtful ones.
    async fn check_agent(&self, id: &AgentId, setup: &AgentSetup) -> Result<Vec<Finding>, Error> {
        let config = self.setup.config();
        if let Some(why) = unknown_provider(&config.models, setup.provider.as_deref().unwrap_or_default()) {
            return Err(Error::invalid(format!("`--provider`: {why}")));
        }
        let rules = tools_of(setup)?;
        check_agent_rules(&rules)?;
        let before = config.policy();
        let mut after = before.clone();
        after.agents.insert(id.to_string(), rules);
        new_findings(before, after).await
    }
}

/// The error for an agent that a tenant does not have.
pub(super) fn not_set_up<'a>(agent: &str, ids: impl Iterator<Item = &'a str>) -> Error {
    let hint = match nearest(agent, ids) {
        Some(near) => format!("did you mean `{near}`? `clawsmith agent list` lists all agents"),
        None => format!(
            "add it with `clawsmith agent add {agent}`; `clawsmith agent list` lists the agents, and \
             `{ANY_AGENT}` stands for all others"
        ),
    };
    Error::not_found(format!("agent `{agent}` is not set up")).hint(hint)
}

/// The error for an agent that does not exist.
pub fn no_agent<'a>(id: &AgentId, ids: impl Iterator<Item = &'a str>) -> Error {
    let error = Error::not_found(format!("there is no agent `{id}`"));
    match nearest(id.as_str(), ids) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("clawsmith agent list"),
    }
}

/// The name of an agent's kind, as configuration and JSON have it.
pub const fn agent_kind_name(kind: AgentKind) -> &'static str {
    match kind {
        AgentKind::Open => "open",
        AgentKind::Predefined => "predefined",
    }
}

/// The tool rules of a stored agent.
pub fn tools_of(setup: &AgentSetup) -> Result<AgentTools, Error> {
    match &setup.policy {
        Value::Null => Ok(AgentTools::default()),
        policy => serde_json::from_value(policy.clone())
            .map_err(|error| Error::failed("its policy is invalid").because(error)),
    }
}

fn stored_tools(id: &AgentId, setup: &AgentSetup) -> Result<AgentTools, Error> {
    tools_of(setup)
        .map_err(|error| Error::failed(format!("agent `{id}` of the store cannot be used: {error}")))
}

fn tenant_tools(id: &TenantId, policy: &Value) -> Result<TenantTools, Error> {
    match policy {
        Value::Null => Ok(TenantTools::default()),
        policy => serde_json::from_value(policy.clone()).map_err(|error| {
            Error::failed(format!("the rules of tenant `{id}` cannot be read")).because(error)
        }),
    }
}

fn unreadable(error: StoreError) -> Error {
    Error::failed("the agents cannot be read").because(error)
}
