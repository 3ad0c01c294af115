//! A body with placeholders: `{{name}}` alone is replaced by the value itself, within a longer text by its
//! text.
//!
//! Placeholders are filled once. Inserted values are not searched again, so that no value can bring in
//! another.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The names of a body's placeholders, each once, sorted.
pub(super) fn places(body: &Map<String, Value>) -> Vec<String> {
    let mut names = BTreeSet::new();
    body.values().for_each(|value| collect(value, &mut names));
    names.into_iter().collect()
}

/// Fills the body; fails if values are missing or unknown.
pub(super) fn fill(
    body: &Map<String, Value>,
    values: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let places = places(body);
    let missing: Vec<String> = places.iter().filter(|name| !values.contains_key(*name)).cloned().collect();
    if !missing.is_empty() {
        return Err(format!("`values` lacks {}; it has places for {}", listed(&missing), listed(&places)));
    }
    let unknown: Vec<String> = values.keys().filter(|name| !places.contains(name)).cloned().collect();
    if !unknown.is_empty() {
        return Err(format!(
            "there is no place for {}; it has places for {}",
            listed(&unknown),
            listed(&places)
        ));
    }
    Ok(body.iter().map(|(name, value)| (name.clone(), filled(value, values))).collect())
}

/// Lists names for people and models.
pub(super) fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn filled(value: &Value, values: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => match alone(text).and_then(|name| values.get(name)) {
            Some(whole) => whole.clone(),
            None => Value::String(written(text, values)),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, values)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), filled(value, values))).collect()
        }
        other => other.clone(),
    }
}

/// Fills the placeholders of a text, from left to right.
fn written(text: &str, values: &Map<String, Value>) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, name, after)) = next(rest) {
        out.push_str(before);
        match values.get(name) {
            Some(Value::String(value)) => out.push_str(value),
            Some(value) => out.push_str(&value.to_string()),
            None => {}
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let mut rest = text.as_str();
            while let Some((_, name, after)) = next(rest) {
                names.insert(name.to_owned());
                rest = after;
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(members) => members.values().for_each(|value| collect(value, names)),
        _ => {}
    }
}

/// The name, if a text is a placeholder and nothing else.
fn alone(text: &str) -> Option<&str> {
    next(text).filter(|(before, _, after)| before.is_empty() && after.is_empty()).map(|(_, name, _)| name)
}

/// Finds the next place: the text before it, its name, and the text after it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find("{{") {
        let start = from + at;
        let inside = text.get(start + 2..)?;
        let end = inside.find("}}")?;
        let name = inside[..end].trim();
        let is_name =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if is_name {
            return Some((&text[..start], name, &inside[end + 2..]));
        }
        from = start + 2;
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{fill, places};

    #[track_caller]
    fn check(body: Value, values: Value, expected: Result<Value, &str>) {
        let (body, values) = (body.as_object().unwrap(), values.as_object().unwrap());
        match (fill(body, values), expected) {
            (Ok(filled), Ok(expected)) => assert_eq!(Value::Object(filled), expected),
            (Err(told), Err(expected)) => assert_eq!(told, expected),
            (got, expected) => panic!("{got:?} is not {expected:?}"),
        }
    }

    #[test]
    fn puts_values_where_their_places_are() {
        let body = json!({ "q": "{{q}}", "n": 1, "deep": [{ "text": "about {{ q }}, {{n}} times{{n}}" }], "{{q}}": null });
        assert_eq!(places(body.as_object().unwrap()), ["n", "q"]);
        let filled =
            json!({ "q": ["a"], "n": 1, "deep": [{ "text": "about [\"a\"], 3 times3" }], "{{q}}": null });
        check(body, json!({ "q": ["a"], "n": 3 }), Ok(filled));
        check(
            json!({ "a": "{{}} {{ x y }} {{", "b": "}}{{a" }),
            json!({}),
            Ok(json!({ "a": "{{}} {{ x y }} {{", "b": "}}{{a" })),
        );
    }

    #[test]
    fn refuses_a_value_that_is_a_place_itself() {
        let body = json!({ "x": "{{a}}", "y": "<{{a}}{{b}}>" });
        let values = json!({ "a": "{{b}}", "b": "secret" });
        check(body, values, Ok(json!({ "x": "{{b}}", "y": "<{{b}}secret>" })));
    }

    #[test]
    fn says_what_is_missing_or_too_much() {
        check(
            json!({ "x": "{{a}} {{b}}" }),
            json!({ "a": 1 }),
            Err("`values` lacks `b`; it has places for `a`, `b`"),
        );
        check(
            json!({ "x": "{{a}}" }),
            json!({ "a": 1, "c": 2 }),
            Err("there is no place for `c`; it has places for `a`"),
        );
        check(
            json!({ "x": 1 }),
            json!({ "c": 2 }),
            Err("there is no place for `c`; it has places for nothing"),
        );
    }
}
