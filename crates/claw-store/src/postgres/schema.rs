//! The schema of a database, its owner and its status.

use std::time::Duration;

use claw_core::InstallationId;
use claw_core::port::UnixMillis;
use claw_core::store::StoreError;
use sqlx::migrate::Migrate as _;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, query, query_scalar};
use uuid::Uuid;

use super::connections::{Link, in_time};
use super::failure::{failed, refused};
use super::{OPEN, open, read, uuid};
use crate::copy;
use crate::installation::{self, Installation};
use crate::migrate::{self, Step};
use crate::options::StoreOptions;
use crate::row;
use crate::status::{Schema, Status, TableStatus};

const READ: &str = "could not read the state of the store";
/// The longest wait for another node that changes the schema.
const CHANGING: Duration = Duration::from_secs(600);
/// The timeout for reading the state of the schema.
const READING: Duration = Duration::from_secs(30);
/// The timeout for counting the rows of one table.
const COUNTING: Duration = Duration::from_secs(600);

/// Migrates the schema under a lock; returns the applied migrations. A store of another installation, or one
/// with an unfinished copy, is left as it is.
pub(super) async fn prepare(
    connection: &mut PgConnection,
    options: &StoreOptions,
) -> Result<(Vec<Step>, Installation), StoreError> {
    let migrating = |error| migrate::failed(error, failed(OPEN));
    // Held twice while the migrations run, which take the same lock; it ends with the connection at the latest.
    let locked = tokio::time::timeout(CHANGING, connection.lock()).await;
    locked
        .map_err(|_| {
            refused(
                OPEN,
                &format!(
                    "another node has been changing its schema for {} s; wait for it, or end it",
                    CHANGING.as_secs(),
                ),
            )
        })?
        .map_err(migrating)?;
    check_encoding(connection).await?;
    refuse_unfinished(connection).await?;
    let found = owner(connection).await?;
    installation::check(options.installation, found)?;
    let before = versions(connection).await?;
    bring_up_to_date(connection).await?;
    let after = versions(connection).await?;
    let installation = match found {
        Some(id) => Installation { id, is_new: false },
        None => Installation { id: settle(connection).await?, is_new: true },
    };
    let unlocked = tokio::time::timeout(READING, connection.unlock()).await;
    unlocked
        .map_err(|_| refused(OPEN, &format!("no answer within {} s", READING.as_secs())))?
        .map_err(migrating)?;
    Ok((migrate::applied(&before, &after), installation))
}

/// Migrates the schema under a lock, and nothing else: the installation comes with the copied rows.
pub(crate) async fn bring_up_to_date(connection: &mut PgConnection) -> Result<(), StoreError> {
    let migrations = migrate::postgres();
    let migrating = migrations.run_direct(None, connection, false);
    let unchanged = || {
        let why = format!(
            "its schema did not change within {} s; look at what the database does",
            CHANGING.as_secs()
        );
        refused(OPEN, &why)
    };
    let migrated = tokio::time::timeout(CHANGING, migrating).await.map_err(|_| unchanged())?;
    migrated.map_err(|error| migrate::failed(error, failed(OPEN)))
}

/// Returns whether the database at `url` holds a store.
pub(crate) async fn exists(url: &str) -> Result<bool, StoreError> {
    let mut connection = open(&read(url)?).await?;
    let has = has(&mut connection, "_sqlx_migrations").await?;
    in_time(READING, connection.close()).await.map_err(failed(READ))?;
    Ok(has)
}

/// Returns the status of the database at `url`; `None` if it holds no store.
pub(crate) async fn status(url: &str) -> Result<Option<Status>, StoreError> {
    let mut connection = open(&read(url)?).await?;
    if !has(&mut connection, "_sqlx_migrations").await? {
        return Ok(None);
    }
    let version = query_scalar("SELECT current_setting('server_version')")
        .fetch_one(&mut bounded(&mut connection))
        .await;
    let bytes: i64 = query_scalar("SELECT pg_database_size(current_database())")
        .fetch_one(&mut bounded(&mut connection))
        .await
        .map_err(failed(READ))?;
    let clock: i64 = query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .fetch_one(&mut bounded(&mut connection))
        .await
        .map_err(failed(READ))?;
    let status = Status {
        backend: "postgres",
        version: version.map_err(failed(READ))?,
        schema: Schema::of(&versions(&mut connection).await?),
        installation: owner(&mut connection).await?,
        copying_from: copy::source(unfinished(&mut connection).await?)?,
        journal: None,
        clock: Some(UnixMillis(clock)),
        bytes: row::count(bytes)?,
        tables: tables(&mut connection).await?,
    };
    in_time(READING, connection.close()).await.map_err(failed(READ))?;
    Ok(Some(status))
}

async fn refuse_unfinished(connection: &mut PgConnection) -> Result<(), StoreError> {
    copy::refuse_unfinished(unfinished(connection).await?)
}

/// Returns the state of an unfinished copy into the database.
async fn unfinished(connection: &mut PgConnection) -> Result<Option<String>, StoreError> {
    if !has(connection, copy::PROGRESS).await? {
        return Ok(None);
    }
    query_scalar(copy::UNFINISHED).fetch_optional(&mut bounded(connection)).await.map_err(failed(OPEN))
}

/// The versions that were applied.
async fn versions(connection: &mut PgConnection) -> Result<Vec<i64>, StoreError> {
    if !has(connection, "_sqlx_migrations").await? {
        return Ok(Vec::new());
    }
    let versions = query_scalar("SELECT version FROM _sqlx_migrations WHERE success ORDER BY version");
    versions.fetch_all(&mut bounded(connection)).await.map_err(failed(READ))
}

/// Returns the installation that owns the store, if it has one.
async fn owner(connection: &mut PgConnection) -> Result<Option<InstallationId>, StoreError> {
    if !has(connection, "installation").await? {
        return Ok(None);
    }
    let id: Option<Uuid> = query_scalar("SELECT id FROM installation")
        .fetch_optional(&mut bounded(connection))
        .await
        .map_err(failed(READ))?;
    id.map(|id| row::id("the installation's id", id.as_bytes())).transpose()
}

async fn settle(connection: &mut PgConnection) -> Result<InstallationId, StoreError> {
    let id = InstallationId::new();
    query("INSERT INTO installation (singleton, id) VALUES (1, $1)")
        .bind(uuid(id.as_bytes()))
        .execute(&mut bounded(connection))
        .await
        .map_err(failed(OPEN))?;
    Ok(id)
}

/// The connection, on which each statement waits at most for [`READING`].
const fn bounded(connection: &mut PgConnection) -> Link<'_> {
    Link::new(connection, READING)
}

async fn has(connection: &mut PgConnection, table: &str) -> Result<bool, StoreError> {
    let has = query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(table);
    in_time(READING, has.fetch_one(connection)).await.map_err(failed(READ))
}

/// Refuses a database whose encoding is not UTF-8: it could not store what people and models write.
async fn check_encoding(connection: &mut PgConnection) -> Result<(), StoreError> {
    let encoding: String =
        in_time(READING, query_scalar("SELECT current_setting('server_encoding')").fetch_one(connection))
            .await
            .map_err(failed(READ))?;
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(refused(
        OPEN,
        &format!(
            "the database keeps text as {encoding}, not as UTF8, and cannot hold every character; make one with \
         `createdb --encoding UTF8 --template template0 NAME`",
        ),
    ))
}

async fn tables(connection: &mut PgConnection) -> Result<Vec<TableStatus>, StoreError> {
    let names: Vec<String> = query_scalar(
        "SELECT tablename::text FROM pg_tables
         WHERE schemaname = current_schema() AND tablename NOT LIKE '\\_%' ORDER BY tablename",
    )
    .fetch_all(&mut bounded(connection))
    .await
    .map_err(failed(READ))?;
    let mut tables = Vec::with_capacity(names.len());
    for name in names {
        let sql = format!("SELECT count(*) FROM \"{}\"", name.replace('"', "\"\""));
        let rows: i64 = query_scalar(AssertSqlSafe(sql))
            .fetch_one(&mut Link::new(connection, COUNTING))
            .await
            .map_err(failed(READ))?;
        tables.push(TableStatus { name, rows: row::count(rows)? });
    }
    Ok(tables)
}
