//! Stored settings over those of the caller, from one call to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use claw_core::store::{Layer, SettingsStore as _};
use claw_core::tool::{Call, Caller, Effect, Group, Meta, Output, Tool, ToolError};
use claw_core::{TenantId, ToolName};
use claw_policy::approval::{ApprovalConfig, AskMode};
use claw_registry::{Reply, Request};
use claw_testkit::MemorySettings;
use claw_testkit::fixture::{NOW, object};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::approvals::{approve_one, question};
use crate::kit::{Bench, Setup, caller, done, refused};

const SHOW: ToolName = ToolName::literal("show");

/// Shows the settings it runs with.
struct Show(Arc<AtomicUsize>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {}

impl Tool for Show {
    type Args = Args;
    const META: Meta = Meta::new("show", Group::Tools).effects(&[Effect::Write]).about("Show settings.");

    async fn run(&self, call: &Call, _: Args) -> Result<Output, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Output::json(Value::clone(&call.facts().settings))
    }
}

struct Shown {
    bench: Bench,
    settings: Arc<MemorySettings>,
    runs: Arc<AtomicUsize>,
}

impl Shown {
    fn new(ask: AskMode) -> Self {
        let settings = Arc::new(MemorySettings::new());
        let bench = Bench::new(Setup {
            approvals: ApprovalConfig { ask, ..ApprovalConfig::default() },
            settings: Some(settings.clone()),
            ..Setup::default()
        });
        let runs = Arc::<AtomicUsize>::default();
        bench.executor.registry().register(claw_core::tool::erase(Show(runs.clone()))).unwrap();
        Self { bench, settings, runs }
    }

    async fn put(&self, layer: Layer, settings: Value) {
        self.settings.put_settings(&layer, &SHOW, object(settings), NOW).await.unwrap();
    }

    async fn call(&self, caller: Caller) -> Reply {
        let offer = self.bench.executor.offer(caller).await;
        self.bench.executor.execute(&offer, show()).await
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

fn show() -> Request {
    Request::new("show", json!({}))
}

fn ours() -> Layer {
    Layer::Tenant(TenantId::main())
}

#[track_caller]
fn check(reply: &Reply, expected: Value) {
    assert_eq!(serde_json::from_str::<Value>(&done(reply)).unwrap(), expected);
}

#[tokio::test]
async fn stored_settings_lie_over_those_of_the_caller() {
    let shown = Shown::new(AskMode::OnMiss);
    let mut who = caller();
    who.config = Arc::new(json!({ "show": { "a": 1, "b": { "x": 1 }, "c": 1 }, "say": { "a": 2 } }));
    check(&shown.call(who.clone()).await, json!({ "a": 1, "b": { "x": 1 }, "c": 1 }));
    shown.put(Layer::Deployment, json!({ "b": { "y": 2 }, "c": 2, "d": 2 })).await;
    check(&shown.call(who.clone()).await, json!({ "a": 1, "b": { "y": 2 }, "c": 2, "d": 2 }));
    shown.put(ours(), json!({ "c": null, "e": 3 })).await;
    check(&shown.call(who.clone()).await, json!({ "a": 1, "b": { "y": 2 }, "c": null, "d": 2, "e": 3 }));
    who.config = Arc::new(json!({ "show": "what is no object" }));
    check(&shown.call(who).await, json!({ "b": { "y": 2 }, "c": null, "d": 2, "e": 3 }));
}

#[tokio::test]
async fn a_change_holds_from_the_next_call_of_the_same_offer() {
    let shown = Shown::new(AskMode::OnMiss);
    let offer = shown.bench.offer().await;
    let call = async || shown.bench.executor.execute(&offer, show()).await;
    check(&call().await, Value::Null);
    for n in 0..3 {
        shown.put(ours(), json!({ "n": n })).await;
        check(&call().await, json!({ "n": n }));
    }
    shown.settings.remove_settings(&ours(), &SHOW).await.unwrap();
    check(&call().await, Value::Null);
}

#[tokio::test]
async fn a_tenant_has_no_settings_of_another() {
    let shown = Shown::new(AskMode::OnMiss);
    shown.put(ours(), json!({ "whose": "ours" })).await;
    let mut other = caller();
    other.tenant = TenantId::new("other").unwrap();
    check(&shown.call(caller()).await, json!({ "whose": "ours" }));
    check(&shown.call(other.clone()).await, Value::Null);
    shown.put(Layer::Tenant(other.tenant.clone()), json!({ "whose": "theirs" })).await;
    check(&shown.call(other).await, json!({ "whose": "theirs" }));
    check(&shown.call(caller()).await, json!({ "whose": "ours" }));
}

#[tokio::test]
async fn settings_are_read_when_they_changed_and_not_otherwise() {
    let shown = Shown::new(AskMode::OnMiss);
    for _ in 0..5 {
        check(&shown.call(caller()).await, Value::Null);
    }
    assert_eq!(shown.settings.reads(), 1);
    shown.put(ours(), json!({ "n": 1 })).await;
    for _ in 0..5 {
        check(&shown.call(caller()).await, json!({ "n": 1 }));
    }
    assert_eq!(shown.settings.reads(), 2);
}

#[tokio::test]
async fn a_call_whose_settings_cannot_be_read_is_not_run() {
    let shown = Shown::new(AskMode::OnMiss);
    shown.put(ours(), json!({ "safe": true })).await;
    check(&shown.call(caller()).await, json!({ "safe": true }));
    shown.settings.fail(true);
    let (step, reason) = refused(&shown.call(caller()).await);
    assert_eq!(step, "judge");
    assert!(reason.contains("settings cannot be read right now"), "{reason}");
    assert_eq!(shown.runs(), 1);
    shown.settings.fail(false);
    check(&shown.call(caller()).await, json!({ "safe": true }));
}

/// Has a call approved, goes away, does `between`, and repeats the call; returns whether it ran.
async fn ran_after(shown: &Shown, between: impl AsyncFnOnce()) -> bool {
    let (offer, request) = (shown.bench.offer().await, show());
    tokio::select! {
        reply = shown.bench.executor.execute(&offer, request.clone()) => panic!("{}", reply.model_text()),
        _ = question(&shown.bench) => {}
    }
    approve_one(&shown.bench).await;
    between().await;
    tokio::select! {
        reply = shown.bench.executor.execute(&offer, request) => reply.is_done(),
        _ = question(&shown.bench) => false,
    }
}

#[tokio::test]
async fn an_approval_given_under_old_settings_is_not_used_under_new_ones() {
    let old = json!({ "server": "https://good.example" });
    for (layer, settings) in [
        (Layer::Deployment, json!({ "server": "https://evil.example" })),
        (ours(), json!({ "server": "https://evil.example" })),
        (ours(), json!({ "also": 1 })),
    ] {
        let shown = Shown::new(AskMode::Always);
        shown.put(Layer::Deployment, old.clone()).await;
        let ran = ran_after(&shown, async || shown.put(layer.clone(), settings.clone()).await).await;
        assert!(!ran, "{layer:?} {settings}");
        assert_eq!(shown.runs(), 0);
    }
    let shown = Shown::new(AskMode::Always);
    shown.put(Layer::Deployment, old.clone()).await;
    assert!(ran_after(&shown, async || shown.put(ours(), old.clone()).await).await, "they say the same");
}

#[tokio::test]
async fn a_yes_to_a_question_during_which_the_settings_changed_is_not_used() {
    let shown = Shown::new(AskMode::Always);
    let offer = shown.bench.offer().await;
    let (reply, ()) = tokio::join!(shown.bench.executor.execute(&offer, show()), async {
        question(&shown.bench).await;
        shown.put(ours(), json!({ "server": "https://evil.example" })).await;
        approve_one(&shown.bench).await;
    });
    let (step, reason) = refused(&reply);
    assert_eq!(step, "judge");
    assert!(reason.contains("settings changed while the approval was pending"), "{reason}");
    assert_eq!(shown.runs(), 0);
}
