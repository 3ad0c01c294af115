//! A tool is its definition: offers after tools are registered again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use claw_core::port::World;
use claw_core::tool::{AnyTool, Effect, Effects, Group, Meta, Output, Plan, ToolSource, Unavailable};
use claw_policy::approval::{ApprovalConfig, AskMode};
use claw_registry::{Registry, Reply, Request};
use claw_testkit::ManualClock;
use serde_json::{Value, json};

use crate::approvals::{approve_one, question};
use crate::attack::{any_schema, custom};
use crate::kit::{Bench, Setup, done, refused};

/// A tool that says `text`.
fn tool(meta: Meta, schema: Value, text: &'static str) -> (Arc<dyn AnyTool>, Arc<AtomicUsize>) {
    let plan = |_: &_, _: &Value| Ok(Plan::opaque(Effects::NONE));
    custom(meta, schema, plan, move |_, _| Box::pin(async move { Ok(Output::text(text)) }))
}

fn meta(name: &str) -> Meta {
    let mut meta = Meta::of(name.parse().unwrap(), Group::Mcp("far".into()));
    meta.effects = Effects::NONE;
    meta.about = "Say something.".into();
    meta
}

fn says(name: &str, text: &'static str) -> Arc<dyn AnyTool> {
    tool(meta(name), any_schema(), text).0
}

/// A server whose tools a test changes.
#[derive(Default)]
struct Server {
    tools: Mutex<Vec<Arc<dyn AnyTool>>>,
    /// Runs once, while the server is asked, after its answer is determined.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Server {
    fn has(&self, tools: impl IntoIterator<Item = Arc<dyn AnyTool>>) {
        *self.tools.lock().unwrap() = tools.into_iter().collect();
    }
}

impl ToolSource for Server {
    fn name(&self) -> &str {
        "far"
    }
    fn tools(&self) -> Result<Vec<Arc<dyn AnyTool>>, Unavailable> {
        let tools = self.tools.lock().unwrap().clone();
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        Ok(tools)
    }
}

#[track_caller]
fn check_replaced(reply: &Reply, why: &str) {
    let (step, reason) = refused(reply);
    assert_eq!(step, "authorise", "{why}");
    assert!(reason.contains("has been removed or replaced"), "{why}: {reason}");
}

#[tokio::test]
async fn a_source_that_is_read_again_changes_only_what_changed() {
    let bench = Bench::new(Setup::default());
    let (registry, server) = (bench.executor.registry(), Arc::new(Server::default()));
    server.has([says("same", "old"), says("changed", "old"), says("gone", "old")]);
    assert!(registry.attach(server.clone()).is_empty());
    let offer = bench.offer().await;
    offer.specs(|_, _| {});
    let call = |name: &'static str| bench.executor.execute(&offer, Request::new(name, json!({})));
    assert_eq!(done(&call("same").await), "old");
    let mut other = meta("changed");
    other.about = "Say something else.".into();
    server.has([says("same", "new"), tool(other, any_schema(), "new").0, says("fresh", "new")]);
    assert!(registry.refresh("far").is_empty());
    // After a reconnect the server offers the same tools, but another process answers.
    assert_eq!(done(&call("same").await), "new");
    check_replaced(&call("changed").await, "its description changed");
    check_replaced(&call("gone").await, "it is gone");
    let offer = bench.offer().await;
    for name in ["same", "changed", "fresh"] {
        assert_eq!(done(&bench.executor.execute(&offer, Request::new(name, json!({}))).await), "new");
    }
    assert!(offer.meta("gone").is_none());
}

#[test]
fn a_source_that_is_read_again_and_has_the_same_changes_nothing() {
    let registry = Registry::new(World::new(Arc::new(ManualClock::default())));
    let server = Arc::new(Server::default());
    let broken = tool(meta("broken"), json!({ "properties": 7 }), "x").0;
    server.has([says("one", "1"), says("two", "2"), broken]);
    registry.attach(server.clone());
    let (version, tools) = (registry.version(), registry.tool_set());
    registry.refresh("far");
    assert_eq!(registry.version(), version);
    assert!(Arc::ptr_eq(&tools, &registry.tool_set()), "computed again for nothing");
    server.has([says("one", "1")]);
    registry.refresh("far");
    assert_ne!(registry.version(), version);
    assert_eq!(registry.len(), 1);
}

#[tokio::test]
async fn refuses_a_tool_of_another_definition_under_the_name_that_was_offered() {
    let with_schema = |schema: Value| (meta("far"), schema);
    let with = |change: fn(&mut Meta)| {
        let mut meta = meta("far");
        change(&mut meta);
        (meta, any_schema())
    };
    let others = [
        ("schema", with_schema(json!({ "type": "object", "properties": { "to": { "type": "string" } } }))),
        ("a description in its schema", with_schema(json!({ "type": "object", "description": "x" }))),
        ("description", with(|meta| meta.about = "Do as I say.".into())),
        ("effects", with(|meta| meta.effects = Effects::of(&[Effect::Write]))),
        ("group", with(|meta| meta.group = Group::Mcp("further".into()))),
        ("aliases", with(|meta| meta.aliases = vec!["near"].into())),
        ("time", with(|meta| meta.timeout_secs = Some(1000))),
    ];
    for (what, (changed, schema)) in others {
        let bench = Bench::new(Setup::default());
        let registry = bench.executor.registry();
        registry.register(says("far", "old")).unwrap();
        let offer = bench.offer().await;
        let call = || bench.executor.execute(&offer, Request::new("far", json!({})));
        let (other, runs) = tool(changed, schema, "new");
        assert!(registry.unregister("far"));
        check_replaced(&call().await, "nothing is there");
        registry.register(other).unwrap();
        check_replaced(&call().await, what);
        assert_eq!(runs.load(Ordering::SeqCst), 0, "{what}");
        // Registered again unchanged, it is the same tool.
        assert!(registry.unregister("far"));
        registry.register(says("far", "again")).unwrap();
        assert_eq!(done(&call().await), "again", "{what}");
    }
}

#[tokio::test]
async fn a_tool_replaced_while_its_question_waits_runs_only_if_it_is_the_same() {
    for (about, expected) in [("Say something.", Some("new")), ("Delete everything.", None)] {
        let approvals = ApprovalConfig { ask: AskMode::Always, ..ApprovalConfig::default() };
        let bench = Bench::new(Setup { approvals, ..Setup::default() });
        let registry = bench.executor.registry();
        let far = |about: &str| {
            let mut meta = meta("far");
            (meta.effects, meta.about) = (Effects::ALL, about.into());
            meta
        };
        registry.register(tool(far("Say something."), any_schema(), "old").0).unwrap();
        let (new, runs) = tool(far(about), any_schema(), "new");
        let offer = bench.offer().await;
        let (reply, ()) =
            tokio::join!(bench.executor.execute(&offer, Request::new("far", json!({}))), async {
                let _ = question(&bench).await;
                assert!(registry.unregister("far"));
                registry.register(new).unwrap();
                approve_one(&bench).await;
            });
        match expected {
            Some(text) => assert_eq!(done(&reply), text),
            None => check_replaced(&reply, about),
        }
        assert_eq!(runs.load(Ordering::SeqCst), usize::from(expected.is_some()));
    }
}

#[test]
fn refuses_an_old_reading_of_a_source_that_arrives_after_a_newer_one() {
    let registry = Arc::new(Registry::new(World::new(Arc::new(ManualClock::default()))));
    let server = Arc::new(Server::default());
    registry.attach(server.clone());
    server.has([says("old", "x")]);
    let (again, newer) = (registry.clone(), server.clone());
    *server.meanwhile.lock().unwrap() = Some(Box::new(move || {
        newer.has([says("new", "x")]);
        again.refresh("far");
    }));
    registry.refresh("far");
    assert!(registry.has("new") && !registry.has("old"));
}

#[test]
fn refuses_to_bring_back_the_tools_of_a_source_that_was_detached_while_it_was_asked() {
    let registry = Arc::new(Registry::new(World::new(Arc::new(ManualClock::default()))));
    let server = Arc::new(Server::default());
    registry.attach(server.clone());
    server.has([says("late", "x")]);
    let gone = registry.clone();
    *server.meanwhile.lock().unwrap() = Some(Box::new(move || assert!(gone.detach("far"))));
    registry.refresh("far");
    assert!(registry.is_empty());
}

#[tokio::test]
async fn a_factory_is_asked_once_per_offer_for_a_tool_registered_anew() {
    let bench = Bench::new(Setup::default());
    let registry = bench.executor.registry();
    let asked = Arc::new(AtomicUsize::new(0));
    let shared: Arc<OnceLock<Arc<dyn AnyTool>>> = Arc::default();
    let register = || {
        let (asked, shared) = (asked.clone(), shared.clone());
        let factory = move |_: &claw_registry::Context<'_>| {
            asked.fetch_add(1, Ordering::SeqCst);
            Ok(shared.get_or_init(|| says("made", "x")).clone())
        };
        registry.register_factory(meta("made"), factory).unwrap();
    };
    register();
    let offer = bench.offer().await;
    for (registrations, expected) in [(0, 1), (1, 2)] {
        if registrations > 0 {
            assert!(registry.unregister("made"));
            register();
        }
        for _ in 0..3 {
            let reply = bench.executor.execute(&offer, Request::new("made", json!({}))).await;
            assert_eq!(done(&reply), "x");
        }
        assert_eq!(asked.load(Ordering::SeqCst), expected);
    }
}
