//! A run ends by its limits, and if it goes in circles.

use claw_agent::{LoopLimits, RunLimits, Threshold};

use crate::kit::{Bench, shown, text};

/// A model that never stops by itself.
const ENDLESS: &str = r#"
    [[turn]]
    when.may_call = false
    do = [{ say = "I stop." }]

    [[turn]]
    do = [{ call = "save", args = { what = "something" } }, { call = "peek", args = { what = "new" } }]
"#;

pub(crate) fn patient() -> RunLimits {
    let never = Threshold { warn: 0, stop: 0 };
    let loops = LoopLimits { same_call: never, same_result: never, reads: never, ping_pong: never };
    RunLimits { loops, ..RunLimits::default() }
}

#[track_caller]
fn check_limited(events: &[claw_core::store::SessionEvent]) {
    let last = shown(events.last().unwrap());
    assert_eq!((&last["state"], &last["end"]), (&"ended".into(), &"limited".into()));
}

#[tokio::test]
async fn the_last_answer_may_call_nothing() {
    let bench = Bench::with(ENDLESS, RunLimits { iterations: 4, ..patient() }).await;
    assert_eq!(bench.ask("go").await, "I stop.");
    assert_eq!(bench.results().await.len(), 6, "three answers with calls, and a last one");
    check_limited(&bench.events().await);
    bench.check_history().await;
}

#[tokio::test]
async fn calls_beyond_the_limit_are_not_made() {
    let bench = Bench::with(ENDLESS, RunLimits { calls: 3, ..patient() }).await;
    assert_eq!(bench.ask("go").await, "I stop.");
    let results = bench.results().await;
    let made: Vec<bool> = results.iter().map(|told| !told.failed).collect();
    assert_eq!(made, [true, true, true, false]);
    assert_eq!(text(&results[3]), "not made: the limit of 3 calls in one run is reached");
    check_limited(&bench.events().await);
    bench.check_history().await;
}

#[tokio::test]
async fn what_may_be_spent_is_a_limit() {
    let script = format!(
        "model.prices = {{ input = 1000000, output = 0, cache_read = 0, cache_write = 0 }}\n{ENDLESS}"
    );
    let bench = Bench::with(&script, RunLimits { cost_micros: Some(1), ..patient() }).await;
    assert_eq!(bench.ask("go").await, "I stop.");
    assert_eq!(bench.results().await.len(), 2, "the first answer costs more than that");
    check_limited(&bench.events().await);
}

#[tokio::test]
async fn the_model_is_nudged_near_the_limit() {
    let script = r#"
        [[turn]]
        when.system = "near its limits: 2 more answers"
        do = [{ say = "I come to an end." }]

        [[turn]]
        do = [{ call = "save", args = { what = "something" } }]
    "#;
    let bench = Bench::with(script, RunLimits { iterations: 5, ..patient() }).await;
    assert_eq!(bench.ask("go").await, "I come to an end.");
    assert_eq!(shown(&bench.events().await.pop().unwrap())["end"], "answered");
}

#[tokio::test]
async fn a_run_in_circles_is_warned_and_then_stopped() {
    let script = r#"
        [[turn]]
        when.may_call = false
        when.system = "with the same arguments and gave the same result"
        do = [{ say = "I went in circles." }]

        [[turn]]
        do = [{ call = "peek", args = { what = "x" } }]
    "#;
    let bench = Bench::new(script).await;
    assert_eq!(bench.ask("go").await, "I went in circles.");
    let results: Vec<String> = bench.results().await.iter().map(text).collect();
    assert_eq!(results.len(), 5);
    assert_eq!(results[0], "x");
    assert!(results[2].contains("[note] `peek` was called 3 times"), "{}", results[2]);
    assert!(!results[3].contains("[note]"), "told once: {}", results[3]);
    check_limited(&bench.events().await);
    bench.check_history().await;
}

#[tokio::test]
async fn the_time_of_a_run_holds_for_a_tool_that_runs() {
    let script = r#"
        [[turn]]
        when.result_of = "hang"
        do = [{ say = "It took too long." }]

        [[turn]]
        do = [{ call = "hang", args = { what = "x" } }]
    "#;
    let bench = Bench::with(script, RunLimits { seconds: 1, ..patient() }).await;
    assert_eq!(bench.ask("go").await, "It took too long.");
    let results = bench.results().await;
    assert!(results[0].failed && text(&results[0]).contains("longer than 1 s"), "{}", text(&results[0]));
}

#[tokio::test]
async fn a_model_that_takes_longer_than_the_run_may_is_told_from_one_that_was_stopped() {
    let script = "[[turn]]\ndo = [{ say = \"I think\" }, { hang = true }]";
    let bench = Bench::with(script, RunLimits { seconds: 1, ..patient() }).await;
    assert_eq!(bench.ask("go").await, "the run ends here: it reached its time limit of 1 seconds");
    check_limited(&bench.events().await);
    bench.check_history().await;
}
