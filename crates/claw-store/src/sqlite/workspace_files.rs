//! Whole files of workspaces.

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{Stat, UnixMillis};
use claw_core::store::{FileChange, FileError, StoreError, WorkspaceFiles};
use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, Sqlite, query, query_as};

use super::SqliteStore;
use super::error::failed;
use crate::row;
use crate::workspace_file_rules::{self, Below, Growth, Missing, Standing, Way};

const WRITE: &str = "could not write the file";
const READ: &str = "could not read files";
/// The number of rows selected by their keys at once.
const TOGETHER: usize = 500;

#[async_trait]
impl WorkspaceFiles for SqliteStore {
    async fn file_stat(&self, tenant: &TenantId, path: &str) -> Result<Option<Stat>, StoreError> {
        let row = query_as("SELECT version, size, at FROM workspace_files WHERE tenant = $1 AND place = $2")
            .bind(tenant.as_str())
            .bind(workspace_file_rules::place(READ, path)?)
            .fetch_optional(&self.readers)
            .await
            .map_err(failed(READ))?;
        row.map(workspace_file_rules::stat).transpose()
    }

    async fn file(&self, tenant: &TenantId, path: &str) -> Result<Option<(Stat, Vec<u8>)>, StoreError> {
        let row: Option<(Option<String>, i64, i64, Option<Vec<u8>>)> =
            query_as("SELECT version, size, at, bytes FROM workspace_files WHERE tenant = $1 AND place = $2")
                .bind(tenant.as_str())
                .bind(workspace_file_rules::place(READ, path)?)
                .fetch_optional(&self.readers)
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
        let mut found = Vec::with_capacity(paths.len());
        for paths in paths.chunks(TOGETHER) {
            let places =
                paths.iter().map(|path| workspace_file_rules::place(READ, path)).collect::<Result<_, _>>()?;
            let mut asked = QueryBuilder::<Sqlite>::new(
                "SELECT path, bytes FROM workspace_files WHERE bytes IS NOT NULL AND tenant = ",
            );
            asked.push_bind(tenant.as_str());
            among(&mut asked, places);
            let rows: Vec<(String, Vec<u8>)> =
                asked.build_query_as().fetch_all(&self.readers).await.map_err(failed(READ))?;
            found.extend(rows);
        }
        Ok(found)
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
        .fetch_all(&self.readers)
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
        let mut transaction = self.write(WRITE).await?;
        let standing = standing(&mut transaction, change.tenant, way).await?;
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
        let mut transaction = self.write(WRITE).await?;
        let standing = standing(&mut transaction, change.tenant, way).await?;
        let (missing, growth) = standing.may_make(room.map_or("", |(below, _)| below))?;
        check_room(&mut transaction, change, growth).await?;
        make(&mut transaction, change.tenant, &missing, change.at).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        Ok(())
    }

    async fn remove_file(&self, change: &FileChange<'_>) -> Result<(), FileError> {
        let way = Way::to(WRITE, change.path)?;
        let mut transaction = self.write(WRITE).await?;
        let standing = standing(&mut transaction, change.tenant, way).await?;
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

/// Asks for rows at any of these places.
fn among(asked: &mut QueryBuilder<Sqlite>, places: Vec<String>) {
    asked.push(" AND place IN (");
    let mut list = asked.separated(", ");
    for place in places {
        list.push_bind(place);
    }
    asked.push(")");
}

/// Reads the rows on the way to a path. No other writer interferes: this transaction holds the write lock.
async fn standing(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    way: Way,
) -> Result<Standing, StoreError> {
    let mut rows = Vec::new();
    for places in way.places().chunks(TOGETHER) {
        let mut asked =
            QueryBuilder::<Sqlite>::new("SELECT place, version, size FROM workspace_files WHERE tenant = ");
        asked.push_bind(tenant.as_str());
        among(&mut asked, places.to_vec());
        let found: Vec<(String, Option<String>, i64)> =
            asked.build_query_as().fetch_all(&mut *connection).await.map_err(failed(READ))?;
        rows.extend(found);
    }
    Standing::of(way, rows)
}

/// Checks that the quota admits a change.
async fn check_room(
    connection: &mut SqliteConnection,
    change: &FileChange<'_>,
    growth: Growth,
) -> Result<(), FileError> {
    let Some((directory, quota)) = workspace_file_rules::room(change).filter(|_| growth.is_more()) else {
        return Ok(());
    };
    let below = Below::new(directory);
    let held: (i64, i64) = query_as(
        "SELECT coalesce(sum(size), 0), count(*) FROM workspace_files
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
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    missing: &Missing,
    at: UnixMillis,
) -> Result<(), StoreError> {
    for (place, path) in missing {
        query("INSERT INTO workspace_files (tenant, place, path, size, at) VALUES ($1, $2, $3, 0, $4)")
            .bind(tenant.as_str())
            .bind(place)
            .bind(path)
            .bind(at.0)
            .execute(&mut *connection)
            .await
            .map_err(failed(WRITE))?;
    }
    Ok(())
}
