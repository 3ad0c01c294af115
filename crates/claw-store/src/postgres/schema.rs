//! The schema of a database, its owner and its status.

use std::time::{Duration, Instant};

use claw_core::InstallationId;
use claw_core::port::UnixMillis;
use claw_core::store::StoreError;
use sqlx::{AssertSqlSafe, query, query_as, query_scalar};
use uuid::Uuid;

use super::connections::Link;
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
/// The time between two questions whether it has finished.
const POLL: Duration = Duration::from_millis(50);
/// The timeout for reading the state of the schema.
const READING: Duration = Duration::from_secs(30);
/// The timeout for counting the rows of one table.
const COUNTING: Duration = Duration::from_secs(600);

/// Migrates the schema under a lock; returns the applied migrations. A store of another installation, or one
/// with an unfinished copy, is left as it is.
pub(super) async fn prepare(
    link: &mut Link<'_>,
    options: &StoreOptions,
) -> Result<(Vec<Step>, Installation), StoreError> {
    check_encoding(link).await?;
    lock(link).await?;
    refuse_unfinished(link).await?;
    let found = owner(link).await?;
    installation::check(options.installation, found)?;
    let before = versions(link).await?;
    bring_up_to_date(link).await?;
    let after = versions(link).await?;
    let installation = match found {
        Some(id) => Installation { id, is_new: false },
        None => Installation { id: settle(link).await?, is_new: true },
    };
    unlock(link).await?;
    Ok((migrate::applied(&before, &after), installation))
}

/// Waits for other nodes that change the schema. The lock ends with the connection at the latest.
async fn lock(link: &mut Link<'_>) -> Result<(), StoreError> {
    let since = Instant::now();
    loop {
        // Each question is answered at once, so that a frozen server is not taken for a busy node.
        let is_ours = query_scalar("SELECT pg_try_advisory_lock(hashtext('clawsmith schema'), 0)");
        if is_ours.fetch_one(&mut *link).await.map_err(failed(OPEN))? {
            return Ok(());
        }
        if since.elapsed() > CHANGING {
            let waited = CHANGING.as_secs();
            let why = format!(
                "another node has been migrating the schema for {waited} s; wait for that node, or stop it"
            );
            return Err(refused(OPEN, &why));
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn unlock(link: &mut Link<'_>) -> Result<(), StoreError> {
    let unlocked = query("SELECT pg_advisory_unlock(hashtext('clawsmith schema'), 0)");
    unlocked.execute(link).await.map_err(failed(OPEN)).map(drop)
}

/// Migrates the schema, and nothing else: the installation comes with the copied rows.
pub(crate) async fn bring_up_to_date(link: &mut Link<'_>) -> Result<(), StoreError> {
    let migrations = migrate::postgres();
    // Only a migration may take longer than other statements.
    if has(link, copy::schema::TABLE).await? {
        let applied = query_as(copy::schema::APPLIED).fetch_all(&mut *link).await.map_err(failed(READ))?;
        if copy::schema::check(&applied, &migrations).is_ok() {
            return Ok(());
        }
    }
    let migrating = migrations.run_direct(None, link.connection(), false);
    let unchanged = || {
        let why = format!(
            "the schema was not migrated within {} s; check what else the database is doing",
            CHANGING.as_secs()
        );
        refused(OPEN, &why)
    };
    let migrated = tokio::time::timeout(CHANGING, migrating).await.map_err(|_| unchanged())?;
    migrated.map_err(|error| migrate::failed(error, failed(OPEN)))
}

/// Returns whether the database at `url` holds a store.
pub(crate) async fn exists(url: &str) -> Result<bool, StoreError> {
    let mut link = open(&read(url)?, READING).await?;
    let has = has(&mut link, copy::schema::TABLE).await?;
    link.close().await.map_err(failed(READ))?;
    Ok(has)
}

/// Returns the status of the database at `url`; `None` if it holds no store.
pub(crate) async fn status(url: &str) -> Result<Option<Status>, StoreError> {
    let mut link = open(&read(url)?, READING).await?;
    if !has(&mut link, copy::schema::TABLE).await? {
        return Ok(None);
    }
    let version = query_scalar("SELECT current_setting('server_version')").fetch_one(&mut link).await;
    let bytes: i64 = query_scalar("SELECT pg_database_size(current_database())")
        .fetch_one(&mut link)
        .await
        .map_err(failed(READ))?;
    let clock: i64 = query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .fetch_one(&mut link)
        .await
        .map_err(failed(READ))?;
    let status = Status {
        backend: "postgres",
        version: version.map_err(failed(READ))?,
        schema: Schema::of(&versions(&mut link).await?),
        installation: owner(&mut link).await?,
        copying_from: copy::source(unfinished(&mut link).await?)?,
        journal: None,
        clock: Some(UnixMillis(clock)),
        bytes: row::count(bytes)?,
        tables: tables(&mut link).await?,
    };
    link.close().await.map_err(failed(READ))?;
    Ok(Some(status))
}

async fn refuse_unfinished(link: &mut Link<'_>) -> Result<(), StoreError> {
    copy::refuse_unfinished(unfinished(link).await?)
}

/// Returns the state of an unfinished copy into the database.
async fn unfinished(link: &mut Link<'_>) -> Result<Option<String>, StoreError> {
    if !has(link, copy::PROGRESS).await? {
        return Ok(None);
    }
    query_scalar(copy::UNFINISHED).fetch_optional(&mut *link).await.map_err(failed(OPEN))
}

/// The versions that were applied.
async fn versions(link: &mut Link<'_>) -> Result<Vec<i64>, StoreError> {
    if !has(link, copy::schema::TABLE).await? {
        return Ok(Vec::new());
    }
    let versions = query_scalar("SELECT version FROM _sqlx_migrations WHERE success ORDER BY version");
    versions.fetch_all(&mut *link).await.map_err(failed(READ))
}

/// Returns the installation that owns the store, if it has one.
async fn owner(link: &mut Link<'_>) -> Result<Option<InstallationId>, StoreError> {
    if !has(link, "installation").await? {
        return Ok(None);
    }
    let id: Option<Uuid> =
        query_scalar("SELECT id FROM installation").fetch_optional(&mut *link).await.map_err(failed(READ))?;
    id.map(|id| row::id("the installation's id", id.as_bytes())).transpose()
}

async fn settle(link: &mut Link<'_>) -> Result<InstallationId, StoreError> {
    let id = InstallationId::new();
    query("INSERT INTO installation (singleton, id) VALUES (1, $1)")
        .bind(uuid(id.as_bytes()))
        .execute(&mut *link)
        .await
        .map_err(failed(OPEN))?;
    Ok(id)
}

async fn has(link: &mut Link<'_>, table: &str) -> Result<bool, StoreError> {
    let has = query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(table);
    has.fetch_one(link).await.map_err(failed(READ))
}

/// Refuses a database whose encoding is not UTF-8: it could not store what people and models write.
async fn check_encoding(link: &mut Link<'_>) -> Result<(), StoreError> {
    let encoding = query_scalar("SELECT current_setting('server_encoding')").fetch_one(link).await;
    let encoding: String = encoding.map_err(failed(READ))?;
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(refused(
        OPEN,
        &format!(
            "the database's encoding is {encoding}, not UTF8, so it cannot store every character; create one with \
         `createdb --encoding UTF8 --template template0 NAME`",
        ),
    ))
}

async fn tables(link: &mut Link<'_>) -> Result<Vec<TableStatus>, StoreError> {
    let names: Vec<String> = query_scalar(
        "SELECT tablename::text FROM pg_tables
         WHERE schemaname = current_schema() AND tablename NOT LIKE '\\_%' ORDER BY tablename",
    )
    .fetch_all(&mut *link)
    .await
    .map_err(failed(READ))?;
    let mut tables = Vec::with_capacity(names.len());
    for name in names {
        let sql = format!("SELECT count(*) FROM \"{}\"", name.replace('"', "\"\""));
        let rows: i64 = query_scalar(AssertSqlSafe(sql))
            .fetch_one(&mut link.with_patience(COUNTING))
            .await
            .map_err(failed(READ))?;
        tables.push(TableStatus { name, rows: row::count(rows)? });
    }
    Ok(tables)
}
