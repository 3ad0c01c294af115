//! Each step of the road, and its refusals.

use claw_core::TenantId;
use claw_core::store::{CallContext, EntryEvent, Ledger, Outcome};
use claw_core::tool::{Effect, ErrorKind, PeerKind, Progress, SubagentDepth};
use claw_policy::approval::{ApprovalConfig, AskMode};
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_policy::rate_config::RateConfig;
use claw_registry::{Arguments, Asking, Executor, Request, rate_limiter::Limiter};
use claw_testkit::{FailingStore, StoreMethod};
use serde_json::json;
use std::sync::{Arc, Mutex};

use crate::kit::{Bench, Setup, caller, done, refused};

fn deny(entry: &str) -> PolicyConfig {
    let mut policy = PolicyConfig::default();
    policy.tools.deny = vec![entry.into()];
    policy
}

#[tokio::test]
async fn three_kinds_of_tools_take_the_same_road() {
    let open = ApprovalConfig { ask: AskMode::OnMiss, ..ApprovalConfig::default() };
    let bench = Bench::new(Setup { approvals: open, ..Setup::default() });
    assert_eq!(done(&bench.call("peek", json!({"file_path": "a.txt"})).await), "one\ntwo\n");
    assert_eq!(done(&bench.call("mcp_far__add", json!({"a": 1, "b": 2})).await), "{\n  \"sum\": 3\n}");
    let offer = bench.offer().await;
    let mut request = Request::new("sh", json!({"command": "$X"}));
    request.asking = Asking::Impossible;
    let (step, reason) = refused(&bench.executor.execute(&offer, request).await);
    assert_eq!(step, "judge");
    assert!(reason.contains("nobody can be asked here"), "{reason}");
    assert_eq!(
        bench.heard.names(),
        ["call_started", "call_finished", "call_started", "call_finished", "call_refused"]
    );
}

#[tokio::test]
async fn an_alias_leads_to_its_tool() {
    let bench = Bench::new(Setup::default());
    let reply = bench.call("look", json!({"file_path": "a.txt"})).await;
    assert_eq!(reply.tool, "peek");
    assert!(!bench.offer().await.names().iter().any(|name| name.as_str() == "look"), "aliases are not sent");
}

#[tokio::test]
async fn an_unknown_tool_suggests_the_nearest() {
    let bench = Bench::new(Setup::default());
    let reply = bench.call("peeek", json!({})).await;
    assert_eq!(refused(&reply), ("find", "there is no tool called `peeek`; did you mean `peek`?".into()));
}

#[tokio::test]
async fn refuses_a_hidden_tool_that_the_model_remembers() {
    let bench = Bench::new(Setup { policy: deny("group:fs"), ..Setup::default() });
    let (step, reason) = refused(&bench.call("peek", json!({"file_path": "a.txt"})).await);
    assert_eq!(step, "authorise");
    assert!(reason.contains("not among the tools that are offered"), "{reason}");
}

#[tokio::test]
async fn refuses_what_was_denied_after_the_offer() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    bench.executor.set_policy(Policy::compile(&deny("peek")).unwrap());
    let reply = bench.executor.execute(&offer, Request::new("peek", json!({"file_path": "a.txt"}))).await;
    let (step, reason) = refused(&reply);
    assert_eq!(step, "authorise");
    assert!(reason.contains("`tools.deny`"), "{reason}");
}

#[tokio::test]
async fn refuses_too_many_calls_and_says_when_to_try_again() {
    let bench = Bench::new(Setup::default());
    let config = RateConfig { total: 2, ..RateConfig::default() };
    let executor = Executor::builder(
        bench.executor.registry().clone(),
        bench.store.clone(),
        Policy::compile(&PolicyConfig::default()).unwrap(),
    )
    .limiter(Limiter::new(config, 1_000))
    .build();
    let offer = executor.offer(caller()).await;
    let call = || executor.execute(&offer, Request::new("say", json!({"text": "x"})));
    assert!(call().await.is_done() && call().await.is_done());
    let reply = call().await;
    assert_eq!(refused(&reply).0, "limit");
    bench.clock.advance(reply.refusal().unwrap().retry_after.unwrap());
    assert!(call().await.is_done());
}

#[tokio::test]
async fn arguments_are_checked_repaired_and_explained() {
    let bench = Bench::new(Setup::default());
    let reply = bench.call("peek", json!({"filePath": "a.txt"})).await;
    assert_eq!(done(&reply), "one\ntwo\n");
    assert!(reply.notes[0].contains("file_path"), "{:?}", reply.notes);
    assert_eq!(done(&bench.call("mcp_far__add", json!({"a": "1", "b": 2})).await), "{\n  \"sum\": 3\n}");
    let reply = bench.call("mcp_far__add", json!({"a": "x", "b": 2})).await;
    let details = reply.refusal().unwrap().details.as_deref().unwrap();
    assert_eq!(
        (&details[0]["field"], &details[0]["expected"]),
        (&json!("a"), &json!("an integer")),
        "{details}"
    );
    for bad in [json!({}), json!({"path": 3}), json!([]), json!(null), json!({"file_path": "a", "x": 1})] {
        assert_eq!(refused(&bench.call("peek", bad.clone()).await).0, "validate", "{bad}");
    }
}

#[tokio::test]
async fn text_that_is_no_json_is_refused_with_its_place() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    for text in
        ["{\"file_path\": \"a", "nonsense", &"[".repeat(100_000), &format!("\"{}\"", "x".repeat(10 << 20))]
    {
        let mut request = Request::new("peek", json!(null));
        request.args = Arguments::Text(text.to_owned());
        assert_eq!(refused(&bench.executor.execute(&offer, request).await).0, "validate");
    }
}

#[tokio::test]
async fn a_panic_is_an_error_and_the_process_lives() {
    let bench = Bench::new(Setup::default());
    let reply = bench.call("crash", json!({})).await;
    let error = reply.failure().unwrap();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    assert!(bench.call("say", json!({"text": "alive"})).await.is_done());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_stopped() {
    let bench = Bench::new(Setup::default());
    let reply = bench.call("wait", json!({})).await;
    assert_eq!(reply.failure().unwrap().kind, ErrorKind::TimedOut);
    let message = "the call took longer than 5 s and was stopped; its output until then:\nstopped";
    assert_eq!(reply.failure().unwrap().message, message);
}

/// Waits until a call runs.
async fn started(bench: &Bench) {
    while !bench.heard.names().contains(&"call_started".to_owned()) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn cancelling_reaches_the_tool() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let request = Request::new("wait", json!({}));
    let cancel = request.cancel.clone();
    let give_up = async {
        started(&bench).await;
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(bench.executor.execute(&offer, request), give_up);
    assert_eq!(reply.failure().unwrap().kind, ErrorKind::Cancelled);
    let entries = bench.store.recent(&TenantId::main(), 10).await.unwrap();
    assert!(matches!(&entries[1].record.event, EntryEvent::Outcome { outcome: Outcome::Failed, .. }));
}

#[tokio::test]
async fn a_call_whose_caller_goes_away_is_cancelled_and_recorded() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let request = Request::new("wait", json!({}));
    let executor = bench.executor.clone();
    let task = tokio::spawn(async move { executor.execute(&offer, request).await });
    started(&bench).await;
    task.abort();
    let outcome = loop {
        tokio::task::yield_now().await;
        let entries = bench.store.recent(&TenantId::main(), 10).await.unwrap();
        if let Some(EntryEvent::Outcome { outcome, error, .. }) =
            entries.get(1).map(|e| e.record.event.clone())
        {
            break (outcome, error);
        }
    };
    assert_eq!(outcome, (Outcome::Failed, Some("its caller went away while it ran".into())));
}

#[tokio::test]
async fn a_call_id_is_never_run_twice() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let request = Request::new("save", json!({"file_path": "b.txt"}));
    assert!(bench.executor.execute(&offer, request.clone()).await.is_done());
    let (step, reason) = refused(&bench.executor.execute(&offer, request).await);
    assert_eq!(step, "record");
    assert!(reason.contains("never run again; its outcome is done"), "{reason}");
}

#[tokio::test]
async fn nothing_runs_when_the_intent_cannot_be_written() {
    let store = Arc::new(FailingStore::new(claw_store_memory::MemoryStore::new()));
    let bench = Bench::new(Setup { calls: Some(store.clone()), ..Setup::default() });
    store.fail(StoreMethod::BeginCall);
    let reply = bench.call("save", json!({"file_path": "b.txt"})).await;
    assert_eq!(refused(&reply).0, "record");
    assert_eq!(bench.files.text("/w/b.txt"), None);
    store.heal();
    assert!(bench.call("save", json!({"file_path": "b.txt"})).await.is_done());
}

#[tokio::test]
async fn an_outcome_that_cannot_be_written_is_told() {
    let store = Arc::new(FailingStore::new(claw_store_memory::MemoryStore::new()));
    let bench = Bench::new(Setup { calls: Some(store.clone()), ..Setup::default() });
    store.fail(StoreMethod::FinishCall);
    let reply = bench.call("say", json!({"text": "x"})).await;
    assert!(reply.is_done());
    assert!(reply.notes[0].contains("could not be recorded"), "{:?}", reply.notes);
}

/// A policy can be replayed over the ledger: entries contain everything that its decision depended on.
#[tokio::test]
async fn intents_and_refusals_say_what_the_decision_depended_on() {
    let bench = Bench::new(Setup::default());
    let mut caller = caller();
    caller.channel = "telegram".into();
    caller.chat_id = Some("-100".into());
    caller.peer_kind = PeerKind::Group;
    caller.provider = Some("openai".into());
    caller.subagent = SubagentDepth { depth: 1, leaf: true };
    caller.request_allow = Some(vec!["peek".to_owned()].into());
    let expected = CallContext::from(&caller);
    let offer = bench.executor.offer(caller).await;
    bench.executor.execute(&offer, Request::new("peek", json!({ "file_path": "a.txt" }))).await;
    bench.executor.execute(&offer, Request::new("say", json!({}))).await;
    let entries = bench.store.recent(&TenantId::main(), 10).await.unwrap();
    let decided: Vec<_> = entries.iter().filter_map(|entry| entry.record.context.as_deref()).collect();
    assert_eq!(decided, [&expected, &expected], "an intent and a refusal");
    assert_eq!(entries.len(), 3, "and an outcome without");
    assert_eq!((expected.provider.as_deref(), expected.subagent.leaf), (Some("openai"), true));
}

#[tokio::test]
async fn the_ledger_has_refusals_intents_and_outcomes() {
    let bench = Bench::new(Setup::default());
    bench.call("peek", json!({"file_path": "a.txt"})).await;
    bench.call("peek", json!({"file_path": "missing"})).await;
    bench.call("nope", json!({})).await;
    let entries = bench.store.recent(&TenantId::main(), 10).await.unwrap();
    let names: Vec<_> = entries
        .iter()
        .map(|entry| match &entry.record.event {
            EntryEvent::Refused { step, .. } => format!("refused {step}"),
            EntryEvent::Intent { effects, .. } => format!("intent {effects}"),
            EntryEvent::Outcome { outcome, .. } => outcome.to_string(),
        })
        .collect();
    assert_eq!(names, ["intent read", "done", "intent read", "failed", "refused find"]);
}

#[tokio::test]
async fn a_narrowed_tool_runs_with_what_is_left() {
    let bench = Bench::new(Setup { policy: deny("effect:write"), ..Setup::default() });
    let offer = bench.offer().await;
    let names: Vec<_> = offer.names().iter().map(ToString::to_string).collect();
    assert!(names.contains(&"sh".to_owned()) && !names.contains(&"save".to_owned()), "{names:?}");
    let request = Request::new("sh", json!({"command": "ls"}));
    let (reply, ()) =
        tokio::join!(bench.executor.execute(&offer, request), crate::approvals::approve_one(&bench));
    assert!(reply.is_done(), "{}", reply.model_text());
    let effects = bench.shell.runs()[0].effects;
    assert!(effects.has(Effect::Execute) && effects.has(Effect::Network) && !effects.has(Effect::Write));
}

#[tokio::test]
async fn a_batch_answers_in_the_models_order() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let requests = vec![
        Request::new("peek", json!({"file_path": "a.txt"})),
        Request::new("save", json!({"file_path": "b.txt"})),
        Request::new("peek", json!({"file_path": "b.txt"})),
        Request::new("say", json!({"text": "last"})),
    ];
    let replies = bench.executor.execute_batch(&offer, requests).await;
    let texts: Vec<_> = replies.iter().map(done).collect();
    assert_eq!(texts, ["one\ntwo\n", "ok", "saved", "last"]);
}

#[tokio::test]
async fn a_resolved_tool_takes_the_road() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let tool = bench.executor.resolve(&offer, "look").unwrap();
    assert_eq!(tool.spec().unwrap().name.as_str(), "peek");
    let reply = tool.execute(Request::new("whatever", json!({"file_path": "a.txt"}))).await;
    assert_eq!((reply.tool.as_str(), reply.is_done()), ("peek", true));
    bench.executor.set_policy(Policy::compile(&deny("peek")).unwrap());
    let reply = tool.execute(Request::new("", json!({"file_path": "a.txt"}))).await;
    assert_eq!(refused(&reply).0, "authorise");
    assert!(bench.executor.resolve(&bench.offer().await, "peek").is_err());
}

#[tokio::test]
async fn progress_is_scrubbed_across_pieces() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    for size in 1..=secret.len() {
        let told = Arc::new(Mutex::new(String::new()));
        let sink = told.clone();
        let mut request = Request::new("say", json!({"text": format!("key {secret} end"), "pieces": size}));
        request.progress = Progress::to(move |text| sink.lock().unwrap().push_str(text));
        bench.executor.execute(&offer, request).await;
        assert_eq!(*told.lock().unwrap(), "key [REDACTED] end", "pieces of {size}");
    }
}

#[tokio::test]
async fn two_calls_with_the_same_model_id_are_two_calls() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    for _ in 0..2 {
        let mut request = Request::new("say", json!({"text": "x"}));
        request.model_id = Some("call_1".into());
        assert!(bench.executor.execute(&offer, request).await.is_done());
    }
}
