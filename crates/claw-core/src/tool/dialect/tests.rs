use serde_json::{Value, json};

use super::*;
use crate::tool::{Group, Meta, Spec};

mod hostile;
mod keywords;
mod laws;

fn spec(schema: Value) -> Spec {
    Spec::with_schema(&Meta::new("greet", Group::Named("demo")).about("Say hello."), schema)
}

#[test]
fn providers_have_their_dialect() {
    for (name, dialect) in [
        ("openai", Dialect::OpenAi),
        ("OpenRouter", Dialect::OpenAi),
        ("groq", Dialect::OpenAi),
        ("deepseek", Dialect::OpenAi),
        ("openai-strict", Dialect::OpenAiStrict),
        ("anthropic", Dialect::Anthropic),
        ("google", Dialect::Gemini),
        ("google-generative-ai", Dialect::Gemini),
        ("google-vertex", Dialect::Gemini),
        ("xai", Dialect::XAi),
        ("someone-new", Dialect::Default),
        ("", Dialect::Default),
    ] {
        assert_eq!(Dialect::for_provider(name), dialect, "{name}");
    }
}

#[test]
fn tools_have_the_form_of_the_provider() {
    let spec = spec(json!({ "properties": { "name": { "type": "string" } }, "required": ["name"] }));
    let schema =
        json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let mut closed = schema.clone();
    closed["additionalProperties"] = json!(false);
    let mut open = schema.clone();
    open["additionalProperties"] = json!(true);
    let plain = json!({ "name": "greet", "description": "Say hello.", "input_schema": schema });
    let declaration = json!({ "name": "greet", "description": "Say hello.", "parameters": schema });
    let function = |inner: Value| json!({ "type": "function", "function": inner });
    for (dialect, expected) in [
        (Dialect::Default, plain.clone()),
        (Dialect::Anthropic, plain),
        (Dialect::OpenAi, function(declaration.clone())),
        (
            Dialect::OpenAiStrict,
            function(
                json!({ "name": "greet", "description": "Say hello.", "parameters": closed, "strict": true }),
            ),
        ),
        (Dialect::XAi, function(json!({ "name": "greet", "description": "Say hello.", "parameters": open }))),
        (Dialect::Gemini, declaration),
    ] {
        assert_eq!(dialect.tools(std::slice::from_ref(&spec)), [expected], "{dialect:?}");
    }
}

#[test]
fn tools_without_fields_have_no_parameters_for_gemini() {
    let tool = Dialect::Gemini.tool(&spec(json!({})));
    assert_eq!(tool, json!({ "name": "greet", "description": "Say hello." }));
}

#[test]
fn a_tool_that_cannot_be_strict_says_so() {
    let schema = json!({ "properties": { "env": { "type": "object", "additionalProperties": { "type": "string" } } } });
    let tool = Dialect::OpenAiStrict.tool(&spec(schema.clone()));
    assert_eq!(tool["function"]["strict"], json!(false));
    assert_eq!(tool["function"]["parameters"], Dialect::OpenAi.schema(&schema));
    let reason = strict(&schema).unwrap_err().to_string();
    assert_eq!(reason, "a strict schema cannot say an object with fields of any name");
}

#[test]
fn references_are_followed_within_the_schema_only() {
    let root = json!({ "$defs": { "a b": 1, "c/d": 2 } });
    assert_eq!(resolve(&root, "#/$defs/a%20b"), Some(&json!(1)));
    assert_eq!(resolve(&root, "#/$defs/c~1d"), Some(&json!(2)));
    assert_eq!(resolve(&root, "#"), Some(&root));
    for reference in ["https://example.com/#/$defs/c~1d", "#/$defs/none", "#/%", "#/%zz", "a.json", ""] {
        assert_eq!(resolve(&root, reference), None, "{reference}");
    }
}
