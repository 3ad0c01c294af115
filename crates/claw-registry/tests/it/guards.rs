//! A port refuses requests that the plan did not name or that are out of scope.

use std::sync::{Arc, Mutex};

use claw_core::tool::{Call, Effect, ErrorKind, Group, Meta, Need, Output, Tool, ToolError, erase};
use claw_host::AgentResolver;
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_registry::{Executor, OfferOptions, Registry, Request};
use serde_json::json;

use crate::kit::{Bench, Setup, WHOLE, all, caller, refused};

#[track_caller]
fn check(reply: &claw_registry::Reply, expected: Result<(), ErrorKind>) {
    match expected {
        Ok(()) => assert!(reply.is_done(), "{}", reply.model_text()),
        Err(kind) => assert_eq!(reply.failure().map(|e| e.kind), Some(kind), "{}", reply.model_text()),
    }
}

#[tokio::test]
async fn a_tool_cannot_do_what_it_did_not_plan() {
    let bench = Bench::new(Setup::default());
    for (attempt, expected) in [
        ("write", Err(ErrorKind::Forbidden)),
        ("outside", Err(ErrorKind::Forbidden)),
        ("read", Err(ErrorKind::Forbidden)),
        ("run", Err(ErrorKind::Forbidden)),
        ("port", Err(ErrorKind::Unavailable)),
        ("spelling", Ok(())),
    ] {
        check(&bench.call("rogue", json!({"attempt": attempt})).await, expected);
    }
    assert!(bench.shell.runs().is_empty());
    assert_eq!(bench.files.text("/w/other.txt"), None);
    assert_eq!(bench.files.text("/w/planned.txt").as_deref(), Some("x"));
}

#[tokio::test]
async fn a_write_outside_the_scope_never_begins() {
    let bench = Bench::new(Setup::default());
    for path in ["../x", "/etc/passwd", "/w-evil/x", "a/../../x"] {
        let reply = bench.call("save", json!({"file_path": path})).await;
        assert_eq!(refused(&reply).0, "judge", "{path}");
    }
    check(&bench.call("save", json!({"file_path": "/w/in.txt"})).await, Ok(()));
}

/// Keeps its call for later.
struct Keep(Arc<Mutex<Option<Call>>>);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArgs {}

impl Tool for Keep {
    type Args = NoArgs;
    const META: Meta = Meta::new("keep", Group::Tools)
        .effects(&[Effect::Read])
        .needs(&[Need::Files, Need::Artifacts, Need::Agents, Need::Sessions, Need::Catalogue])
        .about("Keep the call.");

    async fn run(&self, call: &Call, _: NoArgs) -> Result<Output, ToolError> {
        // While it runs, every port answers.
        call.files()?.read("a.txt", WHOLE).await?;
        call.artifacts()?.list().await?;
        call.agents()?.list().await?;
        call.sessions()?.status().await?;
        assert!(call.catalogue()?.deferred() > 0);
        *self.0.lock().unwrap() = Some(call.clone());
        Ok(Output::text("kept"))
    }
}

#[tokio::test]
async fn every_port_ends_with_its_call() {
    let bench = Bench::new(Setup::default());
    let kept = Arc::new(Mutex::new(None));
    let mut world = bench.executor.registry().world().clone();
    world.agents = Some(Arc::new(AgentResolver::default()));
    let registry = Registry::new(world);
    for tool in all().into_iter().chain([erase(Keep(kept.clone()))]) {
        registry.register(tool).unwrap();
    }
    let policy = Policy::compile(&PolicyConfig::default()).unwrap();
    let executor = Executor::builder(Arc::new(registry), bench.store.clone(), policy).build();
    // Short enough that some tools are left out.
    let options = OfferOptions {
        previous: vec!["keep".parse().unwrap()],
        token_budget: Some(200),
        ..OfferOptions::default()
    };
    let offer = executor.offer_with(caller(), options).await;
    check(&executor.execute(&offer, Request::new("keep", json!({}))).await, Ok(()));
    let call = kept.lock().unwrap().take().unwrap();
    let late = [
        call.files().unwrap().read("a.txt", WHOLE).await.err(),
        call.artifacts().unwrap().list().await.err(),
        call.agents().unwrap().list().await.err(),
        call.sessions().unwrap().status().await.err(),
    ];
    for error in late {
        assert_eq!(error.map(|error| error.kind), Some(ErrorKind::Forbidden));
    }
    let found = call.catalogue().unwrap().search("say run peek save wait", 5);
    assert!(found.is_empty(), "{found:?}");
}
