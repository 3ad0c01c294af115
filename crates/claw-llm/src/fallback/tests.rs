use std::sync::{Arc, Mutex};

use claw_core::port::{Answer, Fault, Model, ModelError, Piece};

use super::WithFallbacks;
use crate::script::Script;
use crate::script::tests::{asked, user};
use crate::scripted::Scripted;

async fn ask(steps: &[&str]) -> (Result<Answer, ModelError>, Vec<String>) {
    let mut models = steps.iter().zip(["a", "b", "c"]).map(|(steps, name)| {
        let script = Script::parse(name, &format!("[[turn]]\ndo = [{steps}]")).unwrap();
        Arc::new(Scripted::new(name, "m", Arc::new(script))) as Arc<dyn Model>
    });
    let first = models.next().unwrap();
    let model = WithFallbacks::of(first, models.collect());
    let heard = Mutex::new(Vec::new());
    let ear = |piece: Piece<'_>| heard.lock().unwrap().push(format!("{piece:?}"));
    let answer = model.ask(&asked([user("go")]), &ear).await;
    (answer, heard.into_inner().unwrap())
}

#[tokio::test]
async fn the_next_one_answers_where_one_fails() {
    let (answer, heard) =
        ask(&["{ fail = 'unavailable' }", "{ fail = 'unauthorised' }", "{ say = 'hi' }"]).await;
    assert_eq!(answer.unwrap().provider, "c");
    assert_eq!(heard, [r#"Text("hi")"#]);
}

#[tokio::test]
async fn what_was_heard_of_a_failure_is_taken_back() {
    let (answer, heard) = ask(&["{ say = 'hal' }, { fail = 'connection' }", "{ say = 'hi' }"]).await;
    assert!(answer.is_ok());
    let again = r#"Again { reason: "a/m: connection failed: the script says so" }"#;
    assert_eq!(heard, [r#"Text("hal")"#, again, r#"Text("hi")"#]);
}

#[tokio::test]
async fn where_all_fail_the_first_is_to_blame_and_all_are_named() {
    let (answer, _) = ask(&["{ fail = 'rate_limited' }", "{ fail = 'garbled' }"]).await;
    let error = answer.unwrap_err();
    assert_eq!(error.fault, Fault::RateLimited { retry_after: None });
    let expected = "a/m: rate limited: the script says so; then b/m: unreadable answer: the script says so";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_given_back() {
    let (answer, _) = ask(&["{ fail = 'too_long' }", "{ say = 'hi' }"]).await;
    assert_eq!(answer.unwrap_err().fault, Fault::TooLong);
}
