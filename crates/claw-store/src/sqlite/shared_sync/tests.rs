//! The number of syncs, and faults of the descriptor that makes them.

use std::pin::pin;
use std::task::{Context, Waker};

use claw_core::NodeId;
use claw_core::store::{Ledger as _, Queue as _, StoreError};
use claw_core::{CallId, TenantId};
use claw_testkit::fixture::{job, refused, worker};
use futures_util::future::join_all;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, query_scalar};
use tempfile::TempDir;

use super::*;
use crate::backend::Backend as _;
use crate::options::StoreOptions;
use crate::sqlite::SqliteStore;

impl Log {
    pub(in crate::sqlite) fn file(&self) -> Arc<File> {
        self.state().file.clone().unwrap()
    }
}

async fn opened(directory: &TempDir) -> SqliteStore {
    SqliteStore::open(&directory.path().join("claw.db"), NodeId::local()).await.unwrap()
}

fn log(store: &SqliteStore) -> &Arc<Log> {
    store.writer.log().unwrap()
}

/// Commits and syncs since `before`.
fn since(store: &SqliteStore, before: SyncCounts) -> (u64, u64) {
    let now = store.sync_counts();
    (now.commits - before.commits, now.syncs - before.syncs)
}

/// Begins a sync that does not end before it is told to.
fn begin_sync(store: &SqliteStore) -> Flight {
    let log = log(store);
    let mut state = log.state();
    assert!(!state.syncing);
    state.syncing = true;
    Flight { log: Arc::clone(log), upto: state.committed, file: state.file.clone().unwrap() }
}

/// Pretends that one more caller waits to write, so that commits share syncs.
fn crowd(store: &SqliteStore) {
    log(store).enter().unwrap();
}

/// Waits until the file holds so many rows of a table, synced or not.
async fn until_visible(directory: &TempDir, count: &'static str, rows: i64) {
    let options = SqliteConnectOptions::new().filename(directory.path().join("claw.db"));
    let mut bare = options.connect().await.unwrap();
    while query_scalar::<_, i64>(count).fetch_one(&mut bare).await.unwrap() < rows {
        tokio::task::yield_now().await;
    }
}

/// Lets `callers` at once write `each` entries one after the other; returns commits and syncs.
async fn write(callers: u64, each: u64) -> (u64, u64) {
    let directory = TempDir::new().unwrap();
    let store = opened(&directory).await;
    // However slow the machine is.
    log(&store).state().gather = Duration::from_secs(3600);
    let before = store.sync_counts();
    join_all((0..callers).map(async |_| {
        for _ in 0..each {
            store.refuse(refused(CallId::new())).await.unwrap();
        }
    }))
    .await;
    let reports = store.verify().await.unwrap();
    assert_eq!(reports[0].entries, callers * each);
    since(&store, before)
}

#[tokio::test]
async fn every_commit_of_a_lone_caller_is_synced() {
    assert_eq!(write(1, 20).await, (20, 20));
}

#[tokio::test]
async fn sqlite_syncs_the_commits_of_a_lone_caller_alone() {
    let directory = TempDir::new().unwrap();
    let store = opened(&directory).await;
    let check = async |expected: i64| {
        store.refuse(refused(CallId::new())).await.unwrap();
        store.enqueue(job()).await.unwrap();
        let mut writer = store.writer.acquire().await.unwrap();
        let mode: i64 = query_scalar("PRAGMA synchronous").fetch_one(&mut *writer).await.unwrap();
        assert_eq!(mode, expected);
    };
    check(2).await;
    crowd(&store);
    check(1).await;
    log(&store).leave();
    check(2).await;
    let (commits, syncs) = since(&store, SyncCounts::default());
    assert_eq!(commits, syncs);
}

#[tokio::test]
async fn many_callers_at_once_share_their_syncs() {
    // A call on the road is two entries, so one sync for eight entries is one for four calls.
    let (commits, syncs) = write(64, 8).await;
    assert!((1..=512).contains(&commits), "{commits} commits for 512 entries");
    assert!(syncs * 8 < 512, "{syncs} syncs for 512 entries");
}

#[tokio::test]
async fn nothing_is_acknowledged_or_shown_before_its_sync() {
    let directory = TempDir::new().unwrap();
    let (path, options) =
        (directory.path().join("claw.db"), StoreOptions { readers: 1, ..Default::default() });
    let store = Arc::new(SqliteStore::open_with(&path, NodeId::local(), &options).await.unwrap());
    let (known, new) = (job(), job());
    store.enqueue(known.clone()).await.unwrap();
    crowd(&store);
    let flight = begin_sync(&store);
    let tasks = {
        let enqueue = |job: &claw_core::store::NewJob| {
            let (store, job) = (Arc::clone(&store), job.clone());
            tokio::spawn(async move { store.enqueue(job).await.unwrap() })
        };
        let first = enqueue(&new);
        until_visible(&directory, "SELECT count(*) FROM jobs", 2).await;
        let reader = {
            let (store, id) = (Arc::clone(&store), new.id);
            tokio::spawn(async move { assert!(store.job(&TenantId::main(), id).await.unwrap().is_some()) })
        };
        [first, enqueue(&new), reader]
    };
    // A sync that began before does not cover them.
    assert!(known.id != new.id && flight.upto < log(&store).visible());
    // All three stand in line for the one connection that writes or reads, and have given it back by then.
    tokio::task::yield_now().await;
    drop(store.writer.acquire().await.unwrap());
    drop(store.readers.acquire().await.unwrap());
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(tasks.iter().all(|task| !task.is_finished()));
    let before = store.sync_counts();
    flight.run();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(since(&store, before).1, 2, "the one that ran, and one for all three");
}

#[tokio::test]
async fn a_statement_that_changes_nothing_is_synced_only_after_another_program_wrote() {
    let directory = TempDir::new().unwrap();
    let (store, other) = (opened(&directory).await, opened(&directory).await);
    let node = worker("local");
    let idle = async || assert!(store.reclaim(&node, claw_testkit::fixture::NOW).await.unwrap().is_empty());
    idle().await;
    let before = store.sync_counts();
    idle().await;
    idle().await;
    assert_eq!(since(&store, before), (0, 0));
    // Its rows may not be on the disk yet; whoever repeats what it did must not be told so too early.
    let job = job();
    other.enqueue(job.clone()).await.unwrap();
    store.enqueue(job).await.unwrap();
    assert_eq!(since(&store, before), (1, 1));
    idle().await;
    assert_eq!(since(&store, before), (1, 1));
}

#[tokio::test]
async fn a_failed_sync_fails_everybody_until_the_store_is_opened_again() {
    let directory = TempDir::new().unwrap();
    let store = opened(&directory).await;
    store.refuse(refused(CallId::new())).await.unwrap();
    crowd(&store);
    // A pipe cannot be synced.
    let (pipe, _other_end) = io::pipe().unwrap();
    log(&store).sync_to(File::from(std::os::fd::OwnedFd::from(pipe)));
    let check = |asked: Result<(), StoreError>| {
        let error = asked.unwrap_err();
        assert!(matches!(&error, StoreError::Io { .. }), "{error:?}");
        let why =
            "(Invalid argument (os error 22)), so the last writes may be lost; check the disk, then restart";
        assert!(error.to_string().ends_with(why), "{error}");
    };
    let before = store.sync_counts();
    join_all((0..8).map(async |_| check(store.refuse(refused(CallId::new())).await))).await;
    let (_, syncs) = since(&store, before);
    assert_eq!(syncs, 1, "no other is tried");
    // Though syncs would succeed again: what is between is not known to be on the disk.
    log(&store).sync_to(File::open(directory.path().join("claw.db-wal")).unwrap());
    check(store.refuse(refused(CallId::new())).await);
    check(store.enqueue(job()).await);
    check(store.recent(&TenantId::main(), 1).await.map(drop));
    store.disconnect().await;

    let store = opened(&directory).await;
    store.refuse(refused(CallId::new())).await.unwrap();
    assert_eq!(store.verify().await.unwrap()[0].fault, None);
}

#[tokio::test]
async fn a_caller_that_gives_up_leaves_nobody_waiting() {
    let directory = TempDir::new().unwrap();
    let store = opened(&directory).await;
    for polls in 0..40 {
        for is_statement in [false, true] {
            let entry = async { store.refuse(refused(CallId::new())).await };
            let statement = async { store.enqueue(job()).await };
            let mut asked = if is_statement {
                pin!(futures_util::future::Either::Left(statement))
            } else {
                pin!(futures_util::future::Either::Right(entry))
            };
            for _ in 0..polls {
                if asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                    break;
                }
                std::thread::yield_now();
                tokio::task::yield_now().await;
            }
        }
        // Hangs where a commit has nobody left to settle it.
        store.recent(&TenantId::main(), 1).await.unwrap();
    }
    store.refuse(refused(CallId::new())).await.unwrap();
    assert_eq!(store.verify().await.unwrap()[0].fault, None);
}

#[tokio::test]
async fn a_store_in_memory_syncs_nothing() {
    let store = SqliteStore::memory(NodeId::local()).await.unwrap();
    store.enqueue(job()).await.unwrap();
    store.refuse(refused(CallId::new())).await.unwrap();
    assert_eq!(store.sync_counts(), SyncCounts::default());
}
