use serde_json::{Value, json};

use super::*;
use claw_core::tool::{Group, Meta, Spec};

mod hostile;
mod keywords;
mod laws;

fn spec(schema: Value) -> Spec {
    Spec::with_schema(&Meta::new("greet", Group::named("demo")).about("Say hello."), schema)
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

/// Compares with counts of `o200k_base`, taken once.
#[test]
fn estimates_are_near_the_counts_of_a_tokenizer() {
    let read_file = json!({
        "name": "read_file",
        "description": "Read a text file from the workspace, with line numbers.",
        "input_schema": {
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "Path relative to the workspace root." },
                "offset": { "type": ["integer", "null"], "description": "First line to return, counted from 1.", "minimum": 0, "format": "uint" },
            },
            "required": ["path"],
            "additionalProperties": false,
        },
    });
    let ping =
        json!({ "name": "ping", "description": "", "input_schema": { "type": "object", "properties": {} } });
    let german = json!({
        "name": "wetter",
        "description": "Liefert die Wettervorhersage für eine Stadt; Temperatur, Luftfeuchtigkeit und Windgeschwindigkeit.",
        "input_schema": {
            "type": "object",
            "properties": {
                "stadt": { "type": "string", "description": "Name der Stadt, zum Beispiel München oder Köln" },
                "tage": { "type": "integer", "description": "Anzahl der Tage, für die vorhergesagt wird", "minimum": 1, "maximum": 14 },
            },
            "required": ["stadt"],
        },
    });
    let korean = json!({
        "description": "한국어 설명: 파일을 읽고 내용을 반환합니다",
        "input_schema": { "type": "object", "properties": { "path": { "type": "string", "description": "작업 공간에 대한 상대 경로" } } },
    });
    for (value, counted, percent) in [(read_file, 85, 20), (ping, 19, 20), (german, 93, 20), (korean, 42, 30)]
    {
        let off = estimate_tokens(&value).abs_diff(counted) * 100;
        assert!(off <= counted * percent, "{value}");
    }
}
