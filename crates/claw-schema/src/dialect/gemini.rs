//! Gemini: a subset of OpenAPI 3.0, where unknown keywords fail the request.
//!
//! Each schema has one type; `null` is a flag, other unions are a lone `anyOf`. Lists name their items, enums
//! are of strings, required fields are declared ones.

use serde_json::{Value, json};

use super::merge::{alternatives, constants, required, types};
use super::plain::{Loss, Plain, plain};
use claw_core::tool::Spec;

/// The depth to which nested lists are described in values of any type, since Gemini requires `items`.
const MAX_LISTS: usize = 1;
/// The most enum values; a longer list is left to the validation of arguments.
const MAX_ENUM: usize = 500;

/// Renders a schema of arguments.
pub(super) fn render(schema: &Value) -> Value {
    Value::Object(of_type("object", &plain(schema).0, 0))
}

/// Renders a function declaration. Parameters without fields are left out, because Gemini rejects them.
pub(super) fn declaration(spec: &Spec) -> Value {
    let parameters = render(&spec.parameters);
    let mut declaration = json!({ "name": spec.name, "description": spec.description });
    if parameters.get("properties").is_some() {
        declaration["parameters"] = parameters;
    }
    declaration
}

fn schema(schema: &Plain, lists: usize) -> Value {
    let mut branches: Vec<Plain> = Vec::new();
    let mut nullable = false;
    for alternative in alternatives(schema.clone(), &mut Loss::default()) {
        for name in type_names(&alternative) {
            match name {
                "null" => nullable = true,
                "array" if lists > MAX_LISTS && !alternative.contains_key("items") => {}
                name => {
                    let branch = of_type(name, &alternative, lists);
                    if !branches.contains(&branch) {
                        branches.push(branch);
                    }
                }
            }
        }
    }
    if branches.is_empty() {
        branches.push(Plain::from_iter([("type".to_owned(), "string".into())]));
    }
    if nullable {
        branches[0].insert("nullable".into(), true.into());
    }
    match branches.len() {
        1 => Value::Object(branches.remove(0)),
        _ => json!({ "anyOf": branches }),
    }
}

/// Returns the types that a schema accepts; all of them if it names none.
fn type_names(schema: &Plain) -> Vec<&str> {
    match types(schema) {
        Some(types) if types.contains("number") => {
            types.into_iter().filter(|name| *name != "integer").collect()
        }
        Some(types) => types.into_iter().collect(),
        None if schema.contains_key("properties") || schema.contains_key("required") => vec!["object"],
        None if schema.contains_key("items") => vec!["array"],
        None => vec!["string", "number", "boolean", "object", "array", "null"],
    }
}

/// Renders the part of a schema that concerns values of one type.
fn of_type(name: &str, schema: &Plain, lists: usize) -> Plain {
    let mut rendered = Plain::from_iter([("type".to_owned(), name.into())]);
    let kept: &[&str] = match name {
        "string" => &["minLength", "maxLength"],
        "integer" | "number" => &["minimum", "maximum"],
        "array" => &["minItems", "maxItems"],
        _ => &[],
    };
    for keyword in kept.iter().chain(&["description"]) {
        rendered.extend(schema.get(*keyword).map(|value| ((*keyword).to_owned(), value.clone())));
    }
    rendered.extend(format_of(name, schema).map(|format| ("format".to_owned(), format.clone())));
    match name {
        "object" => fields(&mut rendered, schema),
        "array" => {
            rendered.insert("items".into(), items(schema, lists + 1));
        }
        "string" => {
            rendered.extend(options(schema).map(|options| ("enum".to_owned(), options)));
        }
        "integer" | "number" => limits(&mut rendered, schema),
        _ => {}
    }
    rendered
}

fn fields(rendered: &mut Plain, schema: &Plain) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    if properties.is_empty() {
        return;
    }
    let named: Plain = properties
        .iter()
        .filter_map(|(name, field)| Some((name.clone(), self::schema(field.as_object()?, 0))))
        .collect();
    let required: Vec<_> = required(schema).into_iter().filter(|name| named.contains_key(*name)).collect();
    if !required.is_empty() {
        rendered.insert("required".into(), json!(required));
    }
    rendered.insert("properties".into(), Value::Object(named));
}

fn items(schema: &Plain, lists: usize) -> Value {
    let anything = Plain::new();
    let items = match schema.get("items") {
        Some(Value::Object(items)) if !schema.contains_key("prefixItems") => items,
        _ => &anything,
    };
    self::schema(items, lists)
}

/// Returns the allowed strings if the schema lists them; `None` if they cannot be sent. Gemini rejects an
/// empty string.
fn options(schema: &Plain) -> Option<Value> {
    let options: Vec<_> = constants(schema)?.into_iter().filter_map(Value::as_str).collect();
    let is_taken = !options.is_empty() && options.len() <= MAX_ENUM && !options.contains(&"");
    is_taken.then(|| json!(options))
}

/// Turns exclusive limits into inclusive ones.
fn limits(rendered: &mut Plain, schema: &Plain) {
    for (wider, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if let Some(limit) = schema.get(exclusive) {
            rendered.entry(wider).or_insert_with(|| limit.clone());
        }
    }
}

fn format_of<'a>(name: &str, schema: &'a Plain) -> Option<&'a Value> {
    let format = schema.get("format")?;
    let known: &[&str] = match name {
        "string" => &["date-time"],
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => &[],
    };
    known.contains(&format.as_str()?).then_some(format)
}
