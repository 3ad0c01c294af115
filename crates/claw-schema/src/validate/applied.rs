//! The subschemas of a schema, and the values that they apply to.

use serde_json::{Map, Value};

/// The values that a subschema applies to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reach<'a> {
    /// The same value.
    Here,
    /// The same value, by the referenced schema.
    Reference(&'a str),
    /// The fields of these names, each by its own schema.
    Properties(&'a Map<String, Value>),
    /// The fields that are not properties.
    OtherFields,
    /// Any field.
    Fields,
    /// The names of the fields.
    Names,
    /// A single item.
    Item(usize),
    /// Any item.
    Items,
}

/// The subschemas, with the values that they apply to. If that depends on the value, more are included rather
/// than fewer.
pub(super) fn applied(keywords: &Map<String, Value>) -> Vec<(Reach<'_>, &Value)> {
    let mut parts = Vec::new();
    for (keyword, inner) in keywords {
        match (keyword.as_str(), inner) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                parts.push((Reach::Reference(reference), inner));
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                parts.extend(all.iter().map(|part| (Reach::Here, part)));
            }
            ("not" | "if" | "then" | "else" | "contentSchema", part) => parts.push((Reach::Here, part)),
            ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                parts.extend(all.values().map(|part| (Reach::Here, part)));
            }
            ("properties", Value::Object(all)) => parts.push((Reach::Properties(all), inner)),
            ("patternProperties", Value::Object(all)) => {
                parts.extend(all.values().map(|part| (Reach::Fields, part)));
            }
            ("additionalProperties", part) => parts.push((Reach::OtherFields, part)),
            ("unevaluatedProperties", part) => parts.push((Reach::Fields, part)),
            ("propertyNames", part) => parts.push((Reach::Names, part)),
            ("prefixItems" | "items", Value::Array(all)) => {
                parts.extend(all.iter().enumerate().map(|(index, part)| (Reach::Item(index), part)));
            }
            ("items" | "contains" | "additionalItems" | "unevaluatedItems", part) => {
                parts.push((Reach::Items, part));
            }
            _ => {}
        }
    }
    if keywords.contains_key("unevaluatedProperties") || keywords.contains_key("unevaluatedItems") {
        // What the others have evaluated is found by applying them again, and again below them.
        let here = |(reach, _): &(Reach<'_>, &Value)| matches!(reach, Reach::Here | Reach::Reference(_));
        let again: Vec<_> = parts.iter().copied().filter(here).collect();
        parts.extend(again.iter().chain(&again));
    }
    parts
}

/// Looks of a schema by itself, without its subschemas.
pub(super) fn own_looks(keywords: &Map<String, Value>) -> u64 {
    let looks = keywords.iter().map(|(keyword, inner)| match (keyword.as_str(), inner) {
        ("properties" | "patternProperties", Value::Object(all)) => all.len(),
        ("required" | "enum", Value::Array(all)) => all.len(),
        ("pattern", Value::String(pattern)) if backtracks(pattern) => BACKTRACKING,
        _ => 0,
    });
    looks.fold(1, |sum, looks| sum.saturating_add(u64::try_from(looks).unwrap_or(u64::MAX)))
}

/// The cost in looks of a pattern with look-arounds or back-references on a short text.
const BACKTRACKING: usize = 500;

fn backtracks(pattern: &str) -> bool {
    let is_reference = |pair: &[u8]| pair[0] == b'\\' && (pair[1].is_ascii_digit() || pair[1] == b'k');
    ["(?=", "(?!", "(?<", "(?>"].iter().any(|start| pattern.contains(start))
        || pattern.as_bytes().windows(2).any(is_reference)
}
