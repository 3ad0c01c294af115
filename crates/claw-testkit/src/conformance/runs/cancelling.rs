//! Cancelled runs: the whole tree, from any process, durably, and never in silence.

use claw_core::store::{
    CancelRequest, Cancelled, Failure, Finish, NewMessage, Role, RunEvent, SessionEventBody, Topic,
};

use super::*;
use crate::fixture::{child_of, owner, tenant};

pub(super) async fn suite<S: Runs + 'static>(make: &impl AsyncFn() -> S) {
    cancels_a_tree_of_pending_parked_and_leased_runs(make().await).await;
    leaves_the_rest_of_the_tree_alone(make().await).await;
    ends_a_run_in_its_session(make().await).await;
    lets_a_worker_end_its_run(make().await).await;
    keeps_the_request_when_the_worker_dies(make().await).await;
    cancels_the_children_of_a_cancelled_run(make().await).await;
    keeps_the_first_request(make().await).await;
    refuses_cancel_of_another_tenants_run(make().await).await;
}

async fn cancels_a_tree_of_pending_parked_and_leased_runs(store: impl Runs) {
    let (ann, main) = (worker("a"), TenantId::main());
    let root = accept(&store, "cli:me").await;
    let root_lease = take_this(&store, &ann, root.id).await;
    let [waits, parks, runs, done] =
        ["waits", "parks", "runs", "done"].map(|name| child_of(&root, &format!("agent:{name}")));
    let below = child_of(&parks, "agent:below");
    let free = NewJob { session: None, visible: LATER, ..child_of(&runs, "agent:free") };
    let waits = NewJob { visible: LATER, ..waits };
    for new in [&parks, &runs, &done, &below, &waits, &free] {
        store.enqueue(new.clone()).await.unwrap();
    }
    let [parks_lease, runs_lease, done_lease, below_lease] = [
        take_this(&store, &ann, parks.id).await,
        take_this(&store, &ann, runs.id).await,
        take_this(&store, &ann, done.id).await,
        take_this(&store, &ann, below.id).await,
    ];
    let approvals = [ask(&store, &parks_lease).await, ask(&store, &runs_lease).await];
    let stranger = ask_with(&store, question(CallId::new(), "ls")).await;
    assert_eq!(store.park(&parks_lease, until_answered(&approvals[..1])).await.unwrap(), JobState::Parked);
    store.finish_job(&done_lease).await.unwrap();

    let mut cancelled = store.cancel(&main, root.id, by_ann()).await.unwrap();
    for list in [&mut cancelled.ended, &mut cancelled.told, &mut cancelled.over] {
        list.sort();
    }
    let sorted = |mut ids: Vec<JobId>| {
        ids.sort();
        ids
    };
    let ended = sorted(vec![waits.id, parks.id, free.id]);
    let told = sorted(vec![root.id, runs.id, below.id]);
    assert_eq!(cancelled, Cancelled { ended: ended.clone(), told: told.clone(), over: vec![done.id] });
    let request = Some(CancelRequest { at: NOW, by: "ann".to_owned() });
    for (ids, state) in [(&ended, JobState::Cancelled), (&told, JobState::Leased)] {
        for id in ids {
            let found = find(&store, *id).await;
            assert_eq!((found.state, found.cancel), (state, request.clone()));
        }
    }
    let found = find(&store, done.id).await;
    assert_eq!((found.state, found.cancel), (JobState::Done, None));
    for approval in approvals {
        assert_eq!(approval_state(&store, approval).await, ApprovalState::Cancelled);
    }
    assert_eq!(approval_state(&store, stranger).await, ApprovalState::Pending);
    for key in ["agent:waits", "agent:parks"] {
        assert_eq!(messages(&store, key).await.last().unwrap().new.role, Role::System, "{key}");
    }
    for key in ["agent:runs", "agent:below", "agent:done"] {
        assert_eq!(messages(&store, key).await, [], "{key}: its worker says it");
    }
    assert_eq!(take(&store, &ann, LATER).await, None, "none of it is begun again");
    for lease in [&root_lease, &runs_lease, &below_lease] {
        store.extend(lease, LATER).await.expect("its worker still holds it");
    }
    let asked = [root.id, done.id, parks.id, JobId::new()];
    assert_eq!(sorted(store.cancel_requests(&asked).await.unwrap()), sorted(vec![root.id, parks.id]));
    assert_eq!(store.cancel_requests(&[]).await.unwrap(), []);
}

async fn leaves_the_rest_of_the_tree_alone(store: impl Runs) {
    let root = NewJob { visible: LATER, ..job_of("cli:me") };
    let [left, right] = ["agent:left", "agent:right"].map(|key| child_of(&root, key));
    let below = child_of(&left, "agent:below");
    for new in [&root, &left, &right, &below] {
        store.enqueue(new.clone()).await.unwrap();
    }
    // A parent that is over does not protect its children.
    let lease = take_this(&store, &worker("a"), left.id).await;
    store.finish_job(&lease).await.unwrap();
    let cancelled = store.cancel(&TenantId::main(), left.id, by_ann()).await.unwrap();
    let expected = Cancelled { ended: vec![below.id], told: vec![], over: vec![left.id] };
    assert_eq!(cancelled, expected);
    for id in [root.id, right.id] {
        let found = find(&store, id).await;
        assert_eq!((found.state, found.cancel), (JobState::Pending, None));
    }
    let nothing = store.cancel(&TenantId::main(), JobId::new(), by_ann()).await.unwrap();
    assert_eq!(nothing, Cancelled::default());
}

async fn ends_a_run_in_its_session(store: impl Runs) {
    let (lease, _) = parked(&store, "cli:me").await;
    let next = accept(&store, "cli:me").await;
    let mut heard = [
        store.changes(Topic::Work),
        store.changes(Topic::Approvals),
        store.changes(Topic::Sessions),
        store.session_changes(&owner()),
    ];
    heard.iter_mut().for_each(|heard| heard.mark_unchanged());
    store.cancel(&TenantId::main(), lease.job, by_ann()).await.unwrap();
    for (n, heard) in heard.iter().enumerate() {
        assert!(heard.has_changed().unwrap(), "listener {n} hears of it");
    }
    let said = messages(&store, "cli:me").await;
    let last = said.last().unwrap();
    assert_eq!((last.seq, last.run, last.new.role), (3, lease.job, Role::System));
    assert_eq!((&last.new.content, last.new.at), (&note(), NOW));
    let told = events(&store, "cli:me").await;
    let [.., message, end] = &told[..] else { panic!("{told:?}") };
    let expected = SessionEventBody::Message { id: last.new.id, seq: 3, role: Role::System, run: lease.job };
    assert_eq!(message.what, expected);
    let state = RunEvent::Cancelled { by: "ann".to_owned() };
    assert_eq!(end.what, SessionEventBody::Run { run: lease.job, state });
    take_this(&store, &worker("a"), next.id).await;
}

async fn lets_a_worker_end_its_run(store: impl Runs) {
    let main = TenantId::main();
    let lease = begin(&store, "cli:me").await;
    let next = accept(&store, "cli:me").await;
    let mut work = store.changes(Topic::Work);
    work.mark_unchanged();
    let cancelled = store.cancel(&main, lease.job, by_ann()).await.unwrap();
    assert_eq!(cancelled.told, [lease.job]);
    assert!(work.has_changed().unwrap(), "its worker hears of it");
    assert_eq!(store.cancel_requests(&[lease.job]).await.unwrap(), [lease.job]);
    let said = vec![NewMessage { role: Role::System, ..message("cli:me", "stopped") }];
    let finished = store.finish_run(&lease, Finish::cancelled(said)).await.unwrap();
    assert_eq!(finished.places, [3]);
    let found = find(&store, lease.job).await;
    assert_eq!((found.state, found.lease), (JobState::Cancelled, None));
    check_lost(store.finish_run(&lease, Finish::done(vec![])).await, &lease);
    assert_eq!(store.cancel(&main, lease.job, by_ann()).await.unwrap().over, [lease.job]);
    assert_eq!(store.reclaim(&worker("b"), LATER).await.unwrap(), []);
    take_this(&store, &worker("a"), next.id).await;
}

async fn keeps_the_request_when_the_worker_dies(store: impl Runs) {
    let (main, ben) = (TenantId::main(), worker("b"));
    let lease = begin(&store, "cli:me").await;
    store.cancel(&main, lease.job, by_ann()).await.unwrap();
    assert_eq!(store.reclaim(&ben, lease.until).await.unwrap(), [lease.job]);
    let (job, lease) = take(&store, &ben, NOW).await.expect("somebody has to end it");
    let request = Some(CancelRequest { at: NOW, by: "ann".to_owned() });
    assert_eq!((job.new.id, &job.cancel), (lease.job, &request));
    let retry = Failure { error: "the store is away".to_owned(), retry: Some(NOW) };
    assert_eq!(store.fail_job(&lease, retry).await.unwrap(), JobState::Pending);
    let (job, lease) = take(&store, &ben, NOW).await.unwrap();
    assert_eq!(job.cancel, request);
    // A run that is cancelled while it decides to wait does not wait.
    let approval = ask(&store, &lease).await;
    assert_eq!(store.park(&lease, until_answered(&[approval])).await.unwrap(), JobState::Pending);
    let (_, lease) = take(&store, &ben, NOW).await.unwrap();
    store.reclaim(&ben, lease.until).await.unwrap();
    let again = store.cancel(&main, lease.job, by_ann()).await.unwrap();
    assert_eq!(again.ended, [lease.job], "nobody holds it now");
    assert_eq!(take(&store, &ben, LATER).await, None);
}

async fn cancels_the_children_of_a_cancelled_run(store: impl Runs) {
    let main = TenantId::main();
    let lease = begin(&store, "cli:me").await;
    let root = find(&store, lease.job).await.new;
    let waits = accept(&store, "cli:me").await;
    store.cancel(&main, lease.job, by_ann()).await.unwrap();
    // The worker starts a child before it hears of the request.
    let child = child_of(&root, "cli:me");
    let other = child_of(&root, "agent:child");
    store.enqueue(child.clone()).await.unwrap();
    store.accept_message(message("agent:child", "do it"), other.clone()).await.unwrap();
    let request = Some(CancelRequest { at: NOW, by: "ann".to_owned() });
    for id in [child.id, other.id] {
        assert_eq!(find(&store, id).await.cancel, request);
    }
    assert_eq!(
        store.take_waiting(&lease, i16::MIN).await.unwrap(),
        1,
        "a cancelled job is not taken into a run"
    );
    assert_eq!(state(&store, waits.id).await, JobState::Done);
    assert_eq!(state(&store, child.id).await, JobState::Pending);
    let (job, _) = take(&store, &worker("b"), NOW).await.unwrap();
    assert_eq!((job.new.id, job.cancel), (other.id, request), "a worker ends it");
}

async fn keeps_the_first_request(store: impl Runs) {
    let main = TenantId::main();
    let lease = begin(&store, "cli:me").await;
    store.cancel(&main, lease.job, by_ann()).await.unwrap();
    let late = Cancel { at: LATER, by: "ben".to_owned(), note: note() };
    assert_eq!(store.cancel(&main, lease.job, late.clone()).await.unwrap().told, [lease.job]);
    store.reclaim(&worker("b"), lease.until).await.unwrap();
    assert_eq!(store.cancel(&main, lease.job, late.clone()).await.unwrap().ended, [lease.job]);
    let request = Some(CancelRequest { at: NOW, by: "ann".to_owned() });
    assert_eq!(find(&store, lease.job).await.cancel, request);
    let before = messages(&store, "cli:me").await;
    assert_eq!(store.cancel(&main, lease.job, late).await.unwrap().over, [lease.job]);
    assert_eq!(messages(&store, "cli:me").await, before, "it is said once");
}

async fn refuses_cancel_of_another_tenants_run(store: impl Runs) {
    let eve = tenant("eve");
    let (lease, approval) = parked(&store, "cli:me").await;
    let ours = find(&store, lease.job).await;
    let before = messages(&store, "cli:me").await;
    assert_eq!(store.cancel(&eve, lease.job, by_ann()).await.unwrap(), Cancelled::default());
    // A job of hers that claims to be the parent or a child of ours opens no way either.
    let hers = NewJob { tenant: eve.clone(), lineage: Some(ours.new.child()), ..job_of("cli:me") };
    store.enqueue(hers.clone()).await.unwrap();
    let below = child_of(&hers, "agent:ours");
    let below = NewJob { tenant: TenantId::main(), ..below };
    store.enqueue(below.clone()).await.unwrap();
    assert_eq!(store.cancel(&eve, hers.id, by_ann()).await.unwrap().ended, [hers.id]);
    assert_eq!(find(&store, lease.job).await, ours);
    assert_eq!(find(&store, below.id).await.cancel, None);
    assert_eq!(approval_state(&store, approval).await, ApprovalState::Pending);
    assert_eq!(messages(&store, "cli:me").await, before);
}
