use serde_json::{Value, json};

use super::*;

mod costs;
mod hostile;
mod laws;
mod secrets;

fn read_file() -> Value {
    json!({
        "type": "object",
        "properties": {
            "file_path": { "type": "string" },
            "offset": { "type": ["integer", "null"], "minimum": 1 },
            "limit": { "type": "integer" },
            "ratio": { "type": "number" },
            "binary": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "lines": { "type": "array", "items": { "type": "integer" } },
            "mode": { "enum": ["text", "hex"] },
            "edits": { "type": "array", "items": { "$ref": "#/$defs/Edit" } },
            "options": { "anyOf": [{ "$ref": "#/$defs/Options" }, { "type": "null" }] },
            "env": { "type": "object", "additionalProperties": { "type": "integer" } },
            "either": { "type": ["string", "integer"] },
            "oneOrMany": { "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "type": "string" } }] },
        },
        "required": ["file_path"],
        "additionalProperties": false,
        "$defs": {
            "Edit": {
                "type": "object",
                "properties": { "old_text": { "type": "string" }, "count": { "type": "integer" } },
                "required": ["old_text"],
                "additionalProperties": false,
            },
            "Options": { "type": "object", "properties": { "depth": { "type": "integer" } }, "additionalProperties": false },
        },
    })
}

fn with_path(mut args: Value) -> Value {
    args["file_path"] = json!("a.txt");
    args
}

#[track_caller]
fn repairs(args: Value, expected: Value, notes: &[&str]) {
    let validator = Validator::compile(&read_file()).unwrap();
    let checked = validator.check(with_path(args), &Value::clone).unwrap();
    assert_eq!(checked.args, with_path(expected));
    assert_eq!(checked.notes, notes);
}

#[track_caller]
fn refuses(args: Value, message: &str) {
    let validator = Validator::compile(&read_file()).unwrap();
    let error = validator.check(with_path(args), &Value::clone).unwrap_err();
    assert_eq!(error.to_string().split("; the fields").next().unwrap(), message);
}

#[test]
fn valid_arguments_pass_untouched() {
    for args in
        [json!({}), json!({ "offset": null }), json!({ "either": "10" }), json!({ "env": { "A": 1 } })]
    {
        repairs(args.clone(), args, &[]);
    }
}

#[test]
fn text_becomes_the_json_in_it() {
    repairs(json!({ "offset": "10" }), json!({ "offset": 10 }), &["`offset`: \"10\" was taken as 10"]);
    repairs(
        json!({ "ratio": " -1.5e3 " }),
        json!({ "ratio": -1500.0 }),
        &["`ratio`: \" -1.5e3 \" was taken as -1500.0"],
    );
    repairs(
        json!({ "binary": "True" }),
        json!({ "binary": true }),
        &["`binary`: \"True\" was taken as true"],
    );
    repairs(
        json!({ "tags": "[\"a\"]" }),
        json!({ "tags": ["a"] }),
        &[r#"`tags`: "[\"a\"]" was taken as ["a"]"#],
    );
    repairs(
        json!({ "options": "{\"depth\":\"2\"}" }),
        json!({ "options": { "depth": 2 } }),
        &[
            r#"`options`: "{\"depth\":\"2\"}" was taken as {"depth":"2"}"#,
            "`options.depth`: \"2\" was taken as 2",
        ],
    );
    repairs(json!({ "env": { "A": "1" } }), json!({ "env": { "A": 1 } }), &["`env.A`: \"1\" was taken as 1"]);
}

#[test]
fn one_value_becomes_a_list() {
    repairs(
        json!({ "tags": "a, b" }),
        json!({ "tags": ["a, b"] }),
        &["`tags`: \"a, b\" was taken as [\"a, b\"]"],
    );
    repairs(
        json!({ "lines": "7" }),
        json!({ "lines": [7] }),
        &["`lines`: \"7\" was taken as [\"7\"]", "`lines[0]`: \"7\" was taken as 7"],
    );
    repairs(
        json!({ "edits": { "oldText": 1 } }),
        json!({ "edits": [{ "old_text": "1" }] }),
        &[
            r#"`edits`: {"oldText":1} was taken as [{"oldText":1}]"#,
            "`edits[0]`: the field `oldText` was taken as `old_text`",
            "`edits[0].old_text`: 1 was taken as \"1\"",
        ],
    );
}

#[test]
fn names_in_another_spelling_are_understood() {
    let validator = Validator::compile(&read_file()).unwrap();
    for name in ["filePath", "file-path", "FILE_PATH", "FilePath", "filepath"] {
        let checked = validator.check(json!({ name: "a.txt" }), &Value::clone).unwrap();
        assert_eq!(checked.args, json!({ "file_path": "a.txt" }));
        assert_eq!(checked.notes, [format!("the field `{name}` was taken as `file_path`")]);
    }
}

#[test]
fn names_that_could_mean_two_things_are_not_touched() {
    refuses(json!({ "filePath": "b.txt" }), "`filePath` is not a field, did you mean `file_path`?");
    let validator = Validator::compile(&read_file()).unwrap();
    let error = validator.check(json!({ "filePath": "a", "file-path": "b" }), &Value::clone).unwrap_err();
    assert!(error.to_string().contains("`file_path` is missing"), "{error}");
}

#[test]
fn fields_of_an_open_object_are_renamed_only_to_what_is_required() {
    let schema = json!({ "properties": { "file_path": {}, "dry_run": {} }, "required": ["file_path"] });
    let validator = Validator::compile(&schema).unwrap();
    let checked = validator.check(json!({ "filePath": 1, "dryRun": 2 }), &Value::clone).unwrap();
    assert_eq!(checked.args, json!({ "file_path": 1, "dryRun": 2 }));
}

#[test]
fn null_leaves_an_optional_field_out() {
    repairs(json!({ "limit": null }), json!({}), &["`limit`: null was taken as leaving it out"]);
}

#[test]
fn what_could_mean_two_things_is_not_repaired() {
    refuses(
        json!({ "oneOrMany": "10" }),
        "`oneOrMany`: expected an integer or a list, got the string \"10\"",
    );
}

#[test]
fn problems_name_field_expected_and_got() {
    refuses(json!({ "offset": "ten" }), "`offset`: expected an integer or null, got the string \"ten\"");
    refuses(json!({ "offset": 0 }), "`offset`: expected at least 1, got the number 0");
    refuses(json!({ "limit": 1.5 }), "`limit`: expected an integer, got the number 1.5");
    refuses(
        json!({ "tags": [1, true] }),
        "`tags[1]`: expected a string, got true (otherwise `tags[0]`: 1 was taken as \"1\")",
    );
    refuses(
        json!({ "mode": "txt" }),
        "`mode`: expected one of \"text\", \"hex\", got the string \"txt\", did you mean \"text\"?",
    );
    refuses(json!({ "options": { "depht": 1 } }), "`options.depht` is not a field, did you mean `depth`?");
    refuses(
        json!({ "options": { "depth": "x" } }),
        "`options.depth`: expected an integer, got the string \"x\"",
    );
    refuses(json!({ "options": 5 }), "`options`: expected an object or null, got the number 5");
    refuses(json!({ "edits": [{}] }), "`edits[0].old_text` is missing, expected a string");
}

#[test]
fn the_fields_are_listed_where_one_is_missing_or_unknown() {
    let schema = json!({
        "type": "object",
        "properties": { "file_path": { "type": "string" }, "offset": { "type": "integer" } },
        "required": ["file_path"],
        "additionalProperties": false,
    });
    let error = Validator::compile(&schema)
        .unwrap()
        .check(json!({ "path": "a", "colour": 1 }), &Value::clone)
        .unwrap_err();
    insta::assert_snapshot!(error, @r#"`colour` is not a field; `path` is not a field, did you mean `file_path`?; `file_path` is missing, expected a string; the fields are `file_path` (a string, required), `offset` (an integer)"#);
}

#[test]
fn no_arguments_at_all_may_be_a_cut_answer() {
    let schema = json!({ "type": "object", "properties": { "content": { "type": "string" } }, "required": ["content"] });
    let validator = Validator::compile(&schema).unwrap();
    insta::assert_snapshot!(validator.check(json!({}), &Value::clone).unwrap_err(), @r#"`content` is missing, expected a string; no arguments arrived, they may have been cut off; make the call again, long content in several shorter calls; the fields are `content` (a string, required)"#);
    assert_eq!(
        validator.check(json!(null), &Value::clone).unwrap_err(),
        validator.check(json!({}), &Value::clone).unwrap_err()
    );
}

#[test]
fn roots_that_are_no_objects() {
    let validator =
        Validator::compile(&json!({ "type": "object", "properties": { "a": { "type": "integer" } } }))
            .unwrap();
    assert_eq!(validator.check(json!("{\"a\": 1}"), &Value::clone).unwrap().args, json!({ "a": 1 }));
    assert_eq!(validator.check(Value::Null, &Value::clone).unwrap().args, json!({}));
    insta::assert_snapshot!(validator.check(json!([1, 2]), &Value::clone).unwrap_err(), @r#"expected an object, got the list [1,2]; the fields are `a` (an integer)"#);
    assert!(Validator::compile(&json!({})).unwrap().check(json!(5), &Value::clone).is_err());
}

#[test]
fn alternatives_with_a_tag_are_told_apart() {
    let schema = json!({ "type": "object", "properties": { "step": { "oneOf": [
        { "type": "object", "properties": { "kind": { "const": "wait" }, "seconds": { "type": "integer" } }, "required": ["kind", "seconds"] },
        { "type": "object", "properties": { "kind": { "const": "say" }, "text": { "type": "string" } }, "required": ["kind", "text"] },
    ] } } });
    let validator = Validator::compile(&schema).unwrap();
    let error =
        validator.check(json!({ "step": { "kind": "say", "seconds": 1 } }), &Value::clone).unwrap_err();
    assert!(error.to_string().starts_with("`step.text` is missing, expected "), "{error}");
}

#[test]
fn options_with_descriptions_are_told_as_one_list() {
    let schema = json!({ "type": "object", "properties": { "action": { "oneOf": [
        { "const": "create", "description": "Makes one." }, { "const": "list", "description": "Shows all." },
    ] } } });
    let error =
        Validator::compile(&schema).unwrap().check(json!({ "action": "crate" }), &Value::clone).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`action`: expected one of \"create\", \"list\", got the string \"crate\", did you mean \"create\"?"
    );
    assert_eq!(error.problems[0].nearest.as_deref(), Some("create"));
}

#[test]
fn text_that_is_no_json() {
    let told = |text| parse(text, 1 << 20).unwrap_err().to_string();
    insta::assert_snapshot!(told("{\"path\": \"a.txt\", \"content\": \"once upon"), @r#"the arguments are JSON that ends too early, at line 1 column 39; they may have been cut off; make the call again, long content in several shorter calls"#);
    insta::assert_snapshot!(told("{'path': 1}"), @r#"the arguments are not valid JSON: key must be a string at line 1 column 2; send one JSON object; quotes and line breaks inside of strings need a backslash"#);
    insta::assert_snapshot!(told(&"[".repeat(200)), @r#"the arguments are not valid JSON: recursion limit exceeded at line 1 column 128; send one JSON object; quotes and line breaks inside of strings need a backslash"#);
    insta::assert_snapshot!(parse("{\"a\": 1}", 4).unwrap_err(), @r#"the arguments are more than 4 bytes long; send less at once, in several calls"#);
    assert_eq!(parse(" ", 9).unwrap(), json!({}));
    assert_eq!(parse("{\"a\": 1}", 9).unwrap(), json!({ "a": 1 }));
}

#[test]
fn a_tool_error_carries_the_problems_as_data() {
    let validator = Validator::compile(&read_file()).unwrap();
    let error = claw_core::tool::ToolError::from(
        validator.check(with_path(json!({ "limit": "ten" })), &Value::clone).unwrap_err(),
    );
    assert_eq!(error.for_model(), "`limit`: expected an integer, got the string \"ten\"");
    assert_eq!(
        error.details.as_deref(),
        Some(
            &json!([{ "field": "limit", "expected": "an integer", "got": "the string \"ten\"", "nearest": null }])
        )
    );
}

#[test]
fn whole_numbers_are_written_as_integers() {
    repairs(json!({ "offset": 2.0, "lines": [1.0, 2] }), json!({ "offset": 2, "lines": [1, 2] }), &[]);
    repairs(json!({ "ratio": 2.0 }), json!({ "ratio": 2.0 }), &[]);
    repairs(json!({ "offset": "1e1" }), json!({ "offset": 10 }), &["`offset`: \"1e1\" was taken as 10"]);
    // Another integer may have been meant.
    repairs(json!({ "limit": 1e18 }), json!({ "limit": 1e18 }), &[]);
}

#[test]
fn a_number_that_was_rounded_is_not_taken_as_text() {
    repairs(
        json!({ "tags": [u64::MAX, -1] }),
        json!({ "tags": ["18446744073709551615", "-1"] }),
        &[
            "`tags[0]`: 18446744073709551615 was taken as \"18446744073709551615\"",
            "`tags[1]`: -1 was taken as \"-1\"",
        ],
    );
    refuses(json!({ "tags": [1.1] }), "`tags[0]`: expected a string, got the number 1.1");
}

#[test]
fn arguments_read_elsewhere_are_measured() {
    for args in [json!({}), json!({ "a": [1, true, false, null, "x"], "b": { "c": -1.5 } }), json!([[], {}])]
    {
        let bytes = args.to_string().len();
        assert!(measure(&args, bytes).is_ok());
        assert!(measure(&args, bytes / 2).is_err());
    }
    insta::assert_snapshot!(measure(&json!({ "a": "xxxx" }), 8).unwrap_err(), @"the arguments are more than 8 bytes long; send less at once, in several calls");
}
