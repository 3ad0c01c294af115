//! Panics in foreign code.

use super::*;

#[tokio::test]
async fn a_panic_in_a_plan_is_a_refusal() {
    let bench = Bench::new(Setup::default());
    let (tool, _) = custom(
        Meta::of("boomplan".parse().unwrap(), Group::Tools),
        any_schema(),
        |_, _| panic!("in plan"),
        |_, _| Box::pin(async { Ok(Output::text("")) }),
    );
    bench.executor.registry().register(tool).unwrap();
    let executor = bench.executor.clone();
    let offer = bench.offer().await;
    let joined = tokio::spawn(async move {
        executor
            .execute_batch(
                &offer,
                vec![Request::new("say", json!({"text": "a"})), Request::new("boomplan", json!({}))],
            )
            .await
            .len()
    })
    .await;
    assert_eq!(joined.ok(), Some(2), "the panic went through the road and took the other replies with it");
}

#[tokio::test]
async fn a_panic_before_the_first_await_is_an_error_of_the_call() {
    struct Eager(Meta, Spec);
    impl AnyTool for Eager {
        fn meta(&self) -> &Meta {
            &self.0
        }
        fn spec(&self) -> &Spec {
            &self.1
        }
        fn plan(&self, _: &Facts, _: &Value) -> Result<Plan, ToolError> {
            Ok(Plan::of(&self.0))
        }
        fn run_erased<'a: 'f, 'b: 'f, 'f>(
            &'a self,
            _: &'b Call,
            _: Value,
        ) -> std::pin::Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + 'f>>
        where
            Self: 'f,
        {
            panic!("while making the future")
        }
    }
    let bench = Bench::new(Setup::default());
    let meta = Meta::of("eager".parse().unwrap(), Group::Tools);
    let spec = Spec::with_schema(&meta, any_schema());
    bench.executor.registry().register(Arc::new(Eager(meta, spec))).unwrap();
    let (executor, offer) = (bench.executor.clone(), bench.offer().await);
    let joined =
        tokio::spawn(async move { executor.execute(&offer, Request::new("eager", json!({}))).await }).await;
    assert!(joined.is_ok(), "the panic went through the road");
}

#[tokio::test]
async fn a_panic_in_a_factory_makes_the_tool_unavailable() {
    let bench = Bench::new(Setup::default());
    bench
        .executor
        .registry()
        .register_factory(Meta::of("made".parse().unwrap(), Group::Tools), |_| panic!("in the factory"))
        .unwrap();
    let (executor, offer) = (bench.executor.clone(), bench.offer().await);
    let joined = tokio::spawn(async move { offer.specs(|_, _| {}).len() }).await;
    assert!(joined.is_ok(), "one bad factory and nobody gets any tools");
    drop(executor);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_source_is_a_failed_source() {
    struct Bad;
    impl ToolSource for Bad {
        fn name(&self) -> &str {
            "bad"
        }
        fn tools(&self) -> Result<Vec<Arc<dyn AnyTool>>, Unavailable> {
            panic!("in the source")
        }
    }
    let bench = Bench::new(Setup::default());
    let registry = bench.executor.registry().clone();
    let panicked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| registry.attach(Arc::new(Bad)))).is_err();
    assert!(registry.register(says("later", "x").0).is_ok());
    assert!(!panicked, "attach panicked; later registrations work");
}

struct Picky(AtomicBool, &'static str);
impl Listener for Picky {
    fn hear(&self, event: Event) {
        let name = serde_json::to_value(&event).unwrap()["event"].as_str().unwrap().to_owned();
        assert!(name != self.1 || self.0.swap(true, Ordering::SeqCst), "the listener broke");
    }
}

async fn listener_panics(at: &'static str) -> (bool, String) {
    let bench = Bench::new(Setup::default());
    let executor = Executor::builder(
        bench.executor.registry().clone(),
        bench.store.clone(),
        Policy::compile(&PolicyConfig::default()).unwrap(),
    )
    .listener(Arc::new(Picky(AtomicBool::new(false), at)))
    .build();
    let offer = executor.offer(caller()).await;
    let road = executor.clone();
    let joined = tokio::spawn(async move {
        road.execute(&offer, Request::new("say", json!({"text": "hello there", "pieces": 3}))).await.is_done()
    })
    .await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    (joined.is_ok(), ledger_text(&bench).await)
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_panics_at_the_start_leaves_an_outcome() {
    let (_, ledger) = listener_panics("call_started").await;
    assert!(ledger.contains("\"outcome\""), "an intent without an end: {ledger}");
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_panics_on_progress_leaves_an_outcome() {
    let (_, ledger) = listener_panics("call_progress").await;
    assert!(ledger.contains("\"outcome\""), "an intent without an end: {ledger}");
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_panics_does_not_break_the_call() {
    let (survived, _) = listener_panics("call_finished").await;
    assert!(survived, "the call was done, and its caller got a panic");
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_its_outcome_is_written_has_one() {
    // The artifact store hangs, as a full network disk would; the caller goes away meanwhile.
    struct Slow;
    #[async_trait]
    impl claw_core::port::ArtifactStore for Slow {
        async fn put(
            &self,
            _: &claw_core::port::Owner,
            _: CallId,
            _: &str,
        ) -> Result<claw_core::port::Artifact, ToolError> {
            std::future::pending().await
        }
        async fn list(
            &self,
            _: &claw_core::port::Owner,
        ) -> Result<Vec<claw_core::port::Artifact>, ToolError> {
            Ok(vec![])
        }
        async fn lines(
            &self,
            _: &claw_core::port::Owner,
            _: claw_core::ArtifactId,
            _: usize,
            _: usize,
        ) -> Result<claw_core::port::Part, ToolError> {
            unreachable!()
        }
    }
    let bench = Bench::new(Setup::default());
    let mut world = bench.executor.registry().world().clone();
    world.artifacts = Some(Arc::new(Slow));
    let registry = Arc::new(Registry::new(world));
    for tool in crate::kit::all() {
        registry.register(tool).unwrap();
    }
    let executor =
        Executor::builder(registry, bench.store.clone(), Policy::compile(&PolicyConfig::default()).unwrap())
            .build();
    let offer = executor.offer(caller()).await;
    let request = Request::new("say", json!({"text": "long line\n", "times": 10_000}));
    let _ = tokio::time::timeout(Duration::from_millis(200), executor.execute(&offer, request)).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let ledger = ledger_text(&bench).await;
    assert!(ledger.contains("\"outcome\""), "the tool had ended, and nobody wrote it down: {ledger}");
}
