//! Leases: only the holder's counts, and no work is lost with them.

use claw_core::BootId;
use claw_core::store::LONGEST_LEASE;

use super::*;

pub(super) async fn suite<S: Queue + 'static>(make: &impl AsyncFn() -> S) {
    names_the_holder_and_the_attempt(make().await).await;
    lets_only_the_holder_extend_finish_or_give_back(make().await).await;
    extends_a_lease(make().await).await;
    makes_a_lease_of_an_earlier_attempt_worthless(make().await).await;
    leaves_a_late_lease_to_its_holder_until_it_is_reclaimed(make().await).await;
    reclaims_what_ran_out_on_any_node(make().await).await;
    reclaims_what_earlier_boots_of_the_node_held(make().await).await;
    reclaims_what_a_clock_that_was_a_day_ahead_leased(make().await).await;
    shows_what_a_clock_that_was_a_day_ahead_accepted(make().await).await;
    releases_a_job_whoever_has_it(make().await).await;
    finishes_a_job_once(make().await).await;
    keeps_the_last_error(make().await).await;
    gives_up_after_the_last_attempt(make().await).await;
    gives_up_on_a_job_that_was_begun_too_often(make().await).await;
}

async fn names_the_holder_and_the_attempt(store: impl Queue) {
    let ann = worker("a");
    let new = job_of("cli:me");
    store.enqueue(new.clone()).await.unwrap();
    let (taken, lease) = take(&store, &ann, after(7)).await.unwrap();
    let until = after(7).plus(LEASE);
    assert_eq!(lease, Lease { job: new.id, worker: ann, attempt: 1, until });
    let expected =
        Job { state: JobState::Leased, attempts: 1, lease: Some(lease.clone()), ..pending(new.clone()) };
    assert_eq!(taken, expected);
    assert_eq!(find(&store, new.id).await, expected);
    store.finish_job(&lease).await.unwrap();
    let expected = Job { state: JobState::Done, lease: None, ..expected };
    assert_eq!(find(&store, new.id).await, expected);
}

async fn lets_only_the_holder_extend_finish_or_give_back(store: impl Queue) {
    let (ann, ben) = (worker("a"), worker("b"));
    store.enqueue(job()).await.unwrap();
    let (taken, lease) = take(&store, &ann, NOW).await.unwrap();
    let wrong = [
        Lease { worker: ben.clone(), ..lease.clone() },
        Lease { worker: Worker { node: ben.node, ..ann.clone() }, ..lease.clone() },
        Lease { worker: Worker { boot: BootId::new(), ..ann }, ..lease.clone() },
        Lease { attempt: 0, ..lease.clone() },
        Lease { attempt: 2, ..lease.clone() },
        Lease { job: JobId::new(), ..lease.clone() },
    ];
    for wrong in &wrong {
        check_lost(store.extend(wrong, NOW.plus(LEASE)).await, wrong.job);
        check_lost(store.finish_job(wrong).await, wrong.job);
        check_lost(store.fail_job(wrong, again(NOW)).await, wrong.job);
        check_lost(store.fail_job(wrong, given_up()).await, wrong.job);
        assert_eq!(find(&store, lease.job).await, taken, "nothing changed");
    }
    store.finish_job(&lease).await.unwrap();
}

async fn extends_a_lease(store: impl Queue) {
    let (ann, ben) = (worker("a"), worker("b"));
    store.enqueue(job()).await.unwrap();
    let (_, first) = take(&store, &ann, NOW).await.unwrap();
    let later = first.until.plus(LEASE);
    let second = store.extend(&first, later).await.unwrap();
    assert_eq!(second, Lease { until: later, ..first.clone() });
    assert_eq!(find(&store, first.job).await.lease, Some(second));
    assert_eq!(store.reclaim(&ben, first.until).await.unwrap(), []);
    store.finish_job(&first).await.expect("a lease is a node, a boot and an attempt, however often extended");
}

async fn makes_a_lease_of_an_earlier_attempt_worthless(store: impl Queue) {
    let ann = worker("a");
    store.enqueue(job()).await.unwrap();
    let first = take(&store, &ann, NOW).await.unwrap().1;
    store.fail_job(&first, again(NOW)).await.unwrap();
    let lost = async || {
        check_lost(store.extend(&first, NOW.plus(LEASE)).await, first.job);
        check_lost(store.finish_job(&first).await, first.job);
        check_lost(store.fail_job(&first, given_up()).await, first.job);
    };
    lost().await;
    let (taken, second) = take(&store, &ann, NOW).await.unwrap();
    assert_eq!((second.job, second.attempt, &second.worker), (first.job, 2, &first.worker));
    lost().await;
    assert_eq!(find(&store, first.job).await, taken, "the second attempt is untouched");
    store.finish_job(&second).await.unwrap();
    lost().await;
    assert_eq!(state(&store, first.job).await, JobState::Done);
}

async fn leaves_a_late_lease_to_its_holder_until_it_is_reclaimed(store: impl Queue) {
    let (ann, ben) = (worker("a"), worker("b"));
    let (first, second) = (job(), job());
    store.enqueue(first.clone()).await.unwrap();
    let lease = take_this(&store, &ann, first.id).await;
    store.finish_job(&lease).await.expect("nobody took it from its holder");
    store.enqueue(second.clone()).await.unwrap();
    let lease = take_this(&store, &ann, second.id).await;
    assert_eq!(store.reclaim(&ben, lease.until).await.unwrap(), [second.id]);
    check_lost(store.extend(&lease, lease.until.plus(LEASE)).await, second.id);
    check_lost(store.finish_job(&lease).await, second.id);
    check_lost(store.fail_job(&lease, given_up()).await, second.id);
    let found = find(&store, second.id).await;
    assert_eq!((found.state, found.lease, found.attempts), (JobState::Pending, None, 1));
}

async fn reclaims_what_ran_out_on_any_node(store: impl Queue) {
    let (ann, ben) = (worker("a"), worker("b"));
    let (short, long) = (job_of("cli:me"), job());
    store.enqueue(short.clone()).await.unwrap();
    let lease = take_this(&store, &ann, short.id).await;
    store.enqueue(long.clone()).await.unwrap();
    let kept = take(&store, &ann, after(1)).await.unwrap().1;

    let just_before = UnixMillis(lease.until.0 - 1);
    assert_eq!(store.reclaim(&ben, just_before).await.unwrap(), []);
    assert_eq!(store.reclaim(&ann, just_before).await.unwrap(), []);
    assert_eq!(store.reclaim(&ben, lease.until).await.unwrap(), [short.id]);
    assert_eq!(store.reclaim(&ben, lease.until).await.unwrap(), [], "once");
    let (taken, lease) = take(&store, &ben, NOW).await.expect("it can be claimed at once");
    assert_eq!((taken.new.id, taken.attempts, lease.attempt), (short.id, 2, 2));
    store.finish_job(&lease).await.unwrap();
    store.finish_job(&kept).await.unwrap();
    assert_eq!(store.reclaim(&ben, UnixMillis(i64::MAX)).await.unwrap(), [], "what is done is left alone");
}

async fn reclaims_what_a_clock_that_was_a_day_ahead_leased(store: impl Queue) {
    let (ann, ben) = (worker("a"), worker("b"));
    let tomorrow = NOW.plus(Duration::from_secs(24 * 3600));
    let ahead = NewJob { accepted: tomorrow, visible: tomorrow, ..job_of("cli:me") };
    store.enqueue(ahead.clone()).await.unwrap();
    let lease = take(&store, &ann, tomorrow).await.unwrap().1;
    assert_eq!(store.reclaim(&ben, NOW).await.unwrap(), [ahead.id], "no lease holds for a day");
    check_lost(store.finish_job(&lease).await, ahead.id);
    let (_, lease) = take(&store, &ben, NOW).await.expect("its session goes on now, not tomorrow");
    store.finish_job(&lease).await.unwrap();
}

async fn shows_what_a_clock_that_was_a_day_ahead_accepted(store: impl Queue) {
    let ann = worker("a");
    let tomorrow = NOW.plus(Duration::from_secs(24 * 3600));
    let ahead = NewJob { accepted: tomorrow, visible: tomorrow, ..job_of("cli:me") };
    let (behind, soon) = (job_of("cli:me"), NewJob { visible: NOW.plus(LONGEST_LEASE), ..job() });
    for new in [&ahead, &behind, &soon] {
        store.enqueue(new.clone()).await.unwrap();
    }
    assert_eq!(take(&store, &ann, NOW).await, None, "a job of a session waits for those before it");
    assert_eq!(store.reclaim(&ann, NOW).await.unwrap(), [ahead.id], "no job waits for a day");
    for id in [ahead.id, behind.id] {
        let lease = take_this(&store, &ann, id).await;
        store.finish_job(&lease).await.unwrap();
    }
    assert_eq!(take(&store, &ann, NOW).await, None, "what waits for an hour is left alone");
}

async fn releases_a_job_whoever_has_it(store: impl Queue) {
    let (ann, ben) = (worker("a"), worker("b"));
    let tenant = TenantId::main();
    store.enqueue(job_of("cli:me")).await.unwrap();
    let (taken, lease) = take(&store, &ann, NOW).await.unwrap();
    let id = taken.new.id;
    let other = TenantId::new("other").unwrap();
    assert!(!store.release(&other, id, NOW).await.unwrap(), "another tenant's is out of reach");
    assert!(store.release(&tenant, id, NOW).await.unwrap());
    check_lost(store.finish_job(&lease).await, id);
    let (_, lease) = take(&store, &ben, NOW).await.expect("it can be claimed at once");
    assert_eq!(lease.attempt, 2);
    store.fail_job(&lease, again(NOW.plus(LEASE * 100))).await.unwrap();
    assert!(take(&store, &ben, NOW).await.is_none(), "it waits");
    assert!(store.release(&tenant, id, NOW).await.unwrap());
    let (_, lease) = take(&store, &ben, NOW).await.expect("it waits no longer");
    store.finish_job(&lease).await.unwrap();
    assert!(!store.release(&tenant, id, NOW).await.unwrap(), "what is done stays done");
    assert!(!store.release(&tenant, JobId::new(), NOW).await.unwrap());
}

async fn reclaims_what_earlier_boots_of_the_node_held(store: impl Queue) {
    let (first, other) = (worker("a"), worker("b"));
    let second = Worker { boot: BootId::new(), ..first.clone() };
    let third = Worker { boot: BootId::new(), ..first.clone() };
    let mut jobs = Vec::new();
    for holder in [&first, &second, &third, &other] {
        let new = job();
        store.enqueue(new.clone()).await.unwrap();
        jobs.push((new.id, take_this(&store, holder, new.id).await));
    }
    assert_eq!(store.reclaim(&first, NOW).await.unwrap(), [], "later boots are not earlier ones");
    let mut reclaimed = store.reclaim(&third, NOW).await.unwrap();
    reclaimed.sort();
    assert_eq!(reclaimed, [jobs[0].0, jobs[1].0]);
    check_lost(store.finish_job(&jobs[0].1).await, jobs[0].0);
    check_lost(store.finish_job(&jobs[1].1).await, jobs[1].0);
    store.finish_job(&jobs[2].1).await.expect("its own");
    store.finish_job(&jobs[3].1).await.expect("another node's");
    for (id, _) in &jobs[..2] {
        let lease = take_this(&store, &third, *id).await;
        assert_eq!(lease.attempt, 2);
        store.finish_job(&lease).await.unwrap();
    }
}

async fn finishes_a_job_once(store: impl Queue) {
    let ann = worker("a");
    store.enqueue(job()).await.unwrap();
    let lease = take(&store, &ann, NOW).await.unwrap().1;
    store.finish_job(&lease).await.unwrap();
    check_lost(store.finish_job(&lease).await, lease.job);
    check_lost(store.fail_job(&lease, again(NOW)).await, lease.job);
    check_lost(store.extend(&lease, NOW.plus(LEASE)).await, lease.job);
    assert_eq!(store.reclaim(&worker("a"), UnixMillis(i64::MAX)).await.unwrap(), []);
    assert_eq!(take(&store, &ann, UnixMillis(i64::MAX)).await, None);
    assert_eq!(state(&store, lease.job).await, JobState::Done);
}

async fn keeps_the_last_error(store: impl Queue) {
    let ann = worker("a");
    store.enqueue(job()).await.unwrap();
    let lease = take(&store, &ann, NOW).await.unwrap().1;
    store.fail_job(&lease, again(after(5))).await.unwrap();
    let failed = find(&store, lease.job).await;
    assert_eq!((failed.state, failed.error.as_deref()), (JobState::Pending, Some("exit code 1")));
    assert_eq!((failed.attempts, failed.lease), (1, None));
    let lease = take(&store, &ann, after(5)).await.unwrap().1;
    // A tool's output may end up in an error; none of it may keep the job from being returned.
    let failure = Failure { error: "bad byte \u{0} 'in' \u{1f980}".to_owned(), retry: Some(NOW) };
    store.fail_job(&lease, failure).await.unwrap();
    let failed = find(&store, lease.job).await;
    assert!(failed.error.unwrap().starts_with("bad byte "));
    assert_eq!((failed.state, failed.attempts), (JobState::Pending, 2));
}

async fn gives_up_after_the_last_attempt(store: impl Queue) {
    let ann = worker("a");
    let (often, once) = (NewJob { max_attempts: 2, ..job() }, job());
    store.enqueue(often.clone()).await.unwrap();
    let lease = take_this(&store, &ann, often.id).await;
    assert_eq!(store.fail_job(&lease, again(NOW)).await.unwrap(), JobState::Pending);
    let lease = take_this(&store, &ann, often.id).await;
    assert_eq!(store.fail_job(&lease, again(NOW)).await.unwrap(), JobState::Dead, "it may be begun twice");
    store.enqueue(once.clone()).await.unwrap();
    let lease = take_this(&store, &ann, once.id).await;
    assert_eq!(store.fail_job(&lease, given_up()).await.unwrap(), JobState::Dead, "no retry was asked for");
    for (id, attempts, error) in [(often.id, 2, "exit code 1"), (once.id, 1, "no such file")] {
        let dead = find(&store, id).await;
        assert_eq!((dead.state, dead.attempts), (JobState::Dead, attempts));
        assert_eq!((dead.error.as_deref(), dead.lease), (Some(error), None));
    }
    assert_eq!(store.reclaim(&worker("a"), UnixMillis(i64::MAX)).await.unwrap(), []);
    assert_eq!(take(&store, &ann, UnixMillis(i64::MAX)).await, None);
}

async fn gives_up_on_a_job_that_was_begun_too_often(store: impl Queue) {
    let (ann, ben) = (worker("a"), worker("b"));
    let first = NewJob { max_attempts: 2, ..job_of("cli:me") };
    let second = job_of("cli:me");
    store.enqueue(first.clone()).await.unwrap();
    store.enqueue(second.clone()).await.unwrap();
    for _ in 0..2 {
        let lease = take_this(&store, &ann, first.id).await;
        store.reclaim(&ben, lease.until).await.unwrap();
    }
    take_this(&store, &ben, second.id).await;
    let dead = find(&store, first.id).await;
    assert_eq!((dead.state, dead.attempts, dead.lease), (JobState::Dead, 2, None), "crashed twice: poison");
}
