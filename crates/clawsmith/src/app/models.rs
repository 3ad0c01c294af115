//! Models, endpoints and their API keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::EndpointHost;
use claw_core::store::SecretPlace;
use claw_core::{SecretName, TenantId};
use claw_llm::{ConfiguredEndpoints, KeyPlace, Keys, ModelsConfig, ProviderConfig, ProviderKind, Providers};
use claw_registry::Executor;
use claw_store::encryption::KeySource;
use claw_store::{Backend, Vault};
use secrecy::{ExposeSecret as _, SecretString};

use super::{Error, Setup};
use crate::config::{KEYS, Surroundings};

impl Setup {
    /// The models of this configuration. A `script` is played instead of all of them.
    pub fn models(&self, keys: Arc<dyn Keys>, script: Option<&Path>) -> Result<Providers, Error> {
        let (mut config, around) = (self.config().models.clone(), &self.around);
        if let Some(script) = script {
            config = played(config, around.directory.join(script));
        }
        let file = self.loaded.found.as_ref().and_then(|found| found.path.parent());
        Providers::new(config, file.unwrap_or(&around.directory), keys).map_err(|error| match script {
            Some(_) => Error::invalid("the script cannot be played").because(error),
            None => Error::invalid(format!("`models.{}`: {}", error.key, error.reason))
                .hint("clawsmith config show"),
        })
    }

    /// Returns the configured endpoints; `None` if there are none.
    pub fn endpoints(&self, keys: Arc<dyn Keys>) -> Result<Option<Arc<dyn EndpointHost>>, Error> {
        let config = &self.config().endpoints;
        if config.is_empty() {
            return Ok(None);
        }
        let endpoints = ConfiguredEndpoints::new(config, keys).map_err(|error| {
            Error::invalid(format!("`endpoints.{}`: {}", error.key, error.reason))
                .hint("clawsmith config show")
        })?;
        Ok(Some(Arc::new(endpoints)))
    }
}

/// The configuration with a script in place of every model.
fn played(config: ModelsConfig, script: PathBuf) -> ModelsConfig {
    const NAME: &str = "script";
    let provider = ProviderConfig {
        kind: Some(ProviderKind::Scripted),
        script: Some(script),
        model: Some(NAME.to_owned()),
        ..ProviderConfig::default()
    };
    let mut providers = config.providers;
    providers.insert(NAME.to_owned(), provider);
    let (provider, model) = (Some(NAME.to_owned()), None);
    ModelsConfig { provider, model, fallback: Vec::new(), providers, ..config }
}

/// API keys from the environment and from the sealed secrets. A key that was read is scrubbed from then on.
pub struct DeploymentKeys {
    around: Surroundings,
    store: Arc<dyn Backend>,
    ring: PathBuf,
    executor: Option<Executor>,
}

impl DeploymentKeys {
    /// Creates a source of keys; `executor`, if given, scrubs their values.
    pub(crate) fn new(
        setup: &Setup,
        store: &Arc<dyn Backend>,
        executor: Option<&Executor>,
    ) -> Result<Arc<Self>, Error> {
        let (around, store, executor) = (setup.around.clone(), Arc::clone(store), executor.cloned());
        Ok(Arc::new(Self { around, store, ring: setup.key_file()?, executor }))
    }

    async fn secret(&self, tenant: &TenantId, name: &str) -> Result<Option<SecretString>, String> {
        let name = SecretName::new(name).map_err(|error| error.to_string())?;
        let place = SecretPlace { tenant: tenant.clone(), agent: None, name };
        let variable = self.around.variable(KEYS).cloned();
        let source = KeySource::new(variable, self.ring.clone()).map_err(|error| error.to_string())?;
        let vault =
            Vault::open(Arc::clone(&self.store) as _, source).await.map_err(|error| error.to_string())?;
        vault.secret(&place).await.map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Keys for DeploymentKeys {
    async fn key(&self, tenant: &TenantId, place: &KeyPlace) -> Result<Option<SecretString>, String> {
        let key = match place {
            KeyPlace::Env(name) => key_in_environment(&self.around, name)?,
            KeyPlace::Secret(name) => self.secret(tenant, name).await?,
        };
        if let (Some(key), Some(executor)) = (&key, &self.executor) {
            let value = key.expose_secret().trim();
            // A key too short to be told from ordinary text opens no model either.
            let _ = match place {
                KeyPlace::Env(_) => executor.scrubbers().add(value),
                KeyPlace::Secret(_) => executor.scrubbers().add_for(tenant, value),
            };
        }
        Ok(key)
    }
}

/// Returns the key in an environment variable; `None` if it is not set.
pub fn key_in_environment(around: &Surroundings, name: &str) -> Result<Option<SecretString>, String> {
    match around.variable(name).map(|value| value.to_str()) {
        Some(None) => Err(format!("the variable `{name}` is not UTF-8")),
        Some(Some(value)) => Ok(Some(SecretString::from(value))),
        None => Ok(None),
    }
}
