//! Offers, and decisions changed since.

use super::*;

#[tokio::test]
async fn an_overlay_taken_away_after_the_offer_is_gone() {
    let bench = Bench::new(Setup::default());
    let overlay = Arc::new(Registry::over(bench.executor.registry().clone()));
    let (tool, runs) = says("own_tool", "mine");
    overlay.register(tool).unwrap();
    bench.executor.set_overlay(&main_agent(), Some(overlay));
    let offer = bench.offer().await;
    bench.executor.set_overlay(&main_agent(), None);
    let reply = bench.executor.execute(&offer, Request::new("own_tool", json!({}))).await;
    assert_eq!(
        runs.load(Ordering::SeqCst),
        0,
        "ran though the agent no longer has it: {}",
        reply.model_text()
    );
}

#[tokio::test]
async fn a_tool_denied_while_its_question_waits_does_not_run() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let (reply, ()) = tokio::join!(bench.executor.execute(&offer, ls()), async {
        let _ = question(&bench).await;
        bench.executor.set_policy(deny("sh"));
        approve_one(&bench).await;
    });
    assert!(bench.shell.runs().is_empty(), "ran under a policy that denies it: {}", reply.model_text());
}

#[tokio::test]
async fn a_tool_unregistered_while_its_question_waits_does_not_run() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let (reply, ()) = tokio::join!(bench.executor.execute(&offer, ls()), async {
        let _ = question(&bench).await;
        assert!(bench.executor.registry().unregister("sh"));
        approve_one(&bench).await;
    });
    assert!(bench.shell.runs().is_empty(), "ran though it was taken off: {}", reply.model_text());
}

#[tokio::test]
async fn a_denied_search_tool_stays_denied_under_a_token_budget() {
    let mut policy = PolicyConfig::default();
    policy.tools.deny = vec!["tool_search".into()];
    let bench = Bench::new(Setup { policy, ..Setup::default() });
    let previous = vec![ToolName::new("tool_search").unwrap()];
    let options = OfferOptions { previous, token_budget: Some(1), ..OfferOptions::default() };
    let offer = bench.executor.offer_with(caller(), options).await;
    let reply = bench.executor.execute(&offer, Request::new("tool_search", json!({"query": "file"}))).await;
    assert!(!reply.is_done(), "a denied tool ran: {}", reply.model_text());
    assert_eq!(refused(&reply).0, "authorise");
}

#[tokio::test]
async fn an_overlay_over_an_overlay_sees_removals_at_the_bottom() {
    let bench = Bench::new(Setup::default());
    let (tool, runs) = says("bottom", "x");
    bench.executor.registry().register(tool).unwrap();
    let middle = Arc::new(Registry::over(bench.executor.registry().clone()));
    let top = Arc::new(Registry::over(middle));
    bench.executor.set_overlay(&main_agent(), Some(top));
    let offer = bench.offer().await;
    assert!(bench.executor.registry().unregister("bottom"));
    let reply = bench.executor.execute(&offer, Request::new("bottom", json!({}))).await;
    assert_eq!(runs.load(Ordering::SeqCst), 0, "{}", reply.model_text());
}

#[tokio::test]
async fn an_offer_of_another_executor_is_held_to_this_ones_policy() {
    let bench = Bench::new(Setup::default());
    let strict =
        Executor::builder(bench.executor.registry().clone(), bench.store.clone(), deny("say")).build();
    let offer = bench.offer().await;
    let reply = strict.execute(&offer, Request::new("say", json!({"text": "x"}))).await;
    assert!(!reply.is_done(), "the strict executor denies `say`, and ran it");
}

#[tokio::test]
async fn a_name_that_became_an_alias_does_not_double_a_tool() {
    let bench = Bench::new(Setup::default());
    // `look` was a tool of its own once, and is an alias of `peek` now.
    let previous = vec![ToolName::new("look").unwrap()];
    let offer =
        bench.executor.offer_with(caller(), OfferOptions { previous, ..OfferOptions::default() }).await;
    let names: Vec<_> = offer.names().iter().map(ToString::to_string).collect();
    assert_eq!(names.iter().filter(|name| *name == "peek").count(), 1, "{names:?}");
}

#[tokio::test]
async fn a_tool_unavailable_now_is_refused_even_if_it_was_listed_before() {
    let bench = Bench::new(Setup::default());
    let mut meta = Meta::of("needy".parse().unwrap(), Group::Tools);
    meta.effects = Effects::NONE;
    meta.needs = vec![Need::Agents].into();
    let (tool, runs) = custom(
        meta,
        any_schema(),
        |_, _| Ok(Plan { effects: Effects::NONE, asks: vec![], given: None }),
        |_, _| Box::pin(async { Ok(Output::text("ran")) }),
    );
    bench.executor.registry().register(tool).unwrap();
    let previous = vec![ToolName::new("needy").unwrap()];
    let offer =
        bench.executor.offer_with(caller(), OfferOptions { previous, ..OfferOptions::default() }).await;
    let reply = bench.executor.execute(&offer, Request::new("needy", json!({}))).await;
    assert_eq!(runs.load(Ordering::SeqCst), 0, "ran without what it needs: {}", reply.model_text());
}
