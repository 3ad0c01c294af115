//! Secrets in every kind of output.

use super::*;

fn with_secret(bench: &Bench) {
    bench.executor.scrubbers().add(SECRET).unwrap();
}

#[track_caller]
fn clean(what: &str, text: &str) {
    for start in 0..SECRET.len() - 12 {
        let piece = &SECRET[start..start + 12];
        assert!(!text.contains(piece), "{what} shows `{piece}`: {}", &text[..text.len().min(600)]);
    }
}

#[tokio::test]
async fn a_refusal_for_bad_arguments_scrubs_before_it_cuts() {
    let bench = Bench::new(Setup::default());
    with_secret(&bench);
    let reply = bench.call("say", json!({"text": "x", "times": format!("key {SECRET}")})).await;
    clean("the refusal", &reply.model_text());
    clean("the ledger", &ledger_text(&bench).await);
}

#[tokio::test]
async fn the_arguments_of_a_refused_call_are_scrubbed() {
    let refusing = [
        ("authorise", Setup { policy: denies("say"), ..Setup::default() }),
        ("judge", Setup { approvals: denies_reads(), ..Setup::default() }),
    ];
    for (at, setup) in refusing {
        let bench = Bench::new(setup);
        with_secret(&bench);
        let reply = bench.call("say", json!({ "text": format!("key {SECRET} end") })).await;
        assert_eq!(refused(&reply).0, at);
        let entries = bench.store.recent(&TenantId::main(), 10).await.unwrap();
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        let EntryEvent::Refused { args, .. } = &entry.record.event else { panic!("{entry:?}") };
        assert_eq!(args.as_ref().unwrap(), &json!({ "text": "key [REDACTED] end" }), "{at}");
    }
}

#[tokio::test]
async fn an_unknown_tools_name_is_scrubbed_before_it_is_cut() {
    let bench = Bench::new(Setup::default());
    with_secret(&bench);
    let reply = bench.call(&format!("tool_{SECRET}"), json!({})).await;
    clean("the refusal", &reply.model_text());
    clean("the ledger", &ledger_text(&bench).await);
}

#[tokio::test]
async fn the_name_in_a_reply_is_scrubbed_and_short() {
    let bench = Bench::new(Setup::default());
    with_secret(&bench);
    let reply = bench.call(&format!("{SECRET}{}", "y".repeat(1_000_000)), json!({})).await;
    assert!(reply.tool.len() < 1000, "{} bytes of name", reply.tool.len());
    clean("the name", &reply.tool);
}

#[tokio::test]
async fn notes_are_scrubbed() {
    let bench = Bench::new(Setup::default());
    bench.executor.scrubbers().add("8675309867530986").unwrap();
    let reply = bench.call("say", json!({"text": 8_675_309_867_530_986_u64})).await;
    assert!(reply.is_done());
    assert!(!format!("{:?}", reply.notes).contains("8675309867530986"), "{:?}", reply.notes);
}

#[tokio::test]
async fn keys_of_details_are_scrubbed() {
    let bench = Bench::new(Setup::default());
    let secret = "pass\"word\\with\nescapes-1234";
    bench.executor.scrubbers().add(secret).unwrap();
    let (tool, _) = gives("keys", move || Ok(Output::text("x").with_details(json!({ secret: 1 }))));
    bench.executor.registry().register(tool).unwrap();
    let reply = bench.call("keys", json!({})).await;
    let details = reply.outcome.unwrap().details.unwrap();
    assert!(!details.as_object().is_some_and(|o| o.contains_key(secret)), "{details}");
}

#[tokio::test]
async fn every_text_of_an_output_is_scrubbed() {
    let bench = Bench::new(Setup::default());
    with_secret(&bench);
    let (tool, _) = gives("leaky", || {
        let mut output = Output::text(SECRET).and(Block::Resource {
            uri: format!("x://{SECRET}"),
            mime: Some(SECRET.into()),
            text: Some(SECRET.into()),
        });
        output.content.push(Block::Image(claw_core::image::Image::new(SECRET, &b"\0"[..])));
        output.for_user = Some(SECRET.into());
        output.deliverable = Some(SECRET.into());
        output.pending = Some(SECRET.into());
        output.details = Some(json!({ "a": [SECRET], SECRET: SECRET }));
        Ok(output)
    });
    bench.executor.registry().register(tool).unwrap();
    let reply = bench.call("leaky", json!({})).await;
    clean("the output", &serde_json::to_string(&reply.outcome.unwrap()).unwrap());
}

#[tokio::test]
async fn a_secret_split_where_the_call_learns_another_is_not_told() {
    // The shell opens a credential (adds a secret) between two pieces of progress.
    struct Opens;
    #[async_trait]
    impl claw_core::port::ShellHost for Opens {
        async fn look(
            &self,
            _: &claw_core::port::RunContext,
            t: &[Target],
        ) -> Result<Vec<claw_core::tool::Sight>, ToolError> {
            Ok(t.iter()
                .map(|t| claw_core::tool::Sight {
                    target: t.clone(),
                    path: None,
                    identity: None,
                    credential: None,
                    writable: false,
                })
                .collect())
        }
        async fn run(
            &self,
            c: &claw_core::port::RunContext,
            _: &Script,
        ) -> Result<claw_core::port::HostRan, ToolError> {
            c.progress.tell(&SECRET[..60]);
            c.secrets.add("another-credential-9876");
            c.progress.tell(&SECRET[60..]);
            Ok(claw_core::port::Ran { exit: Some(0), ..Default::default() }.into())
        }
        async fn spawn(
            &self,
            _: &claw_core::port::RunContext,
            _: &claw_core::tool::Argv,
        ) -> Result<claw_core::port::HostRan, ToolError> {
            unreachable!()
        }
    }
    let bench = Bench::new(Setup::default());
    let mut world = bench.executor.registry().world().clone();
    world.shell = Some(Arc::new(Opens));
    let registry = Arc::new(Registry::new(world));
    for tool in crate::kit::all() {
        registry.register(tool).unwrap();
    }
    let executor =
        Executor::builder(registry, bench.store.clone(), Policy::compile(&PolicyConfig::default()).unwrap())
            .approvals(Setup::default().approvals)
            .build();
    executor.scrubbers().add(SECRET).unwrap();
    let told = Arc::new(Mutex::new(String::new()));
    let hears = told.clone();
    let mut request = ls();
    request.progress = claw_core::tool::Progress::to(move |piece| hears.lock().unwrap().push_str(piece));
    let offer = executor.offer(caller()).await;
    let (reply, ()) = tokio::join!(executor.execute(&offer, request), approve_one(&bench));
    assert!(reply.is_done(), "{}", reply.model_text());
    clean("the progress", &told.lock().unwrap());
}

#[tokio::test]
async fn with_open_output_the_ledger_scrubs_before_it_cuts() {
    let store = Arc::new(MemoryStore::new());
    let bench = Bench::new(Setup { store: store.clone(), ..Setup::default() });
    let limits = Limits { output_bytes: 300, ..Limits::default() };
    let executor = Executor::builder(
        bench.executor.registry().clone(),
        store,
        Policy::compile(&PolicyConfig::default()).unwrap(),
    )
    .scrubbers(Scrubbers::with_open_output())
    .limits(limits)
    .build();
    executor.scrubbers().add(SECRET).unwrap();
    let (tool, _) =
        gives("fails", || Err(ToolError::failed(format!("{}{SECRET}{}", "a".repeat(160), "b".repeat(1000)))));
    bench.executor.registry().register(tool).unwrap();
    let offer = executor.offer(caller()).await;
    let reply = executor.execute(&offer, Request::new("fails", json!({}))).await;
    assert!(reply.failure().is_some());
    clean("the ledger", &ledger_text(&bench).await);
}

#[tokio::test]
async fn a_secret_in_the_name_of_a_session_an_agent_or_a_user_is_recorded_nowhere() {
    type Rename = fn(&mut Caller, &str);
    let name = "hunter2-and-more";
    let names: [(&str, Rename); 3] = [
        ("session", |caller, name| caller.session = SessionKey::new(format!("cli:{name}")).unwrap()),
        ("agent", |caller, name| caller.agent = AgentId::new(name).unwrap()),
        ("user", |caller, name| caller.user = Some(UserId::new(name).unwrap())),
    ];
    for (what, rename) in names {
        let bench = Bench::new(Setup::default());
        let (tool, runs) = says("count", "one more");
        bench.executor.registry().register(tool).unwrap();
        let mut caller = caller();
        rename(&mut caller, name);
        let offer = bench.executor.offer(caller).await;
        let call = |tool: &str| bench.executor.execute(&offer, Request::new(tool, json!({})));
        assert!(call("count").await.is_done(), "{what}: a name that is no secret is nothing to refuse");
        let (before, heard) = (ledger_text(&bench).await, bench.heard.events().len());
        bench.executor.scrubbers().add(name).unwrap();
        for tool in ["count", "no_such_tool", name] {
            let reply = call(tool).await;
            let (step, reason) = refused(&reply);
            assert_eq!(step, "record", "{what}: {reason}");
            assert!(reason.contains(&format!("the name of the {what} holds a secret")), "{reason}");
            assert!(!format!("{reply:?}").contains(name), "{what}: {reply:?}");
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{what}");
        assert_eq!(ledger_text(&bench).await, before, "{what}: an entry would hold the name");
        assert_eq!(bench.heard.events().len(), heard, "{what}: an event would hold the name");
    }
}
