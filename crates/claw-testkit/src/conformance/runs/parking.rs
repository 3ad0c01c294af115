//! Parked runs: they hold no worker, keep their place, and wake when their wait is over.

use claw_core::store::{Failure, JobFilter, Topic};

use super::*;
use crate::fixture::tenant;

/// Enough parked jobs that a claim which scanned each would be noticed.
const MANY: usize = 1_000;

pub(super) async fn suite<S: Runs + 'static>(make: &impl AsyncFn() -> S) {
    parks_a_run_until_its_approval_is_answered(make().await).await;
    wakes_a_run_however_its_approval_ends(make().await).await;
    does_not_park_for_an_approval_that_is_over(make().await).await;
    goes_on_by_itself_when_its_time_has_come(make().await).await;
    does_not_count_parking_as_a_try(make().await).await;
    changes_nothing_where_the_lease_is_lost(make().await).await;
    wakes_parked_runs_alone(make().await).await;
    refuses_to_wake_another_tenants_run(make().await).await;
    claims_past_many_parked_runs(make().await).await;
}

async fn parks_a_run_until_its_approval_is_answered(store: impl Runs) {
    let (ann, ben) = (worker("a"), worker("b"));
    let (first, next) = (accept(&store, "cli:me").await, accept(&store, "cli:me").await);
    let other = accept(&store, "cli:you").await;
    let lease = take_this(&store, &ann, first.id).await;
    let approval = ask(&store, &lease).await;
    assert_eq!(store.park(&lease, until_answered(&[approval])).await.unwrap(), JobState::Parked);
    let found = find(&store, first.id).await;
    assert_eq!((found.state, found.lease.clone(), found.new.visible), (JobState::Parked, None, LATER));
    assert_eq!((found.attempts, found.parks, found.tries()), (1, 1, 0));
    assert_eq!(store.lanes(&TenantId::main()).await.unwrap()[0].parked, 1);
    check_lost(store.extend(&lease, LATER).await, &lease);
    assert_eq!(store.reclaim(&ben, UnixMillis(i64::MAX)).await.unwrap(), [], "nobody holds it");

    let theirs = take_this(&store, &ben, other.id).await;
    assert_eq!(take(&store, &ben, NOW).await, None, "its session stays busy");
    store.finish_job(&theirs).await.unwrap();
    let mut work = store.changes(Topic::Work);
    work.mark_unchanged();
    answer(&store, approval, true).await.unwrap();
    assert!(work.has_changed().unwrap(), "workers hear of it");
    assert_eq!(state(&store, first.id).await, JobState::Pending);
    let lease = take_this(&store, &ben, first.id).await;
    let found = find(&store, first.id).await;
    assert_eq!((lease.attempt, found.tries()), (2, 1), "another worker goes on with it");
    store.finish_job(&lease).await.unwrap();
    take_this(&store, &ann, next.id).await;
}

async fn wakes_a_run_however_its_approval_ends(store: impl Runs) {
    use ApprovalState::{Cancelled, Expired};
    let main = TenantId::main();
    for n in 0..5 {
        let (lease, approval) = parked(&store, &format!("cli:{n}")).await;
        match n {
            0 => drop(answer(&store, approval, true).await.unwrap()),
            1 => drop(answer(&store, approval, false).await.unwrap()),
            2 => drop(store.close(&main, approval, Expired).await.unwrap()),
            3 => drop(store.close(&main, approval, Cancelled).await.unwrap()),
            _ => {
                let late = Answer {
                    approve: true,
                    by: "ann".to_owned(),
                    at: NOW.plus(LEASE * 60),
                    reason: None,
                    values: None,
                };
                store.answer(&main, approval, late).await.unwrap_err();
            }
        }
        let woken = take_this(&store, &worker("b"), lease.job).await;
        store.finish_job(&woken).await.unwrap();
    }
    // One of two is enough, and the other one wakes nobody twice.
    let lease = begin(&store, "cli:two").await;
    let both = [ask(&store, &lease).await, ask(&store, &lease).await];
    assert_eq!(store.park(&lease, until_answered(&both)).await.unwrap(), JobState::Parked);
    answer(&store, both[1], true).await.unwrap();
    let woken = take_this(&store, &worker("b"), lease.job).await;
    answer(&store, both[0], true).await.unwrap();
    assert_eq!(find(&store, lease.job).await.lease, Some(woken), "a run that goes on is left alone");
}

async fn does_not_park_for_an_approval_that_is_over(store: impl Runs) {
    let main = TenantId::main();
    for n in 0..7 {
        let lease = begin(&store, &format!("cli:{n}")).await;
        let approval = match n {
            0 | 1 => {
                let id = ask(&store, &lease).await;
                answer(&store, id, n == 0).await.unwrap();
                id
            }
            2 => {
                let id = ask(&store, &lease).await;
                store.close(&main, id, ApprovalState::Cancelled).await.unwrap();
                id
            }
            3 => ApprovalId::new(),
            4 => {
                let (run, expires) = (Some(lease.job), NOW);
                let asked = UnixMillis(NOW.0 - 1);
                ask_with(&store, NewApproval { run, asked, expires, ..question(CallId::new(), "ls") }).await
            }
            // Nobody would be woken by these.
            5 => ask_with(&store, question(CallId::new(), "ls")).await,
            _ => {
                let (run, tenant) = (Some(lease.job), tenant("other"));
                ask_with(&store, NewApproval { run, tenant, ..question(CallId::new(), "ls") }).await
            }
        };
        let waits = ask(&store, &lease).await;
        let parking = until_answered(&[waits, approval]);
        assert_eq!(store.park(&lease, parking).await.unwrap(), JobState::Pending, "case {n}");
        check_lost(store.finish_job(&lease).await, &lease);
        let woken = take_this(&store, &worker("b"), lease.job).await;
        let found = find(&store, lease.job).await;
        assert_eq!((woken.attempt, found.parks, found.tries()), (2, 1, 1));
        store.finish_job(&woken).await.unwrap();
    }
}

async fn goes_on_by_itself_when_its_time_has_come(store: impl Runs) {
    let ann = worker("a");
    let (lease, _) = parked(&store, "cli:me").await;
    let younger = NewJob { accepted: UnixMillis(NOW.0 + 1), visible: LATER, ..job_of("cli:you") };
    let urgent = NewJob { priority: 1, ..younger.clone() };
    let urgent = NewJob { id: JobId::new(), session: Some(session("cli:urgent")), ..urgent };
    store.enqueue(younger.clone()).await.unwrap();
    store.enqueue(urgent.clone()).await.unwrap();
    assert_eq!(take(&store, &ann, UnixMillis(LATER.0 - 1)).await, None);
    let mut order = Vec::new();
    while let Some((job, _)) = take(&store, &ann, LATER).await {
        order.push(job.new.id);
    }
    assert_eq!(order, [urgent.id, lease.job, younger.id], "in its place, as if it were pending");
    // Without anything to wait for, time alone ends it.
    let lease = begin(&store, "cli:alone").await;
    assert_eq!(store.park(&lease, until_answered(&[])).await.unwrap(), JobState::Parked);
    let lanes = vec!["other".into()];
    let claim = Claim { worker: ann.clone(), lanes, now: LATER, until: LATER };
    assert_eq!(store.claim(claim).await.unwrap(), None, "for workers of its lane");
    assert_eq!(take(&store, &ann, LATER).await.unwrap().0.new.id, lease.job);
}

async fn does_not_count_parking_as_a_try(store: impl Runs) {
    let (ann, main) = (worker("a"), TenantId::main());
    let new = NewJob { max_attempts: 2, ..job_of("cli:me") };
    store.enqueue(new.clone()).await.unwrap();
    let again = || Failure { error: "exit code 1".to_owned(), retry: Some(NOW) };
    let mut attempt = 0;
    let mut claim = async || {
        let lease = take_this(&store, &ann, new.id).await;
        attempt += 1;
        assert_eq!(lease.attempt, attempt, "each lease has a number of its own");
        lease
    };
    for tries in [1, 2] {
        for _ in 0..5 {
            let lease = claim().await;
            assert_eq!(find(&store, new.id).await.tries(), tries);
            assert_eq!(store.park(&lease, until_answered(&[])).await.unwrap(), JobState::Parked);
            assert_eq!(find(&store, new.id).await.tries(), tries - 1);
            assert!(store.wake(&main, new.id).await.unwrap());
        }
        let lease = claim().await;
        let expected = if tries == 1 { JobState::Pending } else { JobState::Dead };
        assert_eq!(store.fail_job(&lease, again()).await.unwrap(), expected);
    }
    let found = find(&store, new.id).await;
    assert_eq!((found.attempts, found.parks, found.tries()), (12, 10, 2));
    assert_eq!(take(&store, &ann, LATER).await, None);
}

async fn changes_nothing_where_the_lease_is_lost(store: impl Runs) {
    let lease = begin(&store, "cli:me").await;
    let before = find(&store, lease.job).await;
    for wrong in [
        Lease { worker: worker("b"), ..lease.clone() },
        Lease { attempt: 2, ..lease.clone() },
        Lease { job: JobId::new(), ..lease.clone() },
    ] {
        check_lost(store.park(&wrong, until_answered(&[])).await, &wrong);
        assert_eq!(find(&store, lease.job).await, before);
    }
    store.reclaim(&worker("b"), lease.until).await.unwrap();
    check_lost(store.park(&lease, until_answered(&[])).await, &lease);
    assert_eq!(state(&store, lease.job).await, JobState::Pending);
}

async fn wakes_parked_runs_alone(store: impl Runs) {
    let main = TenantId::main();
    assert!(!store.wake(&main, JobId::new()).await.unwrap());
    let waiting = NewJob { visible: LATER, ..job_of("cli:me") };
    store.enqueue(waiting.clone()).await.unwrap();
    assert!(!store.wake(&main, waiting.id).await.unwrap(), "a retry or a schedule keeps its time");
    assert_eq!(find(&store, waiting.id).await.new.visible, LATER);
    let lease = begin(&store, "cli:you").await;
    assert!(!store.wake(&main, lease.job).await.unwrap());
    store.finish_job(&lease).await.unwrap();
    assert!(!store.wake(&main, lease.job).await.unwrap());
    let (lease, _) = parked(&store, "cli:parked").await;
    assert!(store.wake(&main, lease.job).await.unwrap());
    assert!(!store.wake(&main, lease.job).await.unwrap(), "once");
    take_this(&store, &worker("b"), lease.job).await;
}

async fn refuses_to_wake_another_tenants_run(store: impl Runs) {
    let (lease, approval) = parked(&store, "cli:me").await;
    let eve = tenant("eve");
    assert!(!store.wake(&eve, lease.job).await.unwrap());
    // An approval of her own that names the run wakes it neither.
    let request = NewApproval { tenant: eve.clone(), run: Some(lease.job), ..question(CallId::new(), "ls") };
    let theirs = ask_with(&store, request).await;
    let yes = Answer { approve: true, by: "eve".to_owned(), at: NOW, reason: None, values: None };
    store.answer(&eve, theirs, yes.clone()).await.unwrap();
    store.answer(&eve, approval, yes).await.unwrap_err();
    assert_eq!(store.jobs(&eve, &JobFilter::default()).await.unwrap(), []);
    assert_eq!(state(&store, lease.job).await, JobState::Parked);
}

async fn claims_past_many_parked_runs(store: impl Runs) {
    let ann = worker("a");
    for n in 0..MANY {
        store.enqueue(NewJob { priority: 9, ..job_of(&format!("cli:{n}")) }).await.unwrap();
        let (_, lease) = take(&store, &ann, NOW).await.unwrap();
        assert_eq!(store.park(&lease, until_answered(&[])).await.unwrap(), JobState::Parked);
    }
    assert_eq!(store.lanes(&TenantId::main()).await.unwrap()[0].parked, MANY as u64);
    for key in ["cli:me", "cli:you"] {
        let new = accept(&store, key).await;
        take_this(&store, &ann, new.id).await;
    }
    assert_eq!(take(&store, &ann, NOW).await, None);
}
