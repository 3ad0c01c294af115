//! Whole files of workspaces. Writers of one tenant's files take turns across all nodes: another writer could
//! be creating the directories of a file, or filling the workspace's quota.

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{Stat, UnixMillis};
use claw_core::store::{FileChange, FileError, StoreError, WorkspaceFiles};
use sqlx::{query, query_as};

use super::PostgresStore;
use super::connections::{Link, Transaction};
use super::failure::failed;
use crate::row;
use crate::workspace_file_rules::{self, Below, Growth, Missing, Standing, Way};

const WRITE: &str = "could not write the file";
const READ: &str = "could not read files";

#[async_trait]
impl WorkspaceFiles for PostgresStore {
    async fn file_stat(&self, tenant: &TenantId, path: &str) -> Result<Option<Stat>, StoreError> {
        let row = query_as("SELECT version, size, at FROM workspace_files WHERE tenant = $1 AND place = $2")
            .bind(tenant.as_str())
            .bind(workspace_file_rules::place(READ, path)?)
            .fetch_optional(&self.pool)
            .await
            .map_err(failed(READ))?;
        row.map(workspace_file_rules::stat).transpose()
    }

    async fn file(&self, tenant: &TenantId, path: &str) -> Result<Option<(Stat, Vec<u8>)>, StoreError> {
        let row: Option<(Option<String>, i64, i64, Option<Vec<u8>>)> =
            query_as("SELECT version, size, at, bytes FROM workspace_files WHERE tenant = $1 AND place = $2")
                .bind(tenant.as_str())
                .bind(workspace_file_rules::place(READ, path)?)
                .fetch_optional(&self.pool)
                .await
                .map_err(failed(READ))?;
        let Some((version, size, at, bytes)) = row else { return Ok(None) };
        Ok(Some((workspace_file_rules::stat((version, size, at))?, bytes.unwrap_or_default())))
    }

    async fn file_contents(
        &self,
        tenant: &TenantId,
        paths: &[String],
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let places = paths.iter().map(|path| workspace_file_rules::place(READ, path));
        query_as(
            "SELECT path, bytes FROM workspace_files
             WHERE tenant = $1 AND place = ANY($2) AND bytes IS NOT NULL",
        )
        .bind(tenant.as_str())
        .bind(places.collect::<Result<Vec<_>, _>>()?)
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))
    }

    async fn files_below(
        &self,
        tenant: &TenantId,
        directory: &str,
        limit: usize,
    ) -> Result<Vec<(String, Stat)>, StoreError> {
        workspace_file_rules::place(READ, directory)?;
        let below = Below::new(directory);
        let rows: Vec<(String, Option<String>, i64, i64)> = query_as(
            "SELECT path, version, size, at FROM workspace_files
             WHERE tenant = $1 AND substr(path, 1, 200) BETWEEN $2 AND $3 AND path > $4 AND path < $5
             ORDER BY path LIMIT $6",
        )
        .bind(tenant.as_str())
        .bind(below.first)
        .bind(below.last)
        .bind(below.after)
        .bind(below.before)
        .bind(row::number(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))?;
        let card = |(path, version, size, at): (String, _, _, _)| {
            Ok((path, workspace_file_rules::stat((version, size, at))?))
        };
        rows.into_iter().map(card).collect()
    }

    async fn put_file(&self, change: &FileChange<'_>, bytes: &[u8]) -> Result<Stat, FileError> {
        workspace_file_rules::check_size(WRITE, bytes)?;
        let (way, stat) = (Way::to(WRITE, change.path)?, workspace_file_rules::file(bytes, change.at));
        let room = workspace_file_rules::room(change);
        let (mut transaction, standing) = self.hold(change.tenant, way).await?;
        let (missing, growth) =
            standing.may_put(change.expect, bytes.len(), room.map_or("", |(below, _)| below))?;
        check_room(&mut transaction, change, growth).await?;
        make(&mut transaction, change.tenant, &missing, change.at).await?;
        query(
            "INSERT INTO workspace_files (tenant, place, path, version, size, at, bytes)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (tenant, place) DO UPDATE SET
                 version = excluded.version, size = excluded.size, at = excluded.at, bytes = excluded.bytes",
        )
        .bind(change.tenant.as_str())
        .bind(standing.place())
        .bind(change.path)
        .bind(stat.version.0.as_str())
        .bind(row::number(stat.size))
        .bind(change.at.0)
        .bind(bytes)
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        Ok(stat)
    }

    async fn put_directory(&self, change: &FileChange<'_>) -> Result<(), FileError> {
        let way = Way::to(WRITE, change.path)?;
        let room = workspace_file_rules::room(change);
        let (mut transaction, standing) = self.hold(change.tenant, way).await?;
        let (missing, growth) = standing.may_make(room.map_or("", |(below, _)| below))?;
        check_room(&mut transaction, change, growth).await?;
        make(&mut transaction, change.tenant, &missing, change.at).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        Ok(())
    }

    async fn remove_file(&self, change: &FileChange<'_>) -> Result<(), FileError> {
        let way = Way::to(WRITE, change.path)?;
        let (mut transaction, standing) = self.hold(change.tenant, way).await?;
        standing.may_remove(change.expect)?;
        query("DELETE FROM workspace_files WHERE tenant = $1 AND place = $2")
            .bind(change.tenant.as_str())
            .bind(standing.place())
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        Ok(())
    }
}

impl PostgresStore {
    /// Begins to write a tenant's files, one writer at a time; returns the rows on the way to a path.
    async fn hold(&self, tenant: &TenantId, way: Way) -> Result<(Transaction, Standing), StoreError> {
        let mut transaction = self.begin(WRITE).await?;
        query("SELECT pg_advisory_xact_lock(hashtextextended('clawsmith: files ' || $1, 0))")
            .bind(tenant.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        let rows = query_as(
            "SELECT place, version, size FROM workspace_files WHERE tenant = $1 AND place = ANY($2)",
        )
        .bind(tenant.as_str())
        .bind(way.places())
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed(READ))?;
        Ok((transaction, Standing::of(way, rows)?))
    }
}

/// Checks that the quota admits a change.
async fn check_room(
    connection: &mut Link<'_>,
    change: &FileChange<'_>,
    growth: Growth,
) -> Result<(), FileError> {
    let Some((directory, quota)) = workspace_file_rules::room(change).filter(|_| growth.is_more()) else {
        return Ok(());
    };
    let below = Below::new(directory);
    let held: (i64, i64) = query_as(
        "SELECT coalesce(sum(size), 0)::bigint, count(*) FROM workspace_files
         WHERE tenant = $1 AND substr(path, 1, 200) BETWEEN $2 AND $3 AND path > $4 AND path < $5",
    )
    .bind(change.tenant.as_str())
    .bind(below.first)
    .bind(below.last)
    .bind(below.after)
    .bind(below.before)
    .fetch_one(connection)
    .await
    .map_err(failed(READ))?;
    growth.fits(held, quota)
}

/// Makes directories.
async fn make(
    connection: &mut Link<'_>,
    tenant: &TenantId,
    missing: &Missing,
    at: UnixMillis,
) -> Result<(), StoreError> {
    if missing.is_empty() {
        return Ok(());
    }
    let (places, paths): (Vec<&str>, Vec<&str>) =
        missing.iter().map(|(place, path)| (place.as_str(), path.as_str())).unzip();
    query(
        "INSERT INTO workspace_files (tenant, place, path, size, at)
         SELECT $1, place, path, 0, $4 FROM unnest($2::text[], $3::text[]) AS made (place, path)",
    )
    .bind(tenant.as_str())
    .bind(places)
    .bind(paths)
    .bind(at.0)
    .execute(connection)
    .await
    .map_err(failed(WRITE))?;
    Ok(())
}
