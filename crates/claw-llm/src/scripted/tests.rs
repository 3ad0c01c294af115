use std::sync::{Arc, Mutex};
use std::time::Duration;

use claw_core::message::{Args, Part};
use claw_core::port::{Answer, Fault, Model as _, ModelError, Piece, Stop};
use claw_core::store::Tokens;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::Scripted;
use crate::script::Script;
use crate::script::tests::{asked, user};

fn model(script: &str) -> Scripted {
    Scripted::new("demo", "demo", Arc::new(Script::parse("test", script).unwrap()))
}

async fn ask(script: &str) -> (Result<Answer, ModelError>, Vec<String>) {
    let heard = Mutex::new(Vec::new());
    let ear = |piece: Piece<'_>| heard.lock().unwrap().push(format!("{piece:?}"));
    let answer = model(script).ask(&asked([user("go")]), &ear).await;
    (answer, heard.into_inner().unwrap())
}

#[tokio::test]
async fn what_is_heard_is_what_is_answered() {
    let script = "piece = 4\n[[turn]]\ntokens = { input = 5, output = 7 }\ndo = [{ think = 'hmm' }, { say = 'hi there' }, { call = 't', args = { a = 1 }, id = 'x' }]\n[model]\nprices = { input = 1_000_000, output = 2_000_000 }";
    let (answer, heard) = ask(script).await;
    let answer = answer.unwrap();
    let expected = [
        r#"Thinking("hmm")"#,
        r#"Text("hi t")"#,
        r#"Text("here")"#,
        r#"Call { tool: "t" }"#,
        r#"Args("{\"a\"")"#,
        r#"Args(":1}")"#,
    ];
    assert_eq!(heard, expected);
    assert_eq!(answer.stop, Stop::Calls);
    assert_eq!(answer.tokens, Tokens { input: 5, output: 7, ..Tokens::default() });
    assert_eq!(answer.cost, 19);
    let [Part::Thinking { text: thought, .. }, Part::Text { text }, Part::Call(call)] = &answer.parts[..]
    else {
        panic!("{answer:?}")
    };
    assert_eq!((thought.as_str(), text.as_str(), call.tool.as_str()), ("hmm", "hi there", "t"));
    assert_eq!((call.model_id.as_str(), &call.args), ("x", &Args::Json(json!({ "a": 1 }))));
}

#[tokio::test]
async fn calls_have_ids_of_their_own() {
    let (answer, _) = ask("[[turn]]\ndo = [{ call = 't' }, { call = 't' }]").await;
    let parts = answer.unwrap().parts;
    let ids: Vec<_> = parts
        .iter()
        .map(|part| match part {
            Part::Call(call) => (call.call, call.model_id.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_ne!(ids[0].0, ids[1].0);
    assert_ne!(ids[0].1, ids[1].1);
}

#[tokio::test]
async fn arguments_that_are_cut_or_broken_are_known_to_be() {
    let (answer, _) = ask("[[turn]]\ndo = [{ call = 't', args = { text = 'abc' }, cut = 11 }]").await;
    let answer = answer.unwrap();
    assert_eq!(answer.stop, Stop::Length);
    let Part::Call(call) = &answer.parts[0] else { panic!("{answer:?}") };
    assert_eq!(call.args, Args::Broken { text: "{\"text\":\"ab".to_owned(), cut: true });

    let (answer, _) = ask("[[turn]]\ndo = [{ call = 't', args_text = '{oops' }]").await;
    let answer = answer.unwrap();
    assert_eq!(answer.stop, Stop::Calls);
    let Part::Call(call) = &answer.parts[0] else { panic!("{answer:?}") };
    assert_eq!(call.args, Args::Broken { text: "{oops".to_owned(), cut: false });
}

#[tokio::test]
async fn it_fails_half_way_as_told() {
    let (answer, heard) = ask(
        "[[turn]]\ndo = [{ say = 'well' }, { fail = 'rate_limited', retry_after_ms = 1500, message = 'slow down' }]",
    )
    .await;
    let error = answer.unwrap_err();
    assert_eq!(error.fault, Fault::RateLimited { retry_after: Some(Duration::from_millis(1500)) });
    assert_eq!(error.to_string(), "demo/demo: rate limited: slow down");
    assert_eq!(heard, [r#"Text("well")"#]);
}

#[tokio::test(start_paused = true)]
async fn it_takes_its_time() {
    let begun = Instant::now();
    let (answer, heard) =
        ask("piece = 1\ndelay_ms = 1000\n[[turn]]\ndo = [{ say = 'abc' }, { wait_ms = 5000 }, { say = 'de', piece = 2, delay_ms = 1 }]")
            .await;
    assert!(answer.is_ok());
    assert_eq!(heard.len(), 4);
    assert_eq!(begun.elapsed(), Duration::from_millis(8001));
}

#[tokio::test(start_paused = true)]
async fn it_hangs_until_it_is_dropped() {
    let model = model("[[turn]]\ndo = [{ say = 'well' }, { hang = true }]");
    let (question, ear) = (asked([user("go")]), |_: Piece<'_>| {});
    assert!(timeout(Duration::from_secs(86_400), model.ask(&question, &ear)).await.is_err());
}

#[tokio::test]
async fn what_fits_nothing_is_said() {
    let (answer, _) = ask("[[turn]]\nwhen.said = 'x'\ndo = [{ say = 'y' }]").await;
    let error = answer.unwrap_err();
    assert_eq!(error.fault, Fault::BadRequest);
    assert!(
        error.message.contains("no turn of the script `test` matches the last user message `go`"),
        "{error}"
    );
}
