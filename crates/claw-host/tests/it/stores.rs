//! The stores of this crate, put through the suites that every store passes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{ArtifactStore as _, Owner};
use claw_core::{CallId, NodeId};
use claw_host::{ArtifactKeeping, ArtifactLimits, FileArtifacts, IndexedArtifacts, MemoryArtifacts};
use claw_store::SqliteStore;
use claw_testkit::ManualClock;
use claw_testkit::conformance;
use claw_testkit::fixture::{owner, session};
use tempfile::TempDir;

#[tokio::test]
async fn memory_artifacts_conform() {
    conformance::artifacts(async || MemoryArtifacts::default()).await;
}

#[tokio::test]
async fn file_artifacts_conform() {
    let directory = TempDir::new().unwrap();
    let count = std::cell::Cell::new(0);
    conformance::artifacts(async || {
        count.set(count.get() + 1);
        FileArtifacts::new(directory.path().join(count.get().to_string()), ArtifactLimits::default())
    })
    .await;
}

#[tokio::test]
async fn indexed_artifacts_conform() {
    let directory = TempDir::new().unwrap();
    let count = std::cell::Cell::new(0);
    conformance::artifacts(async || {
        count.set(count.get() + 1);
        let data = directory.path().join(count.get().to_string());
        indexed(&data, Arc::new(ManualClock::default()), ArtifactKeeping::default()).await
    })
    .await;
}

#[tokio::test]
async fn results_that_are_old_or_too_much_for_a_tenant_are_removed() {
    let directory = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::default());
    let keeping = ArtifactKeeping { age: Duration::from_secs(100), bytes: 200 };
    let store = indexed(directory.path(), Arc::clone(&clock), keeping).await;
    let of = |key: &str| Owner { session: session(key), ..owner() };
    let put = async |owner: &Owner, text: &str| store.put(owner, CallId::new(), text).await.unwrap();
    put(&of("cli:old"), "old").await;
    clock.advance(Duration::from_secs(101));
    put(&of("cli:large"), &"x".repeat(150)).await;
    // It is looked now and then, not at every text.
    for _ in 0..31 {
        put(&of("cli:new"), "new").await;
    }
    assert_eq!(store.list(&of("cli:old")).await.unwrap(), [], "older than a hundred seconds");
    assert_eq!(store.list(&of("cli:large")).await.unwrap(), [], "150 bytes and 31 times three are over 200");
    assert_eq!(store.list(&of("cli:new")).await.unwrap().len(), 31);
    let files = walk(directory.path());
    assert_eq!(files, 31, "what is forgotten takes no room");
}

async fn indexed(data: &Path, clock: Arc<ManualClock>, keeping: ArtifactKeeping) -> IndexedArtifacts {
    let index = SqliteStore::memory(NodeId::local()).await.unwrap();
    let files = FileArtifacts::new(data, ArtifactLimits::default());
    IndexedArtifacts::new(files, Arc::new(index), clock, keeping)
}

/// Counts the files below a directory.
fn walk(directory: &Path) -> usize {
    let below = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path) } else { 1 }
    };
    std::fs::read_dir(directory).unwrap().map(below).sum()
}
