//! Many workers at once: no job twice, no two of a session, no wake-up missed.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use claw_core::SessionKey;
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;

const WORKERS: usize = 32;
const JOBS: usize = 96;
/// A store that hangs fails instead; nothing else depends on it.
const STUCK: Duration = Duration::from_secs(120);

pub(super) async fn suite<S: Queue + 'static>(make: &impl AsyncFn() -> S) {
    accepts_one_of_many_equal_jobs(make().await).await;
    gives_each_job_to_one_of_many_workers(make().await).await;
    lets_one_of_many_finish_or_reclaim(make().await).await;
}

async fn accepts_one_of_many_equal_jobs(store: impl Queue + 'static) {
    let (store, new) = (Arc::new(store), job());
    let accept = |_| {
        let (store, new) = (Arc::clone(&store), new.clone());
        tokio::spawn(async move { store.enqueue(new).await.unwrap() })
    };
    for accepted in (0..WORKERS).map(accept).collect::<Vec<_>>() {
        accepted.await.unwrap();
    }
    assert_eq!(counts(&*store, &TenantId::main()).await[0].pending, 1);
}

/// The state that the workers share: who runs which job, and the number of jobs done.
struct Floor<S> {
    store: S,
    running: Mutex<HashSet<SessionKey>>,
    begun: Mutex<HashSet<JobId>>,
    done: watch::Sender<usize>,
}

async fn gives_each_job_to_one_of_many_workers(store: impl Queue + 'static) {
    let done = watch::Sender::new(0);
    let floor = Arc::new(Floor { store, running: Mutex::default(), begun: Mutex::default(), done });
    let workers: Vec<_> = (0..WORKERS).map(|n| tokio::spawn(work(Arc::clone(&floor), n))).collect();
    for n in 0..JOBS {
        let new = if n % 4 == 0 { job() } else { job_of(&format!("cli:{}", n % 7)) };
        floor.store.enqueue(new).await.unwrap();
    }
    for worker in workers {
        let ended = timeout(STUCK, worker).await;
        ended.expect("a worker waits for work that is there: a wake-up was missed").unwrap();
    }
    assert_eq!(floor.begun.lock().unwrap().len(), JOBS);
    assert_eq!(counts(&floor.store, &TenantId::main()).await, []);
}

async fn work<S: Queue>(floor: Arc<Floor<S>>, n: usize) {
    let me = worker(&format!("node-{}", n % 4));
    let (mut wake, mut done) = (floor.store.changes(Topic::Work), floor.done.subscribe());
    loop {
        wake.mark_unchanged();
        let Some((job, lease)) = take(&floor.store, &me, NOW).await else {
            if *done.borrow_and_update() == JOBS {
                return;
            }
            tokio::select! {
                _ = wake.changed() => {}
                _ = done.wait_for(|done| *done == JOBS) => {}
            }
            continue;
        };
        assert!(floor.begun.lock().unwrap().insert(job.new.id), "claimed twice: {}", job.new.id);
        if let Some(session) = &job.new.session {
            let alone = floor.running.lock().unwrap().insert(session.clone());
            assert!(alone, "two of `{session}` at once");
        }
        tokio::task::yield_now().await;
        if let Some(session) = &job.new.session {
            floor.running.lock().unwrap().remove(session);
        }
        floor.store.finish_job(&lease).await.unwrap();
        floor.done.send_modify(|done| *done += 1);
    }
}

async fn lets_one_of_many_finish_or_reclaim(store: impl Queue + 'static) {
    let store = Arc::new(store);
    for _ in 0..8 {
        store.enqueue(job()).await.unwrap();
        let (taken, lease) = take(&*store, &worker("a"), NOW).await.unwrap();
        let racers: Vec<_> = (0..8)
            .map(|n| {
                let (store, lease) = (Arc::clone(&store), lease.clone());
                tokio::spawn(async move {
                    if n % 2 == 0 {
                        store.finish_job(&lease).await.is_ok()
                    } else {
                        !store.reclaim(&worker("b"), lease.until).await.unwrap().is_empty()
                    }
                })
            })
            .collect();
        let mut won = 0;
        for racer in racers {
            won += usize::from(racer.await.unwrap());
        }
        assert_eq!(won, 1, "finished or reclaimed, by one");
        let left = state(&*store, taken.new.id).await;
        if left == JobState::Pending {
            let lease = take_this(&*store, &worker("b"), taken.new.id).await;
            store.finish_job(&lease).await.unwrap();
        } else {
            assert_eq!(left, JobState::Done);
        }
    }
}
