//! Callers at once: their entries share transactions, and each gets its own answer.

use std::sync::Arc;
use std::time::Duration;

use claw_core::store::{Changes as _, Ledger as _, Outcome, Record, StoreError, Topic};
use claw_core::{CallId, NodeId, TenantId};
use claw_store::SqliteStore;
use claw_testkit::fixture::{intent, outcome, refused, tenant};
use futures_util::future::join_all;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Executor as _};
use tempfile::TempDir;

/// Calls of a tenant; every fifth one is begun by two callers.
const CALLS: usize = 100;

fn of(tenant: &TenantId, mut record: Record) -> Record {
    record.tenant = tenant.clone();
    record
}

async fn stores(directory: &TempDir) -> [Arc<SqliteStore>; 2] {
    let file = SqliteStore::open(&directory.path().join("store.db"), NodeId::local()).await.unwrap();
    [Arc::new(file), Arc::new(SqliteStore::memory(NodeId::local()).await.unwrap())]
}

/// Begins and ends a call, or is refused because another caller began it.
async fn call(store: Arc<SqliteStore>, tenant: TenantId, id: CallId) -> bool {
    match store.begin_call(of(&tenant, intent(id, "ls", None))).await {
        Ok(()) => {
            store.finish_call(of(&tenant, outcome(id, Outcome::Done))).await.unwrap();
            true
        }
        Err(StoreError::AlreadyBegun { call, .. }) => {
            assert_eq!(call, id);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_at_once_have_one_sound_chain_each_tenant() {
    let directory = TempDir::new().unwrap();
    for store in stores(&directory).await {
        let tenants = [TenantId::main(), tenant("one"), tenant("two")];
        let mut calls = Vec::new();
        for at in 0..CALLS {
            for tenant in &tenants {
                let id = CallId::new();
                for _ in 0..=usize::from(at % 5 == 0) {
                    calls.push(tokio::spawn(call(Arc::clone(&store), tenant.clone(), id)));
                }
                let (store, record) = (Arc::clone(&store), of(tenant, refused(CallId::new())));
                calls.push(tokio::spawn(async move {
                    store.refuse(record).await.unwrap();
                    false
                }));
            }
        }
        let began = join_all(calls).await.into_iter().filter(|began| *began.as_ref().unwrap()).count();
        assert_eq!(began, tenants.len() * CALLS);
        for report in store.verify().await.unwrap() {
            assert_eq!(report.fault, None, "{report}");
            assert_eq!(report.entries, 3 * CALLS as u64, "{report}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_caller_at_once_learns_that_the_ledger_is_damaged() {
    let directory = TempDir::new().unwrap();
    let [store, _] = stores(&directory).await;
    assert!(call(Arc::clone(&store), TenantId::main(), CallId::new()).await);
    let mut beside =
        SqliteConnectOptions::new().filename(directory.path().join("store.db")).connect().await.unwrap();
    beside.execute("UPDATE ledger_head SET count = 0").await.unwrap();
    let begun = (0..50).map(|_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.begin_call(intent(CallId::new(), "ls", None)).await })
    });
    for begun in join_all(begun.collect::<Vec<_>>()).await {
        let error = begun.unwrap().unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }
    assert_eq!(store.recent(&TenantId::main(), 100).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn own_commits_wake_nobody_and_those_of_others_do() {
    let directory = TempDir::new().unwrap();
    let [store, _] = stores(&directory).await;
    let mut changes = store.changes(Topic::Settings);
    for _ in 0..20 {
        assert!(call(Arc::clone(&store), TenantId::main(), CallId::new()).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!changes.has_changed().unwrap());
    let other = SqliteStore::open(&directory.path().join("store.db"), NodeId::local()).await.unwrap();
    other.refuse(refused(CallId::new())).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.unwrap().unwrap();
}
