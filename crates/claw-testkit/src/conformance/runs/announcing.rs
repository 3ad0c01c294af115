//! The end of a child run and the news of it in its parent's session: both, once, or neither.

use claw_core::store::{Accepted, Announce, Finish, JobEnd, Party};
use claw_core::tool::PeerKind;

use super::*;
use crate::fixture::{agent, child_of, tenant};

pub(super) async fn suite<S: Runs + 'static>(make: &impl AsyncFn() -> S) {
    wakes_a_parked_parent_with_the_news(make().await).await;
    starts_a_run_where_the_parent_is_over(make().await).await;
    queues_behind_a_running_parent(make().await).await;
    stores_nothing_where_the_lease_is_lost(make().await).await;
    refuses_news_for_another_session_or_tenant(make().await).await;
}

pub(super) fn party() -> Party {
    Party { agent: agent(), user: None, channel: "cli".into(), chat: None, peer: PeerKind::Direct }
}

/// The news of a child, in this session.
pub(super) fn news(parent: &NewJob, key: &str) -> Announce {
    let job = child_of(parent, key);
    Announce { parent: parent.id, party: party(), message: message(key, "the child is done"), job }
}

pub(super) fn with(announce: Announce) -> Finish {
    Finish {
        said: vec![message("agent:child", "done")],
        end: JobEnd::Done,
        announce: Some(announce),
        event: None,
    }
}

/// Starts a child of this job and claims it.
pub(super) async fn start_child(store: &impl Runs, parent: &NewJob) -> Lease {
    let child = child_of(parent, "agent:child");
    store.enqueue(child.clone()).await.unwrap();
    take_this(store, &worker("b"), child.id).await
}

async fn wakes_a_parked_parent_with_the_news(store: impl Runs) {
    for end in [JobEnd::Done, JobEnd::Cancelled] {
        let key = format!("cli:{}", end.name());
        let lease = begin(&store, &key).await;
        let parent = find(&store, lease.job).await.new;
        let child = start_child(&store, &parent).await;
        assert_eq!(store.park(&lease, until_answered(&[])).await.unwrap(), JobState::Parked);
        let news = news(&parent, &key);
        let finished = store.finish_run(&child, Finish { end, ..with(news.clone()) }).await.unwrap();
        assert_eq!(finished.announced, Some(Accepted { seq: 2, job: parent.id }));
        let expected = Message { new: news.message, seq: 2, run: parent.id };
        assert_eq!(messages(&store, &key).await.last(), Some(&expected), "it is part of the parent's run");
        assert_eq!(store.job(&parent.tenant, news.job.id).await.unwrap(), None, "no other job answers it");
        assert_eq!(state(&store, child.job).await.name(), end.name());
        let woken = take_this(&store, &worker("c"), parent.id).await;
        assert_eq!(woken.attempt, 2);
        store.finish_job(&woken).await.unwrap();
    }
    assert_eq!(take(&store, &worker("c"), LATER).await, None);
}

async fn starts_a_run_where_the_parent_is_over(store: impl Runs) {
    let lease = begin(&store, "cli:me").await;
    let parent = find(&store, lease.job).await.new;
    let child = start_child(&store, &parent).await;
    store.finish_job(&lease).await.unwrap();
    let news = news(&parent, "cli:me");
    let finished = store.finish_run(&child, with(news.clone())).await.unwrap();
    assert_eq!(finished.announced, Some(Accepted { seq: 2, job: news.job.id }));
    let found = find(&store, news.job.id).await;
    assert_eq!((&found.new, found.state), (&news.job, JobState::Pending));
    assert_eq!(found.new.root(), parent.id);
    assert_eq!(messages(&store, "cli:me").await[1].run, news.job.id);
    take_this(&store, &worker("c"), news.job.id).await;
    // A parent that nobody knows is no obstacle.
    let orphan = start_child(&store, &job_of("cli:gone")).await;
    let gone = self::news(&job_of("cli:gone"), "cli:gone");
    let finished = store.finish_run(&orphan, with(gone.clone())).await.unwrap();
    assert_eq!(finished.announced, Some(Accepted { seq: 1, job: gone.job.id }));
}

async fn queues_behind_a_running_parent(store: impl Runs) {
    let lease = begin(&store, "cli:me").await;
    let parent = find(&store, lease.job).await.new;
    let child = start_child(&store, &parent).await;
    let news = news(&parent, "cli:me");
    store.finish_run(&child, with(news.clone())).await.unwrap();
    assert_eq!(state(&store, parent.id).await, JobState::Leased, "the parent goes on");
    assert_eq!(take(&store, &worker("c"), NOW).await, None);
    assert_eq!(store.take_waiting(&lease, i16::MIN).await.unwrap(), 1, "it may take the news up");
    assert_eq!(messages(&store, "cli:me").await[1].run, parent.id);
    // The same news again changes nothing.
    let again = start_child(&store, &parent).await;
    let finished = store.finish_run(&again, with(news.clone())).await.unwrap();
    assert_eq!(finished.announced.unwrap().seq, 2);
    assert_eq!(messages(&store, "cli:me").await.len(), 2);
    assert_eq!(state(&store, again.job).await, JobState::Done);
}

async fn stores_nothing_where_the_lease_is_lost(store: impl Runs) {
    let lease = begin(&store, "cli:me").await;
    let parent = find(&store, lease.job).await.new;
    let child = start_child(&store, &parent).await;
    store.park(&lease, until_answered(&[])).await.unwrap();
    let before = (messages(&store, "cli:me").await, events(&store, "cli:me").await);
    let wrong = Lease { attempt: 2, ..child.clone() };
    let news = news(&parent, "cli:me");
    check_lost(store.finish_run(&wrong, with(news.clone())).await, &wrong);
    store.reclaim(&worker("b"), child.until).await.unwrap();
    check_lost(store.finish_run(&child, with(news.clone())).await, &child);
    assert_eq!((messages(&store, "cli:me").await, events(&store, "cli:me").await), before);
    assert_eq!(messages(&store, "agent:child").await, []);
    assert_eq!(state(&store, parent.id).await, JobState::Parked);
    assert_eq!(store.job(&parent.tenant, news.job.id).await.unwrap(), None);
}

async fn refuses_news_for_another_session_or_tenant(store: impl Runs) {
    let lease = begin(&store, "cli:me").await;
    let parent = find(&store, lease.job).await.new;
    let child = start_child(&store, &parent).await;
    store.park(&lease, until_answered(&[])).await.unwrap();
    let right = news(&parent, "cli:me");
    let mut wrong = [news(&parent, "cli:you"), right.clone(), right.clone()];
    wrong[1].message.tenant = tenant("eve");
    wrong[2].job.tenant = tenant("eve");
    for wrong in wrong {
        let refused = store.finish_run(&child, with(wrong)).await;
        assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
        assert_eq!(state(&store, child.job).await, JobState::Leased, "nothing happened");
        assert_eq!(messages(&store, "agent:child").await, []);
        assert_eq!(messages(&store, "cli:you").await, []);
        assert_eq!(state(&store, parent.id).await, JobState::Parked);
    }
    store.finish_run(&child, with(right)).await.unwrap();
}
