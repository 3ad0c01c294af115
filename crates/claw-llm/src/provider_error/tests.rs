use std::time::Duration;

use claw_core::port::Fault;
use serde_json::json;

use super::{of_error, of_status, retry_after};

const LIMITED: Fault = Fault::RateLimited { retry_after: None };

#[track_caller]
fn check(status: u16, body: &str, expected: Fault) {
    let trouble = of_status(status, None, body.as_bytes());
    assert_eq!(trouble.fault, expected, "{}", trouble.message);
}

#[test]
fn statuses_say_what_kind_it_is() {
    check(401, "", Fault::Unauthorised);
    check(403, "{}", Fault::Unauthorised);
    check(404, r#"{"error":{"message":"model not found"}}"#, Fault::NotSetUp);
    check(408, "", Fault::TimedOut);
    check(402, r#"{"error":{"message":"insufficient credits"}}"#, LIMITED);
    check(429, "<html>", LIMITED);
    check(413, "", Fault::TooLong);
    check(500, "", Fault::Unavailable);
    check(
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        Fault::Unavailable,
    );
    check(302, "", Fault::BadRequest);
    check(400, r#"{"error":{"message":"bad"}}"#, Fault::BadRequest);
}

#[test]
fn words_say_what_the_status_does_not() {
    check(
        400,
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#,
        Fault::TooLong,
    );
    check(
        400,
        r#"{"error":{"message":"prompt is too long: 200001 tokens > 200000 maximum"}}"#,
        Fault::TooLong,
    );
    check(
        400,
        r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum"}}"#,
        Fault::TooLong,
    );
    check(500, r#"{"error":"the request exceeds the available context size"}"#, Fault::TooLong);
    check(
        400,
        r#"[{"error":{"code":400,"message":"API key not valid. Please pass one."}}]"#,
        Fault::Unauthorised,
    );
}

#[test]
fn what_was_said_is_kept_short() {
    let said =
        of_status(400, None, r#"{"error":{"message":"temperature must be below 2"}}"#.as_bytes()).message;
    assert_eq!(said, "status 400: temperature must be below 2");
    assert_eq!(of_status(400, None, r#"{"detail":"no"}"#.as_bytes()).message, "status 400: no");
    assert_eq!(of_status(503, None, b"").message, "status 503: no details");
    let page = format!("<html>\n\n{}</html>", "x ".repeat(5_000));
    assert!(of_status(502, None, page.as_bytes()).message.len() < 450);
}

#[test]
fn errors_in_a_stream_are_told_apart() {
    let check =
        |error: serde_json::Value, expected: Fault| assert_eq!(of_error(&error).fault, expected, "{error}");
    check(json!({ "error": { "type": "overloaded_error", "message": "Overloaded" } }), Fault::Unavailable);
    check(json!({ "error": { "type": "rate_limit_error", "message": "slow" } }), LIMITED);
    check(json!({ "error": { "code": 429, "message": "slow" } }), LIMITED);
    check(json!({ "error": { "code": 503, "status": "UNAVAILABLE", "message": "m" } }), Fault::Unavailable);
    check(json!({ "error": { "type": "authentication_error", "message": "m" } }), Fault::Unauthorised);
    check(
        json!({ "error": { "type": "invalid_request_error", "message": "prompt is too long" } }),
        Fault::TooLong,
    );
    check(json!({ "error": { "type": "invalid_request_error", "message": "m" } }), Fault::BadRequest);
    check(json!({ "error": "server exploded" }), Fault::Unavailable);
}

#[test]
fn when_to_try_again_is_read_in_every_form() {
    let now = "1994-11-06T08:49:37Z".parse().unwrap();
    let check = |name: &'static str, value: &str, expected: Option<Duration>| {
        let found = retry_after(|asked| (asked == name).then(|| value.to_owned()), now);
        assert_eq!(found, expected, "{name}: {value}");
    };
    check("retry-after", "7", Some(Duration::from_secs(7)));
    check("retry-after", " 1.5 ", Some(Duration::from_millis(1500)));
    check("retry-after-ms", "250", Some(Duration::from_millis(250)));
    check("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT", Some(Duration::from_secs(60)));
    check("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(Duration::ZERO));
    for wrong in ["", "soon", "-1", "1e400", "NaN", "inf"] {
        check("retry-after", wrong, None);
    }
    let body = json!([{ "error": { "code": 429, "message": "m", "details": [{ "x": 1 }, { "retryDelay": "3.5s" }] } }]);
    let trouble = of_status(429, None, body.to_string().as_bytes());
    assert_eq!(trouble.fault, Fault::RateLimited { retry_after: Some(Duration::from_millis(3500)) });
}
