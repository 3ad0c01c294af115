//! Tenants, users and keys. Ids are sorted byte by byte, as elsewhere, regardless of the database's collation.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    AccessStore, Admitted, Key, NewKey, StoreError, Tenant, TenantChange, Topic, User, UserChange,
};
use claw_core::tool::Digest;
use claw_core::{KeyId, TenantId, UserId};
use sqlx::{query, query_scalar};

use super::dialect::{
    Id, Row, Store, by_bytes, column, failed, free_text, id_bytes, is_unreferenced, stored_id,
};
use crate::row;

const WRITE: &str = "could not write users and API keys";
const READ: &str = "could not read users and API keys";

#[async_trait]
impl AccessStore for Store {
    async fn add_tenant(&self, new: Tenant) -> Result<bool, StoreError> {
        let added = query(
            "INSERT INTO tenants (tenant, name, created, disabled, policy) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT DO NOTHING",
        )
        .bind(new.id.as_str())
        .bind(free_text(&new.name))
        .bind(new.created.0)
        .bind(new.disabled)
        .bind(row::text(&new.policy)?)
        .execute(self.writing())
        .await
        .map_err(failed(WRITE))?;
        Ok(self.told(added.rows_affected() > 0))
    }

    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, StoreError> {
        let row = query("SELECT * FROM tenants WHERE tenant = $1")
            .bind(id.as_str())
            .fetch_optional(self.reading())
            .await
            .map_err(failed(READ))?;
        row.as_ref().map(tenant).transpose()
    }

    async fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        let rows = query(concat!("SELECT * FROM tenants ORDER BY ", by_bytes!("tenant")))
            .fetch_all(self.reading())
            .await
            .map_err(failed(READ))?;
        rows.iter().map(tenant).collect()
    }

    async fn change_tenant(&self, id: &TenantId, change: TenantChange) -> Result<Option<Tenant>, StoreError> {
        let rows = query(
            "UPDATE tenants SET name = coalesce($2, name), disabled = coalesce($3, disabled),
                 policy = coalesce($4, policy)
             WHERE tenant = $1 RETURNING *",
        )
        .bind(id.as_str())
        .bind(change.name.as_deref().map(free_text))
        .bind(change.disabled)
        .bind(change.policy.as_ref().map(row::text).transpose()?)
        .fetch_all(self.writing())
        .await
        .map_err(failed(WRITE))?;
        self.told(!rows.is_empty());
        rows.first().map(tenant).transpose()
    }

    async fn add_user(&self, new: User) -> Result<bool, StoreError> {
        let added = query(
            "INSERT INTO users (tenant, id, name, role, created, disabled) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT DO NOTHING",
        )
        .bind(new.tenant.as_str())
        .bind(new.id.as_str())
        .bind(free_text(&new.name))
        .bind(new.role.name())
        .bind(new.created.0)
        .bind(new.disabled)
        .execute(self.writing())
        .await;
        match added {
            Err(error) if is_unreferenced(&error) => Err(row::no_tenant(WRITE, &new.tenant)),
            added => Ok(self.told(added.map_err(failed(WRITE))?.rows_affected() > 0)),
        }
    }

    async fn user(&self, tenant: &TenantId, id: &UserId) -> Result<Option<User>, StoreError> {
        let row = query("SELECT * FROM users WHERE tenant = $1 AND id = $2")
            .bind(tenant.as_str())
            .bind(id.as_str())
            .fetch_optional(self.reading())
            .await
            .map_err(failed(READ))?;
        row.as_ref().map(user).transpose()
    }

    async fn users(&self, tenant: &TenantId) -> Result<Vec<User>, StoreError> {
        let rows = query(concat!("SELECT * FROM users WHERE tenant = $1 ORDER BY ", by_bytes!("id")))
            .bind(tenant.as_str())
            .fetch_all(self.reading())
            .await
            .map_err(failed(READ))?;
        rows.iter().map(user).collect()
    }

    async fn change_user(
        &self,
        tenant: &TenantId,
        id: &UserId,
        change: UserChange,
    ) -> Result<Option<User>, StoreError> {
        let rows = query(
            "UPDATE users
             SET name = coalesce($3, name), role = coalesce($4, role), disabled = coalesce($5, disabled)
             WHERE tenant = $1 AND id = $2 RETURNING *",
        )
        .bind(tenant.as_str())
        .bind(id.as_str())
        .bind(change.name.as_deref().map(free_text))
        .bind(change.role.map(|role| role.name()))
        .bind(change.disabled)
        .fetch_all(self.writing())
        .await
        .map_err(failed(WRITE))?;
        self.told(!rows.is_empty());
        rows.first().map(user).transpose()
    }

    async fn add_key(&self, new: NewKey) -> Result<bool, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let added = query(
            "INSERT INTO api_keys (id, hash, tenant, user_id, label, scopes, created, expires, limits)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING",
        )
        .bind(stored_id(new.id.as_bytes()))
        .bind(new.hash.to_string())
        .bind(new.tenant.as_str())
        .bind(new.user.as_ref().map(UserId::as_str))
        .bind(free_text(&new.label))
        .bind(new.scopes.to_string())
        .bind(new.created.0)
        .bind(new.expires.map(|at| at.0))
        .bind(row::text(&new.limits)?)
        .execute(&mut *transaction)
        .await;
        match added {
            Err(error) if is_unreferenced(&error) => return Err(row::no_holder(WRITE, &new)),
            Err(error) => return Err(failed(WRITE)(error)),
            Ok(added) if added.rows_affected() > 0 => {
                transaction.commit().await.map_err(failed(WRITE))?;
                return Ok(self.told(true));
            }
            Ok(_) => {}
        }
        let same: i64 =
            query_scalar("SELECT count(*) FROM api_keys WHERE id = $1 AND hash = $2 AND tenant = $3")
                .bind(stored_id(new.id.as_bytes()))
                .bind(new.hash.to_string())
                .bind(new.tenant.as_str())
                .fetch_one(&mut *transaction)
                .await
                .map_err(failed(READ))?;
        if same == 1 { Ok(false) } else { Err(row::taken_key(WRITE)) }
    }

    async fn keys(&self, tenant: &TenantId) -> Result<Vec<Key>, StoreError> {
        let rows = query("SELECT * FROM api_keys WHERE tenant = $1 ORDER BY created, id")
            .bind(tenant.as_str())
            .fetch_all(self.reading())
            .await
            .map_err(failed(READ))?;
        rows.iter().map(key).collect()
    }

    async fn revoke_key(
        &self,
        tenant: &TenantId,
        id: KeyId,
        at: UnixMillis,
    ) -> Result<Option<Key>, StoreError> {
        let rows = query(
            "UPDATE api_keys SET revoked = coalesce(revoked, $3) WHERE id = $1 AND tenant = $2 RETURNING *",
        )
        .bind(stored_id(id.as_bytes()))
        .bind(tenant.as_str())
        .bind(at.0)
        .fetch_all(self.writing())
        .await
        .map_err(failed(WRITE))?;
        self.told(!rows.is_empty());
        rows.first().map(key).transpose()
    }

    async fn authenticate(&self, hash: &Digest, now: UnixMillis) -> Result<Option<Admitted>, StoreError> {
        // A user that is not there is as good as a disabled one: `NOT NULL` holds for nobody.
        let row = query(
            "SELECT api_keys.id, api_keys.tenant, user_id, role, scopes, limits, last_used
             FROM api_keys
             JOIN tenants ON tenants.tenant = api_keys.tenant AND NOT tenants.disabled
             LEFT JOIN users ON users.tenant = api_keys.tenant AND users.id = user_id
             WHERE hash = $1 AND revoked IS NULL AND (expires IS NULL OR expires > $2)
               AND (user_id IS NULL OR NOT users.disabled)",
        )
        .bind(hash.to_string())
        .bind(now.0)
        .fetch_optional(self.reading())
        .await
        .map_err(failed(READ))?;
        let Some(row) = row else { return Ok(None) };
        let admitted = admitted(&row)?;
        // Looked at first, so that the one connection that writes is asked for once a minute alone.
        let before = row::use_before(now);
        if column::<Option<i64>>(&row, "last_used")?.is_none_or(|last| last <= before)
            && let Err(error) = self.note_use(admitted.key, now).await
        {
            tracing::warn!(%error, key = %admitted.key, "the use of a key could not be recorded");
        }
        Ok(Some(admitted))
    }
}

impl Store {
    /// Announces a change, if there was one.
    fn told(&self, changed: bool) -> bool {
        if changed {
            self.ring(Topic::Access);
        }
        changed
    }

    /// Records the use of a key, unless that was done within the last minute.
    async fn note_use(&self, key: KeyId, now: UnixMillis) -> Result<(), StoreError> {
        query("UPDATE api_keys SET last_used = $2 WHERE id = $1 AND (last_used IS NULL OR last_used <= $3)")
            .bind(stored_id(key.as_bytes()))
            .bind(now.0)
            .bind(row::use_before(now))
            .execute(self.writing())
            .await
            .map_err(failed(WRITE))?;
        Ok(())
    }
}

fn tenant(from: &Row) -> Result<Tenant, StoreError> {
    Ok(Tenant {
        id: row::word("a tenant's id", column(from, "tenant")?)?,
        name: column(from, "name")?,
        created: UnixMillis(column(from, "created")?),
        disabled: column(from, "disabled")?,
        policy: row::json("a tenant's rules", column(from, "policy")?)?,
    })
}

fn user(from: &Row) -> Result<User, StoreError> {
    Ok(User {
        tenant: row::word("a user's tenant", column(from, "tenant")?)?,
        id: row::word("a user's id", column(from, "id")?)?,
        name: column(from, "name")?,
        role: row::word("a user's role", column(from, "role")?)?,
        created: UnixMillis(column(from, "created")?),
        disabled: column(from, "disabled")?,
    })
}

fn key(from: &Row) -> Result<Key, StoreError> {
    let user: Option<&str> = column(from, "user_id")?;
    let new = NewKey {
        id: row::id("a key's id", id_bytes(&column::<Id>(from, "id")?))?,
        hash: row::word("a key's hash", column(from, "hash")?)?,
        tenant: row::word("a key's tenant", column(from, "tenant")?)?,
        user: user.map(|user| row::word("a key's user", user)).transpose()?,
        label: column(from, "label")?,
        scopes: row::scopes(column(from, "scopes")?)?,
        created: UnixMillis(column(from, "created")?),
        expires: column::<Option<i64>>(from, "expires")?.map(UnixMillis),
        limits: row::json("a key's limits", column(from, "limits")?)?,
    };
    Ok(Key {
        new,
        revoked: column::<Option<i64>>(from, "revoked")?.map(UnixMillis),
        last_used: column::<Option<i64>>(from, "last_used")?.map(UnixMillis),
    })
}

fn admitted(from: &Row) -> Result<Admitted, StoreError> {
    Ok(Admitted {
        key: row::id("a key's id", id_bytes(&column::<Id>(from, "id")?))?,
        tenant: row::word("a key's tenant", column(from, "tenant")?)?,
        user: row::admitted_user(column(from, "user_id")?, column(from, "role")?)?,
        scopes: row::scopes(column(from, "scopes")?)?,
        limits: row::json("a key's limits", column(from, "limits")?)?,
    })
}
