use std::sync::Mutex;

use claw_core::message::{Args, Part};
use claw_core::port::{Piece, Question};
use serde_json::{Value, json};

use super::OpenAi;
use crate::collect_answer::Gather;
use crate::known_models::traits;
use crate::script::tests::{asked, called, user};
use crate::wire::Wire as _;

fn body(host: &str, question: &Question) -> Value {
    let known = traits("m");
    let card = claw_core::port::ModelCard {
        provider: "p".into(),
        model: "m".into(),
        context: known.context,
        output: known.output,
        images: false,
        prices: known.prices,
        demo: false,
    };
    OpenAi::at(host).body(question, &card)
}

#[test]
fn servers_that_differ_are_sent_what_they_take() {
    let question =
        Question { thinking: Some(4_000), ..asked([user("a")].into_iter().chain(called("t", "b", false))) };
    let check = |host: &str, key: &str, expected: Value| {
        assert_eq!(body(host, &question)[key], expected, "{host} {key}");
    };
    check("api.openai.com", "max_completion_tokens", json!(8192));
    check("api.openai.com", "reasoning_effort", json!("medium"));
    check("api.openai.com.evil.example", "max_completion_tokens", Value::Null);
    check("notopenai.com", "max_tokens", json!(8192));
    check("localhost", "max_tokens", json!(8192));
    check("localhost", "reasoning_effort", Value::Null);
    check("openrouter.ai", "reasoning", json!({ "max_tokens": 4_000 }));
    check("api.mistral.ai", "stream_options", Value::Null);
    check("api.groq.com", "stream_options", json!({ "include_usage": true }));
    let id = body("api.mistral.ai", &question)["messages"][1]["tool_calls"][0]["id"].as_str().unwrap().len();
    assert_eq!(id, 9);
}

#[test]
fn thoughts_go_back_while_tools_are_called_to_who_wants_them() {
    let [mut call, result] = called("t", "b", false);
    call.parts.insert(0, Part::Thinking { text: "hm".to_owned(), seal: None });
    let current = asked([user("a"), call.clone(), result.clone()]);
    let message =
        |host: &str, question: &Question| body(host, question)["messages"][1]["reasoning_content"].clone();
    assert_eq!(message("api.deepseek.com", &current), json!("hm"));
    assert_eq!(message("api.openai.com", &current), Value::Null);
    let past = asked([user("a"), call, result, user("b")]);
    assert_eq!(message("api.deepseek.com", &past), Value::Null);
}

/// The calls in these deltas, and the pieces heard.
fn calls(deltas: &[Value]) -> (Vec<String>, String) {
    let heard = Mutex::new(String::new());
    let ear = |piece: Piece<'_>| match piece {
        Piece::Call { tool } => heard.lock().unwrap().push_str(&format!("<{tool}>")),
        Piece::Args(text) => heard.lock().unwrap().push_str(text),
        _ => {}
    };
    let mut gather = Gather::new(&ear);
    let mut reader = OpenAi::at("").reader();
    for calls in deltas {
        let chunk = json!({ "choices": [{ "delta": { "tool_calls": calls } }] });
        reader.event(&chunk.to_string(), &mut gather).unwrap();
    }
    reader.event("[DONE]", &mut gather).unwrap();
    assert!(reader.is_whole());
    let parts = gather.finish().0;
    let calls = parts.iter().map(|part| match part {
        Part::Call(call) => match &call.args {
            Args::Json(args) => format!("{} {args}", call.tool),
            Args::Broken { text, .. } => format!("{} broken {text}", call.tool),
        },
        other => panic!("{other:?}"),
    });
    (calls.collect(), heard.into_inner().unwrap())
}

#[test]
fn calls_are_told_apart_however_they_are_numbered() {
    let expected = vec!["a {\"x\":1}".to_owned(), "b {}".to_owned()];
    let check = |deltas: &[Value]| assert_eq!(calls(deltas).0, expected, "{deltas:?}");
    let call = |index: Value, id: Value, name: Value, args: &str| json!([{ "index": index, "id": id, "function": { "name": name, "arguments": args } }]);
    let none = Value::Null;
    // As OpenAI does.
    check(&[
        call(json!(0), json!("1"), json!("a"), ""),
        call(json!(0), none.clone(), none.clone(), "{\"x\""),
        call(json!(0), none.clone(), none.clone(), ":1}"),
        call(json!(1), json!("2"), json!("b"), "{}"),
    ]);
    // All calls with the same index.
    check(&[
        call(json!(0), json!("1"), json!("a"), "{\"x\":1}"),
        call(json!(0), json!("2"), json!("b"), "{}"),
    ]);
    // No index.
    check(&[
        call(none.clone(), json!("1"), json!("a"), "{\"x\""),
        call(none.clone(), none.clone(), none.clone(), ":1}"),
        call(none.clone(), json!("2"), json!("b"), ""),
    ]);
    // Id and name with every piece.
    check(&[
        call(json!(0), json!("1"), json!("a"), "{\"x\""),
        call(json!(0), json!("1"), json!("a"), ":1}"),
        call(json!(1), json!("2"), json!("b"), "{}"),
    ]);
    // Empty ids.
    check(&[
        call(json!(0), json!(""), json!("a"), "{\"x\":1}"),
        call(json!(1), json!(""), json!("b"), ""),
        call(json!(1), json!(""), json!(""), "{}"),
    ]);
    // The name after the id.
    check(&[
        call(json!(0), json!("1"), none.clone(), ""),
        call(json!(0), none, json!("a"), "{\"x\":1}"),
        call(json!(1), json!("2"), json!("b"), "{}"),
    ]);
    // Whole calls without index or id.
    let whole = |name: &str, args: Value| json!({ "function": { "name": name, "arguments": args } });
    check(&[json!([whole("a", json!({ "x": 1 })), whole("b", json!({}))])]);
}

#[test]
fn only_the_last_call_is_heard() {
    let piece = |index: u64, name: Value, args: &str| json!([{ "index": index, "id": format!("{index}"), "function": { "name": name, "arguments": args } }]);
    let (told, heard) = calls(&[
        piece(0, json!("a"), "["),
        piece(1, json!("b"), "["),
        piece(0, Value::Null, "1]"),
        piece(1, Value::Null, "2]"),
    ]);
    assert_eq!(told, ["a [1]", "b [2]"]);
    assert_eq!(heard, "<a>[<b>[2]");
}
