use std::path::Path;

use claw_core::store::{CallContext, EntryEvent, Record};
use claw_core::tool::{Caller, Digest, Effects};
use claw_core::{AgentId, CallId, SessionKey};
use serde_json::{Value, json};

use super::*;
use crate::Request;
use crate::app::{Hooks, Setup};
use crate::config::Surroundings;

fn setup(home: &Path) -> Setup {
    let around = Surroundings { directory: home.to_owned(), variables: vec![("HOME".into(), home.into())] };
    Setup::load(None, &around).unwrap()
}

#[tokio::test]
async fn a_replay_that_leaves_entries_out_says_so() {
    let home = tempfile::tempdir().unwrap();
    let app = setup(home.path()).open().await.unwrap();
    let toolbox = app.toolbox(Hooks::default()).await.unwrap();
    let session = SessionKey::new("cli:x").unwrap();
    let caller = Caller::new(AgentId::new("default").unwrap(), session, home.path());
    let offer = toolbox.offer(caller).await;
    for _ in 0..3 {
        let reply = toolbox.execute(&offer, Request::new("datetime", json!({}))).await;
        assert!(reply.outcome.is_ok(), "{}", reply.model_text());
    }
    // Each call has its intent and its outcome.
    let within = async |range, most| {
        let proposal = Proposal::Deployment(Box::new(setup(home.path())));
        let found = app.replay_latest(proposal, range, most).await.unwrap();
        (found.calls, found.truncated)
    };
    let since = |since| ReplayRange { since: UnixMillis(since), until: None };
    assert_eq!(within(since(0), 4).await, (2, true));
    assert_eq!(within(since(0), 6).await, (3, false));
    assert_eq!(within(since(i64::MAX), 4).await, (0, false));
    let ended = ReplayRange { since: UnixMillis(0), until: Some(UnixMillis(1)) };
    assert_eq!(within(ended, 6).await, (0, false));
}

#[tokio::test]
async fn a_change_keeps_the_rest_of_the_configuration() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(
        home.path().join("own.toml"),
        "[tools]\nprofile = \"coding\"\ndeny = [\"weather\"]\n[models]\nprovider = \"mine\"\n\
         [models.providers.mine]\nbase_url = \"http://127.0.0.1:1/v1\"\n",
    )
    .unwrap();
    let around = Surroundings {
        directory: home.path().to_owned(),
        variables: vec![("HOME".into(), home.path().into())],
    };
    let app = Setup::read(Some(&home.path().join("own.toml")), &around).unwrap().open().await.unwrap();
    let changed = |text: &str| app.changed(Path::new("change.toml"), text.to_owned());
    let now = app.setup().config();
    assert_eq!(changed("").unwrap().config(), now);
    let then = changed("[tools]\ndeny = [\"datetime\"]\n[models]\nfallback = [\"mine/a\"]").unwrap();
    assert_eq!(
        (&then.config().tools.profile, &then.config().tools.deny),
        (&now.tools.profile, &vec!["datetime".to_owned()])
    );
    assert_eq!(then.config().models.providers, now.models.providers);
    let fault = |text: &str| changed(text).unwrap_err().to_string();
    assert!(fault("[tools]\ndny = []").contains("did you mean `deny`?"), "{}", fault("[tools]\ndny = []"));
    assert!(fault("[tools]\ndny = []").contains("change.toml"));
    assert!(fault("[").contains("change.toml"), "{}", fault("["));
    assert!(fault("[models]\nprovider = \"other\"").contains("other"));
}

#[test]
fn a_range_ends_after_it_begins() {
    let days = |days: u64| Duration::from_secs(days * 86_400);
    assert!(ReplayRange::ago(days(7), Some(days(1))).is_ok());
    for until in [7, 8] {
        let fault = ReplayRange::ago(days(7), Some(days(until))).unwrap_err().to_string();
        assert!(fault.contains("before it begins"), "{fault}");
    }
}

/// A call of the tool, as the ledger has its intent.
fn intent(tool: &str, args: Value) -> Record {
    let session = SessionKey::new("cli:x").unwrap();
    let caller = Caller::new(AgentId::new("default").unwrap(), session, "/w");
    let digest = Digest::of_bytes(b"");
    Record {
        context: Some(Box::new(CallContext::from(&caller))),
        at: UnixMillis(1),
        tenant: caller.tenant,
        session: caller.session,
        agent: caller.agent,
        user: None,
        call: CallId::new(),
        tool: tool.to_owned(),
        event: EntryEvent::Intent { digest, effects: Effects::NONE, args, approval: None },
    }
}

const EVER: ReplayRange = ReplayRange { since: UnixMillis(0), until: None };

#[tokio::test]
async fn operations_of_a_person_are_not_replayed() {
    let home = tempfile::tempdir().unwrap();
    let app = setup(home.path()).open().await.unwrap();
    app.store.begin_call(Record { context: None, ..intent("undo", json!({})) }).await.unwrap();
    app.store.begin_call(intent("datetime", json!({}))).await.unwrap();
    let proposal = Proposal::Deployment(Box::new(setup(home.path())));
    let found = app.replay(proposal, EVER).await.unwrap();
    assert_eq!((found.calls, found.same, found.skips), (1, 1, Vec::new()));
}

#[tokio::test]
async fn settings_of_tools_that_differ_are_judged() {
    let home = tempfile::tempdir().unwrap();
    let around = Surroundings {
        directory: home.path().to_owned(),
        variables: vec![("HOME".into(), home.path().into())],
    };
    std::fs::write(home.path().join("own.toml"), "[approvals.effects]\nnetwork = \"ask\"\n").unwrap();
    let app = Setup::read(Some(&home.path().join("own.toml")), &around).unwrap().open().await.unwrap();
    let call = intent("openai_compat_call", json!({ "endpoint": "rank" }));
    app.store.begin_call(call).await.unwrap();
    let change = "[endpoints.rank]\nbase_url = \"https://rank.example/v1\"\n";
    let changed = app.changed(Path::new("change.toml"), change.to_owned()).unwrap();
    let found = app.replay(Proposal::Deployment(Box::new(changed)), EVER).await.unwrap();
    let [change] = &found.changes[..] else { panic!("{found:?}") };
    assert_eq!((change.before, change.after), (ReplayVerdict::Allow, ReplayVerdict::Ask));
}
