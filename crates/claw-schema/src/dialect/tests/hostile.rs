//! Schemas that try to make the renderer hang, overflow or swell.

use std::mem;

use serde_json::{Map, Value, json};

use crate::dialect::{Dialect, estimate_tokens};

fn survives(schema: &Value) {
    for dialect in Dialect::ALL {
        let rendered = dialect.schema(schema);
        assert_eq!(rendered["type"], "object", "{dialect:?}");
        assert!(rendered.to_string().len() < 4 << 20, "{dialect:?}");
    }
}

/// Builds the schema by hand, since `json!` walks its input. Dropping it would overflow the stack, so it is
/// leaked.
fn nested(names: &[&str]) {
    let wrap = |inner, name: &&str| match *name {
        "[" => Value::Array(vec![inner]),
        name => Value::Object(Map::from_iter([(name.to_owned(), inner)])),
    };
    let schema = (0..10_000).fold(json!({}), |inner, _| names.iter().fold(inner, wrap));
    survives(&schema);
    mem::forget(schema);
}

#[test]
fn nesting_ten_thousand_deep() {
    nested(&["a", "properties"]);
    nested(&["items"]);
    nested(&["[", "allOf"]);
    nested(&["[", "anyOf"]);
    nested(&["additionalProperties"]);
    nested(&["const"]);
    nested(&["default"]);
    nested(&["["]);
}

#[test]
fn references_in_a_ring() {
    survives(&json!({ "$ref": "#" }));
    survives(&json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }));
    survives(
        &json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
    );
    survives(
        &json!({ "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#" }, "c": { "items": { "$ref": "#" } } } }),
    );
}

#[test]
fn references_that_double_at_each_step() {
    for keyword in ["allOf", "anyOf", "oneOf", "prefixItems"] {
        let mut definitions = Map::new();
        for step in 0..60 {
            let next = json!({ "$ref": format!("#/$defs/d{}", step + 1) });
            definitions
                .insert(format!("d{step}"), json!({ keyword: [next, { "properties": { "x": next } }] }));
        }
        survives(&json!({ "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions }));
        survives(&json!({ "$ref": "#/$defs/d0", "$defs": definitions }));
    }
}

#[test]
fn many_values_and_alternatives() {
    let names: Vec<String> = (0..20_000).map(|index| format!("value-{index}")).collect();
    survives(&json!({ "properties": { "a": { "enum": names } } }));
    survives(
        &json!({ "allOf": [{ "properties": { "a": { "enum": names } } }, { "properties": { "a": { "enum": names, "type": "string" } } }] }),
    );
    let branches: Vec<Value> = (0..5_000)
        .map(|index| json!({ "properties": { format!("p{index}"): { "type": "string" } } }))
        .collect();
    survives(&json!({ "anyOf": branches }));
    survives(&json!({ "properties": { "a": { "oneOf": branches } } }));
}

#[test]
fn keywords_with_values_of_the_wrong_kind() {
    let kinds = [json!(null), json!(5), json!("x"), json!([1]), json!({ "a": 1 }), json!(true)];
    for keyword in [
        "type",
        "properties",
        "items",
        "required",
        "enum",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "additionalProperties",
        "patternProperties",
        "prefixItems",
        "minimum",
        "exclusiveMinimum",
        "minLength",
        "description",
        "not",
        "format",
    ] {
        for kind in &kinds {
            survives(&json!({ keyword: kind }));
            survives(&json!({ "properties": { "a": { keyword: kind } } }));
            estimate_tokens(&json!({ keyword: kind }));
        }
    }
}
