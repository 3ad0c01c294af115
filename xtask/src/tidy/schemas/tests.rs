use serde_json::{Value, json};

use super::refuse;

#[track_caller]
fn check(schema: Value, expected: Option<&str>) {
    let says = refuse(&schema);
    match expected {
        None => assert_eq!(says, None),
        Some(expected) => assert!(says.as_deref().is_some_and(|s| s.contains(expected)), "{says:?}"),
    }
}

#[test]
fn objects_are_fine() {
    check(json!({ "type": "object", "properties": {} }), None);
    let inner = json!({ "type": "object", "properties": { "a": { "anyOf": [] } } });
    check(inner, None);
}

#[test]
fn other_roots_are_refused() {
    check(json!({ "type": "string" }), Some("are not an object"));
    check(json!({ "type": ["object", "null"], "properties": {} }), Some("are not an object"));
    check(json!(true), Some("are not an object"));
    check(json!({ "type": "object" }), Some("have no `properties`"));
}

#[test]
fn unions_at_the_root_are_refused() {
    for key in ["oneOf", "anyOf", "allOf"] {
        let mut schema = json!({ "type": "object", "properties": {} });
        schema[key] = json!([]);
        check(schema, Some(key));
    }
}
