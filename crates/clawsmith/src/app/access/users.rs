//! Users and tenants: listed, added, changed, and who may do that.

use claw_core::port::Clock as _;
use claw_core::store::{AccessRole, Tenant, TenantChange, User, UserChange};
use claw_core::{TenantId, UserId};
use claw_host::SystemClock;

use super::{Permission, Visitor};
use crate::app::{App, Error};

impl App {
    /// Changes a user for a visitor who manages access: nobody is raised above the visitor's role, and nobody
    /// above it is changed.
    pub async fn edit_user_for(
        &self,
        visitor: &Visitor,
        id: &UserId,
        change: UserChange,
    ) -> Result<User, Error> {
        if let Some(user) = self.store.user(self.tenant(), id).await? {
            visitor.may_give(user.role.max(change.role.unwrap_or(user.role)))?;
        }
        self.edit_user(id, change).await
    }

    /// Checks that a visitor may see and change tenants: the owner of the deployment, in its own tenant.
    pub fn may_manage_tenants(&self, visitor: &Visitor) -> Result<(), Error> {
        visitor.may(Permission::ManageAccess)?;
        visitor.may_give(AccessRole::Owner)?;
        if visitor.tenant == *self.setup().tenant() {
            return Ok(());
        }
        Err(Error::invalid("only the owner of the deployment may see and change tenants")
            .hint("use a key of the deployment's own tenant")
            .refusing())
    }

    /// Checks that a visitor may see the metrics, which cover all tenants: the visitor must belong to the
    /// deployment's own tenant.
    pub fn may_read_metrics(&self, visitor: &Visitor) -> Result<(), Error> {
        visitor.may(Permission::ReadMetrics)?;
        if visitor.tenant == *self.setup().tenant() {
            return Ok(());
        }
        Err(Error::invalid("metrics cover the whole deployment, so only its own tenant may read them")
            .hint("use a key of that tenant")
            .refusing())
    }

    /// The users of this tenant.
    pub async fn users(&self) -> Result<Vec<User>, Error> {
        Ok(self.store.users(self.tenant()).await?)
    }

    /// Adds a user to this tenant.
    pub async fn add_user(&self, id: UserId, name: Option<String>, role: AccessRole) -> Result<User, Error> {
        let name = name.unwrap_or_else(|| id.to_string());
        let (tenant, created) = (self.tenant().clone(), SystemClock.now());
        let user = User { tenant, id, name, role, created, disabled: false };
        match self.store.add_user(user.clone()).await? {
            true => Ok(user),
            false => Err(Error::conflict(format!("the user `{}` already exists", user.id))
                .hint(format!("clawsmith users edit {}", user.id))),
        }
    }

    /// Changes a user of this tenant. All keys of a disabled user are rejected, in every process, at once.
    pub async fn edit_user(&self, id: &UserId, change: UserChange) -> Result<User, Error> {
        let changed = self.store.change_user(self.tenant(), id, change).await?;
        changed
            .ok_or_else(|| Error::not_found(format!("there is no user `{id}`")).hint("clawsmith users list"))
    }

    /// All tenants of the deployment.
    pub async fn tenants(&self) -> Result<Vec<Tenant>, Error> {
        Ok(self.store.tenants().await?)
    }

    /// Adds a tenant, whose data is separate from that of all others.
    pub async fn add_tenant(&self, id: TenantId, name: Option<String>) -> Result<Tenant, Error> {
        let name = name.unwrap_or_else(|| id.to_string());
        let tenant =
            Tenant { id, name, created: SystemClock.now(), disabled: false, policy: serde_json::Value::Null };
        match self.store.add_tenant(tenant.clone()).await? {
            true => Ok(tenant),
            false => Err(Error::conflict(format!("the tenant `{}` already exists", tenant.id))
                .hint("clawsmith tenants list")),
        }
    }

    /// Changes a tenant. All keys of a disabled tenant are rejected. The deployment's own tenant cannot be disabled: nobody
    /// could manage the deployment over the network any more.
    pub async fn edit_tenant(&self, id: &TenantId, change: TenantChange) -> Result<Tenant, Error> {
        if change.disabled == Some(true) && id == self.setup().tenant() {
            return Err(Error::invalid(format!(
                "`{id}` is the deployment's own tenant and cannot be disabled"
            ))
            .hint("disable single users: clawsmith users edit NAME --disabled true"));
        }
        let changed = self.store.change_tenant(id, change).await?;
        changed.ok_or_else(|| {
            Error::not_found(format!("there is no tenant `{id}`")).hint("clawsmith tenants list")
        })
    }
}
