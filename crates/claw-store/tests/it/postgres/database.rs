//! Databases that live as long as a test, on the given server.

use std::str::FromStr as _;
use std::sync::Mutex;
use std::{env, thread};

use claw_core::NodeId;
use claw_store::{PostgresStore, StoreOptions};
use sqlx::postgres::{PgConnectOptions, PgConnection, Postgres};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Transaction};
use tokio::time::timeout;
use uuid::Uuid;

use super::proxy::Proxy;

const VARIABLE: &str = "CLAWSMITH_TEST_POSTGRES";

/// An empty database. It is dropped with this value, whoever is still connected.
pub(crate) struct Database {
    name: String,
}

/// Databases for a suite that wants many stores, each empty.
#[derive(Default)]
pub(crate) struct Databases(Mutex<Vec<Database>>);

impl Databases {
    pub(crate) async fn store(&self) -> PostgresStore {
        self.store_with(&StoreOptions::default()).await
    }

    pub(crate) async fn store_with(&self, options: &StoreOptions) -> PostgresStore {
        let database = Database::create().await;
        let store = PostgresStore::connect_with(&database.url(), NodeId::local(), options).await.unwrap();
        self.0.lock().unwrap().push(database);
        store
    }
}

impl Database {
    pub(crate) async fn create() -> Self {
        Self::create_with("").await
    }

    pub(crate) async fn create_with(options: &str) -> Self {
        let name = format!("clawtest_{}", Uuid::now_v7().simple());
        execute(&server(), format!("CREATE DATABASE {name} {options}")).await;
        Self { name }
    }

    pub(crate) fn url(&self) -> String {
        self.options().to_url_lossy().to_string()
    }

    /// A way to this database that can be cut, and its URL.
    pub(crate) fn behind_a_proxy(&self) -> (Proxy, String) {
        let options = self.options();
        let server = options.get_socket().expect("the tests' server has a socket");
        let proxy = Proxy::start(server.clone());
        let url = options.socket(proxy.directory()).to_url_lossy().to_string();
        (proxy, url)
    }

    pub(crate) async fn store(&self, node: &str) -> PostgresStore {
        PostgresStore::connect(&self.url(), NodeId::new(node).unwrap()).await.unwrap()
    }

    pub(crate) async fn run(&self, sql: &str) {
        execute(&self.options(), sql.to_owned()).await;
    }

    pub(crate) async fn count(&self, sql: &str) -> i64 {
        let mut connection = PgConnection::connect_with(&self.options()).await.unwrap();
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut connection).await.unwrap()
    }

    pub(crate) async fn numbers(&self, sql: &str) -> Vec<i32> {
        let mut connection = PgConnection::connect_with(&self.options()).await.unwrap();
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap()
    }

    /// Takes a lock with this statement and keeps it until dropped.
    pub(crate) async fn lock(&self, sql: &'static str) -> Transaction<'static, Postgres> {
        let pool = sqlx::PgPool::connect_lazy_with(self.options());
        let mut transaction = pool.begin().await.unwrap();
        transaction.execute(sql).await.unwrap();
        transaction
    }

    /// Terminates the connections to this database that match `which`, as an operator or a crash would; waits
    /// until there is one.
    pub(crate) async fn end_connections(&self, which: &str) {
        let end = format!(
            "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND {which}"
        );
        while self.count(&end).await == 0 {}
    }

    /// Waits until nobody else is connected to this database.
    pub(crate) async fn wait_until_alone(&self) {
        let others = "SELECT count(*) FROM pg_stat_activity
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let mut connection = PgConnection::connect_with(&self.options()).await.unwrap();
        let wait = async {
            while sqlx::query_scalar::<_, i64>(others).fetch_one(&mut connection).await.unwrap() > 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(super::STUCK, wait).await.expect("a connection outlives its program");
    }

    fn options(&self) -> PgConnectOptions {
        server().database(&self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        // A runtime of its own: the test's may be unwinding.
        let dropped = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(execute(&server(), drop));
        });
        dropped.join().unwrap();
    }
}

async fn execute(options: &PgConnectOptions, sql: String) {
    let mut connection = PgConnection::connect_with(options).await.unwrap();
    connection.execute(AssertSqlSafe(sql)).await.unwrap();
    connection.close().await.unwrap();
}

fn server() -> PgConnectOptions {
    let url = env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "these tests need a PostgreSQL: run `make test`, or `scripts/with-postgres.sh cargo test`, which \
             bring one, or name yours in {VARIABLE}"
        )
    });
    PgConnectOptions::from_str(&url).expect("a URL of PostgreSQL")
}
