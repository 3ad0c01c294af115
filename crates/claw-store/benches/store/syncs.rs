//! Concurrent writers: the syncs that they share, and the time that one waits.

use std::sync::Arc;

use claw_core::CallId;
use claw_core::store::{Ledger as _, Outcome};
use claw_store::{Backend as _, SqliteStore};
use claw_testkit::fixture::{intent, outcome};
use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::Mutex;

use crate::append::{append, message, session, texts};
use crate::bare;
use crate::database::{sqlite_options, sqlite_store};
use crate::measure::{Pair, Times, time};

const CALLERS: [usize; 3] = [1, 8, 64];
/// Runs of all callers together in one turn.
const RUNS: usize = 512;
const TURNS: usize = 7;

/// Lets `callers` at once run as often as makes [`RUNS`]. Returns the time per run, and the times that each
/// took.
async fn together<F: Future<Output = ()> + Send>(
    callers: usize,
    run: impl Fn(usize) -> F + Clone + Send + Sync + 'static,
) -> (Times, Times) {
    let mut waits = Times::default();
    let took = time(async {
        let tasks: Vec<_> = (0..callers)
            .map(|caller| {
                let run = run.clone();
                tokio::spawn(async move {
                    let mut waits = Times::default();
                    for _ in 0..RUNS / callers {
                        waits.add(time(run(caller)).await);
                    }
                    waits
                })
            })
            .collect();
        for task in tasks {
            waits.extend(task.await.unwrap());
        }
    })
    .await;
    let mut each = Times::default();
    each.add(took / RUNS as f64);
    (each, waits)
}

pub(crate) async fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("store.db"), directory.path().join("bare.db"));
    let store = sqlite_store(&path).await;
    sqlite_store(&other).await.disconnect().await;
    // As the store was before: one connection, and SQLite syncs each commit.
    let bare = Arc::new(Mutex::new(sqlite_options().filename(&other).connect().await.unwrap()));
    for callers in CALLERS {
        calls(&store, callers).await;
        messages(&store, &bare, callers).await;
    }
    store.disconnect().await;
    Arc::into_inner(bare).unwrap().into_inner().close().await.unwrap();
}

/// Calls as the road records them: an intent, then an outcome.
async fn calls(store: &Arc<SqliteStore>, callers: usize) {
    let call = {
        let store = Arc::clone(store);
        move |_| {
            let (store, call) = (Arc::clone(&store), CallId::new());
            async move {
                store.begin_call(intent(call, "bench", None)).await.unwrap();
                store.finish_call(outcome(call, Outcome::Done)).await.unwrap();
            }
        }
    };
    together(callers, call.clone()).await;
    let before = store.sync_counts();
    let (each, waits) = together(callers, call).await;
    let after = store.sync_counts();
    let name = format!("sqlite: calls by {callers} at once");
    let a_call = |count: u64| count as f64 / RUNS as f64;
    println!("{name}: transactions\t{:.2}\ta call", a_call(after.commits - before.commits));
    let target = if callers == 64 { "\ttarget under 0.25" } else { "" };
    println!("{name}: syncs\t{:.2}\ta call{target}", a_call(after.syncs - before.syncs));
    println!("{name}\t{:.0}\ta second", 1e3 / each.median());
    waits.print(&format!("{name}: what one takes"));
}

/// Measures messages against the bare driver, by turns.
async fn messages(store: &Arc<SqliteStore>, bare: &Arc<Mutex<SqliteConnection>>, callers: usize) {
    let ours = {
        let store = Arc::clone(store);
        move |caller| {
            let store = Arc::clone(&store);
            async move { append(&*store, &session(caller)).await }
        }
    };
    let theirs = {
        let bare = Arc::clone(bare);
        move |caller| {
            let bare = Arc::clone(&bare);
            async move {
                let (message, job) = message(&session(caller));
                let (content, payload) = texts(&message, &job);
                bare::sqlite_append(&mut *bare.lock().await, &message, &content, &job, &payload).await;
            }
        }
    };
    let name = format!("sqlite: messages by {callers} at once");
    let (mut pair, mut waits, mut bare_waits) = (Pair::default(), Times::default(), Times::default());
    let mut syncs = 0;
    for turn in 0..=TURNS {
        let before = store.sync_counts().syncs;
        let (each, waited) = together(callers, ours.clone()).await;
        let made = store.sync_counts().syncs - before;
        let (bare_each, bare_waited) = together(callers, theirs.clone()).await;
        if turn > 0 {
            pair.turn(each, bare_each);
            waits.extend(waited);
            bare_waits.extend(bare_waited);
            syncs += made;
        }
    }
    println!("{name}: syncs\t{:.2}\ta message", syncs as f64 / (TURNS * RUNS) as f64);
    pair.print(&format!("{name}, time a message"), "each synced by itself", "under 1.05");
    waits.print(&format!("{name}: what one takes"));
    bare_waits.print(&format!("{name}: what one takes, each synced by itself"));
}
