//! The suite of a [`Queue`]: accepted once, begun at least once, finished once.
//!
//! Run it on a runtime with several threads: the racing tests are worth little on one.

mod leases;
mod racing;

use std::time::Duration;

use claw_core::port::UnixMillis;
use claw_core::store::{
    Claim, Failure, Job, JobFilter, JobState, LaneCount, Lease, Lineage, NewJob, Queue, StoreError, Topic,
    Worker,
};
use claw_core::{JobId, TenantId, UserId};
use serde_json::json;

use crate::fixture::{NOW, child_of, job, job_of, session, tenant, worker};

/// The duration of the suite's leases.
const LEASE: Duration = Duration::from_secs(60);

/// Runs the suite; `make` creates an empty queue.
pub async fn queue<S: Queue + 'static>(make: impl AsyncFn() -> S) {
    gives_a_job_back_as_it_was_accepted(make().await).await;
    accepts_a_job_once(make().await).await;
    takes_the_highest_priority_then_the_oldest(make().await).await;
    keeps_a_jobs_place_when_it_is_tried_again(make().await).await;
    hides_a_job_until_it_is_visible(make().await).await;
    keeps_times_to_the_millisecond(make().await).await;
    takes_work_from_the_lanes_that_were_asked_for(make().await).await;
    runs_one_job_of_a_session_at_a_time(make().await).await;
    runs_the_jobs_of_a_session_in_the_order_of_acceptance(make().await).await;
    keeps_the_order_of_a_session_through_retries(make().await).await;
    keeps_where_a_job_comes_from(make().await).await;
    lists_the_last_accepted_first(make().await).await;
    counts_each_lane(make().await).await;
    counts_the_open_jobs_of_a_user(make().await).await;
    keeps_tenants_apart(make().await).await;
    wakes_workers(make().await).await;
    leases::suite(&make).await;
    racing::suite(&make).await;
}

async fn gives_a_job_back_as_it_was_accepted(store: impl Queue) {
    let payload = json!({
        "text": "naïve \u{1f980} 'quoted' \"twice\" \\ \n \u{0} end",
        "numbers": [0, -1, u64::MAX, i64::MIN, 0.1, 1e300],
        "nested": { "": null, "yes": true, "empty": [{}, []] },
    });
    for (priority, max_attempts) in [(0, 1), (i16::MAX, u16::MAX), (i16::MIN, 3)] {
        let new =
            NewJob { payload: payload.clone(), priority, max_attempts, ..job_of("agent:main:telegram:42") };
        store.enqueue(new.clone()).await.unwrap();
        let expected = pending(new);
        assert_eq!(find(&store, expected.new.id).await, expected);
    }
    assert_eq!(store.job(&TenantId::main(), JobId::new()).await.unwrap(), None);
}

async fn accepts_a_job_once(store: impl Queue) {
    let ann = worker("a");
    let first = job();
    let changed = NewJob { priority: 9, lane: "other".into(), payload: json!("changed"), ..first.clone() };
    store.enqueue(first.clone()).await.unwrap();
    store.enqueue(changed.clone()).await.unwrap();
    assert_eq!(find(&store, first.id).await.new, first, "the first one stands");

    let lease = take(&store, &ann, NOW).await.expect("it waits").1;
    store.enqueue(changed.clone()).await.unwrap();
    assert_eq!(state(&store, first.id).await, JobState::Leased, "accepting it again changes nothing");
    assert_eq!(take(&store, &ann, NOW).await, None, "and there is one of it");
    store.finish_job(&lease).await.unwrap();
    store.enqueue(changed).await.unwrap();
    assert_eq!(state(&store, first.id).await, JobState::Done, "finished is finished");
    assert_eq!(take(&store, &ann, NOW).await, None);
}

async fn takes_the_highest_priority_then_the_oldest(store: impl Queue) {
    let ann = worker("a");
    let jobs = [0, 5, -3, 5, 0, i16::MAX, i16::MIN].map(|priority| NewJob { priority, ..job() });
    for new in &jobs {
        store.enqueue(new.clone()).await.unwrap();
    }
    let mut order = Vec::new();
    while let Some((taken, lease)) = take(&store, &ann, NOW).await {
        order.push(jobs.iter().position(|new| new.id == taken.new.id).unwrap());
        store.finish_job(&lease).await.unwrap();
    }
    assert_eq!(order, [5, 1, 3, 0, 4, 2, 6]);
}

async fn keeps_a_jobs_place_when_it_is_tried_again(store: impl Queue) {
    let ann = worker("a");
    let (first, second) = (job(), job());
    store.enqueue(first.clone()).await.unwrap();
    store.enqueue(second).await.unwrap();
    let (taken, lease) = take(&store, &ann, NOW).await.unwrap();
    assert_eq!(taken.new.id, first.id);
    store.fail_job(&lease, again(NOW)).await.unwrap();
    assert_eq!(take(&store, &ann, NOW).await.unwrap().0.new.id, first.id, "it was accepted first");
}

async fn hides_a_job_until_it_is_visible(store: impl Queue) {
    let ann = worker("a");
    let hidden = NewJob { visible: after(1_000), priority: 9, ..job() };
    let shown = job();
    store.enqueue(hidden.clone()).await.unwrap();
    store.enqueue(shown.clone()).await.unwrap();
    assert_eq!(take(&store, &ann, NOW).await.unwrap().0.new.id, shown.id);
    assert_eq!(take(&store, &ann, after(999)).await, None);
    assert_eq!(take(&store, &ann, after(1_000)).await.unwrap().0.new.id, hidden.id);
}

async fn keeps_times_to_the_millisecond(store: impl Queue) {
    let ann = worker("a");
    for millis in [0, 1, -1, 999, 1_767_225_600_001, 253_402_300_799_999, -62_135_596_800_000, i64::MAX] {
        let at = UnixMillis(millis);
        let new = NewJob { accepted: at, visible: at, ..job() };
        store.enqueue(new.clone()).await.unwrap();
        assert_eq!(find(&store, new.id).await.new, new);
        assert_eq!(
            take(&store, &ann, UnixMillis(millis - 1)).await,
            None,
            "not a millisecond early: {millis}"
        );
        let claim = Claim { worker: ann.clone(), lanes: vec!["main".into()], now: at, until: at };
        let (_, lease) = store.claim(claim).await.unwrap().expect("visible by now");
        assert_eq!(lease.until, at);
        let until = UnixMillis(millis.saturating_add(1));
        assert_eq!(store.extend(&lease, until).await.unwrap().until, until);
        assert_eq!(find(&store, new.id).await.lease.unwrap().until, until);
        store.finish_job(&lease).await.unwrap();
    }
}

async fn takes_work_from_the_lanes_that_were_asked_for(store: impl Queue) {
    let ann = worker("a");
    let [main, cron, subagent] =
        ["main", "cron", "subagent"].map(|lane| NewJob { lane: lane.into(), ..job() });
    for new in [&main, &cron, &subagent] {
        store.enqueue(new.clone()).await.unwrap();
    }
    let ask = async |lanes: &[&str]| {
        let lanes = lanes.iter().copied().map(Into::into).collect();
        let claim = Claim { worker: ann.clone(), lanes, now: NOW, until: NOW.plus(LEASE) };
        store.claim(claim).await.unwrap().map(|(job, _)| job.new.id)
    };
    assert_eq!(ask(&[]).await, None);
    assert_eq!(ask(&["other", "ma", "main%", "MAIN"]).await, None);
    assert_eq!(ask(&["cron"]).await, Some(cron.id));
    assert_eq!(ask(&["cron"]).await, None);
    assert_eq!(ask(&["subagent", "main", "main"]).await, Some(main.id));
    assert_eq!(ask(&["subagent", "main"]).await, Some(subagent.id));
}

async fn runs_one_job_of_a_session_at_a_time(store: impl Queue) {
    let (ann, ben) = (worker("a"), worker("b"));
    let [first, second, third] = [(); 3].map(|()| job_of("cli:me"));
    let urgent = NewJob { lane: "cron".into(), priority: 9, ..job_of("cli:me") };
    let theirs = job_of("cli:you");
    for new in [&first, &second, &urgent, &third, &theirs] {
        store.enqueue(new.clone()).await.unwrap();
    }
    let lease = take_this(&store, &ann, first.id).await;
    take_this(&store, &ben, theirs.id).await;
    assert_eq!(take(&store, &ben, NOW).await, None, "the session has a leased job");
    let cron = Claim { worker: ben.clone(), lanes: vec!["cron".into()], now: NOW, until: NOW.plus(LEASE) };
    assert_eq!(store.claim(cron.clone()).await.unwrap(), None, "in whatever lane");
    store.finish_job(&lease).await.unwrap();

    assert_eq!(store.claim(cron.clone()).await.unwrap(), None, "an older one waits, in another lane");
    let lease = take_this(&store, &ben, second.id).await;
    assert_eq!(store.fail_job(&lease, given_up()).await.unwrap(), JobState::Dead);
    assert_eq!(take(&store, &ann, NOW).await, None, "the next one is for another lane");
    let lease = store.claim(cron).await.unwrap().expect("a dead job holds nobody up").1;
    assert_eq!((lease.job, take(&store, &ann, NOW).await), (urgent.id, None));
    store.finish_job(&lease).await.unwrap();
    take_this(&store, &ann, third.id).await;

    for _ in 0..2 {
        store.enqueue(NewJob { lane: "free".into(), ..job() }).await.unwrap();
    }
    for _ in 0..2 {
        let (worker, lanes) = (ann.clone(), vec!["free".into()]);
        let claim = Claim { worker, lanes, now: NOW, until: NOW.plus(LEASE) };
        assert!(store.claim(claim).await.unwrap().is_some(), "jobs of no session do not exclude each other");
    }
}

async fn runs_the_jobs_of_a_session_in_the_order_of_acceptance(store: impl Queue) {
    let ann = worker("a");
    // Neither a caller's clock nor a priority changes the order within a session.
    let jobs = [(0, 0), (-5_000, 0), (-9_000, 9), (5_000, -9)].map(|(millis, priority)| {
        let accepted = UnixMillis(NOW.0 + millis);
        NewJob { accepted, priority, ..job_of("cli:me") }
    });
    let hidden = NewJob { visible: after(1_000), ..job_of("cli:me") };
    let last = job_of("cli:me");
    for new in jobs.iter().chain([&hidden, &last]) {
        store.enqueue(new.clone()).await.unwrap();
    }
    let other = NewJob { priority: 1, ..job_of("cli:you") };
    store.enqueue(other.clone()).await.unwrap();
    let lease = take_this(&store, &ann, other.id).await;
    store.finish_job(&lease).await.unwrap();
    for new in &jobs {
        let lease = take_this(&store, &ann, new.id).await;
        assert_eq!(take(&store, &ann, NOW).await, None);
        store.finish_job(&lease).await.unwrap();
    }
    assert_eq!(take(&store, &ann, after(999)).await, None, "an older job is not visible yet");
    let (taken, lease) = take(&store, &ann, after(1_000)).await.unwrap();
    assert_eq!(taken.new.id, hidden.id);
    store.finish_job(&lease).await.unwrap();
    take_this(&store, &ann, last.id).await;
}

async fn keeps_the_order_of_a_session_through_retries(store: impl Queue) {
    let (ann, ben) = (worker("a"), worker("b"));
    let (first, second, other) = (job_of("cli:me"), job_of("cli:me"), job_of("cli:you"));
    for new in [&first, &second, &other] {
        store.enqueue(new.clone()).await.unwrap();
    }
    let lease = take_this(&store, &ann, first.id).await;
    assert_eq!(store.fail_job(&lease, again(after(1_000))).await.unwrap(), JobState::Pending);
    take_this(&store, &ann, other.id).await;
    assert_eq!(take(&store, &ann, after(999)).await, None, "the second one waits for the first");
    let (taken, lease) = take(&store, &ann, after(1_000)).await.unwrap();
    assert_eq!(taken.new.id, first.id);
    assert_eq!(store.reclaim(&ben, lease.until).await.unwrap().len(), 2, "that one, and the other session's");
    assert_eq!(take(&store, &ben, after(1_000)).await.unwrap().0.new.id, first.id, "and again after a crash");
    let lease = find(&store, first.id).await.lease.unwrap();
    store.finish_job(&lease).await.unwrap();
    let lease = take(&store, &ben, NOW).await.unwrap();
    assert_eq!(lease.0.new.id, second.id);
}

async fn keeps_where_a_job_comes_from(store: impl Queue) {
    let root = job_of("cli:me");
    let child = child_of(&root, "agent:child");
    let grandchild = NewJob { session: None, ..child_of(&child, "agent:grandchild") };
    for new in [&root, &child, &grandchild] {
        store.enqueue(new.clone()).await.unwrap();
        assert_eq!(find(&store, new.id).await, pending(new.clone()));
    }
    let expected = Lineage { parent: child.id, root: root.id, depth: 2 };
    assert_eq!(find(&store, grandchild.id).await.new.lineage, Some(expected));
    assert_eq!((root.root(), root.depth(), child.depth()), (root.id, 0, 1));
    // A parent that is gone, or another tenant's, changes nothing.
    let orphan = child_of(&job(), "agent:orphan");
    let foreign = NewJob { tenant: tenant("other"), ..child_of(&root, "agent:foreign") };
    store.enqueue(orphan.clone()).await.unwrap();
    store.enqueue(foreign.clone()).await.unwrap();
    assert_eq!(find(&store, orphan.id).await, pending(orphan));
    assert_eq!(store.job(&foreign.tenant, foreign.id).await.unwrap(), Some(pending(foreign)));
}

async fn lists_the_last_accepted_first(store: impl Queue) {
    let (main, ann) = (TenantId::main(), worker("a"));
    let root = job_of("cli:me");
    let children = [child_of(&root, "agent:one"), child_of(&root, "agent:two")];
    let alone = NewJob { accepted: UnixMillis(0), priority: 9, ..job() };
    let theirs = NewJob { tenant: tenant("other"), ..job_of("cli:me") };
    for new in [&root, &children[0], &alone, &children[1], &theirs] {
        store.enqueue(new.clone()).await.unwrap();
    }
    let lease = take(&store, &ann, NOW).await.unwrap().1;
    assert_eq!(lease.job, alone.id);
    store.finish_job(&lease).await.unwrap();
    let lease = take_this(&store, &ann, root.id).await;
    let list = async |filter: JobFilter| {
        let found = store.jobs(&main, &filter).await.unwrap();
        found.iter().map(|job| job.new.id).collect::<Vec<_>>()
    };
    let none = JobFilter::default;
    let all = [children[1].id, alone.id, children[0].id, root.id];
    assert_eq!(list(none()).await, all);
    let (session, states) = (Some(session("cli:me")), vec![JobState::Leased, JobState::Done]);
    assert_eq!(list(JobFilter { session, ..none() }).await, [root.id]);
    assert_eq!(
        list(JobFilter { root: Some(root.id), ..none() }).await,
        [children[1].id, children[0].id, root.id]
    );
    assert_eq!(list(JobFilter { root: Some(children[0].id), ..none() }).await, [], "not the root of a tree");
    assert_eq!(list(JobFilter { states, ..none() }).await, [alone.id, root.id]);
    assert_eq!(list(JobFilter { states: vec![JobState::Parked], ..none() }).await, []);
    for (at, id) in all.iter().enumerate() {
        assert_eq!(list(JobFilter { after: Some(*id), ..none() }).await, all[at + 1..]);
        assert_eq!(
            list(JobFilter { after: Some(*id), limit: 1, ..none() }).await,
            all[at + 1..].get(..1).unwrap_or_default()
        );
    }
    assert_eq!(list(JobFilter { limit: 0, ..none() }).await, []);
    assert_eq!(list(JobFilter { after: Some(JobId::new()), ..none() }).await, []);
    assert_eq!(
        list(JobFilter { after: Some(theirs.id), ..none() }).await,
        [],
        "another tenant's job is no cursor"
    );
    assert_eq!(
        store.jobs(&main, &JobFilter { limit: 1, root: Some(root.id), ..none() }).await.unwrap().len(),
        1
    );
    let found = store.jobs(&main, &JobFilter { states: vec![JobState::Leased], ..none() }).await.unwrap();
    assert_eq!(found, [find(&store, root.id).await], "a listed job is the whole job");
    assert_eq!(found[0].lease, Some(lease));
    assert_eq!(store.jobs(&tenant("third"), &none()).await.unwrap(), []);
}

async fn counts_each_lane(store: impl Queue) {
    let (main, ann) = (TenantId::main(), worker("a"));
    assert_eq!(counts(&store, &main).await, []);
    for _ in 0..5 {
        store.enqueue(job()).await.unwrap();
    }
    store.enqueue(NewJob { lane: "cron".into(), visible: after(1_000), ..job() }).await.unwrap();
    store.enqueue(NewJob { tenant: tenant("other"), priority: -1, ..job() }).await.unwrap();
    for round in 0..4 {
        let lease = take(&store, &ann, NOW).await.unwrap().1;
        match round {
            0 => store.finish_job(&lease).await.unwrap(),
            1 => assert_eq!(store.fail_job(&lease, given_up()).await.unwrap(), JobState::Dead),
            2 => assert_eq!(store.fail_job(&lease, again(NOW)).await.unwrap(), JobState::Pending),
            _ => {}
        }
    }
    let count =
        |lane: &str, pending, leased, dead| LaneCount { lane: lane.into(), pending, leased, parked: 0, dead };
    assert_eq!(counts(&store, &main).await, [count("cron", 1, 0, 0), count("main", 2, 1, 1)]);
    assert_eq!(counts(&store, &tenant("other")).await, [count("main", 1, 0, 0)]);
}

async fn keeps_tenants_apart(store: impl Queue) {
    let (ann, ben) = (worker("a"), worker("b"));
    let ours = job_of("cli:me");
    let theirs = NewJob { tenant: tenant("other"), ..job_of("cli:me") };
    store.enqueue(ours.clone()).await.unwrap();
    store.enqueue(theirs.clone()).await.unwrap();
    assert_eq!(store.job(&theirs.tenant, ours.id).await.unwrap(), None);
    assert_eq!(store.job(&ours.tenant, theirs.id).await.unwrap(), None);
    assert_eq!(counts(&store, &tenant("third")).await, []);

    // An id is the whole installation's: whatever becomes of it, it is not a way to another's job.
    let stolen = NewJob { tenant: tenant("third"), payload: json!("stolen"), ..ours.clone() };
    let _ = store.enqueue(stolen).await;
    assert_eq!(find(&store, ours.id).await.new, ours);

    take_this(&store, &ann, ours.id).await;
    take_this(&store, &ben, theirs.id).await;
}

async fn wakes_workers(store: impl Queue) {
    let ann = worker("a");
    let mut work = store.changes(Topic::Work);
    let mut woke = |why: &str| {
        assert!(work.has_changed().unwrap(), "{why} wakes workers");
        work.mark_unchanged();
    };
    store.enqueue(job_of("cli:me")).await.unwrap();
    woke("accepting a job");
    store.enqueue(job_of("cli:me")).await.unwrap();
    woke("accepting another");
    let lease = take(&store, &ann, NOW).await.unwrap().1;
    store.fail_job(&lease, again(NOW)).await.unwrap();
    woke("giving a job back");
    let lease = take(&store, &ann, NOW).await.unwrap().1;
    store.finish_job(&lease).await.unwrap();
    woke("finishing a job others of its session wait for");
    take(&store, &ann, NOW).await.unwrap();
    assert_eq!(store.reclaim(&ann, NOW.plus(LEASE)).await.unwrap().len(), 1);
    woke("reclaiming a job");
}

async fn counts_the_open_jobs_of_a_user(store: impl Queue) {
    let (main, ann) = (TenantId::main(), UserId::new("ann").unwrap());
    let of = |user: serde_json::Value| NewJob { payload: json!({ "user": user }), ..job() };
    for new in [of(json!("ann")), of(json!("ann")), of(json!("ben")), of(json!(null)), job()] {
        store.enqueue(new).await.unwrap();
    }
    store.enqueue(NewJob { tenant: tenant("other"), ..of(json!("ann")) }).await.unwrap();
    assert_eq!(store.open_jobs_of(&main, Some(&ann)).await.unwrap(), 2);
    assert_eq!(store.open_jobs_of(&main, None).await.unwrap(), 2);
    let lease = take(&store, &worker("a"), NOW).await.unwrap().1;
    assert_eq!(store.open_jobs_of(&main, Some(&ann)).await.unwrap(), 2, "a job that runs is open");
    store.finish_job(&lease).await.unwrap();
    assert_eq!(store.open_jobs_of(&main, Some(&ann)).await.unwrap(), 1);
}

async fn take(store: &impl Queue, worker: &Worker, now: UnixMillis) -> Option<(Job, Lease)> {
    let claim = Claim { worker: worker.clone(), lanes: vec!["main".into()], now, until: now.plus(LEASE) };
    store.claim(claim).await.unwrap()
}

/// Claims at [`NOW`] and expects this job.
async fn take_this(store: &impl Queue, worker: &Worker, id: JobId) -> Lease {
    let (job, lease) = take(store, worker, NOW).await.expect("a job is claimable");
    assert_eq!(job.new.id, id);
    lease
}

async fn find(store: &impl Queue, id: JobId) -> Job {
    store.job(&TenantId::main(), id).await.unwrap().expect("the job is there")
}

async fn state(store: &impl Queue, id: JobId) -> JobState {
    find(store, id).await.state
}

/// The counts by lane, without lanes that have nothing to show.
async fn counts(store: &impl Queue, tenant: &TenantId) -> Vec<LaneCount> {
    let mut counts = store.lanes(tenant).await.unwrap();
    counts.retain(|count| count.pending + count.leased + count.parked + count.dead > 0);
    counts.sort_by(|a, b| a.lane.cmp(&b.lane));
    counts
}

/// Returns the stored form of a job that has not begun.
fn pending(new: NewJob) -> Job {
    Job { new, state: JobState::Pending, attempts: 0, parks: 0, error: None, lease: None, cancel: None }
}

#[track_caller]
fn check_lost<T: std::fmt::Debug>(result: Result<T, StoreError>, id: JobId) {
    match result {
        Err(StoreError::LeaseLost { job }) => assert_eq!(job, id),
        other => panic!("expected a lost lease, got {other:?}"),
    }
}

fn after(millis: u64) -> UnixMillis {
    NOW.plus(Duration::from_millis(millis))
}

fn again(at: UnixMillis) -> Failure {
    Failure { error: "exit code 1".to_owned(), retry: Some(at) }
}

fn given_up() -> Failure {
    Failure { error: "no such file".to_owned(), retry: None }
}
