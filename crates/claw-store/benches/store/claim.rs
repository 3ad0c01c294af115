//! The cost of claiming jobs: sixteen clients at full speed.

use std::sync::Arc;

use claw_core::port::UnixMillis;
use claw_core::store::{Claim, Queue, Worker};
use claw_core::{BootId, NodeId};
use claw_store::Backend as _;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use crate::database::{Server, sqlite_options, sqlite_store};
use crate::measure::{Pair, Times, time};
use crate::{bare, fill};

const CLIENTS: u32 = 16;
const JOBS: usize = 800;
const ROUNDS: usize = 5;
const TARGET: &str = "under 1.25";

pub(crate) fn claim_of(node: &str) -> Claim {
    let worker = Worker { node: NodeId::new(node).unwrap(), boot: BootId::new() };
    Claim { worker, lanes: vec!["main".into()], now: UnixMillis(10), until: UnixMillis(60_000) }
}

/// Claims until nothing is left, by all clients at once. Returns the time per job, and the times that each
/// waited.
async fn drain<F: Future<Output = bool> + Send>(
    claim: impl Fn(Claim) -> F + Clone + Send + Sync + 'static,
) -> (Times, Times) {
    let mut waits = Times::default();
    let took = time(async {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let (claim, asked) = (claim.clone(), claim_of(&format!("node{n}")));
                tokio::spawn(async move {
                    let mut waits = Times::default();
                    loop {
                        let mut found = false;
                        waits.add(time(async { found = claim(asked.clone()).await }).await);
                        if !found {
                            return waits;
                        }
                    }
                })
            })
            .collect();
        for client in clients {
            waits.extend(client.await.unwrap());
        }
    })
    .await;
    let mut each = Times::default();
    each.add(took / JOBS as f64);
    (each, waits)
}

/// Rounds of both by turns, each over new jobs.
async fn rounds<F: Future<Output = bool> + Send, S: Queue + 'static>(
    name: &str,
    store: &Arc<S>,
    bare: impl Fn(Claim) -> F + Clone + Send + Sync + 'static,
    mut refill: impl AsyncFnMut(),
) {
    let mut times = Pair::default();
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    let claim = |store: &Arc<S>| {
        let store = Arc::clone(store);
        move |claim| {
            let store = Arc::clone(&store);
            async move { store.claim(claim).await.unwrap().is_some() }
        }
    };
    for round in 0..=ROUNDS {
        refill().await;
        let (took, waits) = drain(claim(store)).await;
        let (bare_took, bare_waits) = drain(bare.clone()).await;
        // The first round opens connections and prepares statements.
        if round > 0 {
            times.turn(took, bare_took);
            ours.extend(waits);
            theirs.extend(bare_waits);
        }
    }
    times.print(&format!("{name}: claim by 16, time a job"), "bare", TARGET);
    ours.print(&format!("{name}: claim by 16, what one waits (target: at most 100)"));
    theirs.print(&format!("{name}: claim by 16, what one waits, bare"));
}

pub(crate) async fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("store.db"), directory.path().join("bare.db"));
    let store = sqlite_store(&path).await;
    sqlite_store(&other).await.disconnect().await;
    let mut fillers = [
        sqlite_options().filename(&path).connect().await.unwrap(),
        sqlite_options().filename(&other).connect().await.unwrap(),
    ];
    // One connection, as SQLite has one writer.
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(sqlite_options().filename(&other));
    let pool = pool.await.unwrap();
    let bare = {
        let pool = pool.clone();
        move |claim: Claim| {
            let pool = pool.clone();
            async move { bare::sqlite_claim(&pool, &claim).await }
        }
    };
    rounds("sqlite", &store, bare, async || {
        for filler in &mut fillers {
            filler.execute("DELETE FROM jobs").await.unwrap();
            fill::sqlite_jobs(filler, JOBS).await;
        }
    })
    .await;
    pool.close().await;
    for filler in fillers {
        filler.close().await.unwrap();
    }
    store.disconnect().await;
}

pub(crate) async fn postgres(server: &Server) {
    let (ours, theirs) = (server.database().await, server.database().await);
    let store = ours.store("bench").await;
    let mut fillers = [ours.connect().await, theirs.connect().await];
    let pool = PgPoolOptions::new().max_connections(CLIENTS).test_before_acquire(false);
    let pool = pool.connect_with(theirs.options.clone()).await.unwrap();
    let bare = {
        let pool = pool.clone();
        move |claim: Claim| {
            let pool = pool.clone();
            async move { bare::postgres_claim(&pool, &claim).await }
        }
    };
    rounds("postgres", &store, bare, async || {
        for filler in &mut fillers {
            filler.execute("TRUNCATE jobs").await.unwrap();
            fill::postgres_jobs(filler, JOBS).await;
            filler.execute("ANALYZE jobs").await.unwrap();
        }
    })
    .await;
    pool.close().await;
    for filler in fillers {
        filler.close().await.unwrap();
    }
    store.disconnect().await;
    ours.drop().await;
    theirs.drop().await;
}
