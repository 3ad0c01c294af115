//! Messages contain no secret, not even its beginning.

use serde_json::{Value, json};

use crate::validate::{Validator, parse};

const SECRET: &str =
    "Zq8-veryprivatevalue-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ-end";

/// Removes the secret from the whole text, and all fields called password.
fn redact(args: &Value) -> Value {
    let text = args.to_string().replace(SECRET, "[REDACTED]");
    let mut args = serde_json::from_str(&text).unwrap_or(Value::String(text));
    if let Some(password) = args.get_mut("password") {
        *password = json!("[REDACTED]");
    }
    args
}

#[track_caller]
fn told(args: Value, message: &str) {
    let schema = json!({
        "type": "object",
        "properties": {
            "times": { "type": "integer" },
            "password": { "type": "integer" },
            "list": { "type": "array", "items": { "type": "object", "properties": { "a": { "type": "integer" } } } },
            "map": { "type": "object", "additionalProperties": { "type": "integer" } },
        },
        "additionalProperties": false,
    });
    let validator = Validator::compile(&schema).unwrap();
    let told = match validator.check(args, &redact) {
        Ok(checked) => checked.notes.join(", "),
        Err(error) => error.to_string().split("; the fields").next().unwrap().to_owned(),
    };
    assert_eq!(told, message);
}

#[test]
fn values_are_redacted_before_they_are_cut() {
    let long = format!("some words before it: {SECRET}");
    told(
        json!({ "times": long }),
        "`times`: expected an integer, got the string \"some words before it: [REDACTED]\"",
    );
    told(
        json!({ "list": [{ "a": [long] }] }),
        "`list[0].a`: expected an integer, got the list [\"some words before it: [REDACTED]\"]",
    );
    told(json!({ "password": "x" }), "`password`: expected an integer, got the string \"[REDACTED]\"");
}

#[test]
fn names_are_redacted_before_they_are_cut() {
    told(json!({ SECRET: 1 }), "`[REDACTED]` is not a field");
    told(json!({ "map": { SECRET: "x" } }), "`map.[REDACTED]`: expected an integer, got a string");
    told(json!({ "map": { SECRET: "1" } }), "`map.[REDACTED]`: [REDACTED] was taken as [REDACTED]");
}

#[test]
fn notes_are_redacted() {
    told(json!({ "password": "12345" }), "`password`: \"[REDACTED]\" was taken as [REDACTED]");
    let hidden = format!("{{\"a\": \"{}\"}}", SECRET.replace('Z', "\\u005a"));
    told(
        json!({ "map": hidden }),
        "`map.a`: expected an integer, got the string \"[REDACTED]\" (otherwise `map`: [REDACTED] was taken as {\"a\":\"[REDACTED]\"})",
    );
}

#[test]
fn text_that_is_no_json_is_not_quoted() {
    for text in [
        SECRET.to_owned(),
        format!("{{{SECRET}: 1}}"),
        format!("{{\"a\": {SECRET}}}"),
        format!("{{\"a\": 1}} {SECRET}"),
        format!("{{\"{SECRET}\" 1}}"),
        format!("\"\\{SECRET}\""),
    ] {
        let error = parse(&text, 1000).unwrap_err().to_string();
        assert!(!error.contains("Zq8") && !error.contains("private"), "{error}");
    }
}
