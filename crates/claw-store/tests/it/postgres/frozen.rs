//! A server that falls silent after connections were made: each wait ends with a clear error, and the store works again
//! once the server can be reached.

use std::sync::Arc;
use std::time::Duration;

use claw_core::CallId;
use claw_core::port::{Expect, UnixMillis};
use claw_core::store::{
    DocumentKey, Documents as _, FileChange, FileError, Ledger as _, Outcome, Queue as _, Shelf, StoreError,
    WorkspaceFiles as _,
};
use claw_core::{AgentId, TenantId};
use claw_store::{Backend as _, PostgresStore, StoreOptions};
use claw_testkit::fixture::{NOW, intent, job, outcome, worker};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use super::database::Database;
use super::{STUCK, check_silent, claim, node};

/// The connections of a store in these tests.
const FEW: u32 = 2;

/// A statement takes longer than a moment where the machine is busy, and the server would cancel it.
fn few() -> StoreOptions {
    let patience = Duration::from_secs(2);
    StoreOptions {
        connections: FEW,
        statement_timeout: patience,
        acquire_timeout: patience,
        ..StoreOptions::default()
    }
}

/// Makes every connection that the store may have.
async fn make_connections(store: &PostgresStore) {
    let first = (0..FEW).map(|_| store.enqueue(job()));
    for enqueued in futures_util::future::join_all(first).await {
        enqueued.unwrap();
    }
}

/// Waits until the store works; until then, every error says that the server is silent.
async fn works_again(store: &PostgresStore) {
    let works = async {
        while let Err(error) = store.enqueue(job()).await {
            check_silent(&error);
        }
    };
    timeout(STUCK, works).await.expect("a connection that gets no answer keeps no place in the pool");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_forgot_every_connection_costs_no_more_than_a_wait() {
    let database = Database::create().await;
    let (proxy, url) = database.behind_a_proxy();
    let store = PostgresStore::connect_with(&url, node("a"), &few()).await.unwrap();
    make_connections(&store).await;
    proxy.forget_connections();
    works_again(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_give_up_on_a_silent_server_take_no_connection_with_them() {
    let database = Database::create().await;
    let (proxy, url) = database.behind_a_proxy();
    let store = PostgresStore::connect_with(&url, node("a"), &few()).await.unwrap();
    make_connections(&store).await;
    proxy.forget_connections();
    let soon = Duration::from_millis(100);
    for attempt in 0..FEW {
        let given_up = timeout(soon, store.begin_call(intent(CallId::new(), "ls", None))).await;
        // Later ones may get a new connection in the place of the first.
        assert!(attempt > 0 || given_up.is_err(), "nothing answers: {given_up:?}");
    }
    works_again(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_begins_after_its_caller_gave_up_takes_no_writes_of_others() {
    let database = Database::create().await;
    let (proxy, url) = database.behind_a_proxy();
    let one = StoreOptions { connections: 1, ..few() };
    let store = PostgresStore::connect_with(&url, node("a"), &one).await.unwrap();
    store.enqueue(job()).await.unwrap();
    let (leased, lease) = store.claim(claim(&worker("a"))).await.unwrap().unwrap();
    let other = PostgresStore::connect_with(&database.url(), node("b"), &few()).await.unwrap();
    let mut until = lease.until;
    // The connection is back in the pool after a moment; only then is the beginning of a transaction on its way.
    for pause in [0, 20, 100, 300] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        proxy.freeze();
        let soon = Duration::from_millis(100);
        let given_up = timeout(soon, store.begin_call(intent(CallId::new(), "ls", None))).await;
        assert!(given_up.is_err(), "nothing answers: {given_up:?}");
        // What was sent arrives now.
        proxy.thaw();
        until = UnixMillis(until.0 + 60_000);
        // One statement, which is no transaction of its own.
        let written = async {
            while let Err(error) = store.extend(&lease, until).await {
                check_silent(&error);
            }
        };
        timeout(STUCK, written).await.expect("the store works again");
        let seen = other.job(&leased.new.tenant, leased.new.id).await.unwrap().unwrap();
        assert_eq!(seen.lease.unwrap().until, until, "it was reported as written");
    }
}

/// Operations of one answer and of many: statements, transactions, rows, bytes.
async fn work(store: &PostgresStore) -> Result<(), StoreError> {
    let main = TenantId::main();
    store.enqueue(job()).await?;
    if let Some((_, lease)) = store.claim(claim(&worker("a"))).await? {
        store.finish_job(&lease).await?;
    }
    let call = CallId::new();
    store.begin_call(intent(call, "ls", None)).await?;
    store.finish_call(outcome(call, Outcome::Done)).await?;
    store.recent(&main, 10).await?;
    let path = format!("/w/{call}");
    let new = FileChange { tenant: &main, path: &path, expect: Expect::Absent, room: None, at: NOW };
    store.put_file(&new, &[b'x'; 100_000]).await.map_err(of_store)?;
    store.file(&main, &path).await?;
    let key = DocumentKey {
        tenant: main,
        agent: Some(AgentId::new("main").unwrap()),
        user: None,
        shelf: Shelf::Context,
        path: format!("{call}.md"),
    };
    store.put_document(&key, "text", None, NOW).await?;
    store.verify().await?;
    Ok(())
}

/// Checks that an error names the silence, or the server's own time limit: the server may miss the rest of a statement, or
/// wait for a lock of one that was given up.
#[track_caller]
fn check_named(error: &StoreError) {
    if !error.to_string().contains("due to statement timeout") {
        check_silent(error);
    }
}

/// Waits until all operations work. Others on the same database may be frozen while they hold a lock, for as long as the server
/// lets them.
async fn all_works(store: &PostgresStore) {
    let done = async {
        while let Err(error) = work(store).await {
            check_named(&error);
        }
    };
    timeout(STUCK, done).await.expect("locks of frozen transactions have a bound");
}

fn of_store(error: FileError) -> StoreError {
    match error {
        FileError::Store(error) => error,
        other => panic!("a new path can be written: {other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_freezes_in_the_middle_of_an_operation_is_named_in_time() {
    const PARTS: u64 = 24;
    let database = Database::create().await;
    let whole = {
        let (proxy, url) = database.behind_a_proxy();
        let store = PostgresStore::connect_with(&url, node("whole"), &few()).await.unwrap();
        let before = proxy.passed();
        work(&store).await.unwrap();
        proxy.passed() - before
    };
    let database = &database;
    let frozen = (0..PARTS).map(|part| async move {
        let (proxy, url) = database.behind_a_proxy();
        let store = PostgresStore::connect_with(&url, node(&format!("n{part}")), &few()).await.unwrap();
        all_works(&store).await;
        proxy.freeze_after(whole * part / PARTS);
        let stopped = async {
            // What is announced passes the proxy too, more or less of it.
            loop {
                if let Err(error) = work(&store).await {
                    return error;
                }
            }
        };
        let error = timeout(STUCK, stopped).await;
        check_named(&error.unwrap_or_else(|_| panic!("part {part} has a bound")));
        proxy.thaw();
        works_again(&store).await;
        all_works(&store).await;
        timeout(STUCK, store.disconnect()).await.expect("the end has a bound");
    });
    futures_util::future::join_all(frozen).await;
}

/// Processes of the server that are stopped until this is dropped.
struct Stopped(Vec<Pid>);

impl Stopped {
    /// Stops the processes behind the store's connections, which wait for a statement and hold no lock. Returns `None` if
    /// the server runs on another machine.
    async fn behind(database: &Database) -> Option<Self> {
        let pids = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()
                    AND application_name = 'clawsmith' AND state = 'idle'";
        let pids = database.numbers(pids).await;
        let is_here = |pid: &i32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.starts_with("postgres"))
        };
        assert!(!pids.is_empty());
        if !pids.iter().all(is_here) {
            eprintln!("skipped: the server is on another machine");
            return None;
        }
        let stopped = Self(pids.into_iter().filter_map(Pid::from_raw).collect());
        for pid in &stopped.0 {
            kill_process(*pid, Signal::STOP).unwrap();
        }
        Some(stopped)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for pid in &self.0 {
            // One that was ended meanwhile is none of the server's any more.
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_of_the_server_that_are_stopped_are_named_in_time_and_replaced() {
    let database = Database::create().await;
    let store = Arc::new(PostgresStore::connect_with(&database.url(), node("a"), &few()).await.unwrap());
    make_connections(&store).await;
    let Some(stopped) = Stopped::behind(&database).await else { return };
    let read = timeout(STUCK, store.recent(&TenantId::main(), 10)).await.expect("each wait has a bound");
    check_silent(&read.unwrap_err());
    let call = CallId::new();
    let begun = timeout(STUCK, store.begin_call(intent(call, "ls", None))).await;
    check_silent(&begun.expect("each wait has a bound").unwrap_err());
    // The rest of the server runs.
    works_again(&store).await;
    drop(stopped);
    work(&store).await.unwrap();
}
