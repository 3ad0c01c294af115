//! The stores of this crate, put through the suites that every store passes.

use claw_host::{ArtifactLimits, FileArtifacts, MemoryArtifacts, MemoryStore};
use claw_testkit::conformance;
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn memory_store_conforms() {
    conformance::calls(async || MemoryStore::new()).await;
}

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
