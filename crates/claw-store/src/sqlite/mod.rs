//! One SQLite file, or memory.
//!
//! All writes of a process go through one connection, so that they queue here rather than fail there; reads
//! have connections of their own and never wait for a write. Several processes may share the file.

mod approvals;
mod changes;
pub(crate) mod error;
pub(crate) mod ledger;
mod queue;
mod sessions;

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use claw_core::NodeId;
use claw_core::store::{Bells, StoreError};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, SqliteConnection, Transaction, query_scalar};

use self::changes::Tail;
use self::error::{at, failed, is_busy};
use crate::{copy, migrate};

pub(crate) const OPEN: &str = "could not open the store";
/// How long a process waits for another that writes to the same file.
const BUSY: Duration = Duration::from_secs(5);
/// How long a write waits for those before it.
const PATIENCE: Duration = Duration::from_secs(10);
const READERS: u32 = 4;

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    node: NodeId,
    writer: SqlitePool,
    readers: SqlitePool,
    bells: Arc<Bells>,
    _tail: Option<Tail>,
}

impl SqliteStore {
    /// Opens the store in the file at `path`, which is made if it is not there.
    pub async fn open(path: &Path, node: NodeId) -> Result<Self, StoreError> {
        make_file(path).map_err(|source| StoreError::Io {
            what: format!("could not make `{}`", path.display()),
            source,
        })?;
        Self::open_file(path, node).await.map_err(|error| at(path, error))
    }

    /// A store that lives as long as this value.
    pub async fn memory(node: NodeId) -> Result<Self, StoreError> {
        let options = options().in_memory(true);
        let writer = pool(1).connect_with(options).await.map_err(failed(OPEN))?;
        migrate(&mut *writer.acquire().await.map_err(failed(OPEN))?).await?;
        let readers = writer.clone();
        Ok(Self { node, writer, readers, bells: Arc::default(), _tail: None })
    }

    async fn open_file(path: &Path, node: NodeId) -> Result<Self, StoreError> {
        let options = options().filename(path);
        let writer = connect_writer(&options).await.map_err(failed(OPEN))?;
        let mut connection = writer.acquire().await.map_err(failed(OPEN))?;
        migrate(&mut connection).await?;
        copy::refuse_unfinished(
            query_scalar(copy::UNFINISHED).fetch_optional(&mut *connection).await.map_err(failed(OPEN))?,
        )?;
        drop(connection);
        let options = options.pragma("query_only", "ON");
        let readers = pool(READERS).connect_lazy_with(options.clone());
        let bells = Arc::<Bells>::default();
        let tail = Tail::follow(&options, Arc::clone(&bells)).await.map_err(failed(OPEN))?;
        Ok(Self { node, writer, readers, bells, _tail: Some(tail) })
    }

    /// Begins to write. What is not committed has not happened.
    async fn write(&self, what: &'static str) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(failed(what))
    }
}

pub(crate) fn options() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY)
        .disable_statement_logging()
}

/// Connections that are never given up for their age: opening one again costs more than keeping it, and in
/// memory it is the store itself.
fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .after_release(|connection, _| Box::pin(is_reusable(connection)))
}

/// Whether a connection is out of its transaction. A full disk makes SQLite roll back by itself, which the
/// driver does not notice: it would count a transaction for ever and begin no other.
async fn is_reusable(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // A rollback may be on its way; this waits for it.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

/// Opens the connection that writes. SQLite does not wait for a lock when it turns a new file to write-ahead
/// logging, so two processes that begin together try again here.
async fn connect_writer(options: &SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
    let options = options.clone().journal_mode(SqliteJournalMode::Wal);
    let started = tokio::time::Instant::now();
    loop {
        match pool(1).connect_with(options.clone()).await {
            Err(error) if is_busy(&error) && started.elapsed() < BUSY => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            connected => return connected,
        }
    }
}

/// Brings the schema up to date, all of it or nothing, while nobody else does.
pub(crate) async fn migrate(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let mut transaction = connection.begin_with("BEGIN EXCLUSIVE").await.map_err(failed(OPEN))?;
    let migrated = migrate::sqlite().run_direct(None, &mut *transaction, false).await;
    migrated.map_err(|error| migrate::failed(error, failed(OPEN)))?;
    transaction.commit().await.map_err(failed(OPEN))
}

/// Makes the file, and directories that are missing, for the eyes of their owner alone. SQLite gives the
/// files it puts beside it the same mode.
pub(crate) fn make_file(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

#[cfg(test)]
mod tests;
