//! Tools that depend on the caller, looked up for each offer and each call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use claw_core::tool::{AnyTool, Caller, Effects, Group, Meta, Output, Plan, Unavailable};
use claw_core::{AgentId, TenantId, UserId};
use claw_registry::{CallerTools, OfferOptions, Request, ToolLayer};
use serde_json::{Value, json};

use crate::attack::{custom, says};
use crate::kit::{Bench, Setup, caller, done, refused};

type Answer = Box<dyn Fn(&Caller) -> Result<Arc<ToolLayer>, Unavailable> + Send + Sync>;

/// A source that a test changes.
struct Shelf {
    name: &'static str,
    answer: Mutex<Answer>,
    asked: AtomicUsize,
}

impl Shelf {
    fn new(name: &'static str, answer: Answer) -> Arc<Self> {
        Arc::new(Self { name, answer: Mutex::new(answer), asked: AtomicUsize::new(0) })
    }

    fn becomes(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }
}

#[async_trait]
impl CallerTools for Shelf {
    fn name(&self) -> &str {
        self.name
    }

    async fn layer(&self, caller: &Caller) -> Result<Arc<ToolLayer>, Unavailable> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        (self.answer.lock().unwrap())(caller)
    }
}

fn tool(name: &str, text: &'static str) -> Arc<dyn AnyTool> {
    says(name, text).0
}

/// The same layer for everyone.
fn always(tools: Vec<Arc<dyn AnyTool>>) -> Answer {
    let layer = ToolLayer::new(tools);
    Box::new(move |_| Ok(Arc::clone(&layer)))
}

fn bench(source: &Arc<Shelf>) -> Bench {
    Bench::new(Setup { caller_tools: vec![Arc::clone(source) as _], ..Setup::default() })
}

#[tokio::test]
async fn a_tool_is_offered_to_the_callers_that_the_source_gives_it_to() {
    let layer = ToolLayer::new(vec![tool("far", "here")]);
    let none = Arc::new(ToolLayer::default());
    let source = Shelf::new(
        "custom",
        Box::new(move |caller| {
            let user = caller.user.as_ref().map(UserId::as_str);
            let his = caller.tenant == TenantId::main() && caller.agent.as_str() == "main";
            Ok(Arc::clone(if his && user == Some("ana") { &layer } else { &none }))
        }),
    );
    let bench = bench(&source);
    let with = |change: fn(&mut Caller)| {
        let mut caller = caller();
        caller.user = Some(UserId::new("ana").unwrap());
        change(&mut caller);
        caller
    };
    let ana = bench.executor.offer(with(|_| {})).await;
    assert_eq!(done(&bench.executor.execute(&ana, Request::new("far", json!({}))).await), "here");
    for other in [
        with(|caller| caller.user = Some(UserId::new("ben").unwrap())),
        with(|caller| caller.agent = AgentId::new("other").unwrap()),
        with(|caller| caller.tenant = TenantId::new("acme").unwrap()),
    ] {
        let offer = bench.executor.offer(other).await;
        assert!(offer.meta("far").is_none());
        let reply = bench.executor.execute(&offer, Request::new("far", json!({}))).await;
        let (step, reason) = refused(&reply);
        assert_eq!(step, "find", "{reason}");
    }
}

#[tokio::test]
async fn refuses_a_tool_that_the_source_took_back_within_the_same_offer() {
    let source = Shelf::new("custom", always(vec![tool("far", "here")]));
    let bench = bench(&source);
    let offer = bench.offer().await;
    source.becomes(always(Vec::new()));
    let (step, reason) = refused(&bench.executor.execute(&offer, Request::new("far", json!({}))).await);
    assert_eq!((step, reason.contains("removed or replaced")), ("authorise", true), "{reason}");
    // Other tools still work.
    assert!(bench.executor.execute(&offer, Request::new("say", json!({"text": "x"}))).await.is_done());
}

#[tokio::test]
async fn a_change_is_seen_by_the_next_call_and_the_next_offer() {
    let source = Shelf::new("custom", always(vec![tool("far", "old")]));
    let bench = bench(&source);
    let offer = bench.offer().await;
    source.becomes(always(vec![tool("far", "new"), tool("more", "more")]));
    assert_eq!(done(&bench.executor.execute(&offer, Request::new("far", json!({}))).await), "new");
    assert!(offer.meta("more").is_none());
    assert_eq!(done(&bench.call("more", json!({})).await), "more");
}

#[tokio::test]
async fn callers_of_the_same_layer_share_one_registry() {
    let source = Shelf::new("custom", always(vec![tool("far", "here")]));
    let bench = bench(&source);
    let one = bench.executor.registry_for(&caller()).await;
    let mut other = caller();
    other.agent = AgentId::new("other").unwrap();
    assert!(Arc::ptr_eq(&one, &bench.executor.registry_for(&other).await));
    source.becomes(always(Vec::new()));
    let none = bench.executor.registry_for(&other).await;
    assert!(Arc::ptr_eq(&none, bench.executor.registry()), "nothing to lay over");
}

#[tokio::test]
async fn refuses_to_stand_in_front_of_a_tool_or_an_alias() {
    let source = Shelf::new("custom", always(vec![tool("say", "stolen"), tool("far", "here")]));
    let bench = bench(&source);
    assert_eq!(done(&bench.call("say", json!({"text": "mine"})).await), "mine");
    assert_eq!(done(&bench.call("far", json!({})).await), "here");
}

#[tokio::test]
async fn a_source_that_fails_takes_its_own_tools_away_and_no_others() {
    let source = Shelf::new("custom", always(vec![tool("far", "here")]));
    let bench = bench(&source);
    let offer = bench.offer().await;
    source.becomes(Box::new(|_| Err(Unavailable::because("the store is away"))));
    let (step, reason) = refused(&bench.executor.execute(&offer, Request::new("far", json!({}))).await);
    assert_eq!((step, reason.contains("the store is away")), ("authorise", true), "{reason}");
    assert!(bench.executor.execute(&offer, Request::new("say", json!({"text": "x"}))).await.is_done());
    let again = bench.executor.offer_with(caller(), OfferOptions::default()).await;
    assert!(again.meta("far").is_none() && again.meta("say").is_some());
    let failed = bench.executor.registry_for(&caller()).await.failed_sources();
    assert_eq!(failed, [("custom".to_owned(), "the store is away".to_owned())]);
}

#[tokio::test]
async fn refuses_a_call_of_a_tool_whose_schema_cannot_be_used() {
    let mut meta = Meta::of("odd".parse().unwrap(), Group::Mcp("far".into()));
    meta.effects = Effects::NONE;
    let plan = |_: &_, _: &Value| Ok(Plan::opaque(Effects::NONE));
    let schema = json!({ "type": "object", "properties": { "a": { "type": 7 } } });
    let (odd, runs) = custom(meta, schema, plan, |_, _| Box::pin(async { Ok(Output::text("ran")) }));
    let source = Shelf::new("far", always(vec![odd, tool("far", "here")]));
    let bench = bench(&source);
    let (step, reason) = refused(&bench.call("odd", json!({})).await);
    assert_eq!((step, reason.contains("its schema cannot be used")), ("find", true), "{reason}");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    // From then on it is not offered.
    let offer = bench.offer().await;
    assert!(offer.meta("odd").is_none() && offer.meta("far").is_some());
}

#[tokio::test]
async fn a_layer_that_its_source_gave_up_takes_no_memory() {
    let source = Shelf::new("far", always(vec![tool("far", "here")]));
    let bench = bench(&source);
    let first = Arc::downgrade(&bench.executor.registry_for(&caller()).await);
    assert!(first.upgrade().is_some(), "kept while the source gives it");
    source.becomes(always(vec![tool("far", "there")]));
    bench.executor.registry_for(&caller()).await;
    assert!(first.upgrade().is_none(), "nobody can ask for it again");
}
