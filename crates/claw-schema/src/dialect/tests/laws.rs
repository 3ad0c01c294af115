//! Properties that hold for all schemas and values.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::dialect::{Dialect, resolve, strict};

fn name() -> impl Strategy<Value = String> + Clone {
    prop::sample::select(vec!["a", "b", "c"]).prop_map(Into::into)
}

/// Draws from few values, so that schemas and values meet.
fn scalar() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..4).prop_map(Value::from),
        prop::sample::select(vec![0.5, 2.5]).prop_map(Value::from),
        prop::sample::select(vec!["", "x", "xx", "yyy"]).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn args() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(name(), value(), 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn leaf() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(vec!["null", "boolean", "integer", "number", "string", "object"]);
    prop_oneof![
        4 => types.clone().prop_map(|name| json!({ "type": name })),
        1 => (types.clone(), types).prop_map(|(a, b)| if a == b { json!({ "type": a }) } else { json!({ "type": [a, b] }) }),
        1 => prop::collection::btree_set("[xy]{0,2}", 1..3).prop_map(|values| json!({ "enum": values })),
        1 => prop::sample::select(vec!["x", "yyy"]).prop_map(|value| json!({ "const": value })),
        1 => (0i64..3).prop_map(|limit| json!({ "type": "integer", "minimum": limit, "exclusiveMaximum": limit + 2 })),
        1 => (0u64..3).prop_map(|limit| json!({ "type": "string", "minLength": limit, "maxLength": 2 })),
        1 => Just(json!({ "type": "string", "pattern": "^x", "format": "date-time", "description": "d" })),
        1 => Just(json!({ "type": "number", "multipleOf": 2, "maximum": 3 })),
        1 => Just(json!({ "$ref": "#/$defs/leaf" })),
        1 => Just(json!({ "$ref": "#" })),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 24, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            (inner.clone(), 0u64..2).prop_map(|(items, least)| json!({ "type": "array", "items": items, "minItems": least })),
            several.clone().prop_map(|all| json!({ "type": "array", "prefixItems": all, "items": { "type": "string" } })),
            several.clone().prop_map(|all| json!({ "anyOf": all })),
            several.clone().prop_map(|all| json!({ "oneOf": all })),
            several.prop_map(|all| json!({ "allOf": all })),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({ "type": "object", "properties": { "a": a }, "allOf": [b] })),
            inner.clone().prop_map(|inner| json!({ "type": "object", "additionalProperties": inner })),
            inner.clone().prop_map(|inner| json!({ "type": "object", "patternProperties": { "^a": inner }, "additionalProperties": false })),
            inner.clone().prop_map(|inner| json!({ "type": "string", "not": inner })),
            object(inner),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let fields = prop::collection::btree_map(name(), (inner, any::<bool>()), 0..4);
    (fields, any::<bool>()).prop_map(|(fields, closed)| {
        let required: Vec<_> =
            fields.iter().filter(|(_, field)| field.1).map(|(name, _)| name.clone()).collect();
        let properties: Map<_, _> = fields.into_iter().map(|(name, field)| (name, field.0)).collect();
        let mut schema = json!({ "type": "object", "properties": properties, "required": required });
        if closed {
            schema["additionalProperties"] = json!(false);
        }
        schema
    })
}

/// Closes the alternatives at the root; the module's documentation says what is read into open ones.
fn root() -> impl Strategy<Value = Value> {
    let closed = || {
        object(schema()).prop_map(|mut schema| {
            schema["additionalProperties"] = json!(false);
            schema
        })
    };
    let root = prop_oneof![
        3 => object(schema()),
        1 => (object(schema()), object(schema())).prop_map(|(a, b)| json!({ "allOf": [a, b] })),
        1 => prop::collection::vec(closed(), 1..3).prop_map(|all| json!({ "anyOf": all })),
        1 => prop::collection::vec(closed(), 1..3).prop_map(|all| json!({ "oneOf": all })),
    ];
    (root, leaf()).prop_map(|(mut root, leaf)| {
        let leaf = if leaf.get("$ref").is_some() { json!({ "type": "string" }) } else { leaf };
        root["$defs"] = json!({ "leaf": leaf });
        root
    })
}

/// Rewrites Gemini's flag as JSON Schema, so that the validator understands it.
fn without_nullable(schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let mut keywords: Map<_, _> =
                keywords.iter().map(|(k, v)| (k.clone(), without_nullable(v))).collect();
            if keywords.remove("nullable").is_some() {
                return json!({ "anyOf": [keywords, { "type": "null" }] });
            }
            Value::Object(keywords)
        }
        Value::Array(items) => items.iter().map(without_nullable).collect(),
        other => other.clone(),
    }
}

/// Counts nested lists; Gemini schemas of values of any type describe only few levels.
fn lists(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(lists).max().unwrap_or(0),
        Value::Object(fields) => fields.values().map(lists).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the ways to drop nulls that stand for absent fields.
fn without_nulls(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(fields) => fields.iter().fold(vec![json!({})], |ways, (name, field)| {
            let mut fields = without_nulls(field);
            let mut all = if field.is_null() { ways.clone() } else { Vec::new() };
            for way in ways {
                all.extend(fields.iter_mut().map(|field| {
                    let mut way = way.clone();
                    way[name] = field.clone();
                    way
                }));
            }
            all
        }),
        Value::Array(items) => items.iter().fold(vec![json!([])], |ways, item| {
            let items = without_nulls(item);
            let with = |way: &Value, item: &Value| {
                let mut way = way.as_array().cloned().unwrap_or_default();
                way.push(item.clone());
                Value::Array(way)
            };
            ways.iter().flat_map(|way| items.iter().map(|item| with(way, item)).collect::<Vec<_>>()).collect()
        }),
        other => vec![other.clone()],
    }
}

/// Random choices, as bytes that proptest can shrink.
#[derive(Debug)]
struct Luck {
    bytes: Vec<u8>,
    turn: usize,
}

impl Luck {
    fn below(&mut self, limit: usize) -> usize {
        self.turn += 1;
        usize::from(self.bytes[self.turn % self.bytes.len()]) % limit.max(1)
    }
}

/// Returns a value that a schema probably accepts.
fn instance(root: &Value, schema: &Value, luck: &mut Luck) -> Value {
    if let Some(target) = schema["$ref"].as_str().filter(|_| luck.turn < 64) {
        return instance(root, resolve(root, target).unwrap(), luck);
    }
    if let Some(branches) =
        ["anyOf", "oneOf", "allOf", "enum"].iter().find_map(|keyword| schema[keyword].as_array())
    {
        let one = &branches[luck.below(branches.len())];
        return if schema.get("enum").is_some() { one.clone() } else { instance(root, one, luck) };
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    let names = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    match names[luck.below(names.len())].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let mut fields = schema["properties"].as_object().cloned().unwrap_or_default();
            fields
                .extend(schema["patternProperties"].get("^a").map(|field| ("ab".to_owned(), field.clone())));
            fields.extend(
                schema["additionalProperties"]
                    .is_object()
                    .then(|| ("z".to_owned(), schema["additionalProperties"].clone())),
            );
            let chosen =
                fields.iter().filter(|(name, _)| required.contains(&json!(name)) || luck.below(3) > 0);
            let chosen: Vec<_> = chosen.collect();
            chosen
                .iter()
                .map(|(name, field)| ((*name).clone(), instance(root, field, luck)))
                .collect::<Map<_, _>>()
                .into()
        }
        Some("array") => {
            let first = schema["prefixItems"].as_array().cloned().unwrap_or_default();
            let rest = (0..luck.below(3)).map(|_| schema["items"].clone());
            let items: Vec<_> = first.into_iter().chain(rest).collect();
            items.iter().map(|item| instance(root, item, luck)).collect()
        }
        Some("string") => json!(["", "x", "xx", "yyy"][luck.below(4)]),
        Some("integer") => json!([-1, 0, 1, 2, 3][luck.below(5)]),
        Some("number") => json!([0.5, 2.0, 4.0][luck.below(3)]),
        Some("boolean") => json!(luck.below(2) == 0),
        _ => Value::Null,
    }
}

fn luck() -> impl Strategy<Value = Luck> {
    prop::collection::vec(any::<u8>(), 32).prop_map(|bytes| Luck { bytes, turn: 0 })
}

fn is_valid(schema: &Value, value: &Value) -> bool {
    jsonschema::options().offline().build(schema).unwrap().is_valid(value)
}

/// Returns the number of cases per property; `make soak` sets more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn other_dialects_accept_what_the_original_accepts(schema in root(), mut luck in luck(), args in args()) {
        for args in [args, instance(&schema, &schema, &mut luck), instance(&schema, &schema, &mut luck)] {
            if !args.is_object() || !is_valid(&schema, &args) {
                continue;
            }
            for dialect in [Dialect::Default, Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini, Dialect::XAi] {
                if dialect == Dialect::Gemini && lists(&args) > 2 {
                    continue;
                }
                let rendered = dialect.schema(&schema);
                prop_assert!(is_valid(&without_nullable(&rendered), &args), "{dialect:?}: {args} by {rendered}");
            }
        }
    }

    #[test]
    fn what_the_strict_dialect_accepts_satisfies_the_original(schema in root(), mut luck in luck()) {
        let Ok(rendered) = strict(&schema) else { return Ok(()) };
        for _ in 0..4 {
            let args = instance(&rendered, &rendered, &mut luck);
            if is_valid(&rendered, &args) {
                let ways = without_nulls(&args);
                prop_assert!(ways.iter().any(|args| is_valid(&schema, args)), "{args} by {rendered}");
            }
        }
    }

    #[test]
    fn the_same_schema_gives_the_same_bytes(schema in root()) {
        for dialect in Dialect::ALL {
            prop_assert_eq!(dialect.schema(&schema).to_string(), dialect.schema(&schema.clone()).to_string());
        }
    }

    #[test]
    fn no_value_as_a_schema_panics(schema in value()) {
        for dialect in Dialect::ALL {
            prop_assert_eq!(&dialect.schema(&schema)["type"], "object");
        }
    }
}
