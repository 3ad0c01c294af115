//! A conversation that grows beyond what the model can read.

use claw_agent::History;

use crate::kit::{Bench, parts, session, tenant};

/// Reads little; sums up when it is asked to.
const SMALL: &str = r#"
    model = { context = 4000, output = 400 }

    [[turn]]
    when.said = "Sum up the conversation"
    do = [{ say = "They talked about crabs." }]

    [[turn]]
    when.said = "in short]"
    do = [{ say = "I remember: {{said}}" }]

    [[turn]]
    do = [{ say = "You said so." }]
"#;

#[tokio::test]
async fn old_runs_are_summed_up_and_nothing_is_lost() {
    let bench = Bench::new(SMALL).await;
    let store = &bench.deployment.store;
    let (mut asked, mut words) = (0, String::new());
    while store.summary(&tenant(), &session()).await.unwrap().is_none() {
        words = bench.ask(&format!("{asked} {}", "crab ".repeat(400))).await;
        asked += 1;
        assert!(asked < 20, "it is never summed up");
    }
    assert!(words.contains("I remember") && words.contains("They talked about crabs."), "{words}");
    let summary = store.summary(&tenant(), &session()).await.unwrap().unwrap();
    assert_eq!(summary.text, "They talked about crabs.");
    assert_eq!(summary.upto, 2 * (asked as u64 - 1), "all runs before");
    assert!(bench.run_states().await.contains(&"summarised".to_owned()));

    let run = bench.send("what was it about?").await.job;
    bench.worker.drain().await.unwrap();
    let history = History::read(&**store, (&tenant(), &session()), run).await.unwrap();
    let first = history.turns()[0].words();
    assert!(first.contains("They talked about crabs.") && first.contains("crab crab"), "{first}");
    let messages = bench.messages().await;
    assert_eq!(messages.len(), 2 * (asked + 1), "all of it is still there");
    assert!(parts(&messages[0]).iter().any(|part| format!("{part:?}").contains("crab crab")));
    bench.check_history().await;
}

#[tokio::test]
async fn old_results_are_left_out_in_a_long_run() {
    let script = r#"
        model = { context = 8000, output = 400 }

        [[turn]]
        when.round = 12
        do = [{ say = "Enough." }]

        [[turn]]
        do = [{ call = "peek", args = { what = "long" } }, { call = "save", args = { what = "x" } }]
    "#;
    let never = claw_agent::Threshold { warn: 0, stop: 0 };
    let loops =
        claw_agent::LoopLimits { same_call: never, same_result: never, reads: never, ping_pong: never };
    let limits = claw_agent::RunLimits { loops, ..claw_agent::RunLimits::default() };
    let bench = Bench::with(script, limits).await;
    assert_eq!(bench.ask("go").await, "Enough.");
    assert_eq!(bench.results().await.len(), 24);
    // Left as they are, twelve results of two thousand tokens would be read 78 times.
    let usage = bench.deployment.store.usage(&tenant(), &Default::default()).await.unwrap();
    assert!(usage.tokens.input < 13 * 8_000, "what the model read stays in bounds: {}", usage.tokens.input);
}

#[tokio::test]
async fn a_model_that_says_it_is_too_long_is_asked_with_less() {
    let bench = Bench::new(
        r#"
        [[turn]]
        when.first = 2
        do = [{ fail = "too_long", message = "200000 tokens are too many" }]

        [[turn]]
        do = [{ say = "Now it fits." }]
        "#,
    )
    .await;
    assert_eq!(bench.ask(&"word ".repeat(10_000)).await, "Now it fits.");
    assert_eq!(bench.run_states().await, ["began", "ended"]);
}
