//! A store in one SQLite file, or in memory.
//!
//! All writes of a process go through one connection, so that they queue instead of failing; reads have
//! connections of their own and wait for no write, only for the sync of the rows they saw. Several processes
//! may share the file.

#[path = "../sql/access.rs"]
mod access;
#[path = "../sql/agents.rs"]
mod agents;
mod approvals;
mod batch;
#[path = "../sql/blobs.rs"]
mod blobs;
mod connections;
#[path = "../sql/custom_tools.rs"]
mod custom_tools;
mod dialect;
mod documents;
#[path = "../sql/encrypted_values.rs"]
mod encrypted_values;
pub(crate) mod error;
mod graph;
#[path = "../sql/kept_results.rs"]
mod kept_results;
pub(crate) mod ledger;
mod live_streams;
mod mark;
mod mcp;
mod notifications;
#[path = "../sql/offers.rs"]
mod offers;
mod passage_vectors;
#[path = "../sql/processes.rs"]
mod processes;
#[path = "../sql/programs.rs"]
mod programs;
mod queue;
mod rules;
mod runs;
mod schema;
#[path = "../sql/secrets.rs"]
mod secrets;
#[path = "../sql/seen_files.rs"]
mod seen_files;
mod session_owners;
mod sessions;
#[path = "../sql/settings.rs"]
mod settings;
mod shared_sync;
#[path = "../sql/skills.rs"]
mod skills;
mod undo;
#[path = "../sql/usage.rs"]
mod usage;
mod workspace_files;

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::NodeId;
use claw_core::store::{Bells, BlobLimits, SessionBells, StoreError};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use self::connections::{Begun, Connections};
use self::error::{at, failed, is_busy};
use self::mark::Mark;
use self::notifications::Tail;
pub(crate) use self::schema::{bring_up_to_date, status};
use self::shared_sync::Log;
pub use self::shared_sync::SyncCounts;
use crate::backend::Backend;
use crate::installation::{self, Installation};
use crate::ledger::chain::ChainReport;
use crate::live_streams::Hub;
use crate::migrate::Step;
use crate::options::StoreOptions;

pub(crate) const OPEN: &str = "could not open the store";

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    node: NodeId,
    writer: Connections,
    /// The reading connections; in memory, the writer itself.
    readers: Connections,
    bells: Arc<Bells>,
    session_bells: Arc<SessionBells>,
    hub: Hub,
    tail: Option<Tail>,
    installation: Installation,
    blob_limits: BlobLimits,
    held: passage_vectors::Held,
    together: ledger::Together,
    grants: mcp::KeptGrants,
}

impl SqliteStore {
    /// Opens the store in the file at `path`, creating it if it is missing.
    pub async fn open(path: &Path, node: NodeId) -> Result<Self, StoreError> {
        Self::open_with(path, node, &StoreOptions::default()).await
    }

    /// Opens the store with options.
    pub async fn open_with(path: &Path, node: NodeId, options: &StoreOptions) -> Result<Self, StoreError> {
        make_file(path, options)?;
        Self::open_file(path, node, options).await.map_err(|error| at(path, error))
    }

    /// A store that lives as long as this value.
    pub async fn memory(node: NodeId) -> Result<Self, StoreError> {
        // A store in memory belongs to no lasting installation.
        let options = StoreOptions::default();
        let writer = connections(connect(&options).in_memory(true), 1, &options);
        let (_, installation) = schema::prepare(&writer, &options).await?;
        let readers = writer.clone();
        let together = ledger::Together::new(writer.clone(), node.clone());
        Ok(Self {
            together,
            node,
            writer,
            readers,
            bells: Arc::default(),
            session_bells: Arc::default(),
            hub: Hub::default(),
            tail: None,
            installation,
            blob_limits: options.blobs,
            held: passage_vectors::Held::default(),
            grants: mcp::KeptGrants::new(Mark::Alone),
        })
    }

    async fn open_file(path: &Path, node: NodeId, options: &StoreOptions) -> Result<Self, StoreError> {
        let connect = connect(options).filename(path);
        let writer = Connections::writing(write_ahead(&connect), options.acquire_timeout, Log::new(path));
        let writer = opened(writer, options).await.map_err(failed(OPEN))?;
        let (_, installation) = schema::prepare(&writer, options).await?;
        let connect = connect.pragma("query_only", "ON");
        let readers =
            Connections::reading(connect.clone(), options.readers, options.acquire_timeout, &writer);
        let (bells, session_bells) = (Arc::<Bells>::default(), Arc::<SessionBells>::default());
        let tail = connections(connect, 1, options);
        let tail = Tail::follow(tail, writer.clone(), Arc::clone(&bells), Arc::clone(&session_bells));
        let (tail, hub) = (Some(tail.await.map_err(failed(OPEN))?), Hub::default());
        let blob_limits = options.blobs;
        let together = ledger::Together::new(writer.clone(), node.clone());
        Ok(Self {
            together,
            node,
            writer,
            readers,
            bells,
            session_bells,
            hub,
            tail,
            installation,
            blob_limits,
            held: passage_vectors::Held::default(),
            grants: mcp::KeptGrants::new(Mark::beside(path)),
        })
    }

    /// Counts the transactions that were committed and the syncs that they shared; both are 0 in memory.
    pub fn sync_counts(&self) -> SyncCounts {
        self.writer.sync_counts()
    }

    /// Begins a read transaction: several statements see one state of the file.
    async fn look(&self, what: &'static str) -> Result<Begun<'_>, StoreError> {
        self.readers.begin("BEGIN").await.map_err(failed(what))
    }

    /// Begins a write transaction. Dropped without a commit, it is rolled back.
    async fn write(&self, what: &'static str) -> Result<Begun<'_>, StoreError> {
        self.writer.begin("BEGIN IMMEDIATE").await.map_err(failed(what))
    }
}

#[async_trait]
impl Backend for SqliteStore {
    async fn verify(&self) -> Result<Vec<ChainReport>, StoreError> {
        SqliteStore::verify(self).await
    }

    fn installation(&self) -> Installation {
        self.installation
    }

    async fn disconnect(&self) {
        if let Some(tail) = &self.tail {
            tail.close().await;
        }
        self.readers.close().await;
        // The last: it takes what waits beside the file into it.
        self.writer.close().await;
    }
}

/// Creates the file at `path` if it is missing, and migrates its schema; returns the applied migrations.
pub(crate) async fn migrate(path: &Path, options: &StoreOptions) -> Result<Vec<Step>, StoreError> {
    make_file(path, options)?;
    let migrate = async {
        let writer = connections(write_ahead(&connect(options).filename(path)), 1, options);
        let writer = opened(writer, options).await.map_err(failed(OPEN))?;
        let prepared = schema::prepare(&writer, options).await;
        writer.close().await;
        Ok(prepared?.0)
    };
    migrate.await.map_err(|error| at(path, error))
}

/// Returns the options for connecting to a file.
pub(crate) fn connect(options: &StoreOptions) -> SqliteConnectOptions {
    let mapped = u64::from(options.mmap_mib) * 1024 * 1024;
    SqliteConnectOptions::new()
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(options.busy_timeout)
        // Negative is in KiB.
        .pragma("cache_size", format!("-{}", options.cache_kib))
        .pragma("mmap_size", mapped.to_string())
        .disable_statement_logging()
}

fn connections(connect: SqliteConnectOptions, most: u32, options: &StoreOptions) -> Connections {
    Connections::new(connect, most, options.acquire_timeout)
}

fn write_ahead(connect: &SqliteConnectOptions) -> SqliteConnectOptions {
    connect.clone().journal_mode(SqliteJournalMode::Wal)
}

/// Opens the connection that writes. SQLite does not wait for a lock when it turns a new file to write-ahead
/// logging, so two processes that begin together try again here.
async fn opened(writer: Connections, options: &StoreOptions) -> Result<Connections, sqlx::Error> {
    let started = tokio::time::Instant::now();
    loop {
        match writer.acquire().await.map(drop) {
            Err(error) if is_busy(&error) && started.elapsed() < options.busy_timeout => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            opened => return opened.map(|()| writer),
        }
    }
}

/// Creates the file, and missing directories, accessible to their owner alone. SQLite gives the files beside
/// it the same mode. Nothing is created for an installation that had a store before.
pub(crate) fn make_file(path: &Path, options: &StoreOptions) -> Result<(), StoreError> {
    if !path.exists() {
        installation::check(options.installation, None)?;
    }
    let make = || {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map(drop),
        }
    };
    make().map_err(|source| StoreError::Io { what: format!("could not make `{}`", path.display()), source })
}

#[cfg(test)]
mod tests;
