//! The PostgreSQL backend: the shared suites, and what only several nodes and a server can do.

pub(crate) mod database;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use claw_core::store::{
    Approvals as _, Changes as _, Claim, Ledger as _, NewJob, Outcome, Queue as _, StoreError, Topic,
};
use claw_core::{CallId, NodeId, TenantId};
use claw_store::PostgresStore;
use claw_store::chain::Fault;
use claw_testkit::conformance;
use claw_testkit::fixture::{NOW, intent, job, job_of, outcome, question, refused, tenant, worker};
use tokio::sync::watch;

use self::database::{Database, Databases};

/// A store that hangs fails instead; nothing else depends on it.
const STUCK: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn calls() {
    let databases = Databases::default();
    conformance::calls(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue() {
    let databases = Databases::default();
    conformance::queue(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_log() {
    let databases = Databases::default();
    conformance::session_log(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_together_make_the_schema_once() {
    let database = Database::create().await;
    let nodes: Vec<_> = (0..8)
        .map(|n| {
            let url = database.url();
            tokio::spawn(async move { PostgresStore::connect(&url, node(&format!("n{n}"))).await.map(drop) })
        })
        .collect();
    for started in nodes {
        started.await.unwrap().unwrap();
    }
    assert_eq!(database.count("SELECT count(*) FROM _sqlx_migrations").await, 4);
}

#[tokio::test]
async fn every_table_says_whose_its_rows_are() {
    let database = Database::create().await;
    drop(database.store("a").await);
    // How far a copy of the whole is, is nobody's in particular.
    let without = "SELECT count(*) FROM information_schema.tables AS t
                   WHERE table_schema = 'public' AND table_name NOT IN ('_sqlx_migrations', 'copy_progress')
                       AND NOT EXISTS (SELECT 1 FROM information_schema.columns AS c
                           WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name
                               AND column_name = 'tenant' AND is_nullable = 'NO')";
    assert_eq!(database.count(without).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn gives_each_job_to_one_claimer_of_two_nodes() {
    let database = Database::create().await;
    let stores = [Arc::new(database.store("a").await), Arc::new(database.store("b").await)];
    for n in 0..150 {
        let new = if n < 50 { job() } else { job_of(&format!("cli:{}", n % 10)) };
        stores[0].enqueue(new).await.unwrap();
    }
    let claimers: Vec<_> = (0..32)
        .map(|n| {
            let store = Arc::clone(&stores[n % 2]);
            tokio::spawn(async move {
                let (mut taken, me) = (Vec::new(), worker(&format!("n{n}")));
                while let Some((job, _)) = store.claim(claim(&me)).await.unwrap() {
                    taken.push(job.new);
                }
                taken
            })
        })
        .collect();
    let mut taken: Vec<NewJob> = Vec::new();
    for claimer in claimers {
        taken.extend(claimer.await.unwrap());
    }
    let jobs: HashSet<_> = taken.iter().map(|job| job.id).collect();
    let sessions: HashSet<_> = taken.iter().filter_map(|job| job.session.as_ref()).collect();
    assert_eq!((taken.len(), jobs.len(), sessions.len()), (60, 60, 10), "50 alone, and one of each session");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_begins_on_one_of_two_nodes() {
    let database = Database::create().await;
    let (a, b) = (database.store("a").await, database.store("b").await);
    for _ in 0..20 {
        let call = CallId::new();
        let (first, second) =
            tokio::join!(a.begin_call(intent(call, "ls", None)), b.begin_call(intent(call, "ls", None)));
        assert!(first.is_ok() != second.is_ok(), "{first:?}, {second:?}");
    }
    let reports = a.verify().await.unwrap();
    assert_eq!(reports.iter().map(|report| report.entries).sum::<u64>(), 20);
    assert!(reports.iter().all(|report| report.fault.is_none()), "{reports:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_stay_whole_under_many_writers_and_show_damage() {
    let database = Database::create().await;
    let stores = [Arc::new(database.store("a").await), Arc::new(database.store("b").await)];
    let writers: Vec<_> = (0..16)
        .map(|n| {
            let store = Arc::clone(&stores[n % 2]);
            tokio::spawn(async move {
                for _ in 0..5 {
                    let call = CallId::new();
                    store.begin_call(intent(call, "ls", None)).await.unwrap();
                    store.finish_call(outcome(call, Outcome::Done)).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    check_chains(&stores[0], [None, None]).await;
    // The tool's name, which entries of every kind have: whichever is the seventh still reads.
    database
        .run(r#"UPDATE ledger SET line = replace(line, '"exec"', '"read"') WHERE node = 'a' AND seq = 7"#)
        .await;
    check_chains(&stores[0], [Some(Fault::Changed { seq: 7 }), None]).await;
    database.run("DELETE FROM ledger WHERE node = 'a' AND seq > 5").await;
    database
        .run("UPDATE ledger SET outcome = 'failed' WHERE node = 'b' AND event = 'outcome' AND seq = 80")
        .await;
    let cut_off = Some(Fault::CutOff { counted: 80, found: 5 });
    check_chains(&stores[0], [cut_off, Some(Fault::Changed { seq: 80 })]).await;
    database.run("DELETE FROM ledger_head WHERE node = 'a'").await;
    check_chains(&stores[0], [Some(Fault::HeadMissing), Some(Fault::Changed { seq: 80 })]).await;
    let appended = stores[0].refuse(refused(CallId::new())).await;
    assert!(matches!(appended, Err(StoreError::Damaged { .. })), "{appended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_wake_each_other() {
    let database = Database::create().await;
    let (a, b) = (database.store("a").await, database.store("b").await);
    let (mut work, mut changes) =
        (listening(a.changes(Topic::Work)).await, listening(a.changes(Topic::Approvals)).await);

    b.enqueue(job_of("cli:me")).await.unwrap();
    woken(&mut work, "a job was accepted").await;
    let lease = b.claim(claim(&worker("b"))).await.unwrap().unwrap().1;
    b.finish_job(&lease).await.unwrap();
    woken(&mut work, "a session is free").await;
    assert!(!changes.has_changed().unwrap(), "work is not a question");
    b.request(question(CallId::new(), "ls")).await.unwrap();
    woken(&mut changes, "a question was put").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wakes_everyone_when_the_connection_that_listens_was_lost() {
    let database = Database::create().await;
    let (a, b) = (database.store("a").await, database.store("b").await);
    let (mut work, mut changes) =
        (listening(a.changes(Topic::Work)).await, listening(a.changes(Topic::Approvals)).await);
    database.end_connections("query LIKE 'LISTEN%'").await;
    woken(&mut work, "something may have been missed").await;
    woken(&mut changes, "something may have been missed").await;
    b.enqueue(job()).await.unwrap();
    woken(&mut work, "it listens again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_listening_when_the_store_is_dropped() {
    const CONNECTIONS: &str =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%LISTEN%'
         AND pid <> pg_backend_pid()";
    let database = Database::create().await;
    let store = database.store("a").await;
    listening(store.changes(Topic::Work)).await;
    assert_eq!(database.count(CONNECTIONS).await, 1);
    drop(store);
    let gone = async {
        while database.count(CONNECTIONS).await > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(STUCK, gone).await.expect("the listener ends with its store");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_transient_and_the_next_try_works() {
    let database = Database::create().await;
    let store = Arc::new(database.store("a").await);
    let call = CallId::new();
    store.refuse(refused(CallId::new())).await.unwrap();
    let lock = database.lock("SELECT FROM ledger_head FOR UPDATE").await;
    let waiting = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.begin_call(intent(call, "ls", None)).await })
    };
    database.end_connections("wait_event_type = 'Lock'").await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Database { transient: true, .. }), "{error}");
    drop(lock);

    store.begin_call(intent(call, "ls", None)).await.expect("it had not begun");
    database.end_connections("application_name = 'clawsmith'").await;
    while let Err(error) = store.finish_call(outcome(call, Outcome::Done)).await {
        assert!(matches!(error, StoreError::Database { transient: true, .. }), "{error}");
    }
    assert_eq!(store.recent(&TenantId::main(), 10).await.unwrap().len(), 3);
}

#[tokio::test]
async fn errors_say_what_to_do_and_hold_no_values() {
    let secret = "postgres://me:hunter2@";
    let error = PostgresStore::connect(&format!("{secret}[/x"), node("a")).await.unwrap_err().to_string();
    assert!(error.contains("postgres://user@host/name") && !error.contains("hunter2"), "{error}");

    let database = Database::create().await;
    let missing = database.url().replace("clawtest_", "missing_");
    let error = PostgresStore::connect(&missing, node("a")).await.unwrap_err();
    assert!(matches!(error, StoreError::Database { transient: false, .. }), "{error}");
    assert!(error.to_string().contains("does not exist"), "{error}");

    let store = database.store("a").await;
    let error = store.enqueue(NewJob { lane: "hunter2\0".into(), ..job() }).await.unwrap_err();
    assert!(matches!(error, StoreError::Database { transient: false, .. }), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    let ours = job();
    store.enqueue(ours.clone()).await.unwrap();
    let error = store.enqueue(NewJob { tenant: tenant("other"), ..ours }).await.unwrap_err();
    assert!(error.to_string().contains("its id is taken"), "{error}");
}

async fn check_chains(store: &PostgresStore, faults: [Option<Fault>; 2]) {
    let reports = store.verify().await.unwrap();
    let found: Vec<_> = reports.iter().map(|report| (report.chain.as_str(), report.fault)).collect();
    assert_eq!(found, [("main@a", faults[0]), ("main@b", faults[1])]);
}

/// Waits until the store listens: it says so by a change.
async fn listening(mut watch: watch::Receiver<u64>) -> watch::Receiver<u64> {
    tokio::time::timeout(STUCK, watch.wait_for(|count| *count > 0)).await.expect("listens").unwrap();
    watch
}

async fn woken(watch: &mut watch::Receiver<u64>, why: &str) {
    tokio::time::timeout(STUCK, watch.changed()).await.expect(why).unwrap();
}

fn claim(worker: &claw_core::store::Worker) -> Claim {
    let until = NOW.plus(Duration::from_secs(60));
    Claim { worker: worker.clone(), lanes: vec!["main".into()], now: NOW, until }
}

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}
