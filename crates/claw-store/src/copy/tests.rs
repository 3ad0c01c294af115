//! Faults that only the writing connection can be given.

use std::path::Path;

use claw_core::NodeId;
use claw_core::store::{SessionLog as _, StoreError};
use claw_testkit::fixture::{job_of, message};
use sqlx::query;
use tempfile::TempDir;

use super::sqlite::SqliteSide;
use super::{CopyReport, Options, run};
use crate::SqliteStore;

async fn copied(from: &Path, to: &Path, pages: &'static str) -> Result<CopyReport, StoreError> {
    let mut source = SqliteSide::source(from).await.unwrap();
    let mut target = SqliteSide::target(to).await.unwrap();
    query(pages).fetch_all(target.connection()).await.unwrap();
    run(&mut source, &mut target, Options::default(), &mut |_| {}).await
}

#[tokio::test]
async fn a_full_disk_is_named_and_gone_on_from() {
    let directory = TempDir::new().unwrap();
    let (from, to) = (directory.path().join("a.db"), directory.path().join("b.db"));
    let store = SqliteStore::open(&from, NodeId::local()).await.unwrap();
    for _ in 0..30 {
        store.accept_message(message("cli:me", &"x".repeat(100_000)), job_of("cli:me")).await.unwrap();
    }
    drop(store);
    for _ in 0..2 {
        let error = copied(&from, &to, "PRAGMA max_page_count = 400").await.unwrap_err();
        assert!(matches!(&error, StoreError::Database { transient: true, .. }), "{error:?}");
        assert_eq!(error.to_string(), "could not copy: `messages`: the disk is full; free some space");
    }
    let report = copied(&from, &to, "PRAGMA max_page_count = 1000000").await.unwrap();
    assert!(report.resumed && report.verified == report.rows, "{report:?}");
}
