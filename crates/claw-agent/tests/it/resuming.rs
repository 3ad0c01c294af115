//! After a crash: calls that have not begun are made; those that have begun are reported and never repeated.

use std::sync::atomic::Ordering;

use claw_core::message::{Args, Part, Wanted};
use claw_core::port::Clock as _;
use claw_core::store::{Claim, NewMessage, Outcome, Role};
use claw_core::{CallId, MessageId};
use claw_testkit::fixture;
use serde_json::json;

use crate::kit::{Bench, LANE, session, tenant, text};

const SCRIPT: &str = r#"
    [[turn]]
    when.result_of = "save"
    do = [{ say = "I see." }]

    [[turn]]
    do = [{ say = "I should not be asked this again." }]
"#;

fn wanted() -> Wanted {
    let call = CallId::new();
    let args = Args::Json(json!({ "what": "x" }));
    Wanted { call, model_id: call.to_string().into(), tool: "save".to_owned(), args, seal: None }
}

/// Makes a run whose program died after it stored these requested calls.
async fn died_with(bench: &Bench, calls: &[Wanted]) {
    bench.send("go").await;
    let (worker, now) = (fixture::worker("local"), bench.clock.now());
    let until = now.plus(std::time::Duration::from_secs(60));
    let claim = Claim { worker, lanes: vec![LANE.into()], now, until };
    let (_, lease) = bench.deployment.store.claim(claim).await.unwrap().unwrap();
    let parts: Vec<Part> = calls.iter().cloned().map(Part::Call).collect();
    let message = NewMessage {
        id: MessageId::new(),
        tenant: tenant(),
        session: session(),
        role: Role::Assistant,
        content: serde_json::to_value(parts).unwrap(),
        at: now,
    };
    bench.deployment.store.say_in_run(&lease, vec![message]).await.unwrap();
}

#[tokio::test]
async fn each_call_is_taken_up_by_what_the_ledger_says_of_it() {
    let mut bench = Bench::new(SCRIPT).await;
    let calls: Vec<Wanted> = (0..5).map(|_| wanted()).collect();
    died_with(&bench, &calls).await;
    let store = &bench.deployment.store;
    let ends = [None, Some(Outcome::Done), Some(Outcome::Failed), Some(Outcome::Unknown), None];
    for (wanted, end) in calls.iter().zip(ends) {
        let Some(end) = end else { continue };
        store.begin_call(fixture::intent(wanted.call, "x", None)).await.unwrap();
        if end != Outcome::Unknown {
            store.finish_call(fixture::outcome(wanted.call, end)).await.unwrap();
        }
    }
    bench.restarted();
    bench.worker.drain().await.unwrap();
    assert_eq!(bench.last_words().await, "I see.");
    let results = bench.results().await;
    let ids: Vec<CallId> = results.iter().map(|told| told.call).collect();
    assert_eq!(ids, calls.iter().map(|wanted| wanted.call).collect::<Vec<_>>());
    let told: Vec<String> = results.iter().map(text).collect();
    assert_eq!((told[0].as_str(), told[4].as_str()), ("saved x", "saved x"));
    assert!(told[1].contains("ran and worked") && told[1].contains("output is lost"), "{}", told[1]);
    assert!(told[2].contains("ran and failed"), "{}", told[2]);
    assert!(told[3].starts_with("unknown: "), "{}", told[3]);
    assert_eq!(results.iter().map(|told| told.failed).collect::<Vec<_>>(), [false, false, true, true, false]);
    assert_eq!(bench.world.writes.load(Ordering::SeqCst), 2, "those that had begun are not repeated");
    assert_eq!(bench.run_states().await, ["resumed", "ended"]);
    bench.check_history().await;
}

#[tokio::test]
async fn a_run_that_is_given_up_says_what_nobody_knows() {
    let limits = claw_agent::RunLimits { attempts: 1, ..claw_agent::RunLimits::default() };
    let mut bench = Bench::with(SCRIPT, limits).await;
    let calls = [wanted(), wanted()];
    died_with(&bench, &calls).await;
    bench.deployment.store.begin_call(fixture::intent(calls[1].call, "x", None)).await.unwrap();
    bench.restarted();
    bench.worker.drain().await.unwrap();
    let told: Vec<String> = bench.results().await.iter().map(text).collect();
    assert_eq!(told[0], "not made: the run had been given up");
    assert!(told[1].starts_with("unknown: "), "{}", told[1]);
    assert_eq!(bench.world.writes.load(Ordering::SeqCst), 0);
    assert_eq!(bench.roles().await, [Role::User, Role::Assistant, Role::Tool, Role::System]);
    bench.check_history().await;
}

#[tokio::test]
async fn what_was_told_before_the_crash_is_not_asked_for_again() {
    let mut bench = Bench::new(
        r#"
        [[turn]]
        when.result_of = "save"
        when.first = 1
        do = [{ fail = "connection", message = "gone" }]

        [[turn]]
        when.result_of = "save"
        do = [{ say = "It said: {{result}}" }]

        [[turn]]
        do = [{ call = "save", args = { what = "x" } }]
        "#,
    )
    .await;
    bench.send("go").await;
    bench.worker.drain().await.unwrap();
    bench.clock.advance(std::time::Duration::from_secs(60));
    bench.restarted();
    bench.worker.drain().await.unwrap();
    assert_eq!(bench.last_words().await, "It said: saved x");
    assert_eq!(bench.world.writes.load(Ordering::SeqCst), 1);
    bench.check_history().await;
}
