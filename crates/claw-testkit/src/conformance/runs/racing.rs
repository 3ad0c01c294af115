//! Races of two operations: in either order nothing is lost and nothing happens twice.

use std::sync::Arc;

use claw_core::store::{Cancelled, Finish, JobFilter};
use tokio::time::timeout;

use super::announcing::{news, start_child, with};
use super::*;
use crate::fixture::child_of;

const ROUNDS: usize = 24;
/// A store that hangs fails instead; nothing else depends on it.
const STUCK: Duration = Duration::from_secs(120);

pub(super) async fn suite<S: Runs + 'static>(make: &impl AsyncFn() -> S) {
    wakes_a_run_that_is_answered_while_it_parks(make().await).await;
    ends_a_run_that_is_cancelled_while_it_finishes_once(make().await).await;
    cancels_or_tells_a_run_that_is_being_claimed(make().await).await;
    reaches_a_child_that_is_being_accepted(make().await).await;
    tells_a_parent_that_parks_meanwhile(make().await).await;
    gets_through_when_everyone_touches_one_tree(make().await).await;
}

/// Runs both at once and returns their results.
async fn both<A: Send + 'static, B: Send + 'static>(
    one: impl Future<Output = A> + Send + 'static,
    other: impl Future<Output = B> + Send + 'static,
) -> (A, B) {
    let (one, other) = (tokio::spawn(one), tokio::spawn(other));
    let ended = timeout(STUCK, async { (one.await.unwrap(), other.await.unwrap()) }).await;
    ended.expect("they wait for each other")
}

async fn wakes_a_run_that_is_answered_while_it_parks(store: impl Runs + 'static) {
    let store = Arc::new(store);
    for n in 0..ROUNDS {
        let lease = begin(&*store, &format!("cli:{n}")).await;
        let approval = ask(&*store, &lease).await;
        let (parks, answers) = (Arc::clone(&store), Arc::clone(&store));
        let (run, id) = (lease.clone(), lease.job);
        both(async move { parks.park(&run, until_answered(&[approval])).await.unwrap() }, async move {
            answer(&*answers, approval, true).await.unwrap()
        })
        .await;
        let woken = take(&*store, &worker("b"), NOW).await.expect("a wake-up was lost").1;
        assert_eq!((woken.job, woken.attempt), (id, 2));
        store.finish_job(&woken).await.unwrap();
    }
}

async fn ends_a_run_that_is_cancelled_while_it_finishes_once(store: impl Runs + 'static) {
    let store = Arc::new(store);
    for n in 0..ROUNDS {
        let key = format!("cli:{n}");
        let lease = begin(&*store, &key).await;
        let (finishes, cancels) = (Arc::clone(&store), Arc::clone(&store));
        let (run, id, said) = (lease.clone(), lease.job, vec![message(&key, "done")]);
        let (finished, cancelled) =
            both(async move { finishes.finish_run(&run, Finish::done(said)).await }, async move {
                cancels.cancel(&TenantId::main(), id, by_ann()).await.unwrap()
            })
            .await;
        finished.expect("a worker that holds its run ends it");
        assert_eq!(cancelled.ended, [], "no run ends under its worker");
        assert_eq!(cancelled.told.len() + cancelled.over.len(), 1);
        let found = find(&*store, id).await;
        assert_eq!((found.state, found.cancel.is_some()), (JobState::Done, !cancelled.told.is_empty()));
        assert_eq!(messages(&*store, &key).await.len(), 2);
    }
}

async fn cancels_or_tells_a_run_that_is_being_claimed(store: impl Runs + 'static) {
    let store = Arc::new(store);
    for n in 0..ROUNDS {
        let key = format!("cli:{n}");
        let new = accept(&*store, &key).await;
        let (claims, cancels) = (Arc::clone(&store), Arc::clone(&store));
        let id = new.id;
        let (claimed, cancelled) = both(async move { take(&*claims, &worker("a"), NOW).await }, async move {
            cancels.cancel(&TenantId::main(), id, by_ann()).await.unwrap()
        })
        .await;
        let expected = match &claimed {
            Some(_) => Cancelled { told: vec![id], ..Cancelled::default() },
            None => Cancelled { ended: vec![id], ..Cancelled::default() },
        };
        assert_eq!(cancelled, expected);
        assert_eq!(messages(&*store, &key).await.len(), if claimed.is_some() { 1 } else { 2 });
        if let Some((_, lease)) = claimed {
            store.finish_run(&lease, Finish::cancelled(vec![])).await.unwrap();
        }
        assert_eq!(state(&*store, id).await, JobState::Cancelled);
    }
}

async fn reaches_a_child_that_is_being_accepted(store: impl Runs + 'static) {
    let store = Arc::new(store);
    for n in 0..ROUNDS {
        let lease = begin(&*store, &format!("cli:{n}")).await;
        let key = format!("agent:{n}");
        let child = child_of(&find(&*store, lease.job).await.new, &key);
        let (accepts, cancels) = (Arc::clone(&store), Arc::clone(&store));
        let (new, id) = (child.clone(), lease.job);
        both(async move { accepts.accept_message(message(&key, "do it"), new).await.unwrap() }, async move {
            cancels.cancel(&TenantId::main(), id, by_ann()).await.unwrap()
        })
        .await;
        let found = find(&*store, child.id).await;
        assert!(found.cancel.is_some(), "a child slipped through: {found:?}");
        store.finish_run(&lease, Finish::cancelled(vec![])).await.unwrap();
        if let Some((_, lease)) = take(&*store, &worker("b"), NOW).await {
            store.finish_run(&lease, Finish::cancelled(vec![])).await.unwrap();
        }
    }
}

async fn tells_a_parent_that_parks_meanwhile(store: impl Runs + 'static) {
    let store = Arc::new(store);
    for n in 0..ROUNDS {
        let key = format!("cli:{n}");
        let lease = begin(&*store, &key).await;
        let parent = find(&*store, lease.job).await.new;
        let child = start_child(&*store, &parent).await;
        let (parks, finishes, news) = (Arc::clone(&store), Arc::clone(&store), news(&parent, &key));
        let (_, finished) =
            both(async move { parks.park(&lease, until_answered(&[])).await.unwrap() }, async move {
                finishes.finish_run(&child, with(news)).await.unwrap()
            })
            .await;
        assert_eq!(messages(&*store, &key).await.len(), 2);
        let announced = finished.announced.unwrap();
        let woken = take(&*store, &worker("c"), NOW).await;
        if announced.job == parent.id {
            assert_eq!(woken.unwrap().0.new.id, parent.id, "the parent hears of it");
        } else {
            assert_eq!(woken, None, "the news waits behind the parent, which waits as it wanted");
            assert_eq!(state(&*store, parent.id).await, JobState::Parked);
        }
        store.cancel(&TenantId::main(), parent.id, by_ann()).await.unwrap();
    }
}

/// Children end and announce it, approvals are answered, one operation cancels: there must be no deadlock.
async fn gets_through_when_everyone_touches_one_tree(store: impl Runs + 'static) {
    const CHILDREN: usize = 6;
    let store = Arc::new(store);
    for n in 0..ROUNDS / 4 {
        let key = format!("cli:{n}");
        let lease = begin(&*store, &key).await;
        let parent = find(&*store, lease.job).await.new;
        let approval = ask(&*store, &lease).await;
        let mut tasks = Vec::new();
        for m in 0..CHILDREN {
            let child = child_of(&parent, &format!("agent:{n}-{m}"));
            store.enqueue(child.clone()).await.unwrap();
            let run = take_this(&*store, &worker("b"), child.id).await;
            let (store, news) = (Arc::clone(&store), news(&parent, &key));
            tasks.push(tokio::spawn(async move {
                store.finish_run(&run, with(news)).await.unwrap();
            }));
        }
        let (parks, answers, cancels, id) =
            (Arc::clone(&store), Arc::clone(&store), Arc::clone(&store), parent.id);
        tasks.push(tokio::spawn(async move {
            parks.park(&lease, until_answered(&[approval])).await.unwrap();
        }));
        tasks.push(tokio::spawn(async move {
            // The cancel may have come first.
            let _ = answer(&*answers, approval, true).await;
        }));
        tasks.push(tokio::spawn(async move {
            cancels.cancel(&TenantId::main(), id, by_ann()).await.unwrap();
        }));
        for task in tasks {
            timeout(STUCK, task).await.expect("they wait for each other").unwrap();
        }
        store.cancel(&TenantId::main(), parent.id, by_ann()).await.unwrap();
        let tree = JobFilter { root: Some(parent.id), ..JobFilter::default() };
        for job in store.jobs(&TenantId::main(), &tree).await.unwrap() {
            assert!(job.state.is_over() || job.cancel.is_some(), "{job:?}");
        }
        assert_ne!(approval_state(&*store, approval).await, ApprovalState::Pending);
        let news = messages(&*store, &key).await.iter().filter(|said| said.new.content != note()).count();
        assert_eq!(news, 1 + CHILDREN);
    }
}
