//! Work is bounded, and ordinary schemas never reach the bound.

use serde_json::{Map, Value, json};

use crate::validate::{SchemaError, Validator};

fn nested(depth: usize, name: &str, innermost: Value) -> Value {
    (0..depth).fold(innermost, |inner, _| json!({ name: inner }))
}

#[track_caller]
fn check(schema: &Value, args: Value, expected: &str) {
    let told = match Validator::compile(schema).unwrap().check(args, &Value::clone) {
        Ok(_) => "fits".to_owned(),
        Err(error) => error.to_string(),
    };
    assert!(told.starts_with(expected), "{told}");
}

const TOO_LONG: &str = "checking these arguments against the tool's schema would take too long";
const UNEXPLAINED: &str = "the arguments do not match the schema; finding out where would take too long";

#[test]
fn ordinary_recursion_is_taken_to_the_deepest_level() {
    let list = json!({ "type": "object", "properties": { "next": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] } } });
    check(&list, nested(120, "next", json!({})), "fits");
    let tree = json!({ "type": "object", "properties": { "children": { "type": "array", "items": { "$ref": "#" } } } });
    check(&tree, (0..60).fold(json!({}), |inner, _| json!({ "children": [inner, {}] })), "fits");
    let operator = |kind: &str| {
        json!({
            "type": "object",
            "properties": { "type": { "const": kind }, "left": { "$ref": "#/$defs/E" }, "right": { "$ref": "#/$defs/E" } },
            "required": ["type", "left", "right"],
        })
    };
    let expression = json!({
        "type": "object",
        "properties": { "e": { "$ref": "#/$defs/E" } },
        "$defs": { "E": { "oneOf": [operator("add"), operator("mul"), operator("sub"), operator("div"), { "type": "integer" }] } },
    });
    let deep = |leaf: Value| (0..60).fold(leaf, |left, _| json!({ "type": "mul", "left": left, "right": 1 }));
    check(&expression, json!({ "e": deep(json!(1)) }), "fits");
    check(&expression, json!({ "e": deep(json!("x")) }), UNEXPLAINED);
    let any: Value =
        ["string", "number", "boolean", "null"].iter().map(|name| json!({ "type": name })).collect();
    let mut any = any.as_array().unwrap().clone();
    any.push(json!({ "type": "array", "items": { "$ref": "#/$defs/J" } }));
    any.push(json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/J" } }));
    let json = json!({ "type": "object", "properties": { "v": { "$ref": "#/$defs/J" } }, "$defs": { "J": { "anyOf": any } } });
    check(&json, json!({ "v": nested(120, "x", json!([1, "a", null])) }), "fits");
}

#[test]
fn large_arguments_fit() {
    let schema = json!({ "type": "object", "properties": { "a": { "items": { "type": "integer" } } } });
    check(&schema, json!({ "a": vec![1; 500_000] }), "fits");
    let mut many = vec![json!(1); 50_000];
    many.push(json!(1.5));
    check(&schema, json!({ "a": many }), "`a[50000]`: expected an integer, got the number 1.5");
}

#[test]
fn refuses_alternatives_that_double_at_each_level() {
    for key in ["allOf", "anyOf", "oneOf"] {
        let two = json!({ "type": "object", "properties": { "a": { key: [{ "$ref": "#/$defs/n" }, { "$ref": "#/$defs/m" }] }, "z": { "type": "integer" } } });
        let schema = json!({ "type": "object", "$defs": { "n": two, "m": two }, "$ref": "#/$defs/n" });
        check(&schema, nested(100, "a", json!({ "z": "no" })), UNEXPLAINED);
    }
}

/// Not recursive, so the validator caches nothing.
#[test]
fn refuses_definitions_that_double_at_each_level() {
    let mut definitions = Map::new();
    for step in 0..60 {
        let next = json!({ "$ref": format!("#/$defs/d{}", step + 1) });
        definitions.insert(format!("d{step}"), json!({ "properties": { "a": { "allOf": [next, next] } } }));
    }
    definitions.insert("d60".into(), json!({ "type": "object" }));
    let schema = json!({ "type": "object", "$ref": "#/$defs/d0", "$defs": definitions });
    check(&schema, nested(5, "a", json!({})), "fits");
    check(&schema, nested(60, "a", json!({})), TOO_LONG);
}

#[test]
fn refuses_what_asks_for_the_evaluated_fields_again_and_again() {
    let schema = (0..55).fold(
        json!({ "type": "object" }),
        |inner, _| json!({ "allOf": [inner], "unevaluatedProperties": { "type": "integer" } }),
    );
    assert_eq!(Validator::compile(&schema).unwrap_err(), SchemaError::Excessive("convoluted"));
}

#[test]
fn refuses_long_ways_through_definitions() {
    for links in [600, 20_000] {
        let link = |n: usize| {
            (
                format!("d{n}"),
                json!({ "properties": { "a": { "$ref": format!("#/$defs/d{}", (n + 1) % links) } } }),
            )
        };
        let definitions: Map<_, _> = (0..links).map(link).collect();
        let schema = json!({ "type": "object", "$ref": "#/$defs/d0", "$defs": definitions });
        assert!(Validator::compile(&schema).is_err());
    }
}

/// Many steps on each level, so that all levels together are too much for the stack.
#[test]
fn refuses_many_levels_of_many_steps() {
    let steps = (0..50)
        .fold(json!({ "properties": { "a": { "$ref": "#" } } }), |inner, _| json!({ "allOf": [inner] }));
    check(&steps, nested(5, "a", json!({})), "fits");
    check(&steps, nested(120, "a", json!({})), TOO_LONG);
}

#[test]
fn refuses_references_that_are_not_pointers_into_the_schema() {
    for schema in [
        json!({ "$dynamicRef": "#node", "$dynamicAnchor": "node" }),
        json!({ "properties": { "a": { "$id": "https://example.com/a", "$ref": "#/properties/b" } } }),
        json!({ "properties": { "default": { "$id": "a", "properties": { "a": { "$ref": "#" } } } } }),
    ] {
        assert!(matches!(Validator::compile(&schema), Err(SchemaError::Reference(_))), "{schema}");
    }
}

#[test]
fn the_deepest_walk_allowed_fits_the_stack() {
    let schema = json!({ "type": "object", "properties": { "a": { "oneOf": [{ "allOf": [{ "$ref": "#" }] }, { "type": "null" }] }, "z": { "type": "integer" } } });
    check(&schema, nested(120, "a", json!({})), "fits");
    check(&schema, nested(120, "a", json!({ "z": "x" })), "`a.a.a");
}
