//! The stores of this crate, put through the suites that every store passes.

use claw_host::MemoryStore;
use claw_testkit::conformance;

#[tokio::test(flavor = "multi_thread")]
async fn memory_store_conforms() {
    conformance::calls(async || MemoryStore::new()).await;
}
