//! Sealed values: opening them, and keeping them out of everything that is shown.

use std::sync::Arc;

use claw_core::TenantId;
use claw_core::store::StoreError;
use claw_policy::scrub::{Scrubber, Value as SecretValue};
use claw_registry::{CallScrubber, Executor, Scrubbers};
use claw_store::Vault;
use secrecy::ExposeSecret as _;

use super::{App, Error, Setup};

impl Setup {
    /// The scrubbers of a toolbox, with the values of `scrub.values_from_env`.
    pub fn scrubbers(&self) -> Result<Scrubbers, Error> {
        let open = || Scrubbers::with_open_output();
        let scrubbers = if self.config().scrub.output { Scrubbers::default() } else { open() };
        for (name, value) in self.environment_secrets() {
            scrubbers.add(&value).map_err(|error| unusable(&name, error))?;
        }
        Ok(scrubbers)
    }

    /// Returns a scrubber for text outside of calls, with the same values.
    pub fn scrubber(&self) -> Result<Scrubber, Error> {
        let mut scrubber = Scrubber::default();
        for (name, value) in self.environment_secrets() {
            let value = [SecretValue::new(value, "value")];
            scrubber = scrubber.with_values(value).map_err(|error| unusable(&name, error))?;
        }
        Ok(scrubber)
    }

    fn environment_secrets(&self) -> Vec<(String, String)> {
        let value = |name: &String| {
            Some((name.clone(), self.around.variable(name)?.to_string_lossy().trim().to_owned()))
        };
        self.config().scrub.values_from_env.iter().filter_map(value).collect()
    }
}

fn unusable(name: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::invalid(format!("`scrub.values_from_env`: the value of `{name}` cannot be scrubbed"))
        .because(error)
}

impl App {
    /// Opens the sealed values with the deployment's keys.
    pub async fn vault(&self) -> Result<Vault, Error> {
        Ok(Vault::open(Arc::clone(&self.store) as _, self.setup.keys()?).await?)
    }

    /// Every value that the store keeps sealed for a tenant.
    pub async fn sealed(&self, tenant: &TenantId) -> Result<Vec<String>, Error> {
        let unopened = |error: StoreError| {
            Error::failed("a secret cannot be decrypted, so it cannot be scrubbed from output")
                .because(error)
                .hint("restore the keys from a backup, or set the secret again, or remove it")
        };
        let kept = self.store.secrets(tenant).await.map_err(unopened)?;
        let mut values = self.programs()?.secrets(tenant).await.map_err(unopened)?;
        if !kept.is_empty() {
            let vault =
                Vault::open(Arc::clone(&self.store) as _, self.setup.keys()?).await.map_err(unopened)?;
            let secrets = vault.secrets(tenant).await.map_err(unopened)?;
            values.extend(secrets.iter().map(|secret| secret.expose_secret().trim().to_owned()));
        }
        let tools = self.store.custom_tools(tenant).await.map_err(unopened)?;
        if !tools.is_empty() {
            let vault =
                Vault::open(Arc::clone(&self.store) as _, self.setup.keys()?).await.map_err(unopened)?;
            for tool in &tools {
                let of_tool = vault.custom_tool_values(tool).await.map_err(unopened)?;
                let secrets = of_tool.env().chain(of_tool.headers());
                values.extend(secrets.map(|(_, value)| value.expose_secret().trim().to_owned()));
            }
        }
        Ok(values)
    }

    /// The scrubber for what is shown and stored of a tenant, with its sealed values.
    pub async fn scrubber(&self, tenant: &TenantId) -> Result<CallScrubber, Error> {
        let (scrubbers, sealed) = (self.setup.scrubbers()?, self.sealed(tenant).await?);
        // Values too short to be told from ordinary text are left out.
        let _short = scrubbers.set_for(tenant, sealed);
        Ok(scrubbers.for_tenant(tenant))
    }

    /// Registers every sealed value of every tenant with the scrubbers: a program may have written one into a
    /// file long ago. A tenant whose values cannot be hidden keeps those that were hidden before, and does not keep the
    /// others from being hidden; the error names all such tenants.
    pub(crate) async fn hide_sealed(&self, executor: &Executor) -> Result<(), Error> {
        let known = self.store.tenants().await.map_err(|error| {
            Error::failed("the tenants cannot be read, so their secrets could not be hidden").because(error)
        })?;
        let mut tenants: Vec<TenantId> = known.into_iter().map(|tenant| tenant.id).collect();
        if !tenants.contains(self.tenant()) {
            tenants.push(self.tenant().clone());
        }
        let of_before = executor.scrubbers().tenants();
        tenants.extend(of_before.into_iter().filter(|tenant| !tenants.contains(tenant)).collect::<Vec<_>>());
        let mut failed: Vec<(TenantId, Error)> = Vec::new();
        for tenant in tenants {
            if let Err(error) = self.hide_sealed_of(executor, &tenant).await {
                failed.push((tenant, error));
            }
        }
        let names: Vec<String> = failed.iter().map(|(tenant, _)| format!("`{tenant}`")).collect();
        match failed.into_iter().next() {
            None => Ok(()),
            Some((_, error)) if names.len() == 1 && names[0] == format!("`{}`", self.tenant()) => Err(error),
            Some((_, error)) => {
                let message = format!("the secrets of these tenants cannot be hidden: {}", names.join(", "));
                Err(Error::failed(message)
                    .because(error)
                    .hint("restore the keys from a backup, or set or remove the secrets of these tenants"))
            }
        }
    }

    /// Registers the sealed values of one tenant.
    async fn hide_sealed_of(&self, executor: &Executor, tenant: &TenantId) -> Result<(), Error> {
        let unhidden = || Error::failed(format!("the secrets of tenant `{tenant}` cannot be hidden"));
        let values = self.sealed(tenant).await?;
        let hide = {
            let (executor, tenant) = (executor.clone(), tenant.clone());
            // Compiling many values takes a while.
            move || executor.scrubbers().set_for(&tenant, values)
        };
        let hidden = tokio::task::spawn_blocking(hide).await.map_err(|error| unhidden().because(error))?;
        let short = hidden.map_err(|error| unhidden().because(error))?;
        if short > 0 {
            tracing::warn!(%tenant, count = short, "secrets are too short to be distinguished from \
                                                    ordinary text");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
