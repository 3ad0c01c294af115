//! The stores and bare connections of the benches.

use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use claw_core::NodeId;
use claw_store::{PostgresStore, SqliteStore, StoreOptions};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};

/// A bare connection to a file, with the settings of the store's own.
pub(crate) fn sqlite_options() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .create_if_missing(true)
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Full)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(5))
        .pragma("cache_size", format!("-{}", StoreOptions::default().cache_kib))
        .pragma("mmap_size", "0")
        .disable_statement_logging()
}

pub(crate) async fn sqlite_store(path: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, NodeId::local()).await.unwrap())
}

/// The server that the environment names.
pub(crate) struct Server(PgConnectOptions);

/// A database on it, with our schema.
pub(crate) struct Database {
    server: PgConnectOptions,
    name: String,
    pub(crate) options: PgConnectOptions,
}

impl Server {
    pub(crate) fn named() -> Option<Self> {
        let url = std::env::var("CLAWSMITH_TEST_POSTGRES").ok()?;
        Some(Self(PgConnectOptions::from_str(&url).unwrap().disable_statement_logging()))
    }

    pub(crate) async fn database(&self) -> Database {
        let name = format!("clawbench_{}", uuid::Uuid::now_v7().simple());
        execute(&self.0, format!("CREATE DATABASE {name}")).await;
        let options = self.0.clone().database(&name);
        let database = Database { server: self.0.clone(), name, options };
        drop(database.store("first").await);
        database
    }
}

impl Database {
    pub(crate) fn url(&self) -> String {
        self.options.to_url_lossy().to_string()
    }

    pub(crate) async fn store(&self, node: &str) -> Arc<PostgresStore> {
        Arc::new(PostgresStore::connect(&self.url(), NodeId::new(node).unwrap()).await.unwrap())
    }

    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&self.options).await.unwrap()
    }

    pub(crate) async fn drop(self) {
        execute(&self.server, format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
    }
}

async fn execute(options: &PgConnectOptions, sql: String) {
    let mut connection = PgConnection::connect_with(options).await.unwrap();
    connection.execute(AssertSqlSafe(sql)).await.unwrap();
    connection.close().await.unwrap();
}
