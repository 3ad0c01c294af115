//! Tenants, time, restarts, and calls after their end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::id::{AgentId, SessionKey};
use claw_core::port::{ArtifactStore, FilePlace, FsBridge, Owner, Stat, WriteMode};
use claw_core::store::{EntryEvent, Ledger, Outcome, Record, StoreError};
use claw_core::tool::{
    AnyTool, Ask, Call, Caller, Cost, Effect, Effects, Group, Meta, Need, Output, Plan, Sight, Spec,
    ToolError,
};
use claw_core::{CallId, NodeId, TenantId};
use claw_host::{ArtifactLimits, FileArtifacts, MemoryArtifacts};
use claw_policy::approval::{ApprovalConfig, EffectRule};
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_policy::rate_config::RateConfig;
use claw_registry::{Executor, Registry, Request, rate_limiter::Limiter};
use claw_store::SqliteStore;
use serde_json::json;

use super::{any_schema, custom};
use crate::approvals::{approve_one, question};
use crate::kit::{Bench, Setup, caller, main_agent, refused};

type Ran = futures_util::future::BoxFuture<'static, Result<Output, ToolError>>;

fn tool(
    meta: Meta,
    plan: impl Fn() -> Result<Plan, ToolError> + Send + Sync + 'static,
    run: impl Fn(Call) -> Ran + Send + Sync + 'static,
) -> (Arc<dyn AnyTool>, Arc<AtomicUsize>) {
    custom(meta, any_schema(), move |_, _| plan(), move |call, _| run(call))
}

fn meta(name: &str) -> Meta {
    Meta::of(name.parse().unwrap(), Group::Tools)
}

fn pure(name: &str) -> (Arc<dyn AnyTool>, Arc<AtomicUsize>) {
    let mut meta = meta(name);
    meta.effects = Effects::NONE;
    tool(
        meta,
        || Ok(Plan { effects: Effects::NONE, asks: vec![], given: None }),
        |_| Box::pin(async { Ok(Output::text("ran")) }),
    )
}

fn of_tenant(tenant: &str) -> Caller {
    let mut caller = caller();
    caller.tenant = TenantId::new(tenant).unwrap();
    caller
}

fn policy() -> Policy {
    Policy::compile(&PolicyConfig::default()).unwrap()
}

#[tokio::test]
async fn an_overlay_belongs_to_one_tenants_agent() {
    let bench = Bench::new(Setup::default());
    let overlay = Arc::new(Registry::over(bench.executor.registry().clone()));
    let (own, runs) = pure("acme_payroll");
    overlay.register(own).unwrap();
    // Meant for the agent `main` of tenant `acme`.
    bench.executor.set_overlay(&main_agent(), Some(overlay));
    let offer = bench.executor.offer(of_tenant("evilcorp")).await;
    let _ = bench.executor.execute(&offer, Request::new("acme_payroll", json!({}))).await;
    assert_eq!(runs.load(Ordering::SeqCst), 0, "another tenant's agent of the same name has it");
}

#[tokio::test]
async fn a_tool_that_says_nothing_of_its_origin_is_not_built_in() {
    let mut config = PolicyConfig::default();
    config.tools.allow = Some(vec!["group:clawsmith".into()]);
    let bench = Bench::new(Setup { policy: config, ..Setup::default() });
    let names: Vec<_> = bench.offer().await.names().iter().map(ToString::to_string).collect();
    assert!(!names.contains(&"mcp_far__add".to_owned()), "a far tool counts as built in: {names:?}");
}

#[tokio::test]
async fn an_opaque_plan_has_all_effects_of_its_tool() {
    let effects = Effect::ALL.into_iter().map(|effect| (effect, EffectRule::Deny)).collect();
    let approvals = ApprovalConfig { effects, ..ApprovalConfig::default() };
    let bench = Bench::new(Setup { approvals, ..Setup::default() });
    let (opaque, runs) = tool(
        meta("far"),
        || Ok(Plan { effects: Effects::NONE, asks: vec![Ask::Opaque], given: None }),
        |_| Box::pin(async { Ok(Output::text("did something that cannot be told beforehand")) }),
    );
    bench.executor.registry().register(opaque).unwrap();
    let _ = bench.call("far", json!({})).await;
    assert_eq!(runs.load(Ordering::SeqCst), 0, "every effect is denied, and an opaque call ran");
}

struct Stuck;

#[async_trait]
impl FsBridge for Stuck {
    async fn stat(&self, _: &FilePlace<'_>, _: &str) -> Result<Option<Stat>, ToolError> {
        Ok(None)
    }
    async fn read(&self, _: &FilePlace<'_>, _: &str) -> Result<(Vec<u8>, Stat), ToolError> {
        std::future::pending().await
    }
    async fn mkdirp(&self, _: &FilePlace<'_>, _: &str) -> Result<(), ToolError> {
        Ok(())
    }
    async fn write(&self, _: &FilePlace<'_>, _: &str, _: &[u8]) -> Result<Stat, ToolError> {
        std::future::pending().await
    }
    async fn look(&self, _: &FilePlace<'_>, _: &str) -> Result<Sight, ToolError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_hangs_while_it_looks_can_be_cancelled() {
    let bench = Bench::new(Setup::default());
    let mut world = bench.executor.registry().world().clone();
    world.bridge = Some(Arc::new(Stuck));
    let registry = Arc::new(Registry::new(world));
    for tool in crate::kit::all() {
        registry.register(tool).unwrap();
    }
    let executor = Executor::builder(registry, bench.store.clone(), policy()).build();
    let offer = executor.offer(caller()).await;
    let mut request = Request::new("save", json!({"file_path": "a.txt"}));
    request.timeout = Some(Duration::from_millis(50));
    let cancel = request.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    let ended = tokio::time::timeout(Duration::from_millis(500), executor.execute(&offer, request)).await;
    assert!(ended.is_ok(), "neither the time limit nor cancelling ends it");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cancelled_writes_nothing_afterwards() {
    let bench = Bench::new(Setup::default());
    let mut meta = meta("lingers");
    meta.effects = Effects::of(&[Effect::Read, Effect::Write]);
    meta.needs = vec![Need::Files].into();
    let (lingers, _) = tool(
        meta,
        || Ok(Plan::write("late.txt")),
        |call| {
            Box::pin(async move {
                let late = call.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(150)).await;
                    late.files().unwrap().write("late.txt", "after the end", WriteMode::Create).await
                });
                std::future::pending().await
            })
        },
    );
    bench.executor.registry().register(lingers).unwrap();
    let offer = bench.offer().await;
    let mut request = Request::new("lingers", json!({}));
    request.timeout = Some(Duration::from_millis(20));
    let reply = bench.executor.execute(&offer, request).await;
    assert!(reply.failure().is_some());
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert_eq!(bench.files.text("/w/late.txt"), None, "written after the ledger said how the call ended");
}

fn record(call: CallId, event: EntryEvent) -> Record {
    Record {
        context: None,
        at: claw_core::port::UnixMillis(1_767_225_600_000),
        tenant: TenantId::main(),
        session: SessionKey::new("cli:me").unwrap(),
        agent: AgentId::new("main").unwrap(),
        user: None,
        call,
        tool: "exec".into(),
        event,
    }
}

fn intent(call: CallId) -> Record {
    let digest = claw_core::tool::Digest::of_bytes(b"x");
    record(call, EntryEvent::Intent { digest, effects: Effects::NONE, args: json!({}), approval: None })
}

#[tokio::test]
async fn a_call_id_from_the_future_is_not_run_again_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    // Made while the clock was an hour ahead, or chosen by a client.
    let ahead: CallId = "0f000000-0000-7000-8000-000000000001".parse().unwrap();
    let path = directory.path().join("claw.db");
    let ledger = SqliteStore::open(&path, NodeId::local()).await.unwrap();
    ledger.begin_call(intent(ahead)).await.unwrap();
    ledger
        .finish_call(record(
            ahead,
            EntryEvent::Outcome { outcome: Outcome::Done, micros: 1, bytes: 1, error: None, changes: None },
        ))
        .await
        .unwrap();
    assert!(matches!(ledger.begin_call(intent(ahead)).await, Err(StoreError::AlreadyBegun { .. })));
    // Another call, after the clock was corrected.
    ledger.begin_call(intent(CallId::new())).await.unwrap();
    drop(ledger);
    let ledger = SqliteStore::open(&path, NodeId::local()).await.unwrap();
    let again = ledger.begin_call(intent(ahead)).await;
    assert!(matches!(again, Err(StoreError::AlreadyBegun { .. })), "it would run a second time: {again:?}");
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Visit<'a>(&'a mut String);
        impl tracing::field::Visit for Visit<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{field}={value:?} "));
            }
        }
        event.record(&mut Visit(&mut self.0.lock().unwrap()));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn the_log_of_a_failed_plan_is_scrubbed() {
    let bench = Bench::new(Setup::default());
    bench.executor.scrubbers().add("topsecret-value-4711").unwrap();
    let (fails, _) = tool(
        meta("planless"),
        || Err(ToolError::failed("no plan").because("the key was topsecret-value-4711")),
        |_| Box::pin(async { Ok(Output::text("")) }),
    );
    bench.executor.registry().register(fails).unwrap();
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let _ = bench.call("planless", json!({})).await;
    drop(guard);
    let log = log.0.lock().unwrap();
    assert!(log.contains("no plan: the key was"), "the operator reads the cause: {log}");
    assert!(!log.contains("topsecret-value-4711"), "{log}");
}

#[tokio::test]
async fn one_tenant_does_not_push_out_anothers_kept_results() {
    let artifacts = MemoryArtifacts::new(ArtifactLimits::default());
    let owner = |tenant: &str, session: &str| Owner {
        tenant: TenantId::new(tenant).unwrap(),
        session: SessionKey::new(session).unwrap(),
    };
    let mine = owner("acme", "cli:me");
    artifacts.put(&mine, CallId::new(), "mine").await.unwrap();
    let large = "x".repeat(60 * 1024 * 1024);
    for n in 0..5 {
        artifacts.put(&owner("evilcorp", &format!("cli:{n}")), CallId::new(), &large).await.unwrap();
    }
    assert_eq!(artifacts.list(&mine).await.unwrap().len(), 1, "gone");
}

#[test]
fn a_clock_that_jumped_ahead_once_does_not_lock_a_session_out() {
    use claw_core::port::UnixMillis;
    let limiter = Limiter::new(RateConfig { total: 5, ..RateConfig::default() }, 10);
    let now = UnixMillis(1_767_225_600_000);
    limiter.check("s", Cost::Light, now.plus(Duration::from_secs(24 * 3600))).unwrap();
    let mut passed = 0;
    // A window is forgotten after 60 to 65 seconds.
    for window in 0..60_u64 {
        let now = now.plus(Duration::from_secs(65 * (window + 1)));
        passed += (0..5).filter(|_| limiter.check("s", Cost::Light, now).is_ok()).count();
    }
    assert!(passed > 200, "{passed} calls in 60 windows of 5");
}

// ---------------------------------------------------------------- what held

#[tokio::test(start_paused = true)]
async fn held_one_id_runs_once_however_many_ask() {
    let bench = Bench::new(Setup::default());
    let (slow, runs) = tool(
        meta("slow"),
        || Ok(Plan::opaque(Effects::ALL)),
        |_| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(Output::text("ran"))
            })
        },
    );
    bench.executor.registry().register(slow).unwrap();
    let other = Executor::builder(bench.executor.registry().clone(), bench.store.clone(), policy()).build();
    let (offer, request) = (bench.offer().await, Request::new("slow", json!({})));
    let (a, b, c) = tokio::join!(
        bench.executor.execute(&offer, request.clone()),
        other.execute(&offer, request.clone()),
        bench.executor.execute(&offer, request.clone()),
    );
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!([a, b, c].iter().filter(|reply| reply.is_done()).count(), 1);
}

#[tokio::test]
async fn held_one_approval_two_waiters_one_run() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let request = Request::new("sh", json!({"command": "ls"}));
    let (a, b, ()) = tokio::join!(
        bench.executor.execute(&offer, request.clone()),
        bench.executor.execute(&offer, request.clone()),
        approve_one(&bench),
    );
    assert_eq!(bench.shell.runs().len(), 1, "{} / {}", a.model_text(), b.model_text());
    let _ = question;
}

#[tokio::test]
async fn held_dropping_at_every_poll_never_runs_twice() {
    for polls in 0..12 {
        let bench = Bench::new(Setup::default());
        let offer = bench.offer().await;
        let request = Request::new("save", json!({"file_path": "n.txt"}));
        {
            let mut call = std::pin::pin!(bench.executor.execute(&offer, request.clone()));
            for _ in 0..polls {
                if futures_util::poll!(&mut call).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        tokio::task::yield_now().await;
        let first = bench.files.text("/w/n.txt").is_some();
        let again = bench.executor.execute(&offer, request).await;
        assert!(!(first && again.is_done()), "after {polls} polls");
    }
}

#[tokio::test]
async fn held_paths_that_lead_out() {
    let bench = Bench::new(Setup::default());
    for path in
        ["../a", "/etc/passwd", "/w/../etc", "a/../../b", "/wx/a", "a\0b", "", "//etc/passwd", "/w/./../x"]
    {
        let reply = bench.call("save", json!({ "file_path": path })).await;
        assert!(!reply.is_done(), "{path:?}");
    }
    assert_eq!(refused(&bench.call("save", json!({"file_path": "/wx/a"})).await).0, "judge");
}

#[test]
fn held_dialects_on_hostile_schemas() {
    use claw_schema::dialect::Dialect;
    let mut defs = serde_json::Map::new();
    for n in 0..40 {
        let next = format!("#/$defs/d{}", n + 1);
        defs.insert(
            format!("d{n}"),
            json!({ "type": "object", "properties": { "l": { "$ref": next }, "r": { "$ref": next } } }),
        );
    }
    defs.insert("d40".into(), json!({ "type": "string" }));
    let wide: Vec<_> = (0..2000)
        .map(|n| json!({ "type": "object", "properties": { format!("p{n}"): { "type": "string" } } }))
        .collect();
    let schemas = [
        json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/d0" } }, "$defs": defs }),
        json!({ "type": "object", "properties": { "x": { "anyOf": wide } } }),
        json!({ "type": "object", "allOf": wide }),
        json!({ "type": "object", "anyOf": wide }),
        json!({ "type": "object", "properties": { "x": { "enum": (0..40_000).collect::<Vec<_>>() } } }),
        json!({ "$ref": "#" }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/properties/b" }, "b": { "$ref": "#/properties/a" } } }),
        json!(true),
        json!(null),
        json!({ "type": ["object", "null", 3], "properties": [], "required": {}, "enum": "x", "items": 7 }),
    ];
    for (n, schema) in schemas.into_iter().enumerate() {
        let spec = Spec::with_schema(&meta("x"), schema);
        for dialect in Dialect::ALL {
            let size = dialect.tool(&spec).to_string().len();
            assert!(size < 5_000_000, "{n} {dialect:?}: {size} bytes");
        }
    }
}

// ---------------------------------------------------------------- names of files, forms of secrets

#[tokio::test]
async fn a_tenants_name_cannot_take_the_place_of_the_store() {
    let directory = tempfile::tempdir().unwrap();
    // As the command line sets them up: both in the data directory.
    let artifacts = FileArtifacts::new(directory.path(), ArtifactLimits::default());
    let owner =
        Owner { tenant: TenantId::new("clawsmith.db").unwrap(), session: SessionKey::new("a:b").unwrap() };
    artifacts.put(&owner, CallId::new(), "x").await.unwrap();
    let store = SqliteStore::open(&directory.path().join("clawsmith.db"), NodeId::local()).await.unwrap();
    let begun = store.begin_call(intent(CallId::new())).await;
    assert!(begun.is_ok(), "no call of tenant `main` can be recorded any more: {begun:?}");
}

#[test]
fn a_scrubbers_debug_form_shows_no_value() {
    use claw_policy::scrub::{Scrubber, Value};
    let secret = "topsecret-value-4711";
    let scrubber = Scrubber::compile([Value::new(secret, "value")]).unwrap();
    let shown = format!("{scrubber:?}");
    let bytes = format!("{:?}", secret.as_bytes());
    let bytes = bytes.trim_matches(['[', ']']);
    assert!(!shown.contains("topsecret") && !shown.contains(bytes), "{}", &shown[..shown.len().min(400)]);
}

#[tokio::test]
async fn a_value_that_is_not_ascii_is_found_in_escaped_json() {
    let bench = Bench::new(Setup::default());
    bench.executor.scrubbers().add("pässwörd-geheim-4711/x").unwrap();
    for printed in ["p\\u00e4ssw\\u00f6rd-geheim-4711/x", "pässwörd-geheim-4711\\/x"] {
        let reply = bench.call("say", json!({ "text": printed })).await;
        assert!(!reply.model_text().contains("geheim-4711"), "{}", reply.model_text());
    }
}

#[tokio::test]
async fn held_what_a_model_reads() {
    // Usability: what a model reads when it asks for a tool that policy hides, or is unavailable.
    let mut config = PolicyConfig::default();
    config.tools.deny = vec!["sh".into()];
    let bench = Bench::new(Setup { policy: config, ..Setup::default() });
    let mut read = String::new();
    for (tool, args) in [
        ("sh", json!({"command": "ls"})),
        ("peek", json!({})),
        ("say", json!({"text": ["a"]})),
        ("crash", json!({})),
        ("rogue", json!({"attempt": "write"})),
        ("save", json!({"file_path": "../x"})),
        ("say", json!({"text": "a", "times": 1.0})),
        ("say", json!({"text": "a", "times": "1e1"})),
        ("say", json!({"text": "a", "times": -1})),
    ] {
        let said = bench.call(tool, args.clone()).await.model_text().to_string();
        read.push_str(&format!("{tool} {args}\n    {}\n", said.replace('\n', "\n    ")));
    }
    insta::assert_snapshot!(read);
}
