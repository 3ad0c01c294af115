//! API keys: created for a user, listed, revoked.

use std::time::Duration;

use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{AccessRole, ApiKey, Key, KeyLimits, KeyScopes, NewKey, User};
use claw_core::{KeyId, UserId};
use claw_host::SystemClock;

use super::Visitor;
use crate::app::{App, Error};

/// A key to create.
#[derive(Debug, Clone)]
pub struct KeyRequest {
    /// The user that it belongs to.
    pub user: UserId,
    /// The role that the user gets if there is no such user yet.
    pub role: AccessRole,
    /// The key's purpose, for display.
    pub label: String,
    /// The key's scopes.
    pub scopes: KeyScopes,
    /// The key's lifetime; `None` means no expiry.
    pub lasts: Option<Duration>,
    /// The key's limits.
    pub limits: KeyLimits,
}

impl App {
    /// Creates a key of this tenant, and its user if missing. The key itself is returned once and stored
    /// nowhere.
    pub async fn create_key(&self, request: KeyRequest) -> Result<(ApiKey, NewKey), Error> {
        let now = SystemClock.now();
        let mut random = [0; 32];
        rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())
            .ok()
            .filter(|count| *count == random.len())
            .ok_or_else(|| Error::failed("the system provided no random bytes").hint("try again"))?;
        let key = ApiKey::from_random(random);
        let (tenant, user) = (self.tenant().clone(), request.user);
        if self.store.user(&tenant, &user).await?.is_none() {
            let (id, name, role) = (user.clone(), user.to_string(), request.role);
            let added = User { tenant: tenant.clone(), id, name, role, created: now, disabled: false };
            self.store.add_user(added).await?;
        }
        let new = NewKey {
            id: KeyId::new(),
            hash: key.hash(),
            tenant,
            user: Some(user),
            label: request.label,
            scopes: request.scopes,
            created: now,
            expires: request.lasts.map(|lasts| now.plus(lasts)),
            limits: request.limits,
        };
        self.store.add_key(new.clone()).await?;
        Ok((key, new))
    }

    /// The keys of this tenant, oldest first.
    pub async fn api_keys(&self) -> Result<Vec<Key>, Error> {
        Ok(self.store.keys(self.tenant()).await?)
    }

    /// Revokes the key of this id, or the one whose id begins with it.
    pub async fn revoke_key(&self, id: &str) -> Result<Key, Error> {
        let keys = self.api_keys().await?;
        let beginning = id.to_lowercase();
        let found: Vec<&Key> =
            keys.iter().filter(|key| key.new.id.to_string().starts_with(&beginning)).collect();
        let hint = "clawsmith api-keys list";
        let key = match (beginning.is_empty(), &found[..]) {
            (false, [key]) => key.new.id,
            (true, _) | (false, []) => {
                return Err(Error::not_found(format!("there is no key `{id}`")).hint(hint));
            }
            (false, several) => {
                let message = format!("`{id}` matches {} keys", several.len());
                return Err(Error::invalid(message).hint(hint));
            }
        };
        let revoked = self.store.revoke_key(self.tenant(), key, SystemClock.now()).await?;
        revoked.ok_or_else(|| Error::not_found(format!("there is no key `{id}`")).hint(hint))
    }

    /// Creates a key for a visitor who manages access: for a user whose role is not above the visitor's.
    pub async fn create_key_for(
        &self,
        visitor: &Visitor,
        request: KeyRequest,
    ) -> Result<(ApiKey, NewKey), Error> {
        let user = self.store.user(self.tenant(), &request.user).await?;
        visitor.may_give(user.map_or(request.role, |user| user.role))?;
        self.create_key(request).await
    }

    /// Checks that a visitor who manages access may revoke a key: its user's role is not above the visitor's.
    pub async fn may_revoke(&self, visitor: &Visitor, id: KeyId) -> Result<(), Error> {
        let keys = self.api_keys().await?;
        let Some(key) = keys.iter().find(|key| key.new.id == id) else { return Ok(()) };
        let user = match &key.new.user {
            Some(user) => self.store.user(self.tenant(), user).await?,
            None => None,
        };
        visitor.may_give(user.map_or(AccessRole::Owner, |user| user.role))
    }
}

/// Returns whether a key is neither revoked nor expired.
pub fn is_good(key: &Key, now: UnixMillis) -> bool {
    key.revoked.is_none() && key.new.expires.is_none_or(|expires| expires > now)
}
