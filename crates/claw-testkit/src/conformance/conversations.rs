//! The suite of [`Conversations`]: the store itself checks the owner, and reveals nothing else.

use claw_core::port::UnixMillis;
use claw_core::store::{
    Accepted, Circle, Claim, Conversation, ConversationPage, Conversations, Finish, Fork, Message,
    MessagePage, NewJob, NewMessage, Party, Queue, StoreError,
};
use claw_core::tool::PeerKind;
use claw_core::{AgentId, JobId, SessionKey, TenantId, UserId};
use serde_json::json;

use crate::fixture::{NOW, agent, job_of, message, session, tenant, worker};

const ALL: ConversationPage = ConversationPage { since: None, after: None, limit: usize::MAX };

/// Runs the suite; `make` creates an empty store.
pub async fn conversations<S: Conversations + Queue>(make: impl AsyncFn() -> S) {
    keeps_who_began_it_with_its_message(make().await).await;
    accepts_a_message_once(make().await).await;
    follows_the_latest_job_once(make().await).await;
    refuses_a_message_of_somebody_else(make().await).await;
    a_group_is_its_chat_whoever_speaks(make().await).await;
    shows_a_circle_its_own_and_nothing_else(make().await).await;
    keeps_tenants_apart(make().await).await;
    says_what_waits_and_runs(make().await).await;
    the_agents_last_word_counts(make().await).await;
    pages_the_latest_first(make().await).await;
    pages_what_was_said_backwards(make().await).await;
    refuses_names_that_could_be_taken_for_others(make().await).await;
    renames_its_own_and_nobody_elses(make().await).await;
    forks_what_was_said_under_a_new_key(make().await).await;
    removes_what_no_run_needs(make().await).await;
    a_session_that_read_untrusted_text_is_marked_for_good(make().await).await;
}

async fn a_session_that_read_untrusted_text_is_marked_for_good(store: impl Conversations + Queue) {
    let (main, other) = (TenantId::main(), crate::fixture::tenant("other"));
    let [from, to, third] = [session("cli:a"), session("cli:b"), session("cli:c")];
    say(&store, &ann(), "cli:a").await.unwrap();
    for key in [&from, &to, &third] {
        assert!(!store.is_untrusted(&main, key).await.unwrap());
    }
    for _ in 0..2 {
        store.mark_untrusted(&main, &from, NOW).await.unwrap();
    }
    assert!(store.is_untrusted(&main, &from).await.unwrap());
    assert!(
        !store.is_untrusted(&other, &from).await.unwrap()
            && !store.is_untrusted(&main, &third).await.unwrap()
    );
    assert!(
        store.fork_conversation(&main, &circle_of("ann"), &from, Fork { to: &to, at: NOW }).await.unwrap()
    );
    assert!(store.is_untrusted(&main, &to).await.unwrap(), "a fork has read what it was forked from");
    assert!(store.remove_conversation(&main, &circle_of("ann"), &to).await.unwrap());
    assert!(!store.is_untrusted(&main, &to).await.unwrap(), "its key is free");
}

async fn renames_its_own_and_nobody_elses(store: impl Conversations + Queue) {
    say(&store, &ann(), "cli:a").await.unwrap();
    let (main, key) = (TenantId::main(), session("cli:a"));
    let rename = async |user: &str, title| {
        store.rename_conversation(&main, &circle_of(user), &key, title).await.unwrap()
    };
    assert!(!rename("ben", Some("mine")).await);
    assert!(rename("ann", Some("the plan")).await);
    let title = async || one(&store, &circle_of("ann"), "cli:a").await.unwrap().title;
    assert_eq!(title().await.as_deref(), Some("the plan"));
    say(&store, &ann(), "cli:a").await.unwrap();
    assert_eq!(title().await.as_deref(), Some("the plan"), "and the next message keeps it");
    assert!(rename("ann", None).await);
    assert_eq!(title().await, None);
}

async fn forks_what_was_said_under_a_new_key(store: impl Conversations + Queue) {
    say(&store, &ann(), "cli:a").await.unwrap();
    say(&store, &ann(), "cli:a").await.unwrap();
    let (main, from, to) = (TenantId::main(), session("cli:a"), session("cli:b"));
    let fork = async |user: &str, to: &SessionKey| {
        store.fork_conversation(&main, &circle_of(user), &from, Fork { to, at: NOW }).await
    };
    assert!(!fork("ben", &to).await.unwrap());
    assert!(fork("ann", &to).await.unwrap());
    let content = |messages: Vec<Message>| -> Vec<_> {
        messages.into_iter().map(|message| (message.seq, message.new.content)).collect()
    };
    let (before, copied) = (
        said(&store, &circle_of("ann"), "cli:a").await.unwrap(),
        said(&store, &circle_of("ann"), "cli:b").await.unwrap(),
    );
    assert_eq!(content(before), content(copied));
    let next = say(&store, &ann(), "cli:b").await.unwrap();
    assert_eq!(next.seq, 3, "the copy goes on by itself");
    assert_eq!(said(&store, &circle_of("ann"), "cli:a").await.unwrap().len(), 2);
    assert!(matches!(fork("ann", &to).await, Err(StoreError::Refused { .. })), "a key is taken once");
    check_refused(say(&store, &of("ben"), "cli:b").await);
}

async fn removes_what_no_run_needs(store: impl Conversations + Queue) {
    say(&store, &ann(), "cli:a").await.unwrap();
    let (main, key) = (TenantId::main(), session("cli:a"));
    let remove = async |user: &str| store.remove_conversation(&main, &circle_of(user), &key).await;
    assert!(!remove("ben").await.unwrap());
    assert!(matches!(remove("ann").await, Err(StoreError::Refused { .. })), "a run of it waits");
    let until = UnixMillis(NOW.0 + 1_000);
    let claim = Claim { lanes: vec!["main".into()], worker: worker("a"), now: NOW, until };
    let (_, lease) = store.claim(claim).await.unwrap().expect("the job");
    store.finish_run(&lease, Finish::done(Vec::new())).await.unwrap();
    assert!(remove("ann").await.unwrap());
    assert!(one(&store, &circle_of("ann"), "cli:a").await.is_none());
    assert!(!remove("ann").await.unwrap());
    let again = say(&store, &of("ben"), "cli:a").await.unwrap();
    assert_eq!(again.seq, 1, "its key is free");
}

/// Ann, with [`agent`], by herself.
fn ann() -> Party {
    of("ann")
}

fn of(user: &str) -> Party {
    Party {
        agent: agent(),
        user: Some(UserId::new(user).unwrap()),
        channel: "cli".into(),
        chat: None,
        peer: PeerKind::Direct,
    }
}

fn group(chat: &str) -> Party {
    Party { channel: "telegram".into(), chat: Some(chat.into()), peer: PeerKind::Group, ..ann() }
}

fn circle_of(user: &str) -> Circle {
    Circle::User { agent: agent(), user: UserId::new(user).unwrap() }
}

fn circle_of_group(chat: &str) -> Circle {
    Circle::Group { agent: agent(), channel: "telegram".into(), chat: chat.into() }
}

async fn say(store: &impl Conversations, party: &Party, key: &str) -> Result<Accepted, StoreError> {
    store.accept_from(party, message(key, "hello"), job_of(key)).await
}

async fn listed(store: &impl Conversations, circle: &Circle) -> Vec<String> {
    let found = store.conversations(&TenantId::main(), circle, &ALL).await.unwrap();
    let mut keys: Vec<String> = found.iter().map(|found| found.session.to_string()).collect();
    keys.sort();
    keys
}

async fn one(store: &impl Conversations, circle: &Circle, key: &str) -> Option<Conversation> {
    store.conversation(&TenantId::main(), circle, &session(key)).await.unwrap()
}

async fn said(store: &impl Conversations, circle: &Circle, key: &str) -> Option<Vec<Message>> {
    store.said_in(&TenantId::main(), circle, &session(key), MessagePage::last(usize::MAX)).await.unwrap()
}

#[track_caller]
fn check_refused(answer: Result<Accepted, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Refused { .. })), "{answer:?}");
}

async fn keeps_who_began_it_with_its_message(store: impl Conversations + Queue) {
    let job = NewJob { payload: json!({ "do": "this \u{0} é" }), lane: "chat".into(), ..job_of("cli:a") };
    let new = message("cli:a", "hello");
    let accepted = store.accept_from(&ann(), new.clone(), job.clone()).await.unwrap();
    assert_eq!(accepted, Accepted { seq: 1, job: job.id });
    assert!(store.job(&job.tenant, job.id).await.unwrap().is_some(), "its job is there");
    let expected = Conversation {
        session: session("cli:a"),
        party: ann(),
        lane: "chat".into(),
        order: job.payload.clone(),
        title: None,
        started: NOW,
        last: NOW,
        messages: 1,
        waiting: 1,
        running: false,
    };
    assert_eq!(one(&store, &circle_of("ann"), "cli:a").await, Some(expected.clone()));

    // The same person from elsewhere, later, and then one message that is late.
    let (later, earlier) = (UnixMillis(NOW.0 + 5), UnixMillis(NOW.0 - 5));
    let elsewhere = Party { channel: "http".into(), chat: Some("7".into()), ..ann() };
    for at in [later, earlier] {
        let more = NewMessage { at, ..message("cli:a", "more") };
        let next = NewJob { lane: "main".into(), payload: json!(2), ..job_of("cli:a") };
        store.accept_from(&elsewhere, more, next).await.unwrap();
    }
    let (party, lane, order) = (elsewhere, "main".into(), json!(2));
    let now = Conversation { party, lane, order, last: later, messages: 3, waiting: 2, ..expected };
    assert_eq!(one(&store, &circle_of("ann"), "cli:a").await, Some(now));
}

async fn accepts_a_message_once(store: impl Conversations + Queue) {
    let (new, job) = (message("cli:a", "hello"), job_of("cli:a"));
    let accepted = store.accept_from(&ann(), new.clone(), job).await.unwrap();
    let other = job_of("cli:a");
    assert_eq!(store.accept_from(&ann(), new, other.clone()).await.unwrap(), accepted);
    assert_eq!(store.job(&TenantId::main(), other.id).await.unwrap(), None, "no second job");
    assert_eq!(said(&store, &circle_of("ann"), "cli:a").await.unwrap().len(), 1);
}

/// Results of a run's calls are taken once, however many clients send them at the same time.
async fn follows_the_latest_job_once(store: impl Conversations + Queue) {
    let last = job_of("cli:a");
    store.accept_from(&ann(), message("cli:a", "hello"), last.clone()).await.unwrap();
    let after = |last: JobId, job: NewJob| {
        let store = &store;
        async move { store.accept_after(last, &ann(), message("cli:a", "a result"), job).await }
    };
    check_refused(after(last.id, job_of("cli:a")).await);
    let until = UnixMillis(NOW.0 + 1_000);
    let claim = || Claim { worker: worker("a"), lanes: vec!["main".into()], now: NOW, until };
    let (_, lease) = store.claim(claim()).await.unwrap().unwrap();
    check_refused(after(last.id, job_of("cli:a")).await);
    store.finish_run(&lease, Finish::done(Vec::new())).await.unwrap();
    check_refused(after(JobId::new(), job_of("cli:a")).await);
    check_refused(store.accept_after(last.id, &of("ben"), message("cli:a", "x"), job_of("cli:a")).await);

    let jobs = [(); 4].map(|()| job_of("cli:a"));
    let at_once = |of: usize| after(last.id, jobs[of].clone());
    let answers = tokio::join!(at_once(0), at_once(1), at_once(2), at_once(3));
    let answers = [answers.0, answers.1, answers.2, answers.3];
    let taken: Vec<&Accepted> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
    assert_eq!(taken.len(), 1, "{answers:?}");
    assert_eq!(taken[0].seq, 2);
    for (job, answer) in jobs.iter().zip(&answers) {
        let is_there = store.job(&TenantId::main(), job.id).await.unwrap().is_some();
        assert_eq!(is_there, answer.is_ok(), "{answer:?}");
        assert!(matches!(answer, Ok(_) | Err(StoreError::Refused { .. })), "{answer:?}");
    }
    assert_eq!(said(&store, &circle_of("ann"), "cli:a").await.unwrap().len(), 2, "nothing of the others");
    // A message of another session is not in the way, and the next result follows the run of this one.
    say(&store, &ann(), "cli:b").await.unwrap();
    let (_, lease) = store.claim(claim()).await.unwrap().unwrap();
    store.finish_run(&lease, Finish::done(Vec::new())).await.unwrap();
    let next = after(taken[0].job, job_of("cli:a")).await.unwrap();
    assert_eq!(next.seq, 3);
}

async fn refuses_a_message_of_somebody_else(store: impl Conversations + Queue) {
    say(&store, &ann(), "cli:a").await.unwrap();
    let nobody = Party { user: None, ..ann() };
    let other_agent = Party { agent: AgentId::new("other").unwrap(), ..ann() };
    let in_group = Party { channel: "cli".into(), ..group("7") };
    for party in [of("ben"), nobody, other_agent, in_group] {
        let job = job_of("cli:a");
        check_refused(store.accept_from(&party, message("cli:a", "mine now"), job.clone()).await);
        assert_eq!(store.job(&TenantId::main(), job.id).await.unwrap(), None, "no job of {party:?}");
    }
    assert_eq!(said(&store, &circle_of("ann"), "cli:a").await.unwrap().len(), 1, "nothing was stored");
    assert_eq!(store.events(&TenantId::main(), &session("cli:a"), 0, 10).await.unwrap().len(), 1);
    assert_eq!(one(&store, &circle_of("ann"), "cli:a").await.unwrap().party, ann());
    assert_eq!(say(&store, &ann(), "cli:a").await.unwrap().seq, 2, "its owner goes on");
}

async fn a_group_is_its_chat_whoever_speaks(store: impl Conversations + Queue) {
    say(&store, &group("7"), "tg:7").await.unwrap();
    let ben = Party { user: Some(UserId::new("ben").unwrap()), ..group("7") };
    say(&store, &ben, "tg:7").await.unwrap();
    check_refused(say(&store, &group("8"), "tg:7").await);
    check_refused(say(&store, &Party { channel: "slack".into(), ..group("7") }, "tg:7").await);
    check_refused(say(&store, &Party { chat: None, ..group("7") }, "tg:7").await);
    let found = one(&store, &circle_of_group("7"), "tg:7").await.unwrap();
    assert_eq!((found.messages, found.party.user), (2, None), "nobody in a group owns it");
}

async fn shows_a_circle_its_own_and_nothing_else(store: impl Conversations + Queue) {
    let other_agent = Party { agent: AgentId::new("other").unwrap(), ..ann() };
    let nobody = Party { user: None, ..ann() };
    let talks = [
        (ann(), "cli:a1"),
        (ann(), "cli:a2"),
        (of("ben"), "cli:b"),
        (of("Ann"), "cli:upper"),
        (other_agent, "cli:other-agent"),
        (nobody, "cli:nobody"),
        (group("7"), "tg:7"),
        (group("7"), "tg:7-topic"),
        (group("8"), "tg:8"),
        (Party { channel: "slack".into(), ..group("7") }, "slack:7"),
        (Party { chat: None, ..group("7") }, "tg:nowhere"),
    ];
    for (party, key) in &talks {
        say(&store, party, key).await.unwrap();
    }
    // One that was begun without saying by whom.
    store.accept_message(message("cli:unowned", "hello"), job_of("cli:unowned")).await.unwrap();

    let only = |key: &str| Circle::Session(session(key));
    let circles: [(Circle, &[&str]); 7] = [
        (circle_of("ann"), &["cli:a1", "cli:a2"]),
        (circle_of("ben"), &["cli:b"]),
        (circle_of("eve"), &[]),
        (circle_of_group("7"), &["tg:7", "tg:7-topic"]),
        (circle_of_group("9"), &[]),
        (only("cli:nobody"), &["cli:nobody"]),
        (only("cli:unowned"), &[]),
    ];
    for (circle, expected) in &circles {
        assert_eq!(listed(&store, circle).await, *expected, "{circle:?}");
        for key in talks.iter().map(|(_, key)| *key).chain(["cli:unowned", "cli:not-there"]) {
            let is_theirs = expected.contains(&key);
            assert_eq!(one(&store, circle, key).await.is_some(), is_theirs, "{circle:?} and {key}");
            assert_eq!(said(&store, circle, key).await.is_some(), is_theirs, "{circle:?} and {key}");
        }
    }
}

async fn keeps_tenants_apart(store: impl Conversations + Queue) {
    say(&store, &ann(), "cli:a").await.unwrap();
    let other = tenant("other");
    let theirs = NewMessage { tenant: other.clone(), ..message("cli:a", "theirs") };
    let job = NewJob { tenant: other.clone(), ..job_of("cli:a") };
    // The same key, person and agent of another tenant is another conversation: also of another owner.
    store.accept_from(&of("ben"), theirs, job).await.unwrap();
    let (ours, ben) = (circle_of("ann"), circle_of("ben"));
    assert_eq!(store.conversations(&other, &ours, &ALL).await.unwrap(), []);
    assert_eq!(store.conversation(&other, &ours, &session("cli:a")).await.unwrap(), None);
    assert_eq!(store.said_in(&other, &ours, &session("cli:a"), MessagePage::last(10)).await.unwrap(), None);
    assert_eq!(listed(&store, &ben).await, [] as [&str; 0]);
    let found = store.said_in(&other, &ben, &session("cli:a"), MessagePage::last(10)).await.unwrap().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].new.tenant, found[0].seq), (&other, 1));
    let found = store.conversation(&other, &ben, &session("cli:a")).await.unwrap().unwrap();
    assert_eq!((found.messages, found.waiting), (1, 1), "of its own tenant alone");
}

async fn says_what_waits_and_runs(store: impl Conversations + Queue) {
    for _ in 0..3 {
        say(&store, &ann(), "cli:a").await.unwrap();
    }
    say(&store, &ann(), "cli:b").await.unwrap();
    let until = UnixMillis(NOW.0 + 1_000);
    let claim = Claim { worker: worker("a"), lanes: vec!["main".into()], now: NOW, until };
    let (_, lease) = store.claim(claim).await.unwrap().unwrap();
    let found = one(&store, &circle_of("ann"), "cli:a").await.unwrap();
    assert_eq!((found.waiting, found.running), (2, true));
    let found = one(&store, &circle_of("ann"), "cli:b").await.unwrap();
    assert_eq!((found.waiting, found.running), (1, false));
    store.finish_run(&lease, Finish::done(vec![message("cli:a", "an answer")])).await.unwrap();
    let found = one(&store, &circle_of("ann"), "cli:a").await.unwrap();
    assert_eq!((found.waiting, found.running, found.messages), (2, false, 4));
}

async fn the_agents_last_word_counts(store: impl Conversations + Queue) {
    let at = |n: i64| UnixMillis(NOW.0 + n);
    for key in ["cli:a", "cli:b"] {
        let new = NewMessage { at: at(1), ..message(key, "hello") };
        store.accept_from(&ann(), new, job_of(key)).await.unwrap();
    }
    let claim = Claim { worker: worker("a"), lanes: vec!["main".into()], now: NOW, until: at(1_000) };
    let (_, lease) = store.claim(claim).await.unwrap().unwrap();
    let said = |n: i64| NewMessage { at: at(n), ..message("cli:a", "an answer") };
    let last = async |key| one(&store, &circle_of("ann"), key).await.unwrap().last;
    store.say_in_run(&lease, vec![said(5), said(3)]).await.unwrap();
    assert_eq!(last("cli:a").await, at(5));
    store.say_in_run(&lease, vec![said(4)]).await.unwrap();
    assert_eq!(last("cli:a").await, at(5), "a clock that was set back lowers nothing");
    store.finish_run(&lease, Finish::done(vec![said(9)])).await.unwrap();
    assert_eq!((last("cli:a").await, last("cli:b").await), (at(9), at(1)));
    let since = ConversationPage { since: Some(at(6)), ..ALL };
    let found = store.conversations(&TenantId::main(), &circle_of("ann"), &since).await.unwrap();
    assert_eq!(found.into_iter().map(|one| one.session).collect::<Vec<_>>(), [session("cli:a")]);
}

async fn pages_the_latest_first(store: impl Conversations + Queue) {
    let at = |n: i64| UnixMillis(NOW.0 + n);
    // Two have the same time; keys sort by their bytes.
    for (key, n) in [("cli:a", 1), ("cli:Z", 1), ("cli:c", 3), ("cli:d", 2)] {
        let new = NewMessage { at: at(n), ..message(key, "hello") };
        store.accept_from(&ann(), new, job_of(key)).await.unwrap();
    }
    let order = ["cli:c", "cli:d", "cli:a", "cli:Z"];
    for size in 1..=5 {
        let mut found: Vec<SessionKey> = Vec::new();
        let mut page = ConversationPage { since: None, after: None, limit: size };
        loop {
            let part = store.conversations(&TenantId::main(), &circle_of("ann"), &page).await.unwrap();
            let Some(last) = part.last() else { break };
            page.after = Some((last.last, last.session.clone()));
            found.extend(part.into_iter().map(|part| part.session));
        }
        assert_eq!(found, order.map(session), "in parts of {size}");
    }
    let since = ConversationPage { since: Some(at(2)), ..ALL };
    let found = store.conversations(&TenantId::main(), &circle_of("ann"), &since).await.unwrap();
    assert_eq!(found.len(), 2);
    let none = ConversationPage { limit: 0, ..ALL };
    assert_eq!(store.conversations(&TenantId::main(), &circle_of("ann"), &none).await.unwrap(), []);
}

async fn pages_what_was_said_backwards(store: impl Conversations + Queue) {
    for _ in 0..7 {
        say(&store, &ann(), "cli:a").await.unwrap();
    }
    let seqs = async |before: u64, limit: usize| {
        let (main, page) = (TenantId::main(), MessagePage { before, limit });
        let part = store.said_in(&main, &circle_of("ann"), &session("cli:a"), page).await;
        part.unwrap().unwrap().iter().map(|message| message.seq).collect::<Vec<_>>()
    };
    assert_eq!(seqs(u64::MAX, 3).await, [5, 6, 7]);
    assert_eq!(seqs(5, 3).await, [2, 3, 4]);
    assert_eq!(seqs(2, 3).await, [1]);
    assert_eq!(seqs(1, 3).await, [] as [u64; 0], "it is theirs, and there is nothing before");
    assert_eq!(seqs(u64::MAX, 0).await, [] as [u64; 0]);
    let whole = said(&store, &circle_of("ann"), "cli:a").await.unwrap();
    assert_eq!(whole, store.messages(&TenantId::main(), &session("cli:a"), 0, usize::MAX).await.unwrap());
}

async fn refuses_names_that_could_be_taken_for_others(store: impl Conversations + Queue) {
    for chat in ["7\0", "7\n", &"x".repeat(Party::MOST_BYTES + 1)] {
        check_refused(say(&store, &group(chat), "tg:odd").await);
        check_refused(say(&store, &Party { channel: chat.into(), ..ann() }, "tg:odd").await);
    }
    for chat in ["-100 é' %_", ""] {
        let key = format!("tg:{}", chat.len());
        say(&store, &group(chat), &key).await.unwrap();
        assert_eq!(listed(&store, &circle_of_group(chat)).await, [key]);
    }
    assert_eq!(listed(&store, &circle_of_group("%")).await, [] as [&str; 0]);
}
