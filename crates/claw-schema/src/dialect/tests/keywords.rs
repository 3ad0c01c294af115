//! The rendering of each keyword in each dialect.

use serde_json::{Value, json};

use crate::dialect::{Dialect, strict};

use Dialect::{Anthropic, Default, Gemini, OpenAi, OpenAiStrict, XAi};

/// Checks the rendering of a required field with this schema.
#[track_caller]
fn check(field: Value, expected: &[(Dialect, Value)]) {
    let schema = json!({ "type": "object", "properties": { "f": field }, "required": ["f"], "additionalProperties": false });
    for (dialect, expected) in expected {
        assert_eq!(&dialect.schema(&schema)["properties"]["f"], expected, "{dialect:?}");
    }
}

#[track_caller]
fn check_root(schema: Value, expected: Value) {
    for dialect in [Default, Anthropic, OpenAi] {
        assert_eq!(dialect.schema(&schema), expected, "{dialect:?}");
    }
}

#[test]
fn lengths_and_patterns() {
    let field = json!({ "type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a", "format": "uuid", "title": "F" });
    let full = json!({ "type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a", "format": "uuid" });
    check(
        field,
        &[
            (Default, full.clone()),
            (Anthropic, full.clone()),
            (OpenAi, full.clone()),
            (OpenAiStrict, full),
            (Gemini, json!({ "type": "string", "minLength": 1, "maxLength": 9 })),
            (XAi, json!({ "type": "string" })),
        ],
    );
    let strict_field = json!({ "type": "string", "pattern": "^a", "format": "uuid" });
    check(strict_field.clone(), &[(OpenAiStrict, strict_field)]);
}

#[test]
fn numbers() {
    let field =
        json!({ "type": "integer", "exclusiveMinimum": 0, "maximum": 9, "multipleOf": 3, "format": "uint" });
    check(
        field.clone(),
        &[
            (Default, field.clone()),
            (OpenAi, field),
            (
                OpenAiStrict,
                json!({ "type": "integer", "exclusiveMinimum": 0, "maximum": 9, "multipleOf": 3 }),
            ),
            (Gemini, json!({ "type": "integer", "minimum": 0, "maximum": 9 })),
            (XAi, json!({ "type": "integer", "maximum": 9 })),
        ],
    );
}

#[test]
fn lists() {
    let field = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 3 });
    check(
        field.clone(),
        &[
            (Default, field.clone()),
            (OpenAi, field.clone()),
            (OpenAiStrict, field.clone()),
            (Gemini, field),
            (XAi, json!({ "type": "array", "items": { "type": "string" } })),
        ],
    );
    let tuple =
        json!({ "type": "array", "items": [{ "type": "string" }], "additionalItems": { "type": "integer" } });
    check(
        tuple,
        &[
            (
                Default,
                json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": { "type": "integer" } }),
            ),
            (OpenAi, json!({ "type": "array" })),
            (XAi, json!({ "type": "array" })),
        ],
    );
}

#[test]
fn null() {
    let either = json!({ "type": ["string", "null"] });
    let any_of = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
    check(
        either.clone(),
        &[
            (Default, either.clone()),
            (OpenAi, either.clone()),
            (XAi, either),
            (OpenAiStrict, json!({ "type": ["string", "null"] })),
            (Gemini, json!({ "type": "string", "nullable": true })),
        ],
    );
    check(
        any_of.clone(),
        &[
            (Default, any_of),
            (OpenAiStrict, json!({ "type": ["string", "null"] })),
            (Gemini, json!({ "type": "string", "nullable": true })),
        ],
    );
}

#[test]
fn unions() {
    let field = json!({ "description": "d", "oneOf": [{ "type": "string" }, { "type": "integer" }] });
    let any_of = json!({ "description": "d", "anyOf": [{ "type": "string" }, { "type": "integer" }] });
    let each = json!({ "anyOf": [{ "description": "d", "type": "string" }, { "description": "d", "type": "integer" }] });
    check(
        field,
        &[
            (Default, any_of.clone()),
            (OpenAi, any_of.clone()),
            (XAi, any_of),
            (OpenAiStrict, each.clone()),
            (Gemini, each),
        ],
    );
    check(
        json!({ "type": ["string", "integer"] }),
        &[
            (Gemini, json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] })),
            (OpenAiStrict, json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] })),
        ],
    );
}

#[test]
fn constants() {
    check(
        json!({ "const": "a" }),
        &[
            (Default, json!({ "const": "a" })),
            (OpenAi, json!({ "const": "a" })),
            (OpenAiStrict, json!({ "type": "string", "enum": ["a"] })),
            (Gemini, json!({ "type": "string", "enum": ["a"] })),
        ],
    );
    check(
        json!({ "type": "integer", "enum": [1, 2] }),
        &[
            (OpenAi, json!({ "type": "integer", "enum": [1, 2] })),
            (OpenAiStrict, json!({ "type": "integer", "enum": [1, 2] })),
            (Gemini, json!({ "type": "integer" })),
        ],
    );
    check(json!({ "type": "string", "enum": ["", "a"] }), &[(Gemini, json!({ "type": "string" }))]);
    check(
        json!({ "oneOf": [{ "const": "a", "description": "A." }, { "const": "b" }] }),
        &[(
            Gemini,
            json!({ "anyOf": [{ "type": "string", "enum": ["a"], "description": "A." }, { "type": "string", "enum": ["b"] }] }),
        )],
    );
}

#[test]
fn objects() {
    let field = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": false });
    let mut required = field.clone();
    required["properties"]["a"]["type"] = json!(["string", "null"]);
    required["required"] = json!(["a"]);
    check(
        field.clone(),
        &[
            (Default, field.clone()),
            (XAi, field),
            (OpenAiStrict, required),
            (Gemini, json!({ "type": "object", "properties": { "a": { "type": "string" } } })),
        ],
    );
    let named = json!({ "type": "object", "patternProperties": { "^x": { "type": "string" } }, "additionalProperties": false });
    check(
        named.clone(),
        &[
            (Default, named),
            (OpenAi, json!({ "type": "object" })),
            (XAi, json!({ "type": "object", "additionalProperties": true })),
            (Gemini, json!({ "type": "object" })),
        ],
    );
}

#[test]
fn required_fields_are_declared_ones_for_gemini() {
    let field =
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a", "b"] });
    check(
        field,
        &[(
            Gemini,
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] }),
        )],
    );
}

#[test]
fn values_of_any_type() {
    let any = json!([
        { "type": "string", "nullable": true },
        { "type": "number" },
        { "type": "boolean" },
        { "type": "object" },
        { "type": "array", "items": { "anyOf": [
            { "type": "string", "nullable": true },
            { "type": "number" },
            { "type": "boolean" },
            { "type": "object" },
            { "type": "array", "items": { "anyOf": [
                { "type": "string", "nullable": true },
                { "type": "number" },
                { "type": "boolean" },
                { "type": "object" },
            ] } },
        ] } },
    ]);
    check(json!({}), &[(Default, json!({})), (Gemini, json!({ "anyOf": any }))]);
}

#[test]
fn references_are_inlined() {
    check_root(
        json!({ "properties": { "a": { "$ref": "#/$defs/A", "description": "mine" } }, "$defs": { "A": { "type": "string", "description": "theirs" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "string", "description": "mine" } } }),
    );
    // Draft 7 ignores the keywords beside a reference.
    check_root(
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": { "a": { "$ref": "#/definitions/A", "type": "integer" } },
            "definitions": { "A": { "type": "string" } },
        }),
        json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
    );
    check_root(
        json!({ "properties": { "child": { "$ref": "#" } } }),
        json!({ "type": "object", "properties": { "child": { "properties": { "child": {} } } } }),
    );
}

#[test]
fn all_of_is_merged() {
    check_root(
        json!({ "allOf": [
            { "properties": { "a": { "type": "integer", "minimum": 1 } }, "required": ["a"] },
            { "properties": { "a": { "type": "number", "minimum": 5 }, "b": {} }, "required": ["b"] },
        ] }),
        json!({
            "type": "object",
            "properties": { "a": { "type": "integer", "minimum": 5 }, "b": {} },
            "required": ["a", "b"],
        }),
    );
}

#[test]
fn alternatives_at_the_root_become_one_object() {
    check_root(
        json!({ "oneOf": [
            { "type": "object", "properties": { "kind": { "const": "file" }, "path": { "type": "string" } }, "required": ["kind", "path"], "additionalProperties": false },
            { "type": "object", "properties": { "kind": { "const": "url" }, "url": { "type": "string" } }, "required": ["kind", "url"], "additionalProperties": false },
        ] }),
        json!({
            "type": "object",
            "properties": { "kind": { "enum": ["file", "url"] }, "path": { "type": "string" }, "url": { "type": "string" } },
            "required": ["kind"],
            "additionalProperties": false,
        }),
    );
    check_root(
        json!({ "properties": { "a": {}, "b": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        json!({ "type": "object", "properties": { "a": {}, "b": {} } }),
    );
    for root in [json!({ "type": "string" }), json!([]), json!(false), json!(null)] {
        check_root(root, json!({ "type": "object", "properties": {} }));
    }
}

#[test]
fn what_cannot_be_strict() {
    #[track_caller]
    fn refuses(field: Value, reason: &str) {
        let schema = json!({ "properties": { "f": field } });
        assert_eq!(strict(&schema).unwrap_err().reason, reason);
    }
    refuses(json!({}), "a value of any type");
    refuses(json!({ "type": "object" }), "an object with fields of any name");
    refuses(json!({ "type": "array" }), "a list of anything");
    refuses(json!({ "type": "string", "minLength": 1 }), "`minLength`");
    refuses(json!({ "not": {} }), "`not`");
    refuses(json!({ "$ref": "#" }), "the reference `#`, which leads back to itself or nowhere");
    refuses(
        json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] }),
        "a `oneOf` whose alternatives may overlap",
    );
    let root = json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    assert_eq!(strict(&root).unwrap_err().reason, "alternatives at the root");
}
