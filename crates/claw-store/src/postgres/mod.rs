//! A store in one PostgreSQL database, for many nodes.
//!
//! Every trait method is one transaction or one statement. Rows are locked if order matters (the head of a
//! chain, a session's counters) and skipped if it does not (the queue); unique indexes have the last word.
//! Times come from the caller: the server's clock is never used.

#[path = "../sql/access.rs"]
mod access;
#[path = "../sql/agents.rs"]
mod agents;
mod approvals;
#[path = "../sql/blobs.rs"]
mod blobs;
pub(crate) mod connections;
#[path = "../sql/custom_tools.rs"]
mod custom_tools;
mod dialect;
mod documents;
#[path = "../sql/encrypted_values.rs"]
mod encrypted_values;
pub(crate) mod failure;
mod graph;
#[path = "../sql/kept_results.rs"]
mod kept_results;
pub(crate) mod ledger;
mod live_streams;
mod mcp;
mod notifications;
#[path = "../sql/offers.rs"]
mod offers;
mod passage_vectors;
mod pgvector;
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
#[path = "../sql/skills.rs"]
mod skills;
mod undo;
#[path = "../sql/usage.rs"]
mod usage;
mod workspace_files;

use std::str::FromStr as _;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::NodeId;
use claw_core::store::{BlobLimits, StoreError};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions, PgRow};
use sqlx::{ConnectOptions as _, Connection as _, Decode, Postgres, Row as _, Type};
use uuid::Uuid;

use self::connections::{Connections, Link, Transaction, in_time, patience};
use self::failure::{failed, refused};
use self::live_streams::Wire;
use self::notifications::Listener;
pub(crate) use self::schema::{bring_up_to_date, exists, status};
use crate::backend::Backend;
use crate::installation::Installation;
use crate::ledger::chain::ChainReport;
use crate::migrate::Step;
use crate::options::StoreOptions;

const OPEN: &str = "could not open the store";
/// The idle time after which a connection is tested before use; testing it every time would double the round
/// trips.
const FRESH: Duration = Duration::from_secs(1);
/// The idle time after which a connection is closed.
const IDLE: Duration = Duration::from_secs(300);
/// A store in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStore {
    pool: Connections,
    node: NodeId,
    listener: Listener,
    wire: Wire,
    installation: Installation,
    blob_limits: BlobLimits,
    pgvector: pgvector::Pgvector,
}

impl PostgresStore {
    /// Opens the database at `url` (`postgres://user@host/name`) for this node, and migrates its schema;
    /// nodes that start together wait for each other there.
    pub async fn connect(url: &str, node: NodeId) -> Result<Self, StoreError> {
        Self::connect_with(url, node, &StoreOptions::default()).await
    }

    /// Opens the database with options.
    pub async fn connect_with(url: &str, node: NodeId, options: &StoreOptions) -> Result<Self, StoreError> {
        let connect = read(url)?;
        let (_, installation) = prepare(&connect, options).await?;
        let connect = connect.options(settings(options));
        let pool = PgPoolOptions::new()
            .max_connections(options.connections.max(1))
            .acquire_timeout(options.acquire_timeout)
            .idle_timeout(IDLE)
            .test_before_acquire(false)
            .before_acquire(|connection, is| {
                Box::pin(async move {
                    if is.idle_for > FRESH {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(connect.clone());
        let pool = Connections::new(pool, patience(options));
        let wire = Wire::start(pool.clone());
        let listener = Listener::start(connect, wire.ours(), options);
        Ok(Self {
            pool,
            node,
            listener,
            wire,
            installation,
            blob_limits: options.blobs,
            pgvector: pgvector::Pgvector::default(),
        })
    }

    async fn begin(&self, what: &'static str) -> Result<Transaction, StoreError> {
        self.pool.begin().await.map_err(failed(what))
    }
}

#[async_trait]
impl Backend for PostgresStore {
    async fn verify(&self) -> Result<Vec<ChainReport>, StoreError> {
        PostgresStore::verify(self).await
    }

    fn installation(&self) -> Installation {
        self.installation
    }

    async fn disconnect(&self) {
        self.listener.close().await;
        self.pool.close().await;
    }
}

/// Migrates the schema; returns the applied migrations.
pub(crate) async fn migrate(url: &str, options: &StoreOptions) -> Result<Vec<Step>, StoreError> {
    Ok(prepare(&read(url)?, options).await?.0)
}

/// Prepares the database on a connection of its own: a migration may take longer than a statement otherwise
/// may.
async fn prepare(
    connect: &PgConnectOptions,
    options: &StoreOptions,
) -> Result<(Vec<Step>, Installation), StoreError> {
    let connection = open_within(connect, options.acquire_timeout).await?;
    let mut link = Link::new(connection, patience(options));
    let prepared = schema::prepare(&mut link, options).await?;
    link.close().await.map_err(failed(OPEN))?;
    Ok(prepared)
}

/// Opens a connection of its own, on which each wait is bounded by `patience`.
pub(crate) async fn open(
    connect: &PgConnectOptions,
    patience: Duration,
) -> Result<Link<'static>, StoreError> {
    let connection = open_within(connect, StoreOptions::default().acquire_timeout).await?;
    Ok(Link::new(connection, patience))
}

async fn open_within(connect: &PgConnectOptions, patience: Duration) -> Result<PgConnection, StoreError> {
    in_time(patience, PgConnection::connect_with(connect)).await.map_err(failed(OPEN))
}

/// Parses the URL of a database.
pub(crate) fn read(url: &str) -> Result<PgConnectOptions, StoreError> {
    // The parser's own words could quote a password.
    let connect = PgConnectOptions::from_str(url)
        .map_err(|_| refused(OPEN, "its URL is not valid; write `postgres://user@host/name`"))?;
    Ok(connect.application_name("clawsmith").disable_statement_logging())
}

/// Returns the settings of every connection. A client that hangs must not hold its locks for long.
fn settings(options: &StoreOptions) -> [(&'static str, String); 3] {
    let timeout = format!("{}ms", options.statement_timeout.as_millis());
    [
        ("statement_timeout", timeout.clone()),
        ("idle_in_transaction_session_timeout", timeout),
        ("default_transaction_isolation", "read committed".to_owned()),
    ]
}

/// Returns the value of a column.
fn get<'r, T: Decode<'r, Postgres> + Type<Postgres>>(row: &'r PgRow, column: &str) -> Result<T, StoreError> {
    row.try_get(column).map_err(failed("could not read a row"))
}

/// Converts the bytes of an id to PostgreSQL's type.
fn uuid(bytes: &[u8; 16]) -> Uuid {
    Uuid::from_bytes(*bytes)
}

/// Replaces NUL in free text, the one character that PostgreSQL cannot store.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
