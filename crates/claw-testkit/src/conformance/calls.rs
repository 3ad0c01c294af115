//! The suite of a [`CallStore`]: calls begin, and approvals are answered and used, at most once.

use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{InputForm, InputRequest, UnixMillis};
use claw_core::store::{
    Answer, Approval, ApprovalState, CallStore, EntryPage, EntryUser, NewApproval, Outcome, Record,
    StoreError, Tally, Topic,
};
use claw_core::{AgentId, ApprovalId, CallId, TenantId, UserId};
use serde_json::json;

use crate::fixture::{NOW, digest, intent, outcome, owner, question, refused, session, tenant};

/// Runs the suite; `make` creates an empty store.
pub async fn calls<S: CallStore + 'static>(make: impl AsyncFn() -> S) {
    writes_calls_down_in_order(make().await).await;
    pages_the_ledger_by_agent_user_session_and_tool(make().await).await;
    refuses_to_begin_a_call_twice(make().await).await;
    refuses_to_begin_a_call_from_the_future_twice(make().await).await;
    lets_one_of_many_begin_a_call(make().await).await;
    uses_an_approval_once(make().await).await;
    refuses_to_use_an_approval_for_something_else(make().await).await;
    refuses_to_use_an_approval_that_is_not_a_yes(make().await).await;
    refuses_to_use_an_approval_whose_time_is_over(make().await).await;
    refuses_to_use_an_approval_of_another_session_or_agent(make().await).await;
    finds_a_question_again(make().await).await;
    finds_a_question_whose_time_is_over_as_expired(make().await).await;
    puts_a_changed_question_anew(make().await).await;
    leaves_the_questions_of_another_session_or_agent(make().await).await;
    lets_the_first_answer_stand(make().await).await;
    refuses_an_answer_when_the_time_is_over(make().await).await;
    lists_only_questions_that_can_be_answered(make().await).await;
    closes_what_nobody_will_use(make().await).await;
    keeps_tenants_apart(make().await).await;
    wakes_those_who_wait(make().await).await;
    gives_the_values_of_an_input_once(make().await).await;
}

async fn writes_calls_down_in_order(store: impl CallStore) {
    let main = TenantId::main();
    assert_eq!(store.recent(&main, 10).await.unwrap(), []);
    let (first, second, third) = (CallId::new(), CallId::new(), CallId::new());
    let records = [
        refused(first),
        intent(second, "ls", None),
        outcome(second, Outcome::Done),
        intent(third, "false", None),
        outcome(third, Outcome::Failed),
    ];
    store.refuse(records[0].clone()).await.unwrap();
    store.begin_call(records[1].clone()).await.unwrap();
    store.finish_call(records[2].clone()).await.unwrap();
    store.begin_call(records[3].clone()).await.unwrap();
    assert_eq!(tally(&store).await, Tally { done: 1, failed: 0, refused: 1, open: 1 });
    store.finish_call(records[4].clone()).await.unwrap();
    assert_eq!(tally(&store).await, Tally { done: 1, failed: 1, refused: 1, open: 0 });
    let other = store.tally(&main, &session("cli:other")).await.unwrap();
    assert_eq!(other, Tally::default());

    let entries = store.recent(&main, 10).await.unwrap();
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(entries.iter().map(|entry| entry.record.clone()).collect::<Vec<_>>(), records);
    assert_eq!(store.recent(&main, 2).await.unwrap(), entries[3..]);
    assert_eq!(store.recent(&main, 0).await.unwrap(), []);
    // In pages, latest first: together they are all of it.
    let (mut paged, mut before) = (Vec::new(), None);
    loop {
        let page = store.entries(&main, &EntryPage::all(before, 2)).await.unwrap();
        let Some((position, _)) = page.last() else { break };
        before = Some(*position);
        paged.extend(page.into_iter().map(|(_, entry)| entry));
    }
    paged.reverse();
    assert_eq!(paged, entries);
}

async fn pages_the_ledger_by_agent_user_session_and_tool(store: impl CallStore) {
    let main = TenantId::main();
    let (other, user) = (AgentId::new("other").unwrap(), |name: &str| UserId::new(name).unwrap());
    let mut expected = Vec::new();
    for n in 0..24 {
        let mut record = refused(CallId::new());
        record.agent = if n % 2 == 0 { other.clone() } else { record.agent };
        record.user = [None, Some(user("ann")), Some(user("ben"))][n % 3].clone();
        record.tool = ["exec", "no such tool\u{0}", "read_file", "Read-It"][n % 4].to_owned();
        record.session = session(["cli:a", "cli:b"][usize::from(n > 11)]);
        store.refuse(record.clone()).await.unwrap();
        expected.push(record);
    }
    store.refuse(Record { tenant: tenant("other"), ..expected[0].clone() }).await.unwrap();
    expected.reverse();
    let all = EntryPage::all(None, 100);
    let own = expected[0].agent.clone();
    let pages = [
        all.clone(),
        EntryPage { agents: Some(vec![other.clone()]), ..all.clone() },
        EntryPage { agents: Some(vec![other.clone(), own]), ..all.clone() },
        EntryPage { agents: Some(Vec::new()), ..all.clone() },
        EntryPage { user: EntryUser::Nobody, ..all.clone() },
        EntryPage { user: EntryUser::User(user("ann")), ..all.clone() },
        EntryPage { user: EntryUser::User(user("eve")), ..all.clone() },
        EntryPage { session: Some(session("cli:b")), ..all.clone() },
        EntryPage { tool: Some("exec".to_owned()), ..all.clone() },
        EntryPage { tool: Some("Read-It".to_owned()), ..all.clone() },
        EntryPage { tool: Some("read-it".to_owned()), ..all.clone() },
        EntryPage { tool: Some("no such tool\u{fffd}".to_owned()), ..all.clone() },
        EntryPage {
            agents: Some(vec![other]),
            user: EntryUser::User(user("ben")),
            session: Some(session("cli:a")),
            tool: Some("read_file".to_owned()),
            ..all.clone()
        },
    ];
    for page in pages {
        let matching: Vec<&Record> = expected.iter().filter(|record| page.matches(record)).collect();
        for limit in [1, 3, 100] {
            let (mut found, mut before) = (Vec::new(), None);
            loop {
                let part = store.entries(&main, &EntryPage { before, limit, ..page.clone() }).await.unwrap();
                assert!(part.len() <= limit);
                let Some((position, _)) = part.last() else { break };
                before = Some(*position);
                found.extend(part.into_iter().map(|(_, entry)| entry.record));
            }
            assert_eq!(found.iter().collect::<Vec<_>>(), matching, "{page:?} in parts of {limit}");
        }
    }
}

async fn refuses_to_begin_a_call_twice(store: impl CallStore) {
    let (main, other, call) = (TenantId::main(), tenant("other"), CallId::new());
    assert_eq!(store.fate(&main, call).await.unwrap(), None);
    store.refuse(refused(call)).await.unwrap();
    assert_eq!(store.fate(&main, call).await.unwrap(), None, "what was refused has not begun");
    store.begin_call(intent(call, "ls", None)).await.unwrap();
    assert_eq!(begun(&store, call).await, Outcome::Unknown);
    assert_eq!(store.fate(&main, call).await.unwrap(), Some(Outcome::Unknown));
    store.finish_call(outcome(call, Outcome::Failed)).await.unwrap();
    assert_eq!(begun(&store, call).await, Outcome::Failed);
    assert_eq!(store.fate(&main, call).await.unwrap(), Some(Outcome::Failed));
    assert_eq!(store.fate(&other, call).await.unwrap(), None, "another tenant has no such call");
    assert_eq!(store.recent(&TenantId::main(), 10).await.unwrap().len(), 3, "a refusal writes nothing");
}

async fn refuses_to_begin_a_call_from_the_future_twice(store: impl CallStore) {
    let future: CallId = "ffffffff-ffff-7fff-bfff-ffffffffffff".parse().unwrap();
    store.begin_call(intent(future, "ls", None)).await.unwrap();
    store.begin_call(intent(CallId::new(), "ls", None)).await.unwrap();
    assert_eq!(begun(&store, future).await, Outcome::Unknown);
}

async fn lets_one_of_many_begin_a_call(store: impl CallStore + 'static) {
    let store = Arc::new(store);
    let (call, id) = approved(&*store, "ls").await;
    let racers: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.begin_call(intent(call, "ls", Some(id))).await.is_ok() })
        })
        .collect();
    let mut won = 0;
    for racer in racers {
        won += usize::from(racer.await.unwrap());
    }
    assert_eq!(won, 1);
}

async fn uses_an_approval_once(store: impl CallStore) {
    let (call, id) = approved(&store, "rm -r build").await;
    store.begin_call(intent(call, "rm -r build", Some(id))).await.unwrap();
    assert_eq!(state(&store, id).await, ApprovalState::Used);
    assert_eq!(begun(&store, call).await, Outcome::Unknown);
    let other = store.begin_call(intent(CallId::new(), "rm -r build", Some(id))).await;
    check_state(other, id, "missing");
}

async fn refuses_to_use_an_approval_for_something_else(store: impl CallStore) {
    let (call, id) = approved(&store, "rm -r build").await;
    check_state(store.begin_call(intent(call, "rm -r /", Some(id))).await, id, "missing");
    check_state(store.begin_call(intent(CallId::new(), "rm -r build", Some(id))).await, id, "missing");
    let mut stolen = intent(call, "rm -r build", Some(id));
    stolen.tenant = tenant("other");
    check_state(store.begin_call(stolen).await, id, "missing");
    let unknown = ApprovalId::new();
    check_state(store.begin_call(intent(call, "rm -r build", Some(unknown))).await, unknown, "missing");
    assert_eq!(store.recent(&TenantId::main(), 10).await.unwrap(), [], "nothing was written");
    assert_eq!(state(&store, id).await, ApprovalState::Approved, "nothing was used");
    store.begin_call(intent(call, "rm -r build", Some(id))).await.unwrap();
}

async fn refuses_to_use_an_approval_that_is_not_a_yes(store: impl CallStore) {
    let main = TenantId::main();
    let [pending, denied, expired, cancelled] = [(); 4].map(|()| CallId::new());
    let ask = async |call| store.request(question(call, "ls")).await.unwrap().id;
    let refuses = async |call, id, state| {
        check_state(store.begin_call(intent(call, "ls", Some(id))).await, id, state);
    };
    refuses(pending, ask(pending).await, "pending").await;
    let id = ask(denied).await;
    store.answer(&main, id, no()).await.unwrap();
    refuses(denied, id, "denied").await;
    let id = ask(expired).await;
    store.close(&main, id, ApprovalState::Expired).await.unwrap();
    refuses(expired, id, "expired").await;
    let id = ask(cancelled).await;
    store.close(&main, id, ApprovalState::Cancelled).await.unwrap();
    refuses(cancelled, id, "cancelled").await;
    assert_eq!(store.recent(&main, 10).await.unwrap(), []);
}

async fn refuses_to_use_an_approval_whose_time_is_over(store: impl CallStore) {
    let (call, id) = approved(&store, "ls").await;
    let mut late = intent(call, "ls", Some(id));
    late.at = expiry();
    check_state(store.begin_call(late).await, id, "expired");
    assert_eq!(state(&store, id).await, ApprovalState::Expired);
    check_state(store.begin_call(intent(call, "ls", Some(id))).await, id, "expired");
    assert_eq!(store.recent(&TenantId::main(), 10).await.unwrap(), [], "nothing was written");

    let (call, id) = approved(&store, "ls").await;
    let mut in_time = intent(call, "ls", Some(id));
    in_time.at = UnixMillis(expiry().0 - 1);
    store.begin_call(in_time).await.unwrap();
}

async fn refuses_to_use_an_approval_of_another_session_or_agent(store: impl CallStore) {
    let (call, id) = approved(&store, "ls").await;
    let mut stolen = intent(call, "ls", Some(id));
    stolen.session = session("cli:other");
    check_state(store.begin_call(stolen).await, id, "missing");
    let mut stolen = intent(call, "ls", Some(id));
    stolen.agent = other_agent();
    check_state(store.begin_call(stolen).await, id, "missing");
    assert_eq!(state(&store, id).await, ApprovalState::Approved, "nothing was used");
    store.begin_call(intent(call, "ls", Some(id))).await.unwrap();
}

async fn finds_a_question_again(store: impl CallStore) {
    let main = TenantId::main();
    let ask = async |call| store.request(question(call, "ls")).await.unwrap();
    let [call, denied, expired, cancelled] = [(); 4].map(|()| CallId::new());

    let first = ask(call).await;
    assert_eq!((first.state, &first.request), (ApprovalState::Pending, &question(call, "ls")));
    assert_eq!(ask(call).await, first);
    assert_eq!(store.pending(&main, NOW).await.unwrap(), std::slice::from_ref(&first));
    store.answer(&main, first.id, yes()).await.unwrap();
    assert_eq!(ask(call).await.state, ApprovalState::Approved);
    store.begin_call(intent(call, "ls", Some(first.id))).await.unwrap();
    assert_eq!(ask(call).await.state, ApprovalState::Used);

    store.answer(&main, ask(denied).await.id, no()).await.unwrap();
    assert_eq!(ask(denied).await.state, ApprovalState::Denied);
    store.close(&main, ask(expired).await.id, ApprovalState::Expired).await.unwrap();
    assert_eq!(ask(expired).await.state, ApprovalState::Expired);

    let given_up = ask(cancelled).await.id;
    store.close(&main, given_up, ApprovalState::Cancelled).await.unwrap();
    let anew = ask(cancelled).await;
    assert_eq!(anew.state, ApprovalState::Pending);
    assert_ne!(anew.id, given_up);
}

async fn finds_a_question_whose_time_is_over_as_expired(store: impl CallStore) {
    let call = CallId::new();
    let first = store.request(question(call, "ls")).await.unwrap();
    let in_time = asked_at(UnixMillis(expiry().0 - 1), question(call, "ls"));
    assert_eq!(store.request(in_time).await.unwrap(), first, "it keeps its own time");
    let late = store.request(asked_at(expiry(), question(call, "ls"))).await.unwrap();
    assert_eq!((late.id, late.state), (first.id, ApprovalState::Expired));
    assert_eq!(state(&store, first.id).await, ApprovalState::Expired);

    let (call, unused) = approved(&store, "ls").await;
    let late = store.request(asked_at(expiry(), question(call, "ls"))).await.unwrap();
    assert_eq!((late.id, late.state), (unused, ApprovalState::Expired), "a yes lapses too");
}

async fn puts_a_changed_question_anew(store: impl CallStore) {
    let (call, first) = approved(&store, "git push").await;
    let second = store.request(question(call, "git push --force")).await.unwrap();
    assert_eq!(second.state, ApprovalState::Pending);
    assert_eq!(state(&store, first).await, ApprovalState::Cancelled);
    let third = store.request(question(call, "git push")).await.unwrap();
    assert_eq!(state(&store, second.id).await, ApprovalState::Cancelled);
    assert_eq!(third.request.digest, digest("git push"));
    assert_eq!(ids(&store.pending(&TenantId::main(), NOW).await.unwrap()), [third.id]);
}

async fn leaves_the_questions_of_another_session_or_agent(store: impl CallStore) {
    let (call, approved) = approved(&store, "git push").await;
    let waiting = store.request(question(CallId::new(), "ls")).await.unwrap();
    for (call, mine) in [(call, approved), (waiting.request.call, waiting.id)] {
        for what in ["git push", "ls", "git push --force"] {
            let of_session = NewApproval { session: session("cli:other"), ..question(call, what) };
            let of_agent = NewApproval { agent: other_agent(), ..question(call, what) };
            for theirs in [of_session, of_agent] {
                let asked = store.request(theirs).await.unwrap();
                assert_ne!(asked.id, mine);
                assert_eq!(asked.state, ApprovalState::Pending);
            }
        }
    }
    assert_eq!(state(&store, approved).await, ApprovalState::Approved);
    assert_eq!(state(&store, waiting.id).await, ApprovalState::Pending);
}

async fn lets_the_first_answer_stand(store: impl CallStore) {
    let main = TenantId::main();
    let id = store.request(question(CallId::new(), "ls")).await.unwrap().id;
    let denied = store.answer(&main, id, no()).await.unwrap();
    assert_eq!((denied.state, denied.answered_by.as_deref()), (ApprovalState::Denied, Some("ann")));
    assert_eq!(denied.reason.as_deref(), Some("not today"));
    check_state(store.answer(&main, id, yes()).await, id, "denied");
    assert_eq!(store.approval(&main, id).await.unwrap(), Some(denied));
    assert_eq!(store.pending(&main, NOW).await.unwrap(), []);
    let unknown = ApprovalId::new();
    check_state(store.answer(&main, unknown, yes()).await, unknown, "missing");
}

async fn refuses_an_answer_when_the_time_is_over(store: impl CallStore) {
    let main = TenantId::main();
    for answer in [yes(), no()] {
        let id = store.request(question(CallId::new(), "ls")).await.unwrap().id;
        let mut changes = store.changes(Topic::Approvals);
        changes.mark_unchanged();
        let late = Answer { at: expiry(), ..answer.clone() };
        check_state(store.answer(&main, id, late).await, id, "expired");
        let row = store.approval(&main, id).await.unwrap().unwrap();
        assert_eq!((row.state, row.answered_by), (ApprovalState::Expired, None));
        assert!(changes.has_changed().unwrap(), "lapsing is a change");
        check_state(store.answer(&main, id, answer).await, id, "expired");
    }
    let id = store.request(question(CallId::new(), "ls")).await.unwrap().id;
    let in_time = Answer { at: UnixMillis(expiry().0 - 1), ..yes() };
    assert_eq!(store.answer(&main, id, in_time).await.unwrap().state, ApprovalState::Approved);
}

async fn lists_only_questions_that_can_be_answered(store: impl CallStore) {
    let main = TenantId::main();
    let pending = async |now| ids(&store.pending(&main, now).await.unwrap());
    let first = store.request(question(CallId::new(), "ls")).await.unwrap().id;
    let later = NOW.plus(Duration::from_secs(1));
    let second = store.request(asked_at(later, question(CallId::new(), "ls"))).await.unwrap().id;
    assert_eq!(pending(UnixMillis(expiry().0 - 1)).await, [first, second]);
    assert_eq!(pending(expiry()).await, [second]);
    assert_eq!(pending(expiry().plus(Duration::from_secs(1))).await, []);
}

async fn closes_what_nobody_will_use(store: impl CallStore) {
    let main = TenantId::main();
    let close = async |id, state| store.close(&main, id, state).await.unwrap().state;
    let (_, kept) = approved(&store, "ls").await;
    assert_eq!(close(kept, ApprovalState::Expired).await, ApprovalState::Approved, "it was answered");
    assert_eq!(close(kept, ApprovalState::Cancelled).await, ApprovalState::Cancelled);
    assert_eq!(close(kept, ApprovalState::Expired).await, ApprovalState::Cancelled, "over stays over");
    check_state(store.answer(&main, kept, yes()).await, kept, "cancelled");
    let id = store.request(question(CallId::new(), "ls")).await.unwrap().id;
    check_state(store.close(&main, id, ApprovalState::Approved).await, id, "pending");
    assert_eq!(state(&store, id).await, ApprovalState::Pending);
}

async fn keeps_tenants_apart(store: impl CallStore) {
    let (main, other) = (TenantId::main(), tenant("other"));
    let call = CallId::new();
    let asked = store.request(question(call, "ls")).await.unwrap();
    assert_eq!(store.approval(&other, asked.id).await.unwrap(), None);
    assert_eq!(store.pending(&other, NOW).await.unwrap(), []);
    check_state(store.answer(&other, asked.id, yes()).await, asked.id, "missing");
    check_state(store.close(&other, asked.id, ApprovalState::Cancelled).await, asked.id, "missing");
    let theirs = NewApproval { tenant: other.clone(), ..question(call, "ls") };
    assert_ne!(store.request(theirs).await.unwrap().id, asked.id);
    assert_eq!(state(&store, asked.id).await, ApprovalState::Pending);

    let mut theirs = intent(call, "ls", None);
    theirs.tenant = other.clone();
    store.begin_call(theirs.clone()).await.unwrap();
    assert_eq!(store.recent(&main, 10).await.unwrap(), []);
    assert_eq!(tally(&store).await, Tally::default());
    store.begin_call(intent(call, "ls", None)).await.unwrap();
    let entries = store.recent(&other, 10).await.unwrap();
    assert_eq!(entries.into_iter().map(|entry| (entry.seq, entry.record)).collect::<Vec<_>>(), [(1, theirs)]);
}

async fn wakes_those_who_wait(store: impl CallStore) {
    let mut changes = store.changes(Topic::Approvals);
    let (call, id) = approved(&store, "ls").await;
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    store.begin_call(intent(call, "ls", Some(id))).await.unwrap();
    assert!(changes.has_changed().unwrap(), "using one is a change");
    let id = store.request(question(CallId::new(), "ls")).await.unwrap().id;
    changes.mark_unchanged();
    store.close(&TenantId::main(), id, ApprovalState::Expired).await.unwrap();
    assert!(changes.has_changed().unwrap(), "closing one is a change");
}

async fn gives_the_values_of_an_input_once(store: impl CallStore) {
    let (main, other) = (TenantId::main(), tenant("other"));
    let form = InputForm::Form { schema: json!({ "type": "object" }) };
    let input = InputRequest { server: "shop".to_owned(), message: "Which size?\0".to_owned(), form };
    let asked = NewApproval { input: Some(Box::new(input)), ..question(CallId::new(), "ls") };
    let id = store.request(asked.clone()).await.unwrap().id;
    assert_eq!(store.approval(&main, id).await.unwrap().unwrap().request, asked);
    assert_eq!(store.take_values(&main, id).await.unwrap(), None, "nobody has answered");
    let values = json!({ "size": "M\0", "count": 2, "gift": true }).as_object().cloned();
    store.answer(&main, id, Answer { values: values.clone(), ..yes() }).await.unwrap();
    assert_eq!(store.take_values(&other, id).await.unwrap(), None);
    let mut changes = store.changes(Topic::Approvals);
    changes.mark_unchanged();
    assert_eq!(store.take_values(&main, id).await.unwrap(), values);
    assert!(changes.has_changed().unwrap(), "taking them is a change");
    assert_eq!(state(&store, id).await, ApprovalState::Used);
    assert_eq!(store.take_values(&main, id).await.unwrap(), None, "they are given once");
    // The process of another ended after the answer: its values go when the time to use them is over.
    let left = store.request(NewApproval { call: CallId::new(), ..asked.clone() }).await.unwrap().id;
    store.answer(&main, left, Answer { values: values.clone(), ..yes() }).await.unwrap();
    let later = UnixMillis(asked.expires.0 + 1);
    let next = NewApproval {
        call: CallId::new(),
        asked: later,
        expires: UnixMillis(later.0 + 60_000),
        ..asked.clone()
    };
    let next = store.request(next).await.unwrap().id;
    store.answer(&main, next, Answer { at: later, ..no() }).await.unwrap();
    assert_eq!(state(&store, left).await, ApprovalState::Expired);
    assert_eq!(store.take_values(&main, left).await.unwrap(), None, "nobody took them in time");
    // An approval that is a plain yes has no values, and is not used up.
    let (_, plain) = approved(&store, "ls").await;
    assert_eq!(store.take_values(&main, plain).await.unwrap(), None);
    assert_eq!(state(&store, plain).await, ApprovalState::Approved);
    let denied = store.request(NewApproval { call: CallId::new(), ..asked }).await.unwrap().id;
    store.answer(&main, denied, no()).await.unwrap();
    assert_eq!(store.take_values(&main, denied).await.unwrap(), None);
}

async fn approved(store: &impl CallStore, what: &str) -> (CallId, ApprovalId) {
    let call = CallId::new();
    let id = store.request(question(call, what)).await.unwrap().id;
    store.answer(&TenantId::main(), id, yes()).await.unwrap();
    (call, id)
}

async fn begun(store: &impl CallStore, call: CallId) -> Outcome {
    match store.begin_call(intent(call, "ls", None)).await {
        Err(StoreError::AlreadyBegun { call: named, outcome }) if named == call => outcome,
        other => panic!("expected `AlreadyBegun`, got {other:?}"),
    }
}

async fn state(store: &impl CallStore, id: ApprovalId) -> ApprovalState {
    store.approval(&TenantId::main(), id).await.unwrap().unwrap().state
}

async fn tally(store: &impl CallStore) -> Tally {
    let owner = owner();
    store.tally(&owner.tenant, &owner.session).await.unwrap()
}

#[track_caller]
fn check_state<T: std::fmt::Debug>(result: Result<T, StoreError>, id: ApprovalId, expected: &str) {
    match result {
        Err(StoreError::ApprovalState { id: named, state }) => assert_eq!((named, state), (id, expected)),
        other => panic!("expected an approval that is {expected}, got {other:?}"),
    }
}

fn ids(approvals: &[Approval]) -> Vec<ApprovalId> {
    approvals.iter().map(|approval| approval.id).collect()
}

/// Returns the time at which a [`question`] expires.
fn expiry() -> UnixMillis {
    question(CallId::new(), "ls").expires
}

/// Returns the same approval, requested at another time with the same lifetime.
fn asked_at(asked: UnixMillis, question: NewApproval) -> NewApproval {
    let expires = asked.plus(question.expires.since(question.asked));
    NewApproval { asked, expires, ..question }
}

fn other_agent() -> AgentId {
    AgentId::new("other").expect("an agent id")
}

fn yes() -> Answer {
    Answer { approve: true, by: "ann".to_owned(), at: NOW, reason: None, values: None }
}

fn no() -> Answer {
    Answer { approve: false, reason: Some("not today".to_owned()), ..yes() }
}
