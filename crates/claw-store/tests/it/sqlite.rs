//! The SQLite backend: the shared suites, and what only a file can do.

use claw_core::NodeId;
use claw_store::SqliteStore;
use claw_testkit::conformance;
use tempfile::TempDir;

async fn memory() -> SqliteStore {
    SqliteStore::memory(NodeId::local()).await.unwrap()
}

async fn open(directory: &TempDir) -> SqliteStore {
    SqliteStore::open(&directory.path().join("claw.db"), NodeId::local()).await.unwrap()
}

#[tokio::test]
async fn calls_in_memory() {
    conformance::calls(memory).await;
}

#[tokio::test]
async fn calls_in_a_file() {
    conformance::calls(async || {
        let directory = TempDir::new().unwrap();
        let store = open(&directory).await;
        // Kept for the length of the test run; the file lives in the system's temporary directory.
        let _ = directory.keep();
        store
    })
    .await;
}
