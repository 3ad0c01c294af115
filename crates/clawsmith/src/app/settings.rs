//! A tenant's settings of built-in tools, its secrets, and its own tool rules.

use claw_core::port::Clock as _;
use claw_core::store::{Layer, SecretCard, SecretPlace, Settings, StoredSettings, TenantChange};
use claw_core::{AgentId, SecretName, ToolName};
use claw_host::SystemClock;
pub use claw_policy::config::TenantTools;
use claw_policy::lint::{Finding, Severity, lint};
use secrecy::{ExposeSecret as _, SecretString};

use super::{App, Error, catalogue};

/// The longest secret, in bytes.
const LONGEST_SECRET: usize = 64 * 1024;

/// Beginnings of secrets' names that are not set by hand.
const RESERVED: [&str; 1] = ["mcp."];

impl App {
    /// The settings of built-in tools that this tenant has.
    pub async fn stored_settings(&self) -> Result<Vec<StoredSettings>, Error> {
        Ok(self.store.settings(&Layer::Tenant(self.tenant().clone())).await?)
    }

    /// Writes this tenant's settings of a built-in tool, replacing those before.
    pub async fn put_tool_settings(&self, tool: &ToolName, settings: Settings) -> Result<(), Error> {
        let layer = self.settings_of(tool)?;
        Ok(self.store.put_settings(&layer, tool, settings, SystemClock.now()).await?)
    }

    /// Removes this tenant's settings of a built-in tool: those of the deployment apply again.
    pub async fn remove_tool_settings(&self, tool: &ToolName) -> Result<(), Error> {
        let layer = self.settings_of(tool)?;
        match self.store.remove_settings(&layer, tool).await? {
            true => Ok(()),
            false => Err(Error::not_found(format!("tenant `{}` has no settings of `{tool}`", self.tenant()))),
        }
    }

    fn settings_of(&self, tool: &ToolName) -> Result<Layer, Error> {
        let tools = catalogue();
        match tools.find(tool.as_str()).or_else(|| tools.find_absent(tool.as_str())) {
            Some(_) => Ok(Layer::Tenant(self.tenant().clone())),
            None => Err(Error::not_found(format!("there is no built-in tool `{tool}`"))
                .hint("`clawsmith tools list --all` has all of them")),
        }
    }

    /// The names of this tenant's secrets.
    pub async fn secret_cards(&self) -> Result<Vec<SecretCard>, Error> {
        Ok(self.store.secrets(self.tenant()).await?)
    }

    /// Seals a secret of this tenant, for one agent or for all, replacing the one before.
    pub async fn put_secret(
        &self,
        name: SecretName,
        agent: Option<AgentId>,
        value: &SecretString,
    ) -> Result<(), Error> {
        if let Some(prefix) = RESERVED.iter().find(|prefix| name.as_str().starts_with(**prefix)) {
            return Err(Error::invalid(format!(
                "names that begin with `{prefix}` are kept for their own commands"
            ))
            .hint("`clawsmith mcp` sets the values of MCP servers"));
        }
        let length = value.expose_secret().len();
        if !(1..=LONGEST_SECRET).contains(&length) {
            return Err(Error::invalid(format!(
                "a secret has 1 to {LONGEST_SECRET} bytes, and this {length}"
            )));
        }
        if let Some(agent) = &agent {
            self.must_have_agent(agent.as_str()).await?;
        }
        let place = SecretPlace { tenant: self.tenant().clone(), agent, name };
        Ok(self.vault().await?.put_secret(&place, value, SystemClock.now()).await?)
    }

    /// Removes a secret of this tenant.
    pub async fn remove_secret(&self, name: SecretName, agent: Option<AgentId>) -> Result<(), Error> {
        if RESERVED.iter().any(|prefix| name.as_str().starts_with(prefix)) {
            return Err(Error::invalid("it goes with the MCP server that it belongs to")
                .hint("`clawsmith mcp remove`"));
        }
        let place = SecretPlace { tenant: self.tenant().clone(), agent, name };
        match self.store.remove_secret(&place).await? {
            true => Ok(()),
            false => Err(Error::not_found(format!("there is no secret `{}`", place.name))
                .hint("clawsmith secrets list")),
        }
    }

    /// The tool rules of this tenant, over the deployment's.
    pub async fn tenant_rules(&self) -> Result<TenantTools, Error> {
        let tenant = self.store.tenant(self.tenant()).await?;
        match tenant.map(|tenant| tenant.policy) {
            None | Some(serde_json::Value::Null) => Ok(TenantTools::default()),
            Some(rules) => serde_json::from_value(rules)
                .map_err(|error| Error::failed("the tenant's rules cannot be read").because(error)),
        }
    }

    /// Writes the tool rules of this tenant and returns the new lint findings. Tenant rules can only narrow
    /// the deployment's.
    pub async fn set_tenant_rules(&self, rules: &TenantTools) -> Result<Vec<Finding>, Error> {
        let mut policy = self.setup().config().policy();
        let before = lint(&policy, &catalogue());
        policy.tenants.insert(self.tenant().clone(), rules.clone());
        let mut found = lint(&policy, &catalogue());
        found.retain(|finding| !before.contains(finding));
        if let Some(error) = found.iter().find(|finding| finding.severity == Severity::Error) {
            return Err(
                Error::invalid(error.without_severity().to_string()).hint("clawsmith tools list --all")
            );
        }
        let rules = serde_json::to_value(rules)
            .map_err(|error| Error::failed("the rules cannot be written").because(error))?;
        let change = TenantChange { policy: Some(rules), ..TenantChange::default() };
        self.edit_tenant(self.tenant(), change).await?;
        Ok(found)
    }
}
