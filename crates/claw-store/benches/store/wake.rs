//! The time until a waiting worker gets a job that was accepted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use claw_core::MessageId;
use claw_core::store::{Queue, SessionLog, Topic};
use claw_store::Backend as _;
use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::{Connection as _, Executor as _};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch::Receiver;

use crate::append::{append, session};
use crate::claim::claim_of;
use crate::database::{Server, sqlite_store};
use crate::measure::{Random, Times};

/// Runs that are not counted, while connections are opened.
const WARM: usize = 5;

/// Waits for work, and reports when it was woken and when it had a job.
async fn work(store: Arc<impl Queue>, mut changes: Receiver<u64>, had: UnboundedSender<(Instant, Instant)>) {
    while changes.changed().await.is_ok() {
        let woken = Instant::now();
        while store.claim(claim_of("worker")).await.unwrap().is_some() {
            if had.send((woken, Instant::now())).is_err() {
                return;
            }
        }
    }
}

/// Accepts messages on one store and waits until the worker of the other has claimed each. Returns the times
/// from the acknowledgement until it was woken.
async fn measure<A: SessionLog, W: Queue + 'static>(
    name: &str,
    store: &A,
    worker: &Arc<W>,
    runs: usize,
    pause: u64,
) -> Times {
    let (send, mut had) = unbounded_channel();
    // Listened to from here on: the task may begin after the first message.
    let changes = worker.changes(Topic::Work);
    let worker = tokio::spawn(work(Arc::clone(worker), changes, send));
    let mut random = Random::new();
    let (mut woke, mut claimed) = (Times::default(), Times::default());
    for run in 0..runs + WARM {
        // At any moment between two looks of whoever looks now and then.
        tokio::time::sleep(Duration::from_micros(random.below(pause * 1000 + 1))).await;
        // A session of its own: nothing of an earlier one keeps it waiting.
        append(store, &session(MessageId::new())).await;
        let accepted = Instant::now();
        let (woken, has) = had.recv().await.unwrap();
        if run >= WARM {
            let since = |then: Instant| then.saturating_duration_since(accepted).as_secs_f64() * 1e3;
            woke.add(since(woken));
            claimed.add(since(has));
        }
    }
    worker.abort();
    woke.print(&format!("{name}: accepted until woken"));
    claimed.print(&format!("{name}: accepted until claimed"));
    woke
}

pub(crate) async fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = sqlite_store(&path).await;
    measure("sqlite, one process", &*store, &store, 300, 1).await;
    // A store of its own looks at the file as another process does.
    let other = sqlite_store(&path).await;
    measure("sqlite, two on one file (promised: 250)", &*store, &other, 150, 100).await;
    other.disconnect().await;
    store.disconnect().await;
}

pub(crate) async fn postgres(server: &Server) {
    let database = server.database().await;
    let (one, two) = (database.store("one").await, database.store("two").await);
    measure("postgres, one node", &*one, &one, 300, 1).await;
    let ours = measure("postgres, node to node", &*one, &two, 300, 1).await;

    let mut bare = database.connect().await;
    let pool = PgPoolOptions::new().max_connections(1).connect_with(database.options.clone()).await.unwrap();
    let mut listener = PgListener::connect_with(&pool).await.unwrap();
    listener.listen("bare").await.unwrap();
    let (send, mut heard) = unbounded_channel();
    let hears =
        tokio::spawn(
            async move { while listener.recv().await.is_ok() && send.send(Instant::now()).is_ok() {} },
        );
    let mut theirs = Times::default();
    for _ in 0..300 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        bare.execute("NOTIFY bare").await.unwrap();
        let told = Instant::now();
        let heard = heard.recv().await.unwrap();
        theirs.add(heard.saturating_duration_since(told).as_secs_f64() * 1e3);
    }
    hears.abort();
    theirs.print("postgres, bare NOTIFY until heard");
    println!("postgres, woken beside bare\t{:.3}\tms more", ours.median() - theirs.median());
    bare.close().await.unwrap();
    one.disconnect().await;
    two.disconnect().await;
    database.drop().await;
}
