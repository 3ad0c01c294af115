//! Named secrets, sealed: a tenant's, or one agent's of it.

use async_trait::async_trait;
use serde::Serialize;

use super::{Changes, Sealed, StoreError};
use crate::id::{AgentId, SecretName, TenantId};
use crate::port::UnixMillis;

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SecretPlace {
    /// Whose data it is.
    pub tenant: TenantId,
    /// Which agent's; `None` is the tenant's, for all its agents.
    pub agent: Option<AgentId>,
    /// Its name.
    pub name: SecretName,
}

/// A secret in a list, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretCard {
    /// Where it is.
    #[serde(flatten)]
    pub place: SecretPlace,
    /// When it was first written.
    pub made: UnixMillis,
    /// When its value was last written. Sealing it with another key does not count.
    pub at: UnixMillis,
}

/// Keeps secrets; a change is told as [`Topic::Secrets`](super::Topic::Secrets).
#[async_trait]
pub trait Secrets: Changes {
    /// The value at exactly this place. [`StoreError::Damaged`] where something else than a sealed value is
    /// there.
    async fn secret(&self, place: &SecretPlace) -> Result<Option<Sealed>, StoreError>;
    /// Writes a value, in place of the one that is there.
    async fn put_secret(&self, place: &SecretPlace, value: &Sealed, at: UnixMillis)
    -> Result<(), StoreError>;
    /// Removes a secret; `false` where there is none.
    async fn remove_secret(&self, place: &SecretPlace) -> Result<bool, StoreError>;
    /// The tenant's secrets and those of its agents, sorted: the tenant's first, then by agent and name.
    async fn secrets(&self, tenant: &TenantId) -> Result<Vec<SecretCard>, StoreError>;
}
