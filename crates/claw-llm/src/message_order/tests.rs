use claw_core::CallId;
use claw_core::image::Image;
use claw_core::message::{Args, Part, Turn};
use claw_core::store::Role;
use serde_json::json;

use super::{Content, Message, arguments, call_id, decimal, messages, short_call_id};
use crate::script::tests::{called, user};

/// The speakers in order, each with what or how much they said.
fn shape(turns: &[Turn]) -> Vec<String> {
    let shape = messages(turns, true).into_iter().map(|message| match message {
        Message::User(said) => {
            let texts = said.iter().map(|content| match content {
                Content::Text(text) => text.to_string(),
                Content::Image { .. } => "picture".to_owned(),
            });
            format!("user {}", texts.collect::<Vec<_>>().join("+"))
        }
        Message::Model(parts) => format!("model {}", parts.len()),
        Message::Results(outcomes) => {
            let texts = outcomes.iter().map(|outcome| outcome.text.as_str());
            format!("results {}", texts.collect::<Vec<_>>().join("+"))
        }
    });
    shape.collect()
}

#[test]
fn a_user_speaks_first_and_last() {
    assert_eq!(shape(&[]), ["user (The conversation goes on.)"]);
    let model = || Turn::text(Role::Assistant, "hi");
    assert_eq!(shape(&[model()]), ["user (The conversation goes on.)", "model 1", "user Go on."]);
    assert_eq!(shape(&[user("a"), model()]), ["user a", "model 1", "user Go on."]);
    assert_eq!(
        shape(&[user("a"), user("b"), model(), model(), user("c")]),
        ["user a+b", "model 2", "user c"]
    );
}

#[test]
fn results_follow_their_calls_wherever_they_were() {
    let [call, result] = called("t", "done", false);
    let expected = ["user a", "model 1", "results done", "user b"];
    assert_eq!(shape(&[user("a"), call.clone(), result.clone(), user("b")]), expected);
    assert_eq!(shape(&[user("a"), call.clone(), user("b"), result.clone()]), expected);
    assert_eq!(shape(&[user("a"), result, user("b")]), ["user a+b"]);
    let unknown = "results no result of this call is known; it may or may not have happened";
    assert_eq!(shape(&[user("a"), call]), ["user a", "model 1", unknown]);
}

#[test]
fn what_is_empty_is_left_out() {
    let thought = Part::Thinking { text: "hm".to_owned(), seal: None };
    let turns = [
        user("a"),
        user("  "),
        Turn { role: Role::Assistant, parts: vec![thought, Part::text(" \n")] },
        Turn { role: Role::User, parts: Vec::new() },
        Turn::text(Role::System, "note"),
    ];
    assert_eq!(shape(&turns), ["user a+[System] note"]);
    let [call, result] = called("t", "", false);
    assert_eq!(shape(&[user("a"), call, result])[2], "results (nothing)");
}

#[test]
fn pictures_become_words_for_who_does_not_see() {
    let picture = Image::new("image/png", &b"\x89PNG"[..]);
    let turns = [Turn { role: Role::User, parts: vec![Part::Image(picture)] }];
    assert_eq!(shape(&turns), ["user picture"]);
    let [Message::User(said)] = &messages(&turns, false)[..] else { panic!("one message") };
    assert_eq!(said[..], [Content::Text("[a picture; this model does not see pictures]".into())]);
}

#[test]
fn an_image_whose_bytes_are_not_at_hand_becomes_words() {
    let mut picture = Image::new("image/png", &b"\x89PNG"[..]);
    picture.unload();
    let expected = format!("user {}", picture.missing());
    let turns = [Turn { role: Role::User, parts: vec![Part::Image(picture)] }];
    assert_eq!(shape(&turns), [expected]);
}

#[test]
fn arguments_go_back_as_objects() {
    let check = |args: Args, expected: serde_json::Value| assert_eq!(json!(arguments(&args)), expected);
    check(Args::Json(json!({ "a": 1 })), json!({ "a": 1 }));
    check(Args::Json(json!([1])), json!({ "value": [1] }));
    check(Args::Broken { text: "{\"a".to_owned(), cut: true }, json!({ "unreadable": "{\"a" }));
}

#[test]
fn ids_have_the_form_that_providers_take() {
    let calls = [(); 1000].map(|()| CallId::new());
    let ids: std::collections::HashSet<String> = calls.iter().map(|call| short_call_id(*call)).collect();
    assert_eq!(ids.len(), 1000);
    assert!(ids.iter().all(|id| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric())));
    assert!(
        calls.iter().all(|call| call_id(*call).len() <= 40 && short_call_id(*call) == short_call_id(*call))
    );
}

#[test]
fn numbers_are_as_they_were_written() {
    assert_eq!(decimal(0.7).to_string(), "0.7");
    assert_eq!(decimal(f32::NAN), serde_json::Value::Null);
}
