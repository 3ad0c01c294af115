//! Tools of the client: a call of one ends the run, and the next message brings its result.

use claw_agent::{Acceptance, ClientTool, ClientTools, History, Order, client_result};
use claw_core::ToolName;
use claw_core::message::{Part, Wanted};
use claw_core::port::Clock as _;
use claw_core::store::{Accepted, JobState};
use serde_json::json;

use crate::kit::{Bench, LANE, order, owner, session, shown, tenant, text};

const SCRIPT: &str = r#"
[[turn]]
when.said = "broken"
when.result_matches = "not JSON"
do = [{ say = "I am sorry." }]

[[turn]]
when.result_of = "locate"
do = [{ say = "You are in {{result}}." }]

[[turn]]
when.said = "both"
do = [{ call = "peek", args = { what = "a map" } }, { call = "locate", args = {} }, { call = "locate", args = {} }]

[[turn]]
when.said = "broken"
do = [{ call = "locate", args_text = "{" }]

[[turn]]
when.said = "where"
do = [{ say = "Let me ask." }, { call = "locate", args = {} }]

[[turn]]
do = [{ say = "You said: {{said}}" }]
"#;

fn with_tools() -> Order {
    let name = ToolName::new("locate").unwrap();
    let tool = ClientTool {
        name,
        description: "Where the user is.".to_owned(),
        parameters: json!({ "type": "object" }),
    };
    Order { client: ClientTools { tools: vec![tool], ..ClientTools::default() }, ..order() }
}

async fn send(bench: &Bench, parts: &[Part]) -> Accepted {
    let place = Acceptance { lane: LANE, at: bench.clock.now(), lineage: None, priority: 0, after: None };
    let accepted = with_tools().accept(&*bench.deployment.store, &owner(), parts, place).await.unwrap();
    bench.worker.drain().await.unwrap();
    accepted
}

async fn open(bench: &Bench, run: &Accepted) -> Vec<Wanted> {
    let (tenant, session) = (tenant(), session());
    History::read(&*bench.deployment.store, &tenant, &session, run.job).await.unwrap().open_calls()
}

async fn last_end(bench: &Bench) -> serde_json::Value {
    let events = bench.events().await;
    shown(events.iter().rev().find(|event| event.what.kind() == "run").unwrap())["end"].clone()
}

#[tokio::test]
async fn a_call_of_the_clients_ends_the_run_and_its_result_goes_on() {
    let bench = Bench::new(SCRIPT).await;
    let run = send(&bench, &[Part::text("where")]).await;
    assert_eq!(last_end(&bench).await, "called");
    assert_eq!(bench.state(run.job).await, JobState::Done);
    let open = open(&bench, &run).await;
    assert_eq!(open.len(), 1);
    let store = &bench.deployment.store;
    assert!(!store.is_untrusted(&tenant(), &session()).await.unwrap());
    send(&bench, &[client_result(&open[0], "Berlin")]).await;
    assert_eq!(bench.last_words().await, "You are in Berlin.");
    assert_eq!(last_end(&bench).await, "answered");
    assert!(store.is_untrusted(&tenant(), &session()).await.unwrap(), "the client's words are others' words");
    bench.check_history().await;
    send(&bench, &[Part::text("and now")]).await;
    assert_eq!(bench.last_words().await, "You said: and now");
    bench.check_history().await;
}

#[tokio::test]
async fn our_calls_are_made_and_missing_results_are_settled() {
    let bench = Bench::new(SCRIPT).await;
    let run = send(&bench, &[Part::text("both")]).await;
    assert_eq!(bench.results().await.iter().map(text).collect::<Vec<_>>(), ["a map"]);
    let open = open(&bench, &run).await;
    assert_eq!(open.len(), 2);
    // One of two results, and a question beside it.
    send(&bench, &[client_result(&open[1], "Rome"), Part::text("thanks")]).await;
    bench.check_history().await;
    send(&bench, &[Part::text("both")]).await;
    send(&bench, &[Part::text("never mind")]).await;
    assert_eq!(bench.last_words().await, "You said: never mind");
    bench.check_history().await;
}

#[tokio::test]
async fn arguments_that_are_not_json_are_the_models_to_mend() {
    let bench = Bench::new(SCRIPT).await;
    send(&bench, &[Part::text("broken")]).await;
    assert_eq!(bench.last_words().await, "I am sorry.");
    assert_eq!(last_end(&bench).await, "answered");
}
