//! The credentials of programs, for the place that runs them.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::store::{Credentials, OpenProgram, ProgramCard, ProgramPlace, Store, StoreError, Topic};
use secrecy::ExposeSecret as _;
use tokio::sync::{OnceCell, watch};

use super::Vault;
use crate::encryption::KeySource;

/// Lists programs from a store and opens them with its keys, which are read when the first one is opened.
pub struct StoredCredentials {
    store: Arc<dyn Store>,
    keys: KeySource,
    vault: OnceCell<Vault>,
}

impl StoredCredentials {
    /// The programs of a store, which these keys open.
    pub fn new(store: Arc<dyn Store>, keys: KeySource) -> Self {
        Self { store, keys, vault: OnceCell::new() }
    }
}

#[async_trait]
impl Credentials for StoredCredentials {
    fn changes(&self) -> watch::Receiver<u64> {
        self.store.changes(Topic::Secrets)
    }

    async fn programs(&self, tenant: &TenantId) -> Result<Vec<ProgramCard>, StoreError> {
        self.store.programs(tenant).await
    }

    async fn open(&self, place: &ProgramPlace) -> Result<Option<OpenProgram>, StoreError> {
        let open = || Vault::open(Arc::clone(&self.store), self.keys.clone());
        let vault = self.vault.get_or_try_init(open).await?;
        let Some((card, env)) = vault.program(place).await? else { return Ok(None) };
        let variables =
            env.iter().map(|(name, value)| (name.to_owned(), value.expose_secret().to_owned())).collect();
        Ok(Some(OpenProgram { card, variables }))
    }
}

impl std::fmt::Debug for StoredCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoredCredentials(..)")
    }
}
