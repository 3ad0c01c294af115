//! Faults that only the writing connection can be given.

use claw_core::store::{
    AccessStore as _, ApiKey, Changes as _, EntryEvent, KEY_USE_EVERY, Ledger as _, Queue as _, Record,
    StoreError, Topic,
};
use claw_core::{CallId, NodeId, TenantId};
use claw_testkit::fixture::{NOW, job, key_of, refused};
use tempfile::TempDir;

use super::SqliteStore;
use crate::backend::Backend as _;
use crate::options::StoreOptions;

async fn opened(directory: &TempDir) -> SqliteStore {
    SqliteStore::open(&directory.path().join("claw.db"), NodeId::local()).await.unwrap()
}

async fn set(store: &SqliteStore, pragma: &'static str) {
    sqlx::query(pragma).fetch_all(&store.writer).await.unwrap();
}

fn long(length: usize) -> Record {
    let event = EntryEvent::Refused { step: "limit".to_owned(), reason: "x".repeat(length), args: None };
    Record { event, ..refused(CallId::new()) }
}

#[tokio::test]
async fn a_full_disk_is_named_and_recovered_from() {
    let directory = TempDir::new().unwrap();
    let store = opened(&directory).await;
    store.refuse(long(10)).await.unwrap();
    for _ in 0..3 {
        set(&store, "PRAGMA max_page_count = 1").await;
        let error = store.refuse(long(100_000)).await.unwrap_err();
        assert!(matches!(&error, StoreError::Database { transient: true, .. }), "{error:?}");
        assert_eq!(error.to_string(), "could not write to the ledger: the disk is full; free some space");
    }
    assert_eq!(store.recent(&TenantId::main(), 10).await.unwrap().len(), 1, "reading goes on");
    set(&store, "PRAGMA max_page_count = 1000000").await;
    store.refuse(long(100_000)).await.unwrap();
    let reports = store.verify().await.unwrap();
    assert_eq!((reports[0].entries, reports[0].fault), (2, None));
}

#[tokio::test]
async fn a_full_memory_keeps_what_it_holds() {
    let store = SqliteStore::memory(NodeId::local()).await.unwrap();
    store.refuse(long(10)).await.unwrap();
    set(&store, "PRAGMA max_page_count = 1").await;
    store.refuse(long(100_000)).await.unwrap_err();
    // More callers who give up, at any point.
    for _ in 0..100 {
        let _ = tokio::time::timeout(std::time::Duration::ZERO, store.refuse(long(100_000))).await;
    }
    set(&store, "PRAGMA max_page_count = 1000000").await;
    store.refuse(long(100_000)).await.unwrap();
    assert_eq!(store.recent(&TenantId::main(), 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_read_only_file_is_named() {
    let directory = TempDir::new().unwrap();
    let store = opened(&directory).await;
    // The answer of a file without write permission; root ignores the permission itself.
    set(&store, "PRAGMA query_only = ON").await;
    let error = store.enqueue(job()).await.unwrap_err();
    assert!(matches!(&error, StoreError::Database { transient: false, .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "could not write to the queue: the file or its directory is read-only; make it writable"
    );
}

#[tokio::test]
async fn a_given_up_write_is_taken_back_and_holds_up_nobody() {
    let directory = TempDir::new().unwrap();
    let (store, other) = (opened(&directory).await, opened(&directory).await);
    let mut transaction = store.write("could not write").await.unwrap();
    sqlx::query("DELETE FROM ledger_head").execute(&mut *transaction).await.unwrap();
    drop(transaction);
    other.refuse(long(10)).await.unwrap();
    store.refuse(long(10)).await.unwrap();
    assert_eq!(store.verify().await.unwrap()[0].fault, None);
}

#[tokio::test]
async fn looking_for_changes_ends_with_the_store() {
    let directory = TempDir::new().unwrap();
    let store = opened(&directory).await;
    let mut work = store.changes(Topic::Work);
    drop(store);
    // The last sender goes when the task does.
    while work.changed().await.is_ok() {}
}

#[tokio::test]
async fn a_closed_store_says_so_and_lends_nothing() {
    let store = SqliteStore::memory(NodeId::local()).await.unwrap();
    store.enqueue(job()).await.unwrap();
    store.disconnect().await;
    store.disconnect().await;
    let error = store.enqueue(job()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not write to the queue: attempted to acquire a connection on a closed pool"
    );
}

#[tokio::test]
async fn a_write_does_not_wait_for_ever() {
    let store = SqliteStore::memory(NodeId::local()).await.unwrap();
    let held = store.write("could not write").await.unwrap();
    tokio::time::pause();
    let error = store.enqueue(job()).await.unwrap_err();
    assert!(matches!(&error, StoreError::Database { transient: true, .. }), "{error:?}");
    tokio::time::resume();
    drop(held);
    store.enqueue(job()).await.unwrap();
}

#[tokio::test]
async fn a_key_that_was_used_within_the_minute_does_not_wait_for_those_who_write() {
    let directory = TempDir::new().unwrap();
    let (store, key) = (opened(&directory).await, ApiKey::from_random([7; 32]));
    store.add_key(key_of(&key)).await.unwrap();
    assert!(store.authenticate(&key.hash(), NOW).await.unwrap().is_some());
    let writing = store.write("writing").await.unwrap();
    // A caller that waited would wait for longer than this.
    let hash = key.hash();
    let admitted =
        tokio::time::timeout(StoreOptions::default().acquire_timeout / 2, store.authenticate(&hash, NOW))
            .await;
    assert!(admitted.unwrap().unwrap().is_some());
    drop(writing);
}

#[tokio::test]
async fn a_use_that_cannot_be_written_keeps_nobody_out() {
    let directory = TempDir::new().unwrap();
    let (store, key) = (opened(&directory).await, ApiKey::from_random([7; 32]));
    store.add_key(key_of(&key)).await.unwrap();
    assert!(store.authenticate(&key.hash(), NOW).await.unwrap().is_some());
    let (main, later) = (TenantId::main(), NOW.plus(KEY_USE_EVERY));
    for (pragma, last_used) in [("PRAGMA query_only = ON", NOW), ("PRAGMA query_only = OFF", later)] {
        set(&store, pragma).await;
        assert!(store.authenticate(&key.hash(), later).await.unwrap().is_some());
        assert_eq!(store.keys(&main).await.unwrap()[0].last_used, Some(last_used), "{pragma}");
    }
}

#[tokio::test]
async fn every_connection_takes_what_the_options_give() {
    let directory = TempDir::new().unwrap();
    let options = StoreOptions { readers: 2, cache_kib: 64, mmap_mib: 1, ..StoreOptions::default() };
    let path = directory.path().join("claw.db");
    let store = SqliteStore::open_with(&path, NodeId::local(), &options).await.unwrap();
    for pool in [&store.writer, &store.readers] {
        let cache: i64 = sqlx::query_scalar("PRAGMA cache_size").fetch_one(pool).await.unwrap();
        let mapped: i64 = sqlx::query_scalar("PRAGMA mmap_size").fetch_one(pool).await.unwrap();
        assert_eq!((cache, mapped), (-64, 1024 * 1024));
    }
    let (first, second) = (store.readers.acquire().await.unwrap(), store.readers.acquire().await.unwrap());
    tokio::time::pause();
    assert!(matches!(store.readers.acquire().await.map(drop), Err(sqlx::Error::PoolTimedOut)));
    drop((first, second));
}
