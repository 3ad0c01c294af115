//! Inspects a file before it is trusted.

use std::path::Path;

use claw_core::store::StoreError;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, query_scalar};

use crate::copy::{put_there, schema, sqlite};
use crate::ledger::chain::ChainReport;
use crate::migrate;
use crate::options::StoreOptions;
use crate::sqlite::error::{at, failed};
use crate::sqlite::{connect as reach, ledger};

const READ: &str = "could not read the file";

/// The findings about a whole file.
pub(super) struct Inspection {
    pub(super) chains: Vec<ChainReport>,
}

/// Looks at every page and every entry of the ledger. Changes nothing.
pub(super) async fn file(path: &Path) -> Result<Inspection, StoreError> {
    let inspected = async {
        let mut connection = connect(path).await?;
        check_store(&mut connection).await?;
        let found: Vec<String> = query_scalar("PRAGMA integrity_check(1)")
            .fetch_all(&mut connection)
            .await
            .map_err(failed(READ))?;
        if found != ["ok"] {
            let why = format!("{}; take another backup", found.join("; "));
            return Err(StoreError::Damaged { what: "the file".to_owned(), why });
        }
        let chains = ledger::verify_all(&mut connection).await?;
        connection.close().await.map_err(failed(READ))?;
        Ok(Inspection { chains })
    };
    inspected.await.map_err(|error| at(path, error))
}

/// Checks that a file holds a whole store that this Clawsmith can open.
pub(super) async fn check_store(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let known = schema::check_known(&sqlite::applied(connection).await?, &migrate::sqlite());
    match known.and(sqlite::check_finished(connection).await) {
        Err(StoreError::Database { why, transient, .. }) => {
            Err(StoreError::Database { what: READ, why, transient })
        }
        checked => checked,
    }
}

/// Returns whether a file has no rows but those that opening a store creates.
pub(super) async fn is_empty(path: &Path) -> Result<bool, StoreError> {
    let looked = async {
        let mut connection = connect(path).await?;
        let tables: Vec<String> = query_scalar(
            "SELECT name FROM pragma_table_list
             WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> ?1",
        )
        .bind(schema::TABLE)
        .fetch_all(&mut connection)
        .await
        .map_err(failed(READ))?;
        for table in &tables {
            let (name, rows) = (table.replace('"', "\"\""), put_there(table));
            let sql = format!("SELECT EXISTS (SELECT 1 FROM \"{name}\" WHERE {rows})");
            let rows: bool =
                query_scalar(AssertSqlSafe(sql)).fetch_one(&mut connection).await.map_err(failed(READ))?;
            if rows {
                return Ok(false);
            }
        }
        connection.close().await.map_err(failed(READ))?;
        Ok(true)
    };
    looked.await.map_err(|error| at(path, error))
}

async fn connect(path: &Path) -> Result<SqliteConnection, StoreError> {
    let options = reach(&StoreOptions::default()).filename(path).create_if_missing(false);
    let options = options.pragma("query_only", "ON");
    options.connect().await.map_err(failed(READ))
}
