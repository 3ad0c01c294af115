//! Unusable files, and their error messages.

use std::fs;
use std::path::Path;

use claw_core::store::{Ledger as _, StoreError};
use claw_core::{CallId, NodeId, TenantId};
use claw_store::SqliteStore;
use claw_testkit::fixture::refused;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;

async fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, NodeId::local()).await
}

/// Runs a statement on the file and leaves no other file beside it.
async fn tamper(path: &Path, sql: &'static str) {
    let mut connection = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    sqlx::query(sql).execute(&mut connection).await.unwrap();
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_not_a_database() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "remember the milk\n".repeat(100)).unwrap();
    let error = open(&path).await.unwrap_err();
    assert!(matches!(&error, StoreError::Damaged { .. }), "{error:?}");
    let expected =
        format!("`{}` is damaged: the file is not a SQLite database; name another one", path.display());
    assert_eq!(error.to_string(), expected);
    assert_eq!(fs::read_to_string(&path).unwrap(), "remember the milk\n".repeat(100), "it is left alone");
}

#[tokio::test]
async fn a_path_that_cannot_be_made() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    let path = directory.path().join("file/claw.db");
    let error = open(&path).await.unwrap_err();
    assert!(matches!(&error, StoreError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    let error = open(directory.path()).await.unwrap_err();
    assert!(matches!(&error, StoreError::Io { .. }), "{error:?}");
}

#[tokio::test]
async fn a_file_of_a_newer_clawsmith() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    drop(open(&path).await.unwrap());
    tamper(
        &path,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99, 'later', TRUE, x'00', 0)",
    )
    .await;
    let error = open(&path).await.unwrap_err().to_string();
    assert!(error.contains("created by a newer Clawsmith (its schema is 99,"), "{error}");
    assert!(error.contains(path.to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn a_migration_that_was_changed() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    drop(open(&path).await.unwrap());
    tamper(&path, "UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 2").await;
    let error = open(&path).await.unwrap_err().to_string();
    assert!(error.contains("migration 2 was applied with other contents"), "{error}");
}

#[tokio::test]
async fn pages_that_are_corrupt() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let store = open(&path).await.unwrap();
    for _ in 0..100 {
        store.refuse(refused(CallId::new())).await.unwrap();
    }
    drop(store);
    tamper(&path, "SELECT 1").await;
    // The first page stays whole, so that the file opens.
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let error = match open(&path).await {
        Ok(store) => store.recent(&TenantId::main(), 10).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(&error, StoreError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
}
