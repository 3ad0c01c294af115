//! Schemas and arguments made to hang, overflow or leak.

use serde_json::{Map, Value, json};

use crate::validate::{SchemaError, Validator, dismantle, measure, parse};

/// Built by hand: `json!` walks its values.
fn nested(depth: usize, names: &[&str]) -> Value {
    let wrap = |inner, name: &&str| Value::Object(Map::from_iter([((*name).to_owned(), inner)]));
    (0..depth).fold(json!({}), |inner, _| names.iter().fold(inner, wrap))
}

#[test]
fn refuses_schemas_nested_ten_thousand_deep() {
    let schema = nested(5_000, &["a", "properties"]);
    assert_eq!(Validator::compile(&schema).unwrap_err(), SchemaError::Excessive("deeply nested"));
    dismantle(schema);
}

#[test]
fn refuses_arguments_nested_a_thousand_deep() {
    let validator = Validator::compile(&json!({ "properties": { "a": { "$ref": "#" } } })).unwrap();
    let error = validator.check(nested(1_000, &["a"]), &Value::clone).unwrap_err();
    assert_eq!(error.to_string(), "the arguments are nested more than 128 levels deep; send them flatter");
    // Such a value overflows the stack if it is dropped the ordinary way.
    assert_eq!(validator.check(nested(100_000, &["a"]), &Value::clone).unwrap_err(), error);
    let deep = nested(100_000, &["a"]);
    assert_eq!(measure(&deep, usize::MAX).unwrap_err(), error);
    dismantle(deep);
}

#[test]
fn refuses_references_out_of_the_schema() {
    for reference in ["https://example.com/a.json", "file:///etc/passwd", "other.json", "#/$defs/nowhere"] {
        let schema = json!({ "type": "object", "properties": { "a": { "$ref": reference } } });
        let error = Validator::compile(&schema).unwrap_err();
        assert!(matches!(error, SchemaError::Reference(_)), "{reference}: {error:?}");
    }
}

#[test]
fn says_where_a_schema_is_wrong() {
    let error = Validator::compile(&json!({ "properties": { "a": { "type": "text" } } })).unwrap_err();
    insta::assert_snapshot!(error, @r#"its schema is not valid at `/properties/a/type`: "text" is not valid under any of the schemas listed in the 'anyOf' keyword"#);
    let error = Validator::compile(&json!({ "properties": { "a": { "pattern": "(" } } })).unwrap_err();
    insta::assert_snapshot!(error, @r#"its schema is not valid at `/properties/a/pattern`: "(" is not a "regex""#);
}

#[test]
fn survives_references_in_a_ring() {
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
        json!({ "properties": { "a": { "anyOf": [{ "$ref": "#/properties/a" }, { "type": "integer" }] } } }),
    ] {
        if let Ok(validator) = Validator::compile(&schema) {
            let _ = validator.check(json!({ "a": "x" }), &Value::clone);
        }
    }
}

#[test]
fn refuses_references_that_double_at_each_step() {
    let mut definitions = Map::new();
    for step in 0..60 {
        let next = json!({ "$ref": format!("#/$defs/d{}", step + 1) });
        definitions.insert(format!("d{step}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert("d60".into(), json!({ "type": "integer" }));
    let schema = json!({ "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions });
    assert_eq!(Validator::compile(&schema).unwrap_err(), SchemaError::Excessive("convoluted"));
}

#[test]
fn survives_a_pattern_that_backtracks() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "^(?=(a+)+$)(a+)+b$" } } });
    let validator = Validator::compile(&schema).unwrap();
    assert!(validator.check(json!({ "a": "a".repeat(5_000) }), &Value::clone).is_err());
}

#[test]
fn tells_ten_megabytes_in_a_line() {
    let validator =
        Validator::compile(&json!({ "type": "object", "properties": { "a": { "type": "integer" } } }))
            .unwrap();
    let big = "x".repeat(10 << 20);
    assert!(validator.check(json!({ "a": big }), &Value::clone).unwrap_err().to_string().len() < 300);
    let many = vec!["1"; 100_000];
    let schema = json!({ "type": "object", "properties": { "a": { "items": { "type": "integer" } } } });
    let checked = Validator::compile(&schema).unwrap().check(json!({ "a": many }), &Value::clone).unwrap();
    assert!(checked.notes.len() < 20);
    assert!(parse(&format!("{{\"a\": \"{big}\"}}"), 8 << 20).is_err());
}
