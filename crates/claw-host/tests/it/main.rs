//! The stores of this crate, put through the suites that every store passes, and killed.

mod kill;

use claw_core::NodeId;
use claw_host::{FileLedger, MemoryStore};
use claw_testkit::conformance;
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn memory_store_conforms() {
    conformance::calls(async || MemoryStore::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn file_ledger_conforms() {
    let directory = TempDir::new().unwrap();
    let count = std::cell::Cell::new(0);
    conformance::calls(async || {
        count.set(count.get() + 1);
        FileLedger::open(directory.path().join(count.get().to_string()), NodeId::local()).unwrap()
    })
    .await;
}
