//! Sealed values: opening them, and keeping them out of everything that is shown.

use std::sync::Arc;

use claw_core::store::StoreError;
use claw_policy::scrub::{Scrubber, Value as SecretValue};
use claw_registry::{Executor, Scrubbers};
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

    /// A scrubber for text outside of calls, with the same values.
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

    /// Every value that the store keeps sealed for the tenant.
    pub async fn sealed(&self) -> Result<Vec<String>, Error> {
        let unopened = |error: StoreError| {
            Error::failed("a sealed value cannot be opened, so it could not be kept out of what is shown")
                .because(error)
                .hint("`clawsmith doctor` tells which; set it again, or remove it")
        };
        let tenant = self.tenant();
        let kept = self.store.secrets(tenant).await.map_err(unopened)?;
        let mut values = self.programs()?.secrets(tenant).await.map_err(unopened)?;
        if !kept.is_empty() {
            let vault =
                Vault::open(Arc::clone(&self.store) as _, self.setup.keys()?).await.map_err(unopened)?;
            let secrets = vault.secrets(tenant).await.map_err(unopened)?;
            values.extend(secrets.iter().map(|secret| secret.expose_secret().trim().to_owned()));
        }
        Ok(values)
    }

    /// Tells the scrubbers every sealed value: a program may have written one into a file long ago.
    pub(crate) async fn hide_sealed(&self, executor: &Executor) -> Result<(), Error> {
        let short = executor.scrubbers().add_all_for(self.tenant(), self.sealed().await?);
        if short > 0 {
            tracing::warn!(count = short, "sealed values are too short to be told from ordinary text");
        }
        Ok(())
    }
}
