//! Who may come in: tenants, their users, and the keys that programs show.
//!
//! Nobody is deleted. A tenant or user that may no longer come in is disabled and a key revoked, so that what
//! they did keeps its name.

mod key;
mod scope;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Changes, StoreError};
use crate::id::{AgentId, KeyId, TenantId, UserId};
use crate::port::UnixMillis;
use crate::tool::Digest;

pub use key::{ApiKey, InvalidKey};
pub use scope::{KeyScope, KeyScopes, UnknownScope};

/// How far apart the written times of a key's use are at least.
pub const KEY_USE_EVERY: Duration = Duration::from_secs(60);

/// What a user may do in a tenant; each may do what those before it may.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum AccessRole {
    /// Look.
    Viewer,
    /// Work: talk to agents, call tools, answer questions.
    Operator,
    /// Change agents, settings and who may come in.
    Admin,
    /// Everything.
    Owner,
}

impl AccessRole {
    /// Every role, the least first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Admin, Self::Owner];

    /// The role as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

impl fmt::Display for AccessRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Somebody whose data is kept apart from that of all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// What people call it.
    pub name: String,
    /// When it was added.
    pub created: UnixMillis,
    /// The tenant is disabled: all its keys are rejected.
    pub disabled: bool,
    /// The tenant's tool rules, over the deployment's; `null` where it has none.
    pub policy: Value,
}

/// A change of a tenant; a field that is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantChange {
    /// The tenant's tool rules; `null` removes them.
    pub policy: Option<Value>,
    /// What people call it.
    pub name: Option<String>,
    /// Whether nobody of it may come in.
    pub disabled: Option<bool>,
}

/// A person of one tenant. The same id in another tenant is another person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct User {
    /// Of which tenant.
    pub tenant: TenantId,
    /// Its id.
    pub id: UserId,
    /// What people call them.
    pub name: String,
    /// What they may do.
    pub role: AccessRole,
    /// When they were added.
    pub created: UnixMillis,
    /// Whether they may not come in.
    pub disabled: bool,
}

/// What to change of a user; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserChange {
    /// What people call them.
    pub name: Option<String>,
    /// What they may do.
    pub role: Option<AccessRole>,
    /// Whether they may not come in.
    pub disabled: Option<bool>,
}

/// Limits of a key beyond its scopes and its user's role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyLimits {
    /// The only agents that may be used with it; `None` for all of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<AgentId>>,
    /// The most requests in a minute; `None` for no limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<u32>,
}

/// A key before it is stored. The key itself is not in it and is stored nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct NewKey {
    /// Its id.
    pub id: KeyId,
    /// What it is found by: see [`ApiKey::hash`].
    #[serde(skip)]
    pub hash: Digest,
    /// Into which tenant it leads.
    pub tenant: TenantId,
    /// For which user of it; `None` for a program that acts for nobody.
    pub user: Option<UserId>,
    /// What it is for, for people.
    pub label: String,
    /// What may be done with it.
    pub scopes: KeyScopes,
    /// When it was made.
    pub created: UnixMillis,
    /// From when on it is worth nothing; `None` for never.
    pub expires: Option<UnixMillis>,
    /// Its limits.
    pub limits: KeyLimits,
}

/// A stored key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Key {
    /// What was stored.
    #[serde(flatten)]
    pub new: NewKey,
    /// When it was revoked.
    pub revoked: Option<UnixMillis>,
    /// When it was used, to within [`KEY_USE_EVERY`].
    pub last_used: Option<UnixMillis>,
}

/// Who came in with a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Admitted {
    /// With which key.
    pub key: KeyId,
    /// Into which tenant.
    pub tenant: TenantId,
    /// As which user of it, with which role.
    pub user: Option<(UserId, AccessRole)>,
    /// What may be done with the key.
    pub scopes: KeyScopes,
    /// Limits of the key.
    pub limits: KeyLimits,
}

/// Keeps tenants, users and keys; a change is told as [`Topic::Access`](super::Topic::Access).
///
/// The tenant `main` is always there. Other aggregates may hold rows of tenants that are not; they have no users
/// and no keys.
#[async_trait]
pub trait AccessStore: Changes {
    /// Adds a tenant; `false`, and nothing changed, where one of its id is there.
    async fn add_tenant(&self, tenant: Tenant) -> Result<bool, StoreError>;
    /// One tenant.
    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, StoreError>;
    /// All tenants, by id.
    async fn tenants(&self) -> Result<Vec<Tenant>, StoreError>;
    /// Changes a tenant and gives it as it is then; `None` where there is none.
    async fn change_tenant(&self, id: &TenantId, change: TenantChange) -> Result<Option<Tenant>, StoreError>;

    /// Adds a user; `false`, and nothing changed, where the tenant has one of its id. [`StoreError::Refused`]
    /// where the tenant is not there.
    async fn add_user(&self, user: User) -> Result<bool, StoreError>;
    /// One user; `None` where this tenant has none of that id.
    async fn user(&self, tenant: &TenantId, id: &UserId) -> Result<Option<User>, StoreError>;
    /// The users of a tenant, by id.
    async fn users(&self, tenant: &TenantId) -> Result<Vec<User>, StoreError>;
    /// Changes a user and gives them as they are then; `None` where this tenant has none of that id.
    async fn change_user(
        &self,
        tenant: &TenantId,
        id: &UserId,
        change: UserChange,
    ) -> Result<Option<User>, StoreError>;

    /// Adds a key; `false`, and nothing changed, where it was added before. [`StoreError::Refused`] where its
    /// tenant or user is not there, or where its id or its hash is that of another key.
    async fn add_key(&self, key: NewKey) -> Result<bool, StoreError>;
    /// The keys of a tenant, oldest first.
    async fn keys(&self, tenant: &TenantId) -> Result<Vec<Key>, StoreError>;
    /// Revokes a key for ever and gives it as it is then; the first time stands. `None` where this tenant has
    /// none of that id.
    async fn revoke_key(
        &self,
        tenant: &TenantId,
        id: KeyId,
        at: UnixMillis,
    ) -> Result<Option<Key>, StoreError>;
    /// Who comes in with the key of this hash; `None` where there is no such key, it is revoked or its time is
    /// over, or its tenant or user is disabled.
    ///
    /// It is found by the hash in an index. How long that takes says something about hashes, which nobody can
    /// choose, and nothing about keys; so nothing is compared in constant time.
    ///
    /// The time is written down where the one before is [`KEY_USE_EVERY`] old. That is no change to tell of,
    /// and one that cannot be written keeps nobody out.
    async fn authenticate(&self, hash: &Digest, now: UnixMillis) -> Result<Option<Admitted>, StoreError>;
}

#[cfg(test)]
mod tests;
