//! A database of its own for one test, where `CLAWSMITH_TEST_POSTGRES` names a server.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};

/// A database that is removed with this value.
pub(crate) struct Database {
    server: String,
    name: String,
    url: String,
}

impl Database {
    /// `None` where no server is named: `make test` brings one.
    pub(crate) fn new() -> Option<Self> {
        let server = std::env::var("CLAWSMITH_TEST_POSTGRES").ok()?;
        let name = format!("clawcli_{}", claw_core::JobId::new().to_string().replace('-', ""));
        execute(&server, &format!("CREATE DATABASE {name}"));
        let url = server.parse::<PgConnectOptions>().unwrap().database(&name).to_url_lossy().to_string();
        Some(Self { server, name, url })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        execute(&self.server, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

fn execute(server: &str, statement: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = PgConnection::connect(server).await.unwrap();
        connection.execute(AssertSqlSafe(statement.to_owned())).await.unwrap();
        connection.close().await.unwrap();
    });
}
