//! Named secrets, sealed: a tenant's, or those of one agent.

use async_trait::async_trait;
use serde::Serialize;

use super::{Changes, Sealed, StoreError};
use crate::id::{AgentId, SecretName, TenantId};
use crate::port::UnixMillis;

/// The key of a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SecretPlace {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The agent; `None` for the tenant's, shared by all its agents.
    pub agent: Option<AgentId>,
    /// Its name.
    pub name: SecretName,
}

/// A secret in a list, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretCard {
    /// Its key.
    #[serde(flatten)]
    pub place: SecretPlace,
    /// The time it was first written.
    pub made: UnixMillis,
    /// The time its value was last written. Sealing it with another key does not count.
    pub at: UnixMillis,
}

/// Stores secrets; a change is announced as [`Topic::Secrets`](super::Topic::Secrets).
#[async_trait]
pub trait Secrets: Changes {
    /// Returns the value with exactly this key. [`StoreError::Damaged`] if the stored value is not sealed.
    async fn secret(&self, place: &SecretPlace) -> Result<Option<Sealed>, StoreError>;
    /// Writes a value, replacing the stored one.
    async fn put_secret(&self, place: &SecretPlace, value: &Sealed, at: UnixMillis)
    -> Result<(), StoreError>;
    /// Removes a secret; `false` if there is none.
    async fn remove_secret(&self, place: &SecretPlace) -> Result<bool, StoreError>;
    /// Returns the tenant's secrets and those of its agents, sorted: the tenant's first, then by agent and
    /// name.
    async fn secrets(&self, tenant: &TenantId) -> Result<Vec<SecretCard>, StoreError>;
}
