//! The connection that writes, when it is lost.

use std::os::unix::fs::MetadataExt as _;

use claw_core::NodeId;
use claw_core::store::Queue as _;
use claw_testkit::fixture::job;
use sqlx::Connection as _;
use tempfile::TempDir;

use crate::sqlite::SqliteStore;

#[tokio::test]
async fn a_log_that_is_made_anew_is_the_one_that_is_synced() {
    let directory = TempDir::new().unwrap();
    let (path, log) = (directory.path().join("claw.db"), directory.path().join("claw.db-wal"));
    let store = SqliteStore::open(&path, NodeId::local()).await.unwrap();
    store.enqueue(job()).await.unwrap();
    // The last connection takes the log with it.
    store.tail.as_ref().unwrap().close().await;
    store.readers.close().await;
    let mut lent = store.writer.acquire().await.unwrap();
    lent.connection.take().unwrap().close().await.unwrap();
    drop(lent);
    assert!(!log.exists());

    store.enqueue(job()).await.unwrap();
    let synced = store.writer.log().unwrap().file().metadata().unwrap();
    assert_eq!(synced.ino(), log.metadata().unwrap().ino());
    let counts = store.sync_counts();
    assert_eq!(counts.commits, counts.syncs, "nobody shared a sync, and none is missing");
}
