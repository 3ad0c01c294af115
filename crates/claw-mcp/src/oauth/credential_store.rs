//! Where the login library keeps credentials and the state of a begun login: sealed in the store, or in memory.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, StateStore, StoredAuthorizationState,
    StoredCredentials,
};

use super::{LoginBase, LoginPlace, LoginRecord};
use crate::error::McpError;
use crate::secrets::SecretKind;

/// The credentials of a login, sealed in the store and read again when a secret changed.
pub(super) struct SealedLogin {
    place: LoginPlace,
    base: LoginBase,
    /// The credentials, and the number of changes when they were read.
    known: Mutex<Option<(u64, StoredCredentials)>>,
}

impl SealedLogin {
    pub(super) fn new(place: LoginPlace, base: LoginBase) -> Self {
        Self { place, base, known: Mutex::default() }
    }

    fn remember(&self, credentials: Option<(u64, StoredCredentials)>) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = credentials;
    }
}

fn stored(error: McpError) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for SealedLogin {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let at = *self.place.changes.borrow();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, credentials)) = known.filter(|(read, _)| *read == at) {
            return Ok(Some(credentials));
        }
        let record = self.place.read::<LoginRecord>(SecretKind::Login).await.map_err(stored)?;
        // A later login may come from another authorization server, whose tokens are not for this one.
        let record = record.filter(|record| record.base.is_at(&self.base));
        let credentials = record.map(|record| record.credentials);
        self.remember(credentials.clone().map(|credentials| (at, credentials)));
        Ok(credentials)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let (base, user) = (self.base.clone(), self.place.user.clone());
        let record = LoginRecord { base, user, credentials };
        self.remember(None);
        self.place.write(SecretKind::Login, &record).await.map_err(stored)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.remember(None);
        self.place.forget(SecretKind::Login).await.map_err(stored)
    }

    /// Allows one refresh at a time, of the stored login: another connection may have renewed it meanwhile.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let guard = Arc::clone(&self.place.refreshing).lock_owned().await;
        self.remember(None);
        Ok(Some(CredentialRefreshGuard::new(guard)))
    }
}

/// The state of the one login for which a manager is used.
#[derive(Clone, Default)]
pub(super) struct OneState(Arc<Mutex<Option<StoredAuthorizationState>>>);

impl OneState {
    pub(super) fn of(state: StoredAuthorizationState) -> Self {
        Self(Arc::new(Mutex::new(Some(state))))
    }

    pub(super) fn take(&self) -> Option<StoredAuthorizationState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[async_trait]
impl StateStore for OneState {
    async fn save(&self, _token: &str, state: StoredAuthorizationState) -> Result<(), AuthError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
        Ok(())
    }

    async fn load(&self, token: &str) -> Result<Option<StoredAuthorizationState>, AuthError> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(state.filter(|state| state.csrf_token == token))
    }

    async fn delete(&self, _token: &str) -> Result<(), AuthError> {
        self.take();
        Ok(())
    }
}
