//! Schemas and arguments whose check would never end.

use super::*;

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({ "a": inner }))
}

#[test]
fn a_recursive_schema_does_not_take_exponential_time() {
    use claw_schema::validate::Validator;
    let schema = json!({
        "type": "object",
        "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } },
    });
    let validator = Validator::compile(&schema).unwrap();
    // A walk that doubled at each level would never end.
    assert!(validator.check(nested(100), &Value::clone).is_ok());
}

#[test]
fn many_big_patterns_can_be_used() {
    use claw_schema::validate::Validator;
    let properties: serde_json::Map<_, _> = (0..300)
        .map(|n| (format!("p{n}"), json!({ "type": "string", "pattern": format!("^\\w{{90}}{n}$") })))
        .collect();
    let validator = Validator::compile(&json!({ "type": "object", "properties": properties })).unwrap();
    let fits = format!("{}7", "a".repeat(90));
    assert!(validator.check(json!({ "p7": fits }), &Value::clone).is_ok());
    assert!(validator.check(json!({ "p8": fits }), &Value::clone).is_err());
}

#[test]
fn dynamic_references_are_counted_too() {
    use claw_schema::validate::{SchemaError, Validator};
    let mut defs = serde_json::Map::new();
    for n in 0..60 {
        let next = format!("#/$defs/d{}", n + 1);
        defs.insert(format!("d{n}"), json!({ "allOf": [{ "$dynamicRef": next }, { "$dynamicRef": next }] }));
    }
    defs.insert("d60".into(), json!({ "type": "object" }));
    let schema = json!({ "type": "object", "$dynamicRef": "#/$defs/d0", "$defs": defs });
    assert!(matches!(Validator::compile(&schema), Err(SchemaError::Excessive(_))));
}

#[test]
fn a_number_for_a_string_keeps_its_digits() {
    use claw_schema::validate::{Validator, parse};
    let schema = json!({ "type": "object", "properties": { "v": { "type": "string" } } });
    let validator = Validator::compile(&schema).unwrap();
    let whole = validator.check(json!({ "v": 42 }), &Value::clone).unwrap();
    assert_eq!(whole.args, json!({ "v": "42" }));
    for sent in ["123456789012345678901234", "1.10", "0.10000000000000000555"] {
        let args = parse(&format!("{{\"v\": {sent}}}"), 1000).unwrap();
        assert!(validator.check(args, &Value::clone).is_err(), "{sent} would lose digits");
    }
}

#[test]
fn recursive_alternatives_do_not_take_exponential_time() {
    use claw_schema::validate::Validator;
    let two = |key: &str| json!({ "type": "object", "properties": { "a": { key: [{ "$ref": "#/$defs/n" }, { "$ref": "#/$defs/m" }] }, "z": { "type": "integer" } } });
    for key in ["allOf", "anyOf", "oneOf"] {
        let schema =
            json!({ "type": "object", "$defs": { "n": two(key), "m": two(key) }, "$ref": "#/$defs/n" });
        let validator = Validator::compile(&schema).unwrap();
        let args = |depth| (0..depth).fold(json!({ "z": "no" }), |inner, _| json!({ "a": inner }));
        // A walk that doubled at each level would never end.
        let fits = validator.check(nested(100), &Value::clone).is_ok();
        // Of two equal alternatives exactly one never fits.
        assert_eq!(fits, key != "oneOf", "{key}");
        let error = validator.check(args(100), &Value::clone).unwrap_err().to_string();
        assert!(error.contains("would take too long"), "{key}: {error}");
    }
}

#[test]
fn slow_patterns_are_given_up_on() {
    use claw_schema::validate::Validator;
    for pattern in ["^(a+)+\\1$", "^(?=(a+)+$)a*c", "(?<!x)(a|aa)+$", "^(a|a)*(?!z)b$"] {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "array", "items": { "type": "string", "pattern": pattern } } } });
        let validator = Validator::compile(&schema).unwrap();
        let args = json!({ "a": vec![format!("{}c", "a".repeat(40)); 1000] });
        assert!(validator.check(args, &Value::clone).is_err(), "{pattern}");
    }
}

#[test]
fn explaining_a_misfit_stays_short() {
    use claw_schema::validate::Validator;
    let branch = |n: usize| {
        let properties: serde_json::Map<_, _> =
            (0..40).map(|p| (format!("p{n}_{p}"), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": properties, "required": [format!("p{n}_0")], "additionalProperties": false })
    };
    let schema = json!({ "type": "object", "properties": { "x": { "type": "array", "items": { "anyOf": (0..250).map(branch).collect::<Vec<_>>() } } } });
    let validator = Validator::compile(&schema).unwrap();
    let error = validator.check(json!({ "x": vec![json!({ "q": 1 }); 300] }), &Value::clone).unwrap_err();
    assert!(error.to_string().len() < 10_000, "{error}");
}

#[tokio::test]
async fn a_whole_number_with_a_point_is_an_integer() {
    // In JSON Schema 1.0 is an integer, and some models write integers that way.
    let bench = Bench::new(Setup::default());
    let reply = bench.call("say", json!({"text": "a", "times": 2.0})).await;
    assert!(reply.is_done(), "{}", reply.model_text());
}
