//! The schema of a file, its owner and its status.

use std::path::{Path, PathBuf};
use std::time::Duration;

use claw_core::InstallationId;
use claw_core::store::StoreError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, query, query_as, query_scalar};

use super::OPEN;
use super::connections::Connections;
use super::error::{at, failed};
use crate::copy;
use crate::installation::{self, Installation};
use crate::migrate::{self, Step};
use crate::options::StoreOptions;
use crate::row;
use crate::status::{Journal, Schema, Status, TableStatus};

const READ: &str = "could not read the state of the store";

/// Migrates the schema, completely or not at all, under a lock; returns the applied migrations. A store of
/// another installation, or one with an unfinished copy, is left as it is.
pub(super) async fn prepare(
    writer: &Connections,
    options: &StoreOptions,
) -> Result<(Vec<Step>, Installation), StoreError> {
    // A caller with nothing to do waits for nobody.
    let mut looking = writer.acquire().await.map_err(failed(OPEN))?;
    let ready = ready(&mut looking, options).await?;
    drop(looking);
    if let Some(id) = ready {
        return Ok((Vec::new(), Installation { id, is_new: false }));
    }
    let mut transaction = writer.begin("BEGIN EXCLUSIVE").await.map_err(failed(OPEN))?;
    refuse_unfinished(&mut transaction).await?;
    let found = owner(&mut transaction).await?;
    installation::check(options.installation, found)?;
    let before = versions(&mut transaction).await?;
    apply(&mut transaction).await?;
    let after = versions(&mut transaction).await?;
    let installation = match found {
        Some(id) => Installation { id, is_new: false },
        None => Installation { id: settle(&mut transaction).await?, is_new: true },
    };
    transaction.commit().await.map_err(failed(OPEN))?;
    Ok((migrate::applied(&before, &after), installation))
}

/// Returns the installation of a store that is up to date; `None` if there is something to do. Changes
/// nothing.
async fn ready(
    connection: &mut SqliteConnection,
    options: &StoreOptions,
) -> Result<Option<InstallationId>, StoreError> {
    if !has(connection, "_sqlx_migrations").await? {
        return Ok(None);
    }
    let applied: Vec<(i64, Vec<u8>)> =
        query_as("SELECT version, checksum FROM _sqlx_migrations WHERE success ORDER BY version")
            .fetch_all(&mut *connection)
            .await
            .map_err(failed(READ))?;
    let known = migrate::sqlite();
    let known = known.iter().map(|step| (step.version, &*step.checksum));
    if !applied.iter().map(|(version, checksum)| (*version, &**checksum)).eq(known) {
        return Ok(None);
    }
    refuse_unfinished(connection).await?;
    let found = owner(connection).await?;
    installation::check(options.installation, found)?;
    Ok(found)
}

/// Migrates the schema, completely or not at all, and nothing else: the installation comes with the copied
/// rows.
pub(crate) async fn bring_up_to_date(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let mut transaction = connection.begin_with("BEGIN EXCLUSIVE").await.map_err(failed(OPEN))?;
    apply(&mut transaction).await?;
    transaction.commit().await.map_err(failed(OPEN))
}

/// Returns the status of the file at `path`; `None` if there is none.
pub(crate) async fn status(path: &Path) -> Result<Option<Status>, StoreError> {
    if !path.exists() {
        return Ok(None);
    }
    look(path).await.map(Some).map_err(|error| at(path, error))
}

async fn look(path: &Path) -> Result<Status, StoreError> {
    let connect = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(Duration::from_secs(5))
        .pragma("query_only", "ON")
        .disable_statement_logging();
    let mut connection = connect.connect().await.map_err(failed(OPEN))?;
    let version = scalar(&mut connection, "SELECT sqlite_version()").await?;
    let mode = scalar(&mut connection, "PRAGMA journal_mode").await?;
    let applied = versions(&mut connection).await?;
    let installation = owner(&mut connection).await?;
    let tables = tables(&mut connection).await?;
    let copying_from = copy::source(unfinished(&mut connection).await?)?;
    let journal = Journal { mode, bytes: size(&beside(path, "-wal")) };
    connection.close().await.map_err(failed(READ))?;
    Ok(Status {
        backend: "sqlite",
        version,
        schema: Schema::of(&applied),
        installation,
        copying_from,
        journal: Some(journal),
        clock: None,
        bytes: size(path),
        tables,
    })
}

async fn apply(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let migrated = migrate::sqlite().run_direct(None, connection, false).await;
    migrated.map_err(|error| migrate::failed(error, failed(OPEN)))
}

async fn refuse_unfinished(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    copy::refuse_unfinished(unfinished(connection).await?)
}

/// Returns the state of an unfinished copy into the file.
async fn unfinished(connection: &mut SqliteConnection) -> Result<Option<String>, StoreError> {
    if !has(connection, copy::PROGRESS).await? {
        return Ok(None);
    }
    query_scalar(copy::UNFINISHED).fetch_optional(connection).await.map_err(failed(OPEN))
}

/// The versions that were applied.
async fn versions(connection: &mut SqliteConnection) -> Result<Vec<i64>, StoreError> {
    if !has(connection, "_sqlx_migrations").await? {
        return Ok(Vec::new());
    }
    let versions = query_scalar("SELECT version FROM _sqlx_migrations WHERE success ORDER BY version");
    versions.fetch_all(connection).await.map_err(failed(READ))
}

/// Returns the installation that owns the store, if it has one.
async fn owner(connection: &mut SqliteConnection) -> Result<Option<InstallationId>, StoreError> {
    if !has(connection, "installation").await? {
        return Ok(None);
    }
    let id: Option<Vec<u8>> =
        query_scalar("SELECT id FROM installation").fetch_optional(connection).await.map_err(failed(READ))?;
    id.map(|id| row::id("the installation's id", &id)).transpose()
}

async fn settle(connection: &mut SqliteConnection) -> Result<InstallationId, StoreError> {
    let id = InstallationId::new();
    query("INSERT INTO installation (singleton, id) VALUES (1, $1)")
        .bind(&id.as_bytes()[..])
        .execute(connection)
        .await
        .map_err(failed(OPEN))?;
    Ok(id)
}

async fn has(connection: &mut SqliteConnection, table: &str) -> Result<bool, StoreError> {
    query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1)")
        .bind(table)
        .fetch_one(connection)
        .await
        .map_err(failed(READ))
}

/// Lists our tables, without those of the word index.
async fn tables(connection: &mut SqliteConnection) -> Result<Vec<TableStatus>, StoreError> {
    let names: Vec<String> = query_scalar(
        "SELECT name FROM pragma_table_list
         WHERE schema = 'main' AND type = 'table' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '_*'
         ORDER BY name",
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(failed(READ))?;
    let mut tables = Vec::with_capacity(names.len());
    for name in names {
        let sql = format!("SELECT count(*) FROM \"{}\"", name.replace('"', "\"\""));
        let rows: i64 =
            query_scalar(AssertSqlSafe(sql)).fetch_one(&mut *connection).await.map_err(failed(READ))?;
        tables.push(TableStatus { name, rows: row::count(rows)? });
    }
    Ok(tables)
}

async fn scalar(connection: &mut SqliteConnection, sql: &'static str) -> Result<String, StoreError> {
    query_scalar(sql).fetch_one(connection).await.map_err(failed(READ))
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
