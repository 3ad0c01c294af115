//! A database of its own for one test, if `CLAWSMITH_TEST_POSTGRES` names a server.

use std::thread;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};

/// A database that is removed with this value.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
    url: String,
}

impl Database {
    /// Creates a database. `None` if no server is named: `make test` brings one.
    pub fn new() -> Option<Self> {
        let server = std::env::var("CLAWSMITH_TEST_POSTGRES").ok()?;
        let name = format!("clawtest_{}", claw_core::JobId::new().to_string().replace('-', ""));
        execute(&server, &format!("CREATE DATABASE {name}"));
        let url = server.parse::<PgConnectOptions>().unwrap().database(&name).to_url_lossy().to_string();
        Some(Self { server, name, url })
    }

    /// The URL that a store is opened with.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        execute(&self.server, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

/// Runs a statement on a thread of its own: the test's runtime may be ending.
fn execute(server: &str, statement: &str) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut connection = PgConnection::connect(server).await.unwrap();
                connection.execute(AssertSqlSafe(statement.to_owned())).await.unwrap();
                connection.close().await.unwrap();
            });
        });
    });
}
