//! One PostgreSQL database, for many nodes.
//!
//! Every trait method is one transaction or one statement. Rows are locked where order matters (the head of a
//! chain, a session's counters) and skipped where it does not (the queue); unique indexes have the last word.
//! Times come from the caller: the server's clock is never asked.

mod approvals;
mod changes;
pub(crate) mod failure;
pub(crate) mod ledger;
mod queue;
mod sessions;

use std::str::FromStr as _;
use std::time::Duration;

use claw_core::NodeId;
use claw_core::store::StoreError;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow, PgTransaction};
use sqlx::{ConnectOptions as _, Connection as _, Decode, Postgres, Row as _, Type, query_scalar};
use uuid::Uuid;

use self::changes::Listener;
use self::failure::{failed, refused};
use crate::{copy, migrate};

pub(crate) const OPEN: &str = "could not open the store";
/// Connections of one store, beside the one that listens.
const MOST_CONNECTIONS: u32 = 16;
/// How long to wait for one of them.
const ACQUIRE: Duration = Duration::from_secs(10);
/// How long one may be idle before it is tried out first; asking every time would double the way.
const FRESH: Duration = Duration::from_secs(1);
/// How long one may be idle before it is closed.
const IDLE: Duration = Duration::from_secs(300);
/// What holds on every connection. A client that hangs must not hold its locks for long.
const SETTINGS: [(&str, &str); 3] = [
    ("statement_timeout", "30s"),
    ("idle_in_transaction_session_timeout", "30s"),
    ("default_transaction_isolation", "read committed"),
];

/// A store in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStore {
    pool: PgPool,
    node: NodeId,
    listener: Listener,
}

impl PostgresStore {
    /// Opens the database that `url` names (`postgres://user@host/name`) for this node, and brings its schema
    /// up to date; nodes that start together wait for each other there.
    pub async fn connect(url: &str, node: NodeId) -> Result<Self, StoreError> {
        let options = options(url)?;
        // On a connection of its own: a migration may take longer than a statement otherwise may.
        let mut connection = PgConnection::connect_with(&options).await.map_err(failed(OPEN))?;
        migrate(&mut connection).await?;
        copy::refuse_unfinished(
            query_scalar(copy::UNFINISHED).fetch_optional(&mut connection).await.map_err(failed(OPEN))?,
        )?;
        connection.close().await.map_err(failed(OPEN))?;

        let options = options.options(SETTINGS);
        let pool = PgPoolOptions::new()
            .max_connections(MOST_CONNECTIONS)
            .acquire_timeout(ACQUIRE)
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
            .connect_lazy_with(options.clone());
        Ok(Self { pool, node, listener: Listener::start(options) })
    }

    async fn begin(&self, what: &'static str) -> Result<PgTransaction<'static>, StoreError> {
        self.pool.begin().await.map_err(failed(what))
    }
}

/// How to reach the database that `url` names.
pub(crate) fn options(url: &str) -> Result<PgConnectOptions, StoreError> {
    // The parser's own words could quote a password.
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| refused(OPEN, "its URL does not read; write `postgres://user@host/name`"))?;
    Ok(options.application_name("clawsmith").disable_statement_logging())
}

/// Brings the schema up to date, while nobody else does.
pub(crate) async fn migrate(connection: &mut PgConnection) -> Result<(), StoreError> {
    let migrated = migrate::postgres().run_direct(None, connection, false).await;
    migrated.map_err(|error| migrate::failed(error, failed(OPEN)))
}

/// What a column holds.
fn get<'r, T: Decode<'r, Postgres> + Type<Postgres>>(row: &'r PgRow, column: &str) -> Result<T, StoreError> {
    row.try_get(column).map_err(failed("could not read a row"))
}

/// The bytes of one of our ids as PostgreSQL keeps them.
fn uuid(bytes: &[u8; 16]) -> Uuid {
    Uuid::from_bytes(*bytes)
}

/// Free text as PostgreSQL takes it: it keeps every character except NUL.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
