//! Sources of API keys. A key is read each time a model is requested, so that a new key takes effect at once.

use async_trait::async_trait;
use claw_core::TenantId;
use secrecy::SecretString;

/// The source of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    /// An environment variable. Its key belongs to the deployment and serves every tenant.
    Env(String),
    /// A sealed secret, by name.
    Secret(String),
}

/// Reads keys.
#[async_trait]
pub trait Keys: Send + Sync {
    /// The key of this source for this tenant; `None` if there is none. The error tells in a sentence why it
    /// could not be read.
    async fn key(&self, tenant: &TenantId, place: &KeyPlace) -> Result<Option<SecretString>, String>;
}

/// Reads keys from the environment, and has no sealed secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct EnvKeys;

#[async_trait]
impl Keys for EnvKeys {
    async fn key(&self, _: &TenantId, place: &KeyPlace) -> Result<Option<SecretString>, String> {
        match place {
            KeyPlace::Env(name) => match std::env::var(name) {
                Ok(value) => Ok(Some(value).filter(|value| !value.trim().is_empty()).map(Into::into)),
                Err(std::env::VarError::NotPresent) => Ok(None),
                Err(std::env::VarError::NotUnicode(_)) => Err(format!("the variable `{name}` is not UTF-8")),
            },
            KeyPlace::Secret(name) => Err(format!("the secret `{name}` cannot be read here")),
        }
    }
}
