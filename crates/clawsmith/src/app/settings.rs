//! A tenant's settings of built-in tools, its secrets, and its own tool rules.

use claw_core::did_you_mean::nearest;
use claw_core::port::Clock as _;
use claw_core::store::{Layer, SecretCard, SecretPlace, Settings, StoredSettings, TenantChange};
use claw_core::tool::Need;
use claw_core::{AgentId, SecretName, ToolName};
use claw_host::SystemClock;
pub use claw_policy::config::TenantTools;
use claw_policy::lint::Finding;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::rule_check::{check_tenant_rules, new_findings};
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
        check(tool.as_str(), &settings)?;
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
                .hint("`clawsmith tools list --all` lists all of them")),
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
                "names that begin with `{prefix}` are reserved for other commands"
            ))
            .hint("`clawsmith mcp` sets the values of MCP servers"));
        }
        let length = value.expose_secret().len();
        if !(1..=LONGEST_SECRET).contains(&length) {
            return Err(Error::invalid(format!(
                "a secret must have 1 to {LONGEST_SECRET} bytes; this one has {length}"
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
            return Err(
                Error::invalid("it is removed together with its MCP server").hint("`clawsmith mcp remove`")
            );
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
        check_tenant_rules(rules)?;
        let before = self.setup().config().policy();
        let mut after = before.clone();
        after.tenants.insert(self.tenant().clone(), rules.clone());
        let found = new_findings(before, after).await?;
        let rules = serde_json::to_value(rules)
            .map_err(|error| Error::failed("the rules cannot be written").because(error))?;
        let change = TenantChange { policy: Some(rules), ..TenantChange::default() };
        self.edit_tenant(self.tenant(), change).await?;
        Ok(found)
    }
}

/// The value that a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingKind {
    Text,
    Texts,
}

/// The settings of one tool that a tenant can write. A tool that works with files has `deny_paths` besides.
const SETTINGS: [(&str, &str, SettingKind); 3] = [
    ("datetime", "timezone", SettingKind::Text),
    ("web_fetch", "block", SettingKind::Texts),
    ("web_search", "order", SettingKind::Texts),
];

/// Refuses settings that the tool would not read: a guard that is misspelt guards nothing.
pub(crate) fn check(tool: &str, settings: &Settings) -> Result<(), Error> {
    let tools = catalogue();
    let meta = tools.find(tool).or_else(|| tools.find_absent(tool));
    let name = meta.map_or(tool, |meta| meta.name.as_str());
    let has_files = meta.is_some_and(|meta| meta.needs.contains(&Need::Files));
    let own = SETTINGS.iter().filter(|(of, ..)| *of == name).map(|(_, key, kind)| (*key, *kind));
    let known: Vec<(&str, SettingKind)> =
        own.chain(has_files.then_some(("deny_paths", SettingKind::Texts))).collect();
    for (key, value) in settings {
        let Some((_, kind)) = known.iter().find(|(known, _)| known == key) else {
            let error = Error::invalid(format!("`{name}` has no setting `{key}`"));
            let names: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
            return Err(match (nearest(key, names.iter().copied()), names.is_empty()) {
                (Some(near), _) => error.hint(format!("did you mean `{near}`?")),
                (None, false) => error.hint(format!("it has {}", names.join(", "))),
                (None, true) => error.hint("this tool has no settings"),
            });
        };
        let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
        let (fits, expected) = match kind {
            SettingKind::Text => (is_text(value), "a text"),
            SettingKind::Texts => {
                (value.as_array().is_some_and(|texts| texts.iter().all(is_text)), "a list of texts")
            }
        };
        if !fits {
            let shown: String = value.to_string().chars().take(80).collect();
            return Err(Error::invalid(format!("`{key}` of `{name}` must be {expected}, not `{shown}`")));
        }
    }
    if name == "datetime"
        && let Some(zone) = settings.get("timezone").and_then(Value::as_str)
    {
        jiff::tz::TimeZone::get(zone).map_err(|error| {
            Error::invalid(format!("`{zone}` is not a time zone"))
                .because(error)
                .hint("such as `Europe/Berlin`")
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_settings(tool: &str, settings: Value, says: Option<&str>) {
        let Value::Object(settings) = settings else { panic!("no object") };
        match (check(tool, &settings), says) {
            (Ok(()), None) => {}
            (Err(error), Some(says)) => assert!(error.what().contains(says), "{error}"),
            (found, says) => panic!("{tool} {settings:?}: {found:?} instead of {says:?}"),
        }
    }

    #[test]
    fn a_setting_that_a_tool_would_not_read_is_refused() {
        check_settings("web_fetch", json!({ "block": ["a.example"] }), None);
        check_settings("web_fetch", json!({ "blocks": ["a.example"] }), Some("no setting `blocks`"));
        check_settings("web_fetch", json!({ "block": "a.example" }), Some("a list of texts"));
        check_settings("web_fetch", json!({ "block": [1] }), Some("a list of texts"));
        check_settings("web_search", json!({ "order": ["brave"] }), None);
        check_settings("web_search", json!({ "origins": [] }), Some("no setting `origins`"));
        check_settings("datetime", json!({ "timezone": "Europe/Berlin" }), None);
        check_settings("datetime", json!({ "timezone": "Europe/Nowhere" }), Some("not a time zone"));
        check_settings("datetime", json!({ "timezone": 1 }), Some("a text"));
        check_settings("read_file", json!({ "deny_paths": ["private"] }), None);
        check_settings("read_file", json!({ "deny_paths": [null] }), Some("a list of texts"));
        check_settings("read_file", json!({}), None);
    }
}
