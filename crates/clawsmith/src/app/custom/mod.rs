//! Custom tools: tools that an administrator defines at run time, without a rebuild or a restart.
//!
//! [`App`] checks and stores definitions. `CustomToolSource` reads them for each caller, so that a change
//! reaches every running session of every node with its next call. Tools that start programs on the host are
//! the deployment owner's to define; see [`App::may_define_tools`].

mod document;
mod files;
mod guarded_http;
mod source;

use std::path::Path;
use std::sync::Arc;

use claw_core::port::Clock as _;
use claw_core::store::{
    AccessRole, CustomToolAction, CustomToolCard, CustomToolDefinition, CustomToolPlace, StoreError,
};
use claw_core::tool::{Caller, Spec, Unavailable};
use claw_core::{AgentId, TenantId, ToolName};
use claw_host::SystemClock;
use claw_policy::shell::{Decision, Invocation};
use claw_registry::{CallerTools as _, Registry, ToolLayer};
use claw_schema::validate::Validator;
use claw_store::vault::CustomToolValues;
use claw_tools::custom;
use serde_json::Value;

pub use self::document::{CustomToolDocument, CustomToolView};
pub(crate) use self::guarded_http::guarded_http;
use super::access::{Permission, Visitor};
use super::{App, Error, real};

impl App {
    /// Checks that a visitor may see, define and change custom tools: the owner of the deployment, and
    /// administrators of tenants if `custom_tools.tenant_admins` is set.
    pub fn may_define_tools(&self, visitor: &Visitor) -> Result<(), Error> {
        visitor.may(Permission::DefineTools)?;
        let owns = visitor.tenant == *self.setup().tenant() && visitor.role >= AccessRole::Owner;
        if owns || self.setup().config().custom_tools.tenant_admins {
            return Ok(());
        }
        Err(Error::invalid(
            "custom tools run programs on the host, so only the deployment's owner may define them",
        )
        .hint("ask the owner, who can also set `custom_tools.tenant_admins`")
        .refusing())
    }

    /// The tenant's custom tools and those of its agents, sorted.
    pub async fn custom_tools(&self) -> Result<Vec<CustomToolCard>, Error> {
        let tools = self.store.custom_tools(self.tenant()).await?;
        Ok(tools.into_iter().map(|tool| tool.card).collect())
    }

    /// The names of the tenant's custom tools, and of those that files define for it.
    pub(super) async fn custom_tool_names(&self) -> Result<Vec<ToolName>, Error> {
        let mut names: Vec<ToolName> =
            self.custom_tools().await?.into_iter().map(|card| card.place.name).collect();
        if self.tenant() == self.setup().tenant() {
            names.extend(files::defined(self)?.into_iter().map(|defined| defined.card.place.name));
        }
        Ok(names)
    }

    /// Returns the custom tool that a caller gets by this name, the agent's before the tenant's; `None` if there is
    /// none.
    pub async fn custom_tool_of(&self, caller: &Caller, name: &str) -> Result<Option<CustomToolCard>, Error> {
        let cards = self.of_tenant(&caller.tenant).custom_tools().await?;
        let mut named: Vec<_> = cards.into_iter().filter(|card| card.place.name.as_str() == name).collect();
        named.retain(|card| card.place.agent.as_ref().is_none_or(|agent| *agent == caller.agent));
        // That of every agent last.
        named.sort_by_key(|card| card.place.agent.is_none());
        Ok(named.into_iter().next())
    }

    /// Returns a custom tool of the tenant or of one agent.
    pub async fn custom_tool(&self, name: &str, agent: Option<&str>) -> Result<CustomToolCard, Error> {
        let place = self.custom_place(name, agent)?;
        let found = self.store.custom_tool(&place).await?;
        found.map(|tool| tool.card).ok_or_else(|| no_tool(&place))
    }

    /// Stores a new custom tool.
    pub async fn add_custom_tool(&self, document: CustomToolDocument) -> Result<CustomToolCard, Error> {
        let (card, values) = self.checked(document).await?;
        self.check_custom_name(&card.place.name).await?;
        self.put(card, &values, None).await
    }

    /// Changes the fields of a custom tool that `change`, a JSON object, names. `null` resets a field to its
    /// default; variables and headers that are not named keep their values. `seen` is the version that the
    /// writer read; without it, the change applies to the current version.
    pub async fn edit_custom_tool(
        &self,
        name: &str,
        agent: Option<&str>,
        change: Value,
        seen: Option<u64>,
    ) -> Result<CustomToolCard, Error> {
        let place = self.custom_place(name, agent)?;
        let vault = self.vault().await?;
        let found = vault.custom_tool(&place).await?;
        let (card, values) = found.ok_or_else(|| no_tool(&place))?;
        if seen.is_some_and(|seen| seen != card.version) {
            return Err(changed_since(&StoreError::Stale { path: name.to_owned(), now: Some(card.version) }));
        }
        let document = document::changed(&card, &values, change)?;
        let (mut new, values) = self.checked(document).await?;
        if new.place != place {
            return Err(Error::invalid("the name and the agent of a tool cannot be changed")
                .hint("add another, and remove this one"));
        }
        let version = card.version;
        new.version = version;
        self.put(new, &values, Some(version)).await
    }

    /// Enables or disables a custom tool.
    pub async fn enable_custom_tool(
        &self,
        name: &str,
        agent: Option<&str>,
        enabled: bool,
    ) -> Result<CustomToolCard, Error> {
        let place = self.custom_place(name, agent)?;
        match self.store.enable_custom_tool(&place, enabled, SystemClock.now()).await? {
            true => self.custom_tool(name, agent).await,
            false => Err(no_tool(&place)),
        }
    }

    /// Removes a custom tool.
    pub async fn remove_custom_tool(
        &self,
        name: &str,
        agent: Option<&str>,
        seen: Option<u64>,
    ) -> Result<(), Error> {
        let place = self.custom_place(name, agent)?;
        match self.store.remove_custom_tool(&place, seen).await.map_err(|error| changed_since(&error))? {
            true => Ok(()),
            false => Err(no_tool(&place)),
        }
    }

    /// The registry of the deployment with the tools of the program, and with the custom tools and the tools of MCP servers
    /// that a caller has, for listings. Runs nothing and connects to nothing.
    pub async fn registry_of(&self, caller: &Caller) -> Result<Arc<Registry>, Error> {
        let registry = Registry::over(self.setup().registry());
        let layers = self.layers_of(caller).await?;
        // Tools of the program first, as in a toolbox: no tool of a caller takes the place of one.
        for tool in self.own_tools.iter().chain(layers.iter().flat_map(|layer| layer.tools())) {
            if let Err(error) = registry.register(Arc::clone(tool)) {
                tracing::warn!(%error, "a tool is left out");
            }
        }
        Ok(Arc::new(registry))
    }

    /// The specifications of the custom tools and the tools of MCP servers that a caller has, sorted.
    pub async fn caller_specs(&self, caller: &Caller) -> Result<Vec<Spec>, Error> {
        let layers = self.layers_of(caller).await?;
        let tools = layers.iter().flat_map(|layer| layer.tools());
        let mut specs: Vec<Spec> = tools.map(|tool| tool.spec().clone()).collect();
        specs.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(specs)
    }

    /// The tools that a caller has beside the built-in ones.
    async fn layers_of(&self, caller: &Caller) -> Result<[Arc<ToolLayer>; 2], Error> {
        let failed = |why: Unavailable| Error::failed(why.0);
        let custom = source(self)?.layer(caller).await.map_err(failed)?;
        let of_servers = self.mcp_hub()?.tools().layer(caller).await.map_err(failed)?;
        Ok([custom, of_servers])
    }

    /// The grants that a failed call of a custom tool lacked, as far as its output tells: `network`, or a path of this
    /// machine that is outside of the workspace and not granted.
    pub(crate) async fn missing_grants(
        &self,
        caller: &Caller,
        tool: &str,
        exit: Option<i32>,
        output: &str,
    ) -> Result<Vec<String>, Error> {
        let Ok(name) = ToolName::new(tool) else { return Ok(Vec::new()) };
        let place = |agent| CustomToolPlace { tenant: caller.tenant.clone(), agent, name: name.clone() };
        let own = self.store.custom_tool(&place(Some(caller.agent.clone()))).await?;
        let found = match own {
            Some(found) => Some(found),
            None => self.store.custom_tool(&place(None)).await?,
        };
        let Some(found) = found else { return Ok(Vec::new()) };
        let definition = &found.card.definition;
        let lacks = |missing: &String| {
            let path = Path::new(missing);
            let granted = || definition.grants.paths.iter().any(|granted| path.starts_with(&granted.path));
            let there = || path.ancestors().take(2).any(|path| path.parent().is_some() && path.exists());
            missing == "network" || (there() && !path.starts_with(&caller.workspace) && !granted())
        };
        let missing = custom::missing_grants(definition, exit, output);
        Ok(missing.into_iter().filter(lacks).collect())
    }

    async fn put(
        &self,
        mut card: CustomToolCard,
        values: &CustomToolValues,
        seen: Option<u64>,
    ) -> Result<CustomToolCard, Error> {
        let vault = self.vault().await?;
        card.at = SystemClock.now();
        card.variables = values.names();
        let stored = vault.put_custom_tool(card.clone(), values, seen).await;
        card.version = stored.map_err(|error| match (seen, &error) {
            (None, StoreError::Stale { now: Some(_), .. }) => {
                Error::conflict(format!("the custom tool `{}` already exists", card.place.name))
                    .hint(format!("clawsmith tools edit {}", card.place.name))
            }
            _ => changed_since(&error),
        })?;
        Ok(card)
    }

    /// Checks a definition as far as possible without calling it.
    async fn checked(
        &self,
        document: CustomToolDocument,
    ) -> Result<(CustomToolCard, CustomToolValues), Error> {
        let (card, values) = document.read(self.tenant())?;
        if let Some(agent) = &card.place.agent {
            self.must_have_agent(agent.as_str()).await?;
        }
        check(&card.place, &card.definition)?;
        self.check_grants(&card.definition)?;
        self.check_variables(&values)?;
        Ok((card, values))
    }

    /// Refuses to grant paths that agents must never reach.
    fn check_grants(&self, definition: &CustomToolDefinition) -> Result<(), Error> {
        let data = real(&self.setup().data_dir()?);
        for granted in &definition.grants.paths {
            let path = real(Path::new(&granted.path));
            if path.starts_with(&data) || data.starts_with(&path) {
                return Err(Error::invalid(format!(
                    "`grants.paths` has `{}`, which contains the data directory or is inside it",
                    granted.path
                ))
                .hint("grant another directory"));
            }
        }
        Ok(())
    }

    /// Refuses variables that change what programs run, such as `PATH` or `LD_PRELOAD`.
    fn check_variables(&self, values: &CustomToolValues) -> Result<(), Error> {
        let rules = self.setup().command_rules()?.all;
        for (name, _) in values.env() {
            let env = [(name.to_owned(), "value".to_owned())];
            let verdict = Invocation { text: "true", env: &env, input: None }.analyse(&rules.rules);
            if verdict.decision != Decision::Allow {
                let why = verdict.finding().map_or_else(String::new, |finding| format!(": {finding}"));
                return Err(Error::invalid(format!("the variable `{name}` cannot be given to a tool{why}"))
                    .hint("use another variable"));
            }
        }
        Ok(())
    }

    fn custom_place(&self, name: &str, agent: Option<&str>) -> Result<CustomToolPlace, Error> {
        place(self.tenant(), name, agent)
    }
}

/// Checks a definition without a store.
fn check(place: &CustomToolPlace, definition: &CustomToolDefinition) -> Result<(), Error> {
    custom::check(place, definition).map_err(|error| Error::invalid(error.to_string()))?;
    Validator::compile(&definition.parameters)
        .map_err(|error| Error::invalid(format!("`parameters` is not a usable JSON Schema: {error}")))?;
    Ok(())
}

fn place(tenant: &TenantId, name: &str, agent: Option<&str>) -> Result<CustomToolPlace, Error> {
    let invalid = |error: claw_core::InvalidId| Error::invalid(error.to_string());
    let agent = agent.map(AgentId::new).transpose().map_err(invalid)?;
    Ok(CustomToolPlace { tenant: tenant.clone(), agent, name: ToolName::new(name).map_err(invalid)? })
}

fn no_tool(place: &CustomToolPlace) -> Error {
    let of = place.agent.as_ref().map_or_else(String::new, |agent| format!(" of agent `{agent}`"));
    Error::not_found(format!("there is no custom tool `{}`{of}", place.name))
        .hint("clawsmith tools list --section custom")
}

fn changed_since(error: &StoreError) -> Error {
    match error {
        StoreError::Stale { .. } => Error::conflict(error.to_string()),
        error => Error::failed(error.to_string()),
    }
}

/// Describes a custom tool's action in a line for people.
pub fn shown_action(definition: &CustomToolDefinition) -> String {
    match &definition.action {
        CustomToolAction::Command { template, .. } => template.clone(),
        CustomToolAction::Argv { words, .. } => words.join(" "),
        CustomToolAction::Http(http) => format!("{} {}", http.method, http.url),
    }
}

/// The source of the tools that `App` gives to callers.
pub(crate) fn source(app: &App) -> Result<Arc<source::CustomToolSource>, Error> {
    source::CustomToolSource::new(app).map(Arc::new)
}

/// Refuses to start with files whose tools have names that begin like the tools of an MCP server.
pub(crate) async fn check_file_names(app: &App) -> Result<(), Error> {
    files::check_names(app).await
}
