//! Access: tenants, their users, and API keys.
//!
//! Nothing is deleted: tenants and users are disabled and keys revoked, so that records of the past keep
//! their names.

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

/// The shortest interval between two stored times of a key's use.
pub const KEY_USE_EVERY: Duration = Duration::from_secs(60);

/// The role of a user in a tenant; each includes the roles before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum AccessRole {
    /// Reads.
    Viewer,
    /// Works: talks to agents, calls tools, answers approvals.
    Operator,
    /// Changes agents, settings and access.
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

/// A tenant: its data is separate from that of all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// The name for people.
    pub name: String,
    /// The time it was added.
    pub created: UnixMillis,
    /// The tenant is disabled: all its keys are rejected.
    pub disabled: bool,
    /// The tenant's tool rules, over the deployment's; `null` if it has none.
    pub policy: Value,
}

/// A change of a tenant; a field that is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantChange {
    /// The tenant's tool rules; `null` removes them.
    pub policy: Option<Value>,
    /// The name for people.
    pub name: Option<String>,
    /// Disables the tenant: all its keys are rejected.
    pub disabled: Option<bool>,
}

/// A user of one tenant. The same id in another tenant is another user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct User {
    /// The tenant.
    pub tenant: TenantId,
    /// Its id.
    pub id: UserId,
    /// The name for people.
    pub name: String,
    /// The role.
    pub role: AccessRole,
    /// The time they were added.
    pub created: UnixMillis,
    /// The user is disabled: all their keys are rejected.
    pub disabled: bool,
}

/// A change of a user; a field that is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserChange {
    /// The name for people.
    pub name: Option<String>,
    /// The role.
    pub role: Option<AccessRole>,
    /// Disables the user: all their keys are rejected.
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
    /// The hash that finds it: see [`ApiKey::hash`].
    #[serde(skip)]
    pub hash: Digest,
    /// The tenant it gives access to.
    pub tenant: TenantId,
    /// The user it acts for; `None` for a program that acts for no user.
    pub user: Option<UserId>,
    /// The purpose, for people.
    pub label: String,
    /// The permitted operations.
    pub scopes: KeyScopes,
    /// The time it was made.
    pub created: UnixMillis,
    /// The time of its expiry; `None` for never.
    pub expires: Option<UnixMillis>,
    /// Its limits.
    pub limits: KeyLimits,
}

/// A stored key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Key {
    /// The key as it was added.
    #[serde(flatten)]
    pub new: NewKey,
    /// The time it was revoked; `None` if it is not.
    pub revoked: Option<UnixMillis>,
    /// The time of its last use, to within [`KEY_USE_EVERY`]; `None` if unused.
    pub last_used: Option<UnixMillis>,
}

/// The identity that a key authenticates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Admitted {
    /// The key.
    pub key: KeyId,
    /// The tenant.
    pub tenant: TenantId,
    /// The user with their role; `None` for a program that acts for no user.
    pub user: Option<(UserId, AccessRole)>,
    /// The permitted operations of the key.
    pub scopes: KeyScopes,
    /// Limits of the key.
    pub limits: KeyLimits,
}

/// Stores tenants, users and keys; a change is announced as [`Topic::Access`](super::Topic::Access).
///
/// The tenant `main` always exists. Other aggregates may hold rows of tenants that do not; such tenants have
/// no users and no keys.
#[async_trait]
pub trait AccessStore: Changes {
    /// Adds a tenant; `false`, and nothing changed, if its id exists.
    async fn add_tenant(&self, tenant: Tenant) -> Result<bool, StoreError>;
    /// Returns one tenant.
    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, StoreError>;
    /// Returns all tenants, by id.
    async fn tenants(&self) -> Result<Vec<Tenant>, StoreError>;
    /// Changes a tenant and returns its new state; `None` if there is none.
    async fn change_tenant(&self, id: &TenantId, change: TenantChange) -> Result<Option<Tenant>, StoreError>;

    /// Adds a user; `false`, and nothing changed, if its id exists in the tenant. [`StoreError::Refused`] if
    /// the tenant does not exist.
    async fn add_user(&self, user: User) -> Result<bool, StoreError>;
    /// Returns one user; `None` if this tenant has no user with that id.
    async fn user(&self, tenant: &TenantId, id: &UserId) -> Result<Option<User>, StoreError>;
    /// Returns the users of a tenant, by id.
    async fn users(&self, tenant: &TenantId) -> Result<Vec<User>, StoreError>;
    /// Changes a user and returns the new state; `None` if this tenant has no user with that id.
    async fn change_user(
        &self,
        tenant: &TenantId,
        id: &UserId,
        change: UserChange,
    ) -> Result<Option<User>, StoreError>;

    /// Adds a key; `false`, and nothing changed, if it was added before. [`StoreError::Refused`] if its
    /// tenant or user does not exist, or if its id or its hash is that of another key.
    async fn add_key(&self, key: NewKey) -> Result<bool, StoreError>;
    /// Returns the keys of a tenant, oldest first.
    async fn keys(&self, tenant: &TenantId) -> Result<Vec<Key>, StoreError>;
    /// Revokes a key for ever and returns its new state; the first time stands. `None` if this tenant has no
    /// key with that id.
    async fn revoke_key(
        &self,
        tenant: &TenantId,
        id: KeyId,
        at: UnixMillis,
    ) -> Result<Option<Key>, StoreError>;
    /// Returns the identity of the key with this hash; `None` if there is no such key, if it is revoked or
    /// expired, or if its tenant or user is disabled.
    ///
    /// An index finds the key by its hash. The duration of the lookup reveals something about hashes, which
    /// nobody can choose, and nothing about keys; so no comparison needs constant time.
    ///
    /// The time of use is stored if the stored one is at least [`KEY_USE_EVERY`] old. This announces no
    /// change, and a failure to store it rejects nobody.
    async fn authenticate(&self, hash: &Digest, now: UnixMillis) -> Result<Option<Admitted>, StoreError>;
}

#[cfg(test)]
mod tests;
