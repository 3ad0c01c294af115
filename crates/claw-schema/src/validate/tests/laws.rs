//! Properties of validation that hold for all schemas and arguments.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::validate::{Validator, measure, parse};

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["file_path", "filePath", "offset", "Offset", "tags", "a", "b"])
        .prop_map(Into::into)
}

fn args() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-20i64..20).prop_map(Value::from),
        (-2.0..2.0f64).prop_map(Value::from),
        (-2i8..2).prop_map(|whole| Value::from(f64::from(whole))),
        prop::sample::select(vec!["", "10", "true", "null", "[1]", "{\"a\":\"1\"}", "[", "x"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(vec!["null", "boolean", "integer", "number", "string"]);
    let leaf = prop_oneof![
        types.clone().prop_map(|name| json!({ "type": name })),
        (types.clone(), types).prop_map(|(a, b)| if a == b { json!({}) } else { json!({ "type": [a, b] }) }),
        Just(json!({ "enum": ["10", 10, "x"] })),
        Just(json!({ "$ref": "#" })),
        Just(json!({ "type": "integer", "minimum": 5 })),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|any| json!({ "anyOf": any })),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|one| json!({ "oneOf": one })),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|all| json!({ "allOf": all })),
            object(inner),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let fields = prop::collection::btree_map(name(), (inner, any::<bool>()), 0..4);
    (fields, any::<bool>()).prop_map(|(fields, closed)| {
        let required: Vec<_> = fields.iter().filter(|(_, field)| field.1).map(|(name, _)| name.clone()).collect();
        let properties: Map<_, _> = fields.into_iter().map(|(name, field)| (name, field.0)).collect();
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": !closed })
    })
}

/// Equality in JSON Schema: `2.0` is `2`.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}

/// Number of cases for each property; `make soak` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn what_passes_satisfies_the_schema_and_what_satisfied_it_is_unchanged(
        schema in object(schema()), args in args(),
    ) {
        let Ok(validator) = Validator::compile(&schema) else { return Ok(()) };
        let satisfied = args.is_object() && jsonschema::is_valid(&schema, &args);
        match validator.check(args.clone(), &Value::clone) {
            Ok(checked) => {
                prop_assert!(jsonschema::is_valid(&schema, &checked.args));
                prop_assert_eq!(satisfied, checked.notes.is_empty() && same(&checked.args, &args));
            }
            Err(error) => {
                prop_assert!(!satisfied);
                prop_assert!(!error.problems.is_empty());
                prop_assert!(error.to_string().len() < 6_000);
            }
        }
    }

    #[test]
    fn what_is_read_within_a_limit_is_measured_within_it(args in args()) {
        let text = args.to_string();
        prop_assert!(measure(&args, text.len()).is_ok());
    }

    #[test]
    fn no_text_panics(text in ".{0,64}") {
        if let Ok(args) = parse(&text, 1000) {
            let _ = Validator::compile(&json!({ "type": "object" })).unwrap().check(args, &Value::clone);
        }
    }

    #[test]
    fn no_schema_panics(schema in args(), args in args()) {
        if let Ok(validator) = Validator::compile(&schema) {
            let _ = validator.check(args, &Value::clone);
        }
    }
}
