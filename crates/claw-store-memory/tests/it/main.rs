//! The store in memory, put through the suites that every store passes.

use claw_core::TenantId;
use claw_core::store::{BlobLimits, Blobs as _, NewBlob};
use claw_store_memory::{MemoryLimits, MemoryStore};
use claw_testkit::conformance;
use claw_testkit::fixture::NOW;

#[tokio::test(flavor = "multi_thread")]
async fn memory_store_conforms() {
    conformance::calls(async || MemoryStore::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_blobs() {
    let make = async |blobs| MemoryStore::with_limits(MemoryLimits { blobs, ..MemoryLimits::default() });
    conformance::blobs(make).await;
}

#[tokio::test]
async fn the_oldest_blobs_make_room_in_memory() {
    let blobs = BlobLimits { blob: 1000, tenant: 2000 };
    let store = MemoryStore::with_limits(MemoryLimits { blobs, ..MemoryLimits::default() });
    let blob = |fill| NewBlob::new("a/b", vec![fill; 1000]).unwrap();
    for fill in 1..=3 {
        store.put_blob(&TenantId::main(), &blob(fill), NOW).await.unwrap();
    }
    let mut there = Vec::new();
    for fill in 1..=3 {
        there.push(store.blob(&TenantId::main(), &blob(fill).digest()).await.unwrap().is_some());
    }
    assert_eq!(there, [false, true, true]);
}
