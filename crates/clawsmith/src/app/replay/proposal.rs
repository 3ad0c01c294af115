//! The rules that a replay judges by, in place of those in force.

use std::path::Path;

use claw_policy::config::TenantTools;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::app::access::{Permission, Visitor};
use crate::app::{App, Error, Setup};
use crate::config::{Loaded, Surroundings};

/// Rules to judge recorded calls by, in place of those in force.
#[derive(Debug, Clone)]
pub enum Proposal {
    /// Another configuration of the deployment.
    Deployment(Box<Setup>),
    /// Other rules of the tenant, over those of the deployment.
    Tenant(TenantTools),
}

/// Rules as they are written, in TOML.
#[derive(Debug, Clone)]
pub enum ProposedRules {
    /// All of them.
    Whole(String),
    /// A change: its keys replace those of the rules in force.
    Change(String),
}

impl App {
    /// Reads the rules that a visitor of this tenant proposes: a configuration in the deployment's own tenant, else rules
    /// of the tenant.
    pub async fn proposal(&self, visitor: &Visitor, rules: ProposedRules) -> Result<Proposal, Error> {
        visitor.may(Permission::ReadPolicy)?;
        if self.tenant() != self.setup().tenant() {
            return Ok(Proposal::Tenant(self.proposed_tenant_rules(rules).await?));
        }
        let setup = match rules {
            ProposedRules::Whole(text) => self.proposed(text)?,
            ProposedRules::Change(text) => self.changed(Path::new("change.toml"), text)?,
        };
        Ok(Proposal::Deployment(Box::new(setup)))
    }

    /// Returns the configuration in force with a change: tables are merged key by key, other values replaced. It is not
    /// applied.
    pub fn changed(&self, path: &Path, text: String) -> Result<Setup, Error> {
        let around = Surroundings { directory: self.setup().around.directory.clone(), variables: Vec::new() };
        let alone = Loaded::proposed(path, text.clone(), &around);
        let change = match (toml::from_str(&text), &alone) {
            (Ok(change), _) => change,
            (Err(_), Err(problems)) => return Err(problems.clone().into()),
            (Err(error), Ok(_)) => return Err(Error::invalid(error.message())),
        };
        let unwritable = |error: toml::ser::Error| {
            Error::failed("the current configuration cannot be written as TOML").because(error)
        };
        let mut table = Table::try_from(self.setup().config()).map_err(unwritable)?;
        merge(&mut table, change);
        let merged = Loaded::proposed(path, toml::to_string(&table).map_err(unwritable)?, &around);
        let mut setup = self.setup().clone();
        setup.loaded.config = match (merged, alone) {
            (Ok(merged), _) => merged.config,
            // The places of its problems are those of the change.
            (Err(_), Err(problems)) => return Err(problems.into()),
            (Err(problems), Ok(_)) => {
                let problem =
                    problems.0.into_iter().next().map(|problem| problem.message).unwrap_or_default();
                return Err(Error::invalid(format!(
                    "with the change, the configuration is invalid: {problem}"
                ))
                .hint("change the keys that it depends on, too"));
            }
        };
        Ok(setup)
    }

    async fn proposed_tenant_rules(&self, rules: ProposedRules) -> Result<TenantTools, Error> {
        match rules {
            ProposedRules::Whole(text) => of_tenant(&text),
            ProposedRules::Change(text) => {
                // Alone first, so that an error is the change's.
                of_tenant::<TenantTools>(&text)?;
                let unwritable = |error: toml::ser::Error| {
                    Error::failed("the tenant's rules cannot be written as TOML").because(error)
                };
                let mut table = Table::try_from(self.tenant_rules().await?).map_err(unwritable)?;
                merge(&mut table, of_tenant(&text)?);
                of_tenant(&toml::to_string(&table).map_err(unwritable)?)
            }
        }
    }
}

/// Merges a change into a table: tables key by key, other values whole.
fn merge(below: &mut Table, change: Table) {
    for (key, value) in change {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(change)) => merge(below, change),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn of_tenant<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| {
        let message = error.message();
        Error::invalid(format!("the tenant's rules are invalid: {message}"))
            .hint("a tenant has the lists `allow` and `deny`, such as `deny = [\"exec\"]`")
    })
}
