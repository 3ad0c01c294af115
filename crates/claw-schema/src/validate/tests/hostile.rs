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
    insta::assert_snapshot!(error, @r#"its schema is not valid at `/properties/a/pattern`: the pattern "(" is not valid, or takes more than 2097152 bytes when it is compiled"#);
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

/// A schema with a field for each pattern.
fn with_patterns(patterns: impl IntoIterator<Item = String>) -> Value {
    let field = |pattern: String| json!({ "type": "string", "pattern": pattern });
    let fields = patterns.into_iter().enumerate().map(|(at, pattern)| (format!("p{at}"), field(pattern)));
    json!({ "type": "object", "properties": fields.collect::<Map<_, _>>() })
}

/// Fifty letters of any script: more than a megabyte once it is compiled.
fn large_pattern(number: usize) -> String {
    format!(r"\p{{L}}{{50}}{number}")
}

#[track_caller]
fn refuses_the_patterns_of(schema: &Value, expected: &str) {
    let error = Validator::compile(schema).unwrap_err();
    assert!(matches!(error, SchemaError::Patterns(_)), "{error:?}");
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn refuses_thousands_of_patterns_that_compile_to_gigabytes() {
    let schema = with_patterns((0..4_000).map(large_pattern));
    refuses_the_patterns_of(
        &schema,
        "4000 patterns with 50890 bytes; at most 300 with 16384 bytes are accepted",
    );
    refuses_the_patterns_of(&with_patterns(["a".repeat(20_000)]), "1 patterns with 20000 bytes");
    // As many as are accepted are too large together.
    let error = Validator::compile(&with_patterns((0..200).map(large_pattern))).unwrap_err();
    assert!(
        matches!(&error, SchemaError::Invalid { at, .. } if at.starts_with("/properties/p")),
        "{error:?}"
    );
    assert!(error.to_string().contains("takes more than 167772 bytes when it is compiled"), "{error}");
    let one = with_patterns(["(?:(?:[a-z]{1000}){1000}){1000}".to_owned()]);
    assert!(matches!(Validator::compile(&one), Err(SchemaError::Invalid { .. })));
}

#[test]
fn refuses_patterns_hidden_in_names_and_behind_references() {
    let named: Map<_, _> = (0..400).map(|at| (large_pattern(at), json!({}))).collect();
    refuses_the_patterns_of(&json!({ "patternProperties": named }), "400 patterns");
    let hidden = with_patterns((0..400).map(large_pattern));
    refuses_the_patterns_of(&json!({ "default": hidden, "$ref": "#/default" }), "400 patterns");
    // One that comes up again is compiled once.
    let same = with_patterns(std::iter::repeat_n("^[0-9a-f]{32}$".to_owned(), 2_000));
    assert!(Validator::compile(&same).is_ok());
}

#[test]
fn refuses_groups_that_call_themselves_many_times() {
    let calls = r"(?=a)(a\g<1>?\g<1>?\g<1>?\g<1>?)".to_owned();
    refuses_the_patterns_of(&with_patterns([calls]), r"calls a group with `\g`");
    let calls = r"(?=a)(?P<n>a(?P>n)?(?P>n)?(?P>n)?)".to_owned();
    refuses_the_patterns_of(&with_patterns([calls]), "ECMA 262 does not define");
    // A backslash before a `g` that is text.
    assert!(Validator::compile(&with_patterns([r"^\\g$".to_owned()])).is_ok());
}

#[test]
fn refuses_look_behinds_that_repeat_without_a_limit() {
    for pattern in [
        r"(?<=\p{L}{0,1000000})x",
        r"(?<!a*)x",
        r"(?<=(a))x",
        r"(?<=[)]\p{L}{0,1000000})x",
        r"(?<=[])]\p{L}{0,1000000})x",
        r"(?<=[[)]\p{L}{0,1000000})x",
        r"(?<=\)\p{L}{0,1000000})x",
    ] {
        refuses_the_patterns_of(&with_patterns([pattern.to_owned()]), "look-behind");
    }
    for pattern in [r"(?=a)((?#)?<=\p{L}{0,1000000})x", r"(?x)( ?<=\p{L}{0,1000000})x", r"(?=a)(?~\p{L})"] {
        refuses_the_patterns_of(&with_patterns([pattern.to_owned()]), "ECMA 262 does not define");
    }
}

#[test]
fn refuses_patterns_that_take_long_to_translate() {
    refuses_the_patterns_of(&with_patterns([r"\s".repeat(5_000)]), "5000 classes");
    let around = with_patterns([format!("(?=a){}", "[a-z]".repeat(1_000))]);
    refuses_the_patterns_of(&around, "5005 bytes; at most 4096");
}

#[test]
fn ordinary_patterns_are_taken() {
    let patterns = [
        r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z\d@$!%*?&]{8,64}$",
        r"^(?!-)[A-Za-z0-9-]{1,63}(?<!-)$",
        r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?$",
        r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$",
        r"^\(?\d{3}\)?[ .-]?\d{3}[ .-]?\d{4}$",
        r"^(?<year>\d{4})-(?<month>\d{2})$",
        r"^(?i:https?)://\S+$",
        r#"^(['"]).*\1$"#,
        r"(?<=\p{L})[!?]",
        r"^.{1,500}$",
        r"^\p{L}{1,10}$",
    ];
    assert!(Validator::compile(&with_patterns(patterns.map(str::to_owned))).is_ok());
}
