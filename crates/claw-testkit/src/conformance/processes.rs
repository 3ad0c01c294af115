//! The suite of [`Processes`]: begun once, ended once, lost with their program.

use std::sync::Arc;
use std::time::Duration;

use claw_core::port::UnixMillis;
use claw_core::store::{NewProcess, Process, ProcessEnd, Processes, Topic};
use claw_core::{ProcessId, TenantId, UserId};

use crate::fixture::{NOW, process, session, tenant, worker};

/// Runs the suite of background processes; `make` creates an empty store.
pub async fn processes<S: Processes + 'static>(make: impl AsyncFn() -> S) {
    gives_a_process_back_as_it_was_begun(make().await).await;
    begins_a_process_once(make().await).await;
    lets_the_first_end_stand(make().await).await;
    lists_a_session_in_the_order_of_starting(make().await).await;
    loses_what_earlier_boots_left_running(make().await).await;
    keeps_the_processes_of_tenants_apart(make().await).await;
    tells_of_processes(make().await).await;
    lets_one_of_many_ends_stand(make().await).await;
    gives_each_lost_process_once(make().await).await;
}

async fn gives_a_process_back_as_it_was_begun(store: impl Processes) {
    let ann = worker("a");
    for (millis, pid) in [(0, 1), (-1, u32::MAX), (253_402_300_799_999, 4_000_000), (i64::MAX, 0)] {
        let new = NewProcess {
            user: Some(UserId::new("ann").unwrap()),
            command: "tail -f 'naïve \u{1f980}' \\ \n \u{0} end".to_owned(),
            directory: "/srv/a b\u{0}".to_owned(),
            pid,
            started: UnixMillis(millis),
            ..process(&ann)
        };
        store.begin_process(new.clone()).await.unwrap();
        assert_eq!(find(&store, new.id).await, Process { new: new.clone(), ended: None });
        let (end, at) = (ProcessEnd::Exited { code: Some(i32::MIN), signal: None }, UnixMillis(millis));
        store.end_process(&TenantId::main(), new.id, end, at).await.unwrap();
        assert_eq!(find(&store, new.id).await, Process { new, ended: Some((end, at)) });
    }
    assert_eq!(store.process(&TenantId::main(), ProcessId::new()).await.unwrap(), None);
}

async fn begins_a_process_once(store: impl Processes) {
    let new = process(&worker("a"));
    let changed = NewProcess { command: "rm".to_owned(), session: session("cli:you"), ..new.clone() };
    store.begin_process(new.clone()).await.unwrap();
    store.begin_process(changed.clone()).await.unwrap();
    assert_eq!(find(&store, new.id).await.new, new, "the first one stands");
    end(&store, new.id, ProcessEnd::Killed).await;
    store.begin_process(changed).await.unwrap();
    assert_eq!(find(&store, new.id).await, Process { new, ended: Some((ProcessEnd::Killed, NOW)) });
}

async fn lets_the_first_end_stand(store: impl Processes) {
    let ends = [
        ProcessEnd::Exited { code: Some(0), signal: None },
        ProcessEnd::Exited { code: None, signal: Some(11) },
        ProcessEnd::Exited { code: None, signal: None },
        ProcessEnd::Killed,
        ProcessEnd::Lost,
    ];
    let later = NOW.plus(Duration::from_millis(1));
    for first in ends {
        let new = process(&worker("a"));
        store.begin_process(new.clone()).await.unwrap();
        let expected = Process { new: new.clone(), ended: Some((first, NOW)) };
        assert_eq!(end(&store, new.id, first).await.as_ref(), Some(&expected));
        for second in ends {
            let told = store.end_process(&TenantId::main(), new.id, second, later).await.unwrap();
            assert_eq!(told.as_ref(), Some(&expected), "who comes late is told how it ended");
        }
        assert_eq!(find(&store, new.id).await, expected);
    }
    assert_eq!(end(&store, ProcessId::new(), ProcessEnd::Killed).await, None);
}

async fn lists_a_session_in_the_order_of_starting(store: impl Processes) {
    let ann = worker("a");
    let mut begun = Vec::new();
    for millis in [5, 0, 0, 3] {
        let new = NewProcess { started: UnixMillis(NOW.0 + millis), ..process(&ann) };
        store.begin_process(new.clone()).await.unwrap();
        begun.push(new.id);
    }
    store.begin_process(NewProcess { session: session("cli:you"), ..process(&ann) }).await.unwrap();
    end(&store, begun[1], ProcessEnd::Killed).await;
    let found = store.processes(&TenantId::main(), &session("cli:me")).await.unwrap();
    let ids: Vec<_> = found.iter().map(|process| process.new.id).collect();
    assert_eq!(ids, [begun[1], begun[2], begun[3], begun[0]]);
    assert_eq!(store.processes(&TenantId::main(), &session("cli:us")).await.unwrap(), []);
}

async fn loses_what_earlier_boots_left_running(store: impl Processes) {
    let [first, second, third] = [(); 3].map(|()| worker("a"));
    let elsewhere = worker("b");
    let late = NewProcess { started: NOW.plus(Duration::from_secs(1)), ..process(&first) };
    let early = NewProcess { tenant: tenant("other"), ..process(&second) };
    let over = process(&first);
    let (ours, younger, theirs) = (process(&second), process(&third), process(&elsewhere));
    for new in [&late, &early, &over, &younger, &theirs] {
        store.begin_process(new.clone()).await.unwrap();
    }
    end(&store, over.id, ProcessEnd::Exited { code: Some(1), signal: None }).await;
    let at = NOW.plus(Duration::from_secs(9));
    assert_eq!(store.lose_processes(&first, at).await.unwrap(), [], "it has no earlier boot");
    let lost = |new: &NewProcess| Process { new: new.clone(), ended: Some((ProcessEnd::Lost, at)) };
    let found = store.lose_processes(&third, at).await.unwrap();
    assert_eq!(found, [lost(&early), lost(&late)], "of every tenant, in the order of starting");
    assert_eq!(store.lose_processes(&third, at).await.unwrap(), [], "each is given once");
    assert_eq!(find(&store, late.id).await, lost(&late));
    for running in [&younger, &theirs] {
        assert_eq!(find(&store, running.id).await.ended, None);
    }
    let stood = find(&store, over.id).await.ended;
    assert_eq!(stood, Some((ProcessEnd::Exited { code: Some(1), signal: None }, NOW)));

    store.begin_process(ours.clone()).await.unwrap();
    assert_eq!(store.lose_processes(&second, at).await.unwrap(), [], "one's own are not lost");
    assert_eq!(store.lose_processes(&third, at).await.unwrap(), [lost(&ours)]);
}

async fn keeps_the_processes_of_tenants_apart(store: impl Processes) {
    let (other, ours) = (tenant("other"), process(&worker("a")));
    store.begin_process(ours.clone()).await.unwrap();
    assert_eq!(store.process(&other, ours.id).await.unwrap(), None);
    assert_eq!(store.processes(&other, &ours.session).await.unwrap(), []);
    assert_eq!(store.end_process(&other, ours.id, ProcessEnd::Killed, NOW).await.unwrap(), None);
    let theirs = NewProcess { tenant: other.clone(), command: "theirs".to_owned(), ..ours.clone() };
    store.begin_process(theirs.clone()).await.unwrap();
    store.end_process(&other, ours.id, ProcessEnd::Killed, NOW).await.unwrap().unwrap();
    assert_eq!(find(&store, ours.id).await, Process { new: ours, ended: None });
    assert_eq!(store.process(&other, theirs.id).await.unwrap().unwrap().new, theirs);
}

async fn tells_of_processes(store: impl Processes) {
    let new = process(&worker("a"));
    let mut told = store.changes(Topic::Processes);
    let mut tells = |why: &str| {
        assert!(told.has_changed().unwrap(), "{why} is told");
        told.mark_unchanged();
    };
    store.begin_process(new.clone()).await.unwrap();
    tells("a process that was begun");
    end(&store, new.id, ProcessEnd::Killed).await;
    tells("a process that ended");
    store.begin_process(process(&worker("a"))).await.unwrap();
    tells("another");
    store.lose_processes(&worker("a"), NOW).await.unwrap();
    tells("a process that was lost");
}

async fn lets_one_of_many_ends_stand(store: impl Processes + 'static) {
    let store = Arc::new(store);
    for _ in 0..8 {
        let new = process(&worker("a"));
        store.begin_process(new.clone()).await.unwrap();
        let end = |n: i32| {
            let (store, id) = (Arc::clone(&store), new.id);
            let end = ProcessEnd::Exited { code: Some(n), signal: None };
            tokio::spawn(async move { store.end_process(&TenantId::main(), id, end, NOW).await.unwrap() })
        };
        let mut told = Vec::new();
        for ended in (0..8).map(end).collect::<Vec<_>>() {
            told.push(ended.await.unwrap().unwrap());
        }
        let stands = find(&*store, new.id).await;
        assert!(told.iter().all(|told| *told == stands), "all are told of the same end: {told:?}");
    }
}

async fn gives_each_lost_process_once(store: impl Processes + 'static) {
    let store = Arc::new(store);
    let old = worker("a");
    for _ in 0..20 {
        store.begin_process(process(&old)).await.unwrap();
    }
    let lose = |_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.lose_processes(&worker("a"), NOW).await.unwrap().len() })
    };
    let mut lost = 0;
    for given in (0..8).map(lose).collect::<Vec<_>>() {
        lost += given.await.unwrap();
    }
    assert_eq!(lost, 20);
}

async fn find(store: &impl Processes, id: ProcessId) -> Process {
    store.process(&TenantId::main(), id).await.unwrap().expect("the process is there")
}

async fn end(store: &impl Processes, id: ProcessId, end: ProcessEnd) -> Option<Process> {
    store.end_process(&TenantId::main(), id, end, NOW).await.unwrap()
}
