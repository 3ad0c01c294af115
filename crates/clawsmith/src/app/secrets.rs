//! Sealed values: opening them, and keeping them out of everything that is shown.

use std::collections::BTreeSet;
use std::sync::Arc;

use claw_core::TenantId;
use claw_core::store::{SealedChanges, SealedMark, StoreError};
use claw_policy::scrub::{Scrubber, Value as SecretValue};
use claw_registry::{CallScrubber, Executor, Scrubbers};
use claw_sandbox::shell::CredentialedPrograms;
use claw_store::encryption::KeySource;
use claw_store::vault::StoredCredentials;
use claw_store::{Backend, Vault};
use secrecy::ExposeSecret as _;
use tokio::sync::OnceCell;

use super::compose::PROGRAM_RULES;
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
        SecretReader::new(self)?.secrets(tenant).await
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
        let mut hidden = HiddenSecrets::of_nobody(self)?;
        hidden.due.extend(executor.scrubbers().tenants());
        hidden.catch_up(executor).await
    }
}

/// Reads the secrets of tenants in plain. The keys are opened with the first secret, once for all tenants.
struct SecretReader {
    store: Arc<dyn Backend>,
    setup: Arc<Setup>,
    keys: KeySource,
    credentials: Arc<StoredCredentials>,
    vault: OnceCell<Vault>,
}

impl SecretReader {
    fn new(app: &App) -> Result<Self, Error> {
        let (store, setup, keys) = (Arc::clone(&app.store), Arc::clone(&app.setup), app.setup.keys()?);
        let credentials = Arc::new(StoredCredentials::new(Arc::clone(&store) as _, keys.clone()));
        Ok(Self { store, setup, keys, credentials, vault: OnceCell::new() })
    }

    async fn secrets(&self, tenant: &TenantId) -> Result<Vec<String>, Error> {
        self.read(tenant).await.map_err(|error| {
            Error::failed("a secret cannot be decrypted, so it cannot be scrubbed from output")
                .because(error)
                .hint("restore the keys from a backup, or set the secret again, or remove it")
        })
    }

    async fn read(&self, tenant: &TenantId) -> Result<Vec<String>, StoreError> {
        // New ones each time: they remember programs until they hear of a change, which may be after this.
        let credentials = Arc::clone(&self.credentials) as _;
        let programs = CredentialedPrograms::new(self.setup.machine(), credentials, PROGRAM_RULES);
        let mut values = programs.secrets(tenant).await?;
        if !self.store.secrets(tenant).await?.is_empty() {
            let secrets = self.vault().await?.secrets(tenant).await?;
            values.extend(secrets.iter().map(|secret| secret.expose_secret().trim().to_owned()));
        }
        for tool in &self.store.custom_tools(tenant).await? {
            let of_tool = self.vault().await?.custom_tool_values(tool).await?;
            let secrets = of_tool.env().chain(of_tool.headers());
            values.extend(secrets.map(|(_, value)| value.expose_secret().trim().to_owned()));
        }
        Ok(values)
    }

    async fn vault(&self) -> Result<&Vault, StoreError> {
        let open = || Vault::open(Arc::clone(&self.store) as _, self.keys.clone());
        self.vault.get_or_try_init(open).await
    }
}

/// Hides the secrets of all tenants in what an executor shows. A change costs the reading of the tenants that it
/// concerns, however many others there are.
pub(super) struct HiddenSecrets {
    reader: SecretReader,
    own: TenantId,
    /// The last change that was read.
    mark: SealedMark,
    /// The tenants whose secrets are to be read.
    due: BTreeSet<TenantId>,
    /// The tenants whose secrets could not be hidden.
    failed: BTreeSet<TenantId>,
}

impl HiddenSecrets {
    /// Begins with no tenant's secrets hidden.
    fn of_nobody(app: &App) -> Result<Self, Error> {
        let (due, failed) = (BTreeSet::new(), BTreeSet::new());
        let (reader, own) = (SecretReader::new(app)?, app.tenant().clone());
        Ok(Self { reader, own, mark: SealedMark::default(), due, failed })
    }

    /// Begins with what the store has now: for an executor that is built after this, and hides all of it.
    pub(super) async fn from_now(app: &App) -> Result<Self, Error> {
        let mut hidden = Self::of_nobody(app)?;
        hidden.mark = hidden.changes().await?.mark;
        Ok(hidden)
    }

    /// Makes the next [`catch_up`](Self::catch_up) read the tenants again that it could not read before.
    pub(super) fn retry_failed(&mut self) {
        self.due.append(&mut self.failed);
    }

    /// Registers the secrets of the tenants that changed since the last time.
    pub(super) async fn catch_up(&mut self, executor: &Executor) -> Result<(), Error> {
        let changes = self.changes().await?;
        self.due.extend(changes.tenants);
        self.mark = changes.mark;
        let mut failed: Vec<(TenantId, Error)> = Vec::new();
        while let Some(tenant) = self.due.pop_first() {
            match self.hide(executor, &tenant).await {
                Ok(()) => {
                    self.failed.remove(&tenant);
                }
                Err(error) => failed.push((tenant, error)),
            }
        }
        self.failed.extend(failed.iter().map(|(tenant, _)| tenant.clone()));
        let names: Vec<String> = failed.iter().map(|(tenant, _)| format!("`{tenant}`")).collect();
        match failed.into_iter().next() {
            None => Ok(()),
            Some((tenant, error)) if names.len() == 1 && tenant == self.own => Err(error),
            Some((_, error)) => {
                let message =
                    format!("the secrets of these tenants cannot be scrubbed: {}", names.join(", "));
                Err(Error::failed(message)
                    .because(error)
                    .hint("restore the keys from a backup, or set or remove the secrets of these tenants"))
            }
        }
    }

    async fn changes(&self) -> Result<SealedChanges, Error> {
        self.reader.store.changed_since(self.mark).await.map_err(|error| {
            Error::failed("changes of secrets cannot be read, so new secrets could not be scrubbed")
                .because(error)
        })
    }

    /// Registers the secrets of one tenant in place of those before.
    async fn hide(&self, executor: &Executor, tenant: &TenantId) -> Result<(), Error> {
        let unhidden = || Error::failed(format!("the secrets of tenant `{tenant}` cannot be scrubbed"));
        let values = self.reader.secrets(tenant).await?;
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
