//! Skills: versions, grants, acceptances, and their uses by sessions.

use async_trait::async_trait;
use claw_core::port::Owner;
use claw_core::skill::{SkillFile, SkillTier};
use claw_core::store::{
    AcceptedSkill, NewSkillVersion, SkillChange, SkillGrant, SkillGrantee, SkillStore, SkillUse,
    SkillVersion, StoreError, StoredSkill, Topic,
};
use claw_core::{JobId, SkillName, TenantId};
use sqlx::{query, query_as, query_scalar};

use super::dialect::{Connection, Store, failed, locking};
use crate::row;
use crate::skills::{GrantRow, READ, SkillRow, WRITE, no_version, skills};

#[async_trait]
impl SkillStore for Store {
    async fn publish_skill(&self, new: NewSkillVersion) -> Result<StoredSkill, StoreError> {
        let (tenant, name) = (&new.tenant, &new.manifest.name);
        let mut transaction = self.write(WRITE).await?;
        let newest: Vec<i64> = query_scalar(
            "INSERT INTO skills AS old (tenant, name, owner, visibility, newest) VALUES ($1, $2, $3, $4, 0)
             ON CONFLICT (tenant, name) DO UPDATE SET newest = old.newest RETURNING newest",
        )
        .bind(tenant.as_str())
        .bind(name.as_str())
        .bind(new.owner.as_ref().map(|owner| owner.as_str()))
        .bind(new.visibility.name())
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        let newest = newest.first().copied().unwrap_or(0);
        let record: Option<String> = query_scalar(
            "SELECT record FROM skill_versions WHERE tenant = $1 AND name = $2 AND version = $3",
        )
        .bind(tenant.as_str())
        .bind(name.as_str())
        .bind(newest)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed(READ))?;
        let last =
            record.map(|record| row::json::<SkillVersion>("a skill's version", &record)).transpose()?;
        if last.is_none_or(|last| last.digest != new.digest) {
            insert_version(&mut transaction, &new, newest + 1).await?;
        }
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Skills);
        self.stored_skill(tenant, name).await?.ok_or_else(|| row::damaged("a skill", "it is gone at once"))
    }

    async fn stored_skills(&self, tenant: &TenantId) -> Result<Vec<StoredSkill>, StoreError> {
        let rows: Vec<SkillRow> = query_as(
            "SELECT s.name, s.owner, s.visibility, s.pinned, s.newest, v.record FROM skills AS s
             JOIN skill_versions AS v ON v.tenant = s.tenant AND v.name = s.name
                 AND v.version = coalesce(s.pinned, s.newest)
             WHERE s.tenant = $1 ORDER BY s.name",
        )
        .bind(tenant.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        let grants: Vec<GrantRow> = query_as(
            "SELECT name, kind, grantee, version FROM skill_grants WHERE tenant = $1 ORDER BY name, kind, grantee",
        )
        .bind(tenant.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        skills(tenant, rows, grants)
    }

    async fn stored_skill(
        &self,
        tenant: &TenantId,
        name: &SkillName,
    ) -> Result<Option<StoredSkill>, StoreError> {
        let rows: Vec<SkillRow> = query_as(
            "SELECT s.name, s.owner, s.visibility, s.pinned, s.newest, v.record FROM skills AS s
             JOIN skill_versions AS v ON v.tenant = s.tenant AND v.name = s.name
                 AND v.version = coalesce(s.pinned, s.newest)
             WHERE s.tenant = $1 AND s.name = $2",
        )
        .bind(tenant.as_str())
        .bind(name.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        let grants: Vec<GrantRow> = query_as(
            "SELECT name, kind, grantee, version FROM skill_grants WHERE tenant = $1 AND name = $2
             ORDER BY kind, grantee",
        )
        .bind(tenant.as_str())
        .bind(name.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        Ok(skills(tenant, rows, grants)?.pop())
    }

    async fn skill_versions(
        &self,
        tenant: &TenantId,
        name: &SkillName,
    ) -> Result<Vec<SkillVersion>, StoreError> {
        let records: Vec<String> = query_scalar(
            "SELECT record FROM skill_versions WHERE tenant = $1 AND name = $2 ORDER BY version DESC",
        )
        .bind(tenant.as_str())
        .bind(name.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        records.iter().map(|record| row::json("a skill's version", record)).collect()
    }

    async fn skill_files(
        &self,
        tenant: &TenantId,
        name: &SkillName,
        version: u64,
    ) -> Result<Vec<SkillFile>, StoreError> {
        let files: Vec<(String, bool, Vec<u8>)> = query_as(
            "SELECT path, executable, bytes FROM skill_files
             WHERE tenant = $1 AND name = $2 AND version = $3 ORDER BY path",
        )
        .bind(tenant.as_str())
        .bind(name.as_str())
        .bind(row::number(version))
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        Ok(files.into_iter().map(|(path, executable, bytes)| SkillFile { path, executable, bytes }).collect())
    }

    async fn change_skill(
        &self,
        tenant: &TenantId,
        name: &SkillName,
        change: SkillChange,
    ) -> Result<Option<StoredSkill>, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let Some(newest) = newest(&mut transaction, tenant, name).await? else { return Ok(None) };
        if let Some(visibility) = change.visibility {
            query("UPDATE skills SET visibility = $3 WHERE tenant = $1 AND name = $2")
                .bind(tenant.as_str())
                .bind(name.as_str())
                .bind(visibility.name())
                .execute(&mut *transaction)
                .await
                .map_err(failed(WRITE))?;
        }
        if let Some(pinned) = change.pinned {
            check_version(name, pinned, newest)?;
            query("UPDATE skills SET pinned = $3 WHERE tenant = $1 AND name = $2")
                .bind(tenant.as_str())
                .bind(name.as_str())
                .bind(pinned.map(row::number))
                .execute(&mut *transaction)
                .await
                .map_err(failed(WRITE))?;
        }
        end_uses(&mut transaction, tenant, name, |tier| tier == SkillTier::Store).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Skills);
        self.stored_skill(tenant, name).await
    }

    async fn grant_skill(
        &self,
        tenant: &TenantId,
        name: &SkillName,
        grant: SkillGrant,
    ) -> Result<Option<StoredSkill>, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let Some(newest) = newest(&mut transaction, tenant, name).await? else { return Ok(None) };
        check_version(name, grant.version, newest)?;
        query(
            "INSERT INTO skill_grants (tenant, name, kind, grantee, version) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenant, name, kind, grantee) DO UPDATE SET version = excluded.version",
        )
        .bind(tenant.as_str())
        .bind(name.as_str())
        .bind(grant.grantee.kind())
        .bind(grant.grantee.id())
        .bind(grant.version.map(row::number))
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Skills);
        self.stored_skill(tenant, name).await
    }

    async fn revoke_skill(
        &self,
        tenant: &TenantId,
        name: &SkillName,
        grantee: &SkillGrantee,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let gone =
            query("DELETE FROM skill_grants WHERE tenant = $1 AND name = $2 AND kind = $3 AND grantee = $4")
                .bind(tenant.as_str())
                .bind(name.as_str())
                .bind(grantee.kind())
                .bind(grantee.id())
                .execute(&mut *transaction)
                .await
                .map_err(failed(WRITE))?;
        end_uses(&mut transaction, tenant, name, |tier| tier == SkillTier::Store).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Skills);
        Ok(gone.rows_affected() > 0)
    }

    async fn remove_skill(&self, tenant: &TenantId, name: &SkillName) -> Result<bool, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let mut gone = 0;
        for statement in [
            "DELETE FROM skill_files WHERE tenant = $1 AND name = $2",
            "DELETE FROM skill_versions WHERE tenant = $1 AND name = $2",
            "DELETE FROM skill_grants WHERE tenant = $1 AND name = $2",
            "DELETE FROM skills WHERE tenant = $1 AND name = $2",
        ] {
            let deleted = query(statement)
                .bind(tenant.as_str())
                .bind(name.as_str())
                .execute(&mut *transaction)
                .await
                .map_err(failed(WRITE))?;
            gone = deleted.rows_affected();
        }
        end_uses(&mut transaction, tenant, name, |tier| tier == SkillTier::Store).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Skills);
        Ok(gone > 0)
    }

    async fn accept_skill(&self, tenant: &TenantId, accepted: AcceptedSkill) -> Result<(), StoreError> {
        let mut transaction = self.write(WRITE).await?;
        query(
            "INSERT INTO skill_acceptances (tenant, digest, name, author, at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenant, digest) DO NOTHING",
        )
        .bind(tenant.as_str())
        .bind(&accepted.digest.as_bytes()[..])
        .bind(accepted.name.as_str())
        .bind(accepted.by.replace('\0', ""))
        .bind(accepted.at.0)
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Skills);
        Ok(())
    }

    async fn accepted_skills(&self, tenant: &TenantId) -> Result<Vec<AcceptedSkill>, StoreError> {
        let rows: Vec<(Vec<u8>, String, String, i64)> = query_as(
            "SELECT digest, name, author, at FROM skill_acceptances WHERE tenant = $1 ORDER BY name, at, digest",
        )
        .bind(tenant.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        rows.into_iter().map(row::accepted_skill).collect()
    }

    async fn forget_skill(&self, tenant: &TenantId, name: &SkillName) -> Result<u64, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let gone = query("DELETE FROM skill_acceptances WHERE tenant = $1 AND name = $2")
            .bind(tenant.as_str())
            .bind(name.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        end_uses(&mut transaction, tenant, name, |tier| tier == SkillTier::Workspace).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Skills);
        Ok(gone.rows_affected())
    }

    async fn use_skill(&self, owner: &Owner, used: SkillUse) -> Result<(), StoreError> {
        let mut transaction = self.write(WRITE).await?;
        query(
            "INSERT INTO skill_uses (tenant, session, name, at, used) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenant, session, name) DO UPDATE SET at = excluded.at, used = excluded.used",
        )
        .bind(owner.tenant.as_str())
        .bind(owner.session.as_str())
        .bind(used.name.as_str())
        .bind(used.at.0)
        .bind(row::text(&used)?)
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        query(
            "DELETE FROM skill_uses WHERE tenant = $1 AND session = $2 AND name IN (
                 SELECT name FROM skill_uses WHERE tenant = $1 AND session = $2
                 ORDER BY at DESC, name LIMIT 1000 OFFSET $3)",
        )
        .bind(owner.tenant.as_str())
        .bind(owner.session.as_str())
        .bind(row::number(SkillUse::MOST))
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))
    }

    async fn end_skills(&self, owner: &Owner, run: Option<JobId>) -> Result<(), StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let rows: Vec<String> =
            query_scalar("SELECT used FROM skill_uses WHERE tenant = $1 AND session = $2 ORDER BY name")
                .bind(owner.tenant.as_str())
                .bind(owner.session.as_str())
                .fetch_all(&mut *transaction)
                .await
                .map_err(failed(READ))?;
        for used in rows {
            let mut used: SkillUse = row::json("a skill's use", &used)?;
            if used.run != run || used.allowed.is_none() {
                continue;
            }
            used.allowed = None;
            query("UPDATE skill_uses SET used = $4 WHERE tenant = $1 AND session = $2 AND name = $3")
                .bind(owner.tenant.as_str())
                .bind(owner.session.as_str())
                .bind(used.name.as_str())
                .bind(row::text(&used)?)
                .execute(&mut *transaction)
                .await
                .map_err(failed(WRITE))?;
        }
        transaction.commit().await.map_err(failed(WRITE))
    }

    async fn skill_uses(&self, owner: &Owner) -> Result<Vec<SkillUse>, StoreError> {
        let rows: Vec<String> = query_scalar(
            "SELECT used FROM skill_uses WHERE tenant = $1 AND session = $2 ORDER BY at DESC, name",
        )
        .bind(owner.tenant.as_str())
        .bind(owner.session.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        rows.iter().map(|used| row::json("a skill's use", used)).collect()
    }
}

/// Stores a version and its files, and makes it the newest.
async fn insert_version(
    transaction: &mut Connection,
    new: &NewSkillVersion,
    number: i64,
) -> Result<(), StoreError> {
    let (tenant, name) = (&new.tenant, &new.manifest.name);
    let version = row::skill_version(new, number)?;
    query("INSERT INTO skill_versions (tenant, name, version, record) VALUES ($1, $2, $3, $4)")
        .bind(tenant.as_str())
        .bind(name.as_str())
        .bind(number)
        .bind(row::text(&version)?)
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
    for file in &new.files {
        query(
            "INSERT INTO skill_files (tenant, name, version, path, executable, bytes)
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(tenant.as_str())
        .bind(name.as_str())
        .bind(number)
        .bind(&file.path)
        .bind(file.executable)
        .bind(&file.bytes[..])
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
    }
    query("UPDATE skills SET newest = $3 WHERE tenant = $1 AND name = $2")
        .bind(tenant.as_str())
        .bind(name.as_str())
        .bind(number)
        .execute(&mut *transaction)
        .await
        .map(drop)
        .map_err(failed(WRITE))
}

/// Returns the number of a skill's newest version; `None` if there is no such skill.
async fn newest(
    transaction: &mut Connection,
    tenant: &TenantId,
    name: &SkillName,
) -> Result<Option<i64>, StoreError> {
    query_scalar(locking!("SELECT newest FROM skills WHERE tenant = $1 AND name = $2"))
        .bind(tenant.as_str())
        .bind(name.as_str())
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed(READ))
}

fn check_version(name: &SkillName, version: Option<u64>, newest: i64) -> Result<(), StoreError> {
    match version {
        Some(version) if version == 0 || row::number(version) > newest => {
            Err(no_version(name, version, newest))
        }
        _ => Ok(()),
    }
}

/// Ends the uses of a skill that come from some tiers, in every session.
async fn end_uses(
    transaction: &mut Connection,
    tenant: &TenantId,
    name: &SkillName,
    ends: impl Fn(SkillTier) -> bool,
) -> Result<(), StoreError> {
    let rows: Vec<(String, String)> =
        query_as("SELECT session, used FROM skill_uses WHERE tenant = $1 AND name = $2 ORDER BY session")
            .bind(tenant.as_str())
            .bind(name.as_str())
            .fetch_all(&mut *transaction)
            .await
            .map_err(failed(READ))?;
    for (session, used) in rows {
        let used: SkillUse = row::json("a skill's use", &used)?;
        if !ends(used.tier) {
            continue;
        }
        query("DELETE FROM skill_uses WHERE tenant = $1 AND session = $2 AND name = $3")
            .bind(tenant.as_str())
            .bind(session)
            .bind(name.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
    }
    Ok(())
}
