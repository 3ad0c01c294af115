//! The cost of accepting a message: the message, its event and its job in one transaction.

use std::thread;

use claw_core::port::UnixMillis;
use claw_core::store::{NewJob, NewMessage, Role, SessionLog};
use claw_core::{JobId, MessageId, NodeId, SessionKey, TenantId};
use claw_store::{Backend as _, SqliteStore};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use serde_json::{Value, json};
use sqlx::postgres::{PgListener, PgPool, PgPoolOptions};
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::database::{Server, sqlite_options, sqlite_store};
use crate::measure::{Rounds, by_turns};
use crate::{bare, fill};

/// Turns, and appends in each.
const ROUNDS: Rounds = Rounds { turns: 20, each: 40 };
const TARGET: &str = "under 1.3";

/// A message of about a hundred bytes and the job that answers it.
pub(crate) fn message(session: &SessionKey) -> (NewMessage, NewJob) {
    let (tenant, at, id) = (TenantId::main(), UnixMillis(1), MessageId::new());
    let payload = json!({ "message": id });
    let content = json!(fill::CONTENT);
    let job = NewJob {
        id: JobId::new(),
        tenant: tenant.clone(),
        lane: "main".into(),
        session: Some(session.clone()),
        priority: 0,
        payload,
        accepted: at,
        visible: at,
        max_attempts: 3,
        lineage: None,
    };
    (NewMessage { id, tenant, session: session.clone(), role: Role::User, content, at }, job)
}

pub(crate) fn session(n: impl std::fmt::Display) -> SessionKey {
    SessionKey::new(format!("bench:{n}")).unwrap()
}

pub(crate) async fn append(store: &impl SessionLog, session: &SessionKey) {
    let (message, job) = message(session);
    store.accept_message(message, job).await.unwrap();
}

/// Returns the texts that the bare driver gets beside the ids, already serialized.
pub(crate) fn texts(message: &NewMessage, job: &NewJob) -> (String, String) {
    let text = |value: &Value| value.to_string();
    (text(&message.content), text(&job.payload))
}

/// Measures on one processor and on all of them. Each statement is handed to the connection's thread and
/// back; the cost of that depends on where the thread runs, and varies between runs for both.
pub(crate) async fn sqlite() {
    let pinned = thread::spawn(|| {
        let one = sched_getcpu();
        let mut processors = CpuSet::new();
        processors.set(one);
        // Every thread that is begun from here on stays there as well.
        sched_setaffinity(None, &processors).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(sqlite_on("one processor"));
    });
    tokio::task::spawn_blocking(|| pinned.join().unwrap()).await.unwrap();
    sqlite_on("all processors").await;
}

async fn sqlite_on(processors: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let session = session(1);
    for (name, memory) in [("file", false), ("memory", true)] {
        let store = sqlite_store(&path).await;
        let mut schema = sqlite_options().filename(&path).connect().await.unwrap();
        let options = match memory {
            true => sqlite_options().in_memory(true),
            false => sqlite_options().filename(directory.path().join("bare.db")),
        };
        let pool = SqlitePoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
        let pool = pool.test_before_acquire(false).connect_with(options.clone()).await.unwrap();
        bare::sqlite_schema(&mut schema, &mut pool.acquire().await.unwrap()).await;
        // In memory each connection has its own tables.
        let mut bare = match memory {
            true => {
                let mut bare = options.connect().await.unwrap();
                bare::sqlite_schema(&mut schema, &mut bare).await;
                bare
            }
            false => options.connect().await.unwrap(),
        };
        schema.close().await.unwrap();
        let in_memory = SqliteStore::memory(NodeId::local()).await.unwrap();
        let ours = if memory { &in_memory } else { &*store };
        let name = format!("sqlite, {name}, {processors}: append");
        let times = by_turns(
            ROUNDS,
            async || append(ours, &session).await,
            async || {
                let (message, job) = message(&session);
                let (content, payload) = texts(&message, &job);
                bare::sqlite_append(&mut bare, &message, &content, &job, &payload).await;
            },
        );
        times.await.print(&name, "bare", TARGET);
        let times = by_turns(
            ROUNDS,
            async || append(ours, &session).await,
            async || {
                let (message, job) = message(&session);
                let (content, payload) = texts(&message, &job);
                let mut bare = pool.acquire().await.unwrap();
                bare::sqlite_append(&mut bare, &message, &content, &job, &payload).await;
            },
        );
        times.await.print(&name, "bare in the driver's pool", TARGET);
        bare.close().await.unwrap();
        pool.close().await;
        store.disconnect().await;
    }
    let messages = (2 * (ROUNDS.turns + 1) * ROUNDS.each) as f64;
    let size = std::fs::metadata(directory.path().join("bare.db")).unwrap().len() as f64 / messages;
    println!("sqlite, file: a message of 100 bytes, its event and its job\t{size:.0}\tbytes");
}

pub(crate) async fn postgres(server: &Server) {
    let (ours, theirs) = (server.database().await, server.database().await);
    let store = ours.store("bench").await;
    let mut bare = theirs.connect().await;
    // A node hears of each message, here as there.
    let mut listener =
        PgListener::connect_with(&PgPool::connect_lazy_with(theirs.options.clone())).await.unwrap();
    listener.listen("clawsmith").await.unwrap();
    let hears = tokio::spawn(async move { while listener.recv().await.is_ok() {} });
    let pool = PgPoolOptions::new().max_connections(16).test_before_acquire(false);
    let pool = pool.connect_lazy_with(theirs.options.clone());
    let session = session(1);
    let times = by_turns(
        ROUNDS,
        async || append(&*store, &session).await,
        async || {
            let (message, job) = message(&session);
            let (content, payload) = texts(&message, &job);
            bare::postgres_append(&mut bare, &message, &content, &job, &payload).await;
        },
    );
    times.await.print("postgres: append", "bare", TARGET);
    let times = by_turns(
        ROUNDS,
        async || append(&*store, &session).await,
        async || {
            let (message, job) = message(&session);
            let (content, payload) = texts(&message, &job);
            let mut bare = pool.acquire().await.unwrap();
            bare::postgres_append(&mut bare, &message, &content, &job, &payload).await;
        },
    );
    times.await.print("postgres: append", "bare in the driver's pool", TARGET);
    hears.abort();
    pool.close().await;
    store.disconnect().await;
    bare.close().await.unwrap();
    ours.drop().await;
    theirs.drop().await;
}
