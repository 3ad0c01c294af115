//! The suite of a [`SessionLog`] and its queue: a message is stored with its event and its job, and a run's
//! messages with the end of its job.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{Owner, UnixMillis};
use claw_core::store::{
    Accepted, Claim, Finish, JobState, Lease, Message, NewEvent, NewJob, NewMessage, Queue, Role, RunEvent,
    SessionEvent, SessionEventBody, SessionLog, StoreError, Summary, ToolEvent, Topic, Worker,
};
use claw_core::{CallId, JobId, MessageId, TenantId};
use serde_json::json;

use crate::fixture::{NOW, job_of, message, owner, session, tenant, worker};

const ALL: usize = usize::MAX;

/// Runs the suite; `make` creates an empty store. Run it on a runtime with several threads.
pub async fn session_log<S: SessionLog + Queue + 'static>(make: impl AsyncFn() -> S) {
    stores_a_message_with_its_event_and_its_job(make().await).await;
    accepts_a_message_once(make().await).await;
    gives_a_message_back_as_it_was_said(make().await).await;
    ends_a_run_with_what_was_said(make().await).await;
    stores_what_is_said_while_a_run_goes_on(make().await).await;
    takes_what_waits_into_a_run(make().await).await;
    keeps_the_summary_that_reaches_furthest(make().await).await;
    ends_a_run_in_which_nothing_was_said(make().await).await;
    stores_nothing_where_the_lease_is_lost(make().await).await;
    numbers_each_conversation_by_itself(make().await).await;
    pages_messages_and_events(make().await).await;
    keeps_tenants_apart(make().await).await;
    wakes_workers_and_clients(make().await).await;
    wakes_those_who_listen_to_the_session(make().await).await;
    numbers_without_gaps_under_many_writers(make().await).await;
    feeds_every_event_once_while_many_write(make().await).await;
    accepts_one_of_many_equal_messages(make().await).await;
    ends_a_run_once_when_many_try(make().await).await;
}

async fn stores_a_message_with_its_event_and_its_job(store: impl SessionLog + Queue) {
    assert_eq!(messages(&store, "cli:me").await, []);
    assert_eq!(events(&store, "cli:me").await, []);
    for seq in 1..=3 {
        let (new, job) = (message("cli:me", "hello"), job_of("cli:me"));
        let accepted = store.accept_message(new.clone(), job.clone()).await.unwrap();
        assert_eq!(accepted, Accepted { seq, job: job.id });
        let stored = messages(&store, "cli:me").await;
        assert_eq!(stored.last(), Some(&Message { new: new.clone(), seq, run: job.id }));
        let told = events(&store, "cli:me").await;
        assert_eq!(told.len() as u64, seq, "one event for each message");
        check_tells(told.last().unwrap(), &Message { new, seq, run: job.id });
        let found = store.job(&job.tenant, job.id).await.unwrap().expect("its job is there");
        assert_eq!((found.new, found.state), (job, JobState::Pending));
    }
}

async fn accepts_a_message_once(store: impl SessionLog + Queue) {
    let (first, job) = (message("cli:me", "hello"), job_of("cli:me"));
    let accepted = store.accept_message(first.clone(), job.clone()).await.unwrap();
    store.accept_message(message("cli:me", "more"), job_of("cli:me")).await.unwrap();
    let before = (messages(&store, "cli:me").await, events(&store, "cli:me").await);

    let changed = NewMessage { content: json!("changed"), role: Role::System, ..first.clone() };
    let moved = NewMessage { session: session("cli:you"), ..first.clone() };
    for again in [first, changed, moved] {
        for other in [job.clone(), job_of("cli:me")] {
            let id = other.id;
            assert_eq!(store.accept_message(again.clone(), other).await.unwrap(), accepted);
            let found = store.job(&TenantId::main(), id).await.unwrap();
            assert_eq!(found.is_some(), id == job.id, "no second job");
        }
    }
    assert_eq!((messages(&store, "cli:me").await, events(&store, "cli:me").await), before);
    assert_eq!(messages(&store, "cli:you").await, []);
    assert_eq!(events(&store, "cli:you").await, []);

    let lease = run(&store, &worker("a")).await;
    store.finish_run(&lease, Finish::done(vec![])).await.unwrap();
    assert_eq!(store.accept_message(before.0[0].new.clone(), job.clone()).await.unwrap(), accepted);
    let found = store.job(&TenantId::main(), job.id).await.unwrap().unwrap();
    assert_eq!(found.state, JobState::Done, "what was answered is not answered again");
}

async fn gives_a_message_back_as_it_was_said(store: impl SessionLog + Queue) {
    let content = json!([{
        "text": "naïve \u{1f980} 'quoted' \"twice\" \\ \n \u{0} end",
        "numbers": [0, -1, u64::MAX, i64::MIN, 0.1, 1e300],
        "nested": { "": null, "yes": true, "empty": [{}, []] },
    }]);
    let key = "agent:main:télégram:42%_'";
    let times = [0, 1, -1, 1_767_225_600_001, 253_402_300_799_999, i64::MAX];
    let roles = [Role::User, Role::Assistant, Role::Tool, Role::System, Role::User, Role::User];
    let mut expected = Vec::new();
    for ((millis, role), seq) in times.into_iter().zip(roles).zip(1..) {
        let new = NewMessage { content: content.clone(), role, at: UnixMillis(millis), ..message(key, "") };
        let run = store.accept_message(new.clone(), job_of(key)).await.unwrap().job;
        expected.push(Message { new, seq, run });
    }
    assert_eq!(messages(&store, key).await, expected);

    let owner = TenantId::main();
    for millis in times {
        let (at, why) = (UnixMillis(millis), content.to_string() + "\u{0} \u{1f980}");
        for what in [
            woken(),
            SessionEventBody::Run { run: JobId::new(), state: RunEvent::Reported { why } },
            SessionEventBody::Tool {
                call: CallId::new(),
                tool: "'odd\u{0}'".into(),
                state: ToolEvent::Started,
            },
        ] {
            let seq = store.log_event(&owner, &session(key), at, what.clone()).await.unwrap();
            assert_eq!(events(&store, key).await.last(), Some(&SessionEvent { seq, at, what }));
        }
    }
}

async fn ends_a_run_with_what_was_said(store: impl SessionLog + Queue) {
    let (asked, job) = (message("cli:me", "hello"), job_of("cli:me"));
    store.accept_message(asked.clone(), job.clone()).await.unwrap();
    let lease = run(&store, &worker("a")).await;
    let (meanwhile, next) = (message("cli:me", "and another thing"), job_of("cli:me"));
    store.accept_message(meanwhile.clone(), next.clone()).await.unwrap();

    let said = said("cli:me", 3);
    assert_eq!(store.finish_run(&lease, Finish::done(said.clone())).await.unwrap().places, [3, 4, 5]);
    let stored = messages(&store, "cli:me").await;
    let said = said.into_iter().map(|new| (new, job.id));
    let expected = [(asked, job.id), (meanwhile, next.id)].into_iter().chain(said).zip(1..);
    assert_eq!(stored, expected.map(|((new, run), seq)| Message { new, seq, run }).collect::<Vec<_>>());
    check_told(&store, "cli:me").await;
    let found = store.job(&job.tenant, job.id).await.unwrap().unwrap();
    assert_eq!((found.state, found.lease), (JobState::Done, None));

    let again = store.finish_run(&lease, Finish::done(vec![message("cli:me", "twice")])).await;
    check_lost(again, &lease);
    assert_eq!(messages(&store, "cli:me").await, stored, "a repetition changes nothing");
    assert_eq!(run(&store, &worker("a")).await.attempt, 1, "the session goes on with its next job");
}

async fn stores_what_is_said_while_a_run_goes_on(store: impl SessionLog + Queue) {
    let (asked, job) = (message("cli:me", "hello"), job_of("cli:me"));
    store.accept_message(asked, job.clone()).await.unwrap();
    let lease = run(&store, &worker("a")).await;
    let calls = said("cli:me", 2);
    assert_eq!(store.say_in_run(&lease, calls.clone()).await.unwrap(), [2, 3]);
    let found = store.job(&job.tenant, job.id).await.unwrap().unwrap();
    assert_eq!(found.state, JobState::Leased, "the run goes on");
    store.accept_message(message("cli:me", "meanwhile"), job_of("cli:me")).await.unwrap();
    assert!(store.say_in_run(&lease, vec![]).await.unwrap().is_empty());

    let mut more = said("cli:me", 1);
    assert_eq!(store.say_in_run(&lease, more.clone()).await.unwrap(), [5]);
    assert_eq!(
        store.say_in_run(&lease, calls.clone()).await.unwrap(),
        [2, 3],
        "what was said is not said twice"
    );
    more.extend(said("cli:me", 1));
    assert_eq!(store.finish_run(&lease, Finish::done(more)).await.unwrap().places, [5, 6]);
    let runs: Vec<_> = messages(&store, "cli:me").await.iter().map(|stored| stored.run == job.id).collect();
    assert_eq!(runs, [true, true, true, false, true, true]);
    check_told(&store, "cli:me").await;
    check_lost(store.say_in_run(&lease, calls).await, &lease);
    assert_eq!(messages(&store, "cli:me").await.len(), 6);
}

async fn takes_what_waits_into_a_run(store: impl SessionLog + Queue) {
    let accept = async |key: &str, job: NewJob| {
        let new = NewMessage { tenant: job.tenant.clone(), ..message(key, "hello") };
        store.accept_message(new, job.clone()).await.unwrap();
        job
    };
    let first = accept("cli:me", job_of("cli:me")).await;
    let lease = run(&store, &worker("a")).await;
    assert_eq!(store.take_waiting(&lease, i16::MIN).await.unwrap(), 0, "nothing waits");
    let same = [accept("cli:me", job_of("cli:me")).await, accept("cli:me", job_of("cli:me")).await];
    let others = [
        accept("cli:you", job_of("cli:you")).await,
        accept("cli:me", NewJob { payload: json!({ "do": "more" }), ..job_of("cli:me") }).await,
        accept("cli:me", NewJob { lane: "cron".into(), ..job_of("cli:me") }).await,
        accept("cli:me", NewJob { tenant: tenant("other"), ..job_of("cli:me") }).await,
    ];
    let stranger = Lease { attempt: 2, ..lease.clone() };
    check_lost(store.take_waiting(&stranger, i16::MIN).await, &stranger);
    let urgent = accept("cli:me", NewJob { priority: 1, ..job_of("cli:me") }).await;
    assert_eq!(store.take_waiting(&lease, 1).await.unwrap(), 1, "only what is urgent");
    let state = async |job: &NewJob| store.job(&job.tenant, job.id).await.unwrap().unwrap().state;
    assert_eq!(state(&urgent).await, JobState::Done);
    assert_eq!(state(&same[0]).await, JobState::Pending);
    assert_eq!(store.take_waiting(&lease, i16::MIN).await.unwrap(), 2);
    for job in &same {
        assert_eq!(state(job).await, JobState::Done);
    }
    for job in &others {
        assert_eq!(state(job).await, JobState::Pending, "{job:?}");
    }
    let runs: Vec<_> = messages(&store, "cli:me").await.iter().map(|stored| stored.run).collect();
    assert_eq!(runs, [first.id, first.id, first.id, others[1].id, others[2].id, first.id]);
    let theirs = store.messages(&tenant("other"), &session("cli:me"), 0, ALL).await.unwrap();
    assert_eq!(theirs[0].run, others[3].id);
    assert_eq!(store.take_waiting(&lease, i16::MIN).await.unwrap(), 0, "what was taken waits no more");
    store.finish_run(&lease, Finish::done(vec![])).await.unwrap();
    check_lost(store.take_waiting(&lease, i16::MIN).await, &lease);
}

async fn keeps_the_summary_that_reaches_furthest(store: impl SessionLog + Queue) {
    let (main, key) = (TenantId::main(), session("cli:me"));
    let of = owner();
    store.accept_message(message("cli:me", "hello"), job_of("cli:me")).await.unwrap();
    let lease = run(&store, &worker("a")).await;
    assert_eq!(store.summary(&main, &key).await.unwrap(), None);
    let keep = async |upto: u64, text: &str| {
        let summary = Summary { upto, text: text.to_owned(), at: NOW };
        store.summarise(&lease, &of, summary.clone()).await.unwrap();
        summary
    };
    let far = keep(40, "naïve \u{0} \u{1f980}").await;
    assert_eq!(store.summary(&main, &key).await.unwrap(), Some(far.clone()));
    keep(7, "less").await;
    assert_eq!(store.summary(&main, &key).await.unwrap(), Some(far));
    let better = keep(40, "better").await;
    assert_eq!(store.summary(&main, &key).await.unwrap(), Some(better.clone()));
    assert_eq!(store.summary(&main, &session("cli:you")).await.unwrap(), None);
    assert_eq!(store.summary(&tenant("other"), &key).await.unwrap(), None);
    let stranger = Lease { worker: worker("b"), ..lease.clone() };
    let late = Summary { upto: 99, ..better.clone() };
    check_lost(store.summarise(&stranger, &of, late).await, &stranger);
    assert_eq!(store.summary(&main, &key).await.unwrap(), Some(better));
}

async fn ends_a_run_in_which_nothing_was_said(store: impl SessionLog + Queue) {
    let new = job_of("cli:me");
    store.enqueue(new.clone()).await.unwrap();
    let lease = run(&store, &worker("a")).await;
    assert!(store.finish_run(&lease, Finish::done(vec![])).await.unwrap().places.is_empty());
    assert_eq!(store.job(&new.tenant, new.id).await.unwrap().unwrap().state, JobState::Done);
    assert_eq!(messages(&store, "cli:me").await, []);
}

async fn stores_nothing_where_the_lease_is_lost(store: impl SessionLog + Queue) {
    let (ann, ben) = (worker("a"), worker("b"));
    store.accept_message(message("cli:me", "hello"), job_of("cli:me")).await.unwrap();
    let first = run(&store, &ann).await;
    let before = (messages(&store, "cli:me").await, events(&store, "cli:me").await);
    let refuses = async |lease: &Lease| {
        check_lost(store.finish_run(lease, Finish::done(said("cli:me", 2))).await, lease);
        check_lost(store.finish_run(lease, Finish::done(said("cli:new", 2))).await, lease);
        check_lost(store.finish_run(lease, Finish::done(vec![])).await, lease);
        check_lost(store.say_in_run(lease, said("cli:me", 2)).await, lease);
        check_lost(store.say_in_run(lease, vec![]).await, lease);
        assert_eq!((messages(&store, "cli:me").await, events(&store, "cli:me").await), before);
        assert_eq!(messages(&store, "cli:new").await, []);
        assert_eq!(events(&store, "cli:new").await, []);
    };
    refuses(&Lease { worker: ben.clone(), ..first.clone() }).await;
    refuses(&Lease { worker: Worker { boot: ben.boot, ..ann }, ..first.clone() }).await;
    refuses(&Lease { attempt: 2, ..first.clone() }).await;
    store.reclaim(&ben, first.until).await.unwrap();
    refuses(&first).await;
    let second = run(&store, &ben).await;
    assert_eq!((second.job, second.attempt), (first.job, 2));
    refuses(&first).await;
    assert_eq!(store.finish_run(&second, Finish::done(said("cli:me", 1))).await.unwrap().places, [2]);
}

async fn numbers_each_conversation_by_itself(store: impl SessionLog + Queue) {
    for seq in 1..=3 {
        for key in ["cli:me", "cli:you"] {
            let accepted = store.accept_message(message(key, "hello"), job_of(key)).await.unwrap();
            assert_eq!(accepted.seq, seq);
        }
    }
    let tell =
        async |key: &str| store.log_event(&TenantId::main(), &session(key), NOW, woken()).await.unwrap();
    assert_eq!((tell("cli:me").await, tell("cli:me").await, tell("cli:you").await), (4, 5, 4));
    assert_eq!(tell("cli:third").await, 1, "a log can begin with an event");
    let event = |key: &str, at| NewEvent {
        owner: Owner { tenant: TenantId::main(), session: session(key) },
        at,
        body: woken(),
    };
    let many =
        vec![event("cli:you", UnixMillis(7)), event("cli:fourth", NOW), event("cli:you", UnixMillis(6))];
    store.log_events(many).await.unwrap();
    let logged = events(&store, "cli:you").await;
    let logged: Vec<_> = logged.iter().map(|event| (event.seq, event.at)).skip(4).collect();
    assert_eq!(logged, [(5, UnixMillis(7)), (6, UnixMillis(6))], "in the order given, whatever the times");
    assert_eq!(events(&store, "cli:fourth").await.len(), 1);
    let accepted = store.accept_message(message("cli:me", "more"), job_of("cli:me")).await.unwrap();
    assert_eq!(accepted.seq, 4, "messages and events are numbered apart");
    let numbers: Vec<_> = events(&store, "cli:me").await.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}

async fn pages_messages_and_events(store: impl SessionLog + Queue) {
    let (owner, key) = (TenantId::main(), session("cli:me"));
    for n in 0..5 {
        store.accept_message(message("cli:me", &n.to_string()), job_of("cli:me")).await.unwrap();
    }
    let (all, told) = (messages(&store, "cli:me").await, events(&store, "cli:me").await);
    let pages = [(0, 2, 0..2), (2, 2, 2..4), (4, 2, 4..5), (5, 2, 5..5), (3, ALL, 3..5), (0, 0, 0..0)];
    for (after, limit, expected) in pages {
        assert_eq!(store.messages(&owner, &key, after, limit).await.unwrap(), all[expected.clone()]);
        assert_eq!(store.events(&owner, &key, after, limit).await.unwrap(), told[expected]);
    }
    for after in [6, u64::from(u32::MAX), i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        assert_eq!(store.messages(&owner, &key, after, ALL).await.unwrap(), [], "after {after}");
        assert_eq!(store.events(&owner, &key, after, ALL).await.unwrap(), [], "after {after}");
    }
}

async fn keeps_tenants_apart(store: impl SessionLog + Queue) {
    let (main, other, key) = (TenantId::main(), tenant("other"), session("cli:me"));
    let (ours, our_job) = (message("cli:me", "ours"), job_of("cli:me"));
    store.accept_message(ours.clone(), our_job.clone()).await.unwrap();
    store.log_event(&main, &key, NOW, woken()).await.unwrap();
    assert_eq!(store.messages(&other, &key, 0, ALL).await.unwrap(), []);
    assert_eq!(store.events(&other, &key, 0, ALL).await.unwrap(), []);
    assert_eq!(store.job(&other, our_job.id).await.unwrap(), None);

    // The same session key and even the same message id say nothing about the other tenant's.
    let theirs = NewMessage { tenant: other.clone(), content: json!("theirs"), ..ours.clone() };
    let their_job = NewJob { tenant: other.clone(), ..job_of("cli:me") };
    let accepted = store.accept_message(theirs.clone(), their_job.clone()).await.unwrap();
    assert_eq!(accepted, Accepted { seq: 1, job: their_job.id });
    assert_eq!(store.log_event(&other, &key, NOW, woken()).await.unwrap(), 2);
    assert_eq!(
        store.messages(&other, &key, 0, ALL).await.unwrap(),
        [Message { new: theirs, seq: 1, run: their_job.id }]
    );
    assert_eq!(messages(&store, "cli:me").await, [Message { new: ours, seq: 1, run: our_job.id }]);
}

async fn wakes_workers_and_clients(store: impl SessionLog + Queue) {
    let (mut work, mut told) = (store.changes(Topic::Work), store.changes(Topic::Sessions));
    for _ in 0..2 {
        store.accept_message(message("cli:me", "hello"), job_of("cli:me")).await.unwrap();
        assert!(work.has_changed().unwrap(), "a message is work");
        assert!(told.has_changed().unwrap(), "and an event of its conversation");
        work.mark_unchanged();
        told.mark_unchanged();
    }
    let lease = run(&store, &worker("a")).await;
    told.mark_unchanged();
    store.say_in_run(&lease, said("cli:me", 1)).await.unwrap();
    assert!(told.has_changed().unwrap(), "something was said");
    work.mark_unchanged();
    told.mark_unchanged();
    store.finish_run(&lease, Finish::done(said("cli:me", 1))).await.unwrap();
    assert!(work.has_changed().unwrap(), "the session's next job can be claimed");
    assert!(told.has_changed().unwrap(), "something was said");
    told.mark_unchanged();
    store.log_event(&TenantId::main(), &session("cli:me"), NOW, woken()).await.unwrap();
    assert!(told.has_changed().unwrap(), "an event was told");
}

async fn wakes_those_who_listen_to_the_session(store: impl SessionLog + Queue) {
    let (mine, other) = (owner(), Owner { session: session("cli:you"), ..owner() });
    let foreign = Owner { tenant: tenant("other"), ..owner() };
    let mut heard = store.session_changes(&mine);
    let mut silent = [store.session_changes(&other), store.session_changes(&foreign)];
    let mut rang = |why: &str| {
        assert!(heard.has_changed().unwrap(), "{why}");
        heard.mark_unchanged();
    };
    store.accept_message(message("cli:me", "hello"), job_of("cli:me")).await.unwrap();
    rang("a message was accepted");
    let lease = run(&store, &worker("a")).await;
    store.say_in_run(&lease, said("cli:me", 1)).await.unwrap();
    rang("something was said in a run");
    store.finish_run(&lease, Finish::done(said("cli:me", 1))).await.unwrap();
    rang("a run ended");
    store.log_event(&mine.tenant, &mine.session, NOW, woken()).await.unwrap();
    rang("an event was logged");
    // A listener that has just begun may be woken for nothing, once; four things happened next door.
    for other in &mut silent {
        let woken = *other.borrow_and_update();
        assert!(woken <= 1, "another session, or another tenant's, was woken {woken} times");
    }
    store.accept_message(message("cli:you", "hello"), job_of("cli:you")).await.unwrap();
    assert!(silent[0].has_changed().unwrap());
}

async fn numbers_without_gaps_under_many_writers(store: impl SessionLog + Queue + 'static) {
    const WRITERS: usize = 16;
    const EACH: usize = 6;
    let store = Arc::new(store);
    let write = |_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut places = Vec::new();
            for _ in 0..EACH {
                let new = message("cli:me", "hello");
                let seq = store.accept_message(new.clone(), job_of("cli:me")).await.unwrap().seq;
                places.push((seq, new.id));
                store.log_event(&TenantId::main(), &session("cli:me"), NOW, woken()).await.unwrap();
            }
            places
        })
    };
    let mut places: Vec<(u64, MessageId)> = Vec::new();
    for writer in (0..WRITERS).map(write).collect::<Vec<_>>() {
        let mine = writer.await.unwrap();
        assert!(mine.is_sorted(), "each writer's messages stand in its order");
        places.extend(mine);
    }
    places.sort();
    let stored: Vec<_> =
        messages(&*store, "cli:me").await.iter().map(|message| (message.seq, message.new.id)).collect();
    assert_eq!(stored, places, "what was acknowledged is what is stored");
    assert_eq!(stored.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), numbers(WRITERS * EACH));
    let told = events(&*store, "cli:me").await;
    assert_eq!(told.iter().map(|event| event.seq).collect::<Vec<_>>(), numbers(2 * WRITERS * EACH));
    check_told(&*store, "cli:me").await;
}

async fn feeds_every_event_once_while_many_write<S: SessionLog + Queue + 'static>(store: S) {
    const SESSIONS: usize = 6;
    const EACH: usize = 20;
    assert_eq!(store.feed_end(&TenantId::main()).await.unwrap(), 0);
    let store = Arc::new(store);
    let elsewhere = NewMessage { tenant: tenant("other"), ..message("cli:0", "hello") };
    let job = NewJob { tenant: tenant("other"), ..job_of("cli:0") };
    store.accept_message(elsewhere, job).await.unwrap();
    let writers = (0..SESSIONS).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let key = format!("cli:{number}");
            for _ in 0..EACH {
                store.accept_message(message(&key, "hello"), job_of(&key)).await.unwrap();
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let (mut seen, mut after) = (Vec::new(), 0);
    while seen.len() < SESSIONS * EACH {
        let page = store.feed(&TenantId::main(), after, 7).await.unwrap();
        assert!(page.len() <= 7);
        for fed in page {
            assert!(fed.feed > after, "places rise");
            after = fed.feed;
            seen.push((fed.session.to_string(), fed.event));
        }
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(store.feed(&TenantId::main(), after, ALL).await.unwrap(), []);
    assert_eq!(store.feed_end(&TenantId::main()).await.unwrap(), after);
    for number in 0..SESSIONS {
        let key = format!("cli:{number}");
        let fed: Vec<SessionEvent> =
            seen.iter().filter(|(session, _)| *session == key).map(|(_, event)| event.clone()).collect();
        assert_eq!(fed, events(&*store, &key).await, "each event once, in the order of its session");
    }
    let theirs = store.feed(&tenant("other"), 0, ALL).await.unwrap();
    assert_eq!(theirs.len(), 1, "tenants are apart");
}

async fn accepts_one_of_many_equal_messages(store: impl SessionLog + Queue + 'static) {
    let (store, new) = (Arc::new(store), message("cli:me", "hello"));
    let send = |_| {
        let (store, new) = (Arc::clone(&store), new.clone());
        tokio::spawn(async move { store.accept_message(new, job_of("cli:me")).await.unwrap() })
    };
    let mut answers = HashSet::new();
    for sender in (0..16).map(send).collect::<Vec<_>>() {
        let Accepted { seq, job } = sender.await.unwrap();
        answers.insert((seq, job));
    }
    assert_eq!(answers.len(), 1, "everyone gets the answer of the first time");
    assert_eq!(messages(&*store, "cli:me").await.len(), 1);
    assert_eq!(events(&*store, "cli:me").await.len(), 1);
    assert_eq!(store.lanes(&TenantId::main()).await.unwrap()[0].pending, 1);
}

async fn ends_a_run_once_when_many_try(store: impl SessionLog + Queue + 'static) {
    let store = Arc::new(store);
    store.accept_message(message("cli:me", "hello"), job_of("cli:me")).await.unwrap();
    let lease = run(&*store, &worker("a")).await;
    let end = |_| {
        let (store, lease) = (Arc::clone(&store), lease.clone());
        tokio::spawn(async move { store.finish_run(&lease, Finish::done(said("cli:me", 2))).await.is_ok() })
    };
    let mut won = 0;
    for racer in (0..8).map(end).collect::<Vec<_>>() {
        won += usize::from(racer.await.unwrap());
    }
    assert_eq!((won, messages(&*store, "cli:me").await.len()), (1, 3));
    check_told(&*store, "cli:me").await;
}

/// Claims the next job.
async fn run(store: &impl Queue, worker: &Worker) -> Lease {
    let until = NOW.plus(Duration::from_secs(60));
    let claim = Claim { worker: worker.clone(), lanes: vec!["main".into()], now: NOW, until };
    store.claim(claim).await.unwrap().expect("a job is claimable").1
}

/// Makes an agent's messages: a call, its result, an answer, ...
fn said(key: &str, count: usize) -> Vec<NewMessage> {
    let roles = [Role::Assistant, Role::Tool, Role::Assistant];
    roles.into_iter().cycle().take(count).map(|role| NewMessage { role, ..message(key, "said") }).collect()
}

fn numbers(count: usize) -> Vec<u64> {
    (1..=count as u64).collect()
}

async fn messages(store: &impl SessionLog, key: &str) -> Vec<Message> {
    store.messages(&TenantId::main(), &session(key), 0, ALL).await.unwrap()
}

async fn events(store: &impl SessionLog, key: &str) -> Vec<SessionEvent> {
    store.events(&TenantId::main(), &session(key), 0, ALL).await.unwrap()
}

/// Asserts that each message of a session has one event, in the same order.
async fn check_told(store: &impl SessionLog, key: &str) {
    let told: Vec<_> =
        events(store, key).await.into_iter().filter(|event| event.what.kind() == "message").collect();
    let said = messages(store, key).await;
    assert_eq!(told.len(), said.len());
    for (event, message) in told.iter().zip(&said) {
        check_tells(event, message);
    }
}

/// Asserts that an event names its message without repeating it, and the run in which the message was stored.
#[track_caller]
fn check_tells(event: &SessionEvent, message: &Message) {
    let Message { new, seq, run } = message;
    let what = SessionEventBody::Message { id: new.id, seq: *seq, role: new.role, run: *run };
    assert_eq!((&event.what, event.at), (&what, new.at));
}

/// An event that is about nothing else.
fn woken() -> SessionEventBody {
    SessionEventBody::Run { run: JobId::new(), state: RunEvent::Woken }
}

#[track_caller]
fn check_lost<T: std::fmt::Debug>(result: Result<T, StoreError>, lease: &Lease) {
    match result {
        Err(StoreError::LeaseLost { job }) => assert_eq!(job, lease.job),
        other => panic!("expected a lost lease, got {other:?}"),
    }
}
