//! Merging plain schemas, and folding several into one object.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::plain::{Loss, Plain};

/// The most enum values that are compared one by one.
const MAX_COMPARED: usize = 1_000;

/// Returns a schema that requires both. If that cannot be expressed, one side is kept, which is wider.
pub(super) fn merge(mut first: Plain, second: Plain, loss: &mut Loss) -> Plain {
    if first.is_empty() {
        return second;
    }
    if governs_others(&first, &second) || governs_others(&second, &first) {
        loss.of("an `allOf` whose parts refuse one another's fields");
    }
    for (keyword, theirs) in second {
        let merged = match first.remove(&keyword) {
            None => theirs,
            Some(mine) if mine == theirs => mine,
            Some(mine) => both(&keyword, mine, theirs, loss),
        };
        first.insert(keyword, merged);
    }
    first
}

/// Returns whether the rule of `one` for further fields concerns fields that only `other` names.
fn governs_others(one: &Plain, other: &Plain) -> bool {
    let names =
        |schema: &Plain, name: &str| schema.get("properties").is_some_and(|all| all.get(name).is_some());
    let is_open = matches!(one.get("additionalProperties"), None | Some(Value::Bool(true)));
    let others = other.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    !is_open && (other.contains_key("patternProperties") || others.into_iter().any(|name| !names(one, name)))
}

fn both(keyword: &str, mine: Value, theirs: Value, loss: &mut Loss) -> Value {
    match (keyword, mine, theirs) {
        ("description" | "default" | "examples" | "format", mine, _) => mine,
        ("properties" | "patternProperties", Value::Object(mut mine), Value::Object(theirs)) => {
            for (name, theirs) in theirs {
                let merged = match (mine.remove(&name), theirs) {
                    (Some(Value::Object(mine)), Value::Object(theirs)) => {
                        Value::Object(merge(mine, theirs, loss))
                    }
                    (_, theirs) => theirs,
                };
                mine.insert(name, merged);
            }
            Value::Object(mine)
        }
        ("items", Value::Object(mine), Value::Object(theirs)) => Value::Object(merge(mine, theirs, loss)),
        ("additionalProperties", Value::Bool(true), rest)
        | ("additionalProperties", rest, Value::Bool(true)) => rest,
        ("additionalProperties", Value::Bool(false), _) | ("additionalProperties", _, Value::Bool(false)) => {
            false.into()
        }
        ("required", Value::Array(mine), Value::Array(theirs)) => {
            let names: BTreeSet<_> = mine.iter().chain(&theirs).filter_map(Value::as_str).collect();
            json!(names)
        }
        ("type", mine, theirs) => types_of(&mine, &theirs).unwrap_or_else(|| {
            loss.of("an `allOf` of different types");
            mine
        }),
        ("enum", Value::Array(mine), Value::Array(theirs))
            if mine.len().max(theirs.len()) <= MAX_COMPARED =>
        {
            let common: Vec<_> = mine.iter().filter(|value| theirs.contains(value)).cloned().collect();
            if common.is_empty() {
                loss.of("an `allOf` of different constants");
                return mine.into();
            }
            common.into()
        }
        ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", mine, theirs) => {
            if mine.as_f64() >= theirs.as_f64() { mine } else { theirs }
        }
        ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", mine, theirs) => {
            if mine.as_f64() <= theirs.as_f64() { mine } else { theirs }
        }
        ("uniqueItems", ..) => true.into(),
        (keyword, mine, _) => {
            loss.of(format!("an `allOf` with different `{keyword}`"));
            mine
        }
    }
}

/// Returns the types in both; `None` if there are none.
fn types_of(mine: &Value, theirs: &Value) -> Option<Value> {
    let (mine, theirs) = (type_names(mine), type_names(theirs));
    let has =
        |names: &[&str], name: &str| names.contains(&name) || name == "integer" && names.contains(&"number");
    let mut common: Vec<&str> = mine.iter().copied().filter(|name| has(&theirs, name)).collect();
    common.extend(theirs.iter().filter(|name| has(&mine, name) && !mine.contains(name)));
    match common[..] {
        [] => None,
        [one] => Some(one.into()),
        _ => Some(json!(common)),
    }
}

fn type_names(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect(),
    }
}

/// Returns the types that a plain schema declares, or those of its constants.
pub(super) fn types(schema: &Plain) -> Option<BTreeSet<&str>> {
    if let Some(declared) = schema.get("type") {
        return Some(type_names(declared).into_iter().collect());
    }
    Some(constants(schema)?.into_iter().map(type_of).collect())
}

/// Returns the values that a schema allows; `None` if it does not list them.
pub(super) fn constants(schema: &Plain) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns whether a value could satisfy both, as far as types, constants and required tags tell.
pub(super) fn overlap(one: &Plain, other: &Plain) -> bool {
    if let (Some(mine), Some(theirs)) = (constants(one), constants(other)) {
        return mine.len().max(theirs.len()) > MAX_COMPARED
            || mine.iter().any(|value| theirs.contains(value));
    }
    let (Some(mine), Some(theirs)) = (types(one), types(other)) else { return true };
    let numeric = |types: &BTreeSet<&str>| types.contains("integer") || types.contains("number");
    if mine.is_disjoint(&theirs) && !(numeric(&mine) && numeric(&theirs)) {
        return false;
    }
    let is_tag = |name: &&str| match (property(one, name), property(other, name)) {
        (Some(mine), Some(theirs)) => {
            constants(mine).is_some() && constants(theirs).is_some() && !overlap(mine, theirs)
        }
        _ => false,
    };
    let object = BTreeSet::from(["object"]);
    let tagged = required(one).intersection(&required(other)).any(is_tag);
    !(mine == object && theirs == object && tagged)
}

fn property<'a>(schema: &'a Plain, name: &str) -> Option<&'a Plain> {
    schema.get("properties")?.get(name)?.as_object()
}

/// Returns the names that a schema requires.
pub(super) fn required(schema: &Plain) -> BTreeSet<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the alternatives of a schema, each merged with the keywords beside them.
pub(super) fn alternatives(mut schema: Plain, loss: &mut Loss) -> Vec<Plain> {
    let Some(Value::Array(branches)) = schema.remove("anyOf") else { return vec![schema] };
    let description = schema.remove("description");
    let mut all = Vec::new();
    for branch in branches {
        let Value::Object(mut branch) = branch else { continue };
        if let Some(description) = &description {
            branch.entry("description").or_insert_with(|| description.clone());
        }
        all.extend(alternatives(merge(branch, schema.clone(), loss), loss));
    }
    all
}

/// Folds the root into one object: merges alternatives, drops other types.
pub(super) fn fold_root(schema: Plain, loss: &mut Loss) -> Plain {
    let takes_objects = |schema: &Plain| types(schema).is_none_or(|types| types.contains("object"));
    let mut objects = alternatives(schema, loss).into_iter().filter(takes_objects);
    let mut root = objects.next().unwrap_or_default();
    for other in objects {
        loss.of("alternatives at the root");
        root = either(root, other);
    }
    root.insert("type".into(), "object".into());
    root.entry("properties").or_insert_with(|| json!({}));
    root
}

/// Returns an object that accepts the values of either.
fn either(mut one: Plain, mut other: Plain) -> Plain {
    let both: BTreeSet<_> =
        required(&one).intersection(&required(&other)).map(|name| (*name).to_owned()).collect();
    let closed = is_closed(&one) && is_closed(&other);
    let mut properties = taken_properties(&mut one);
    for (name, theirs) in taken_properties(&mut other) {
        let merged = match properties.remove(&name) {
            Some(mine) if mine != theirs => either_value(mine, theirs),
            _ => theirs,
        };
        properties.insert(name, merged);
    }
    let mut object = Plain::from_iter([("properties".to_owned(), Value::Object(properties))]);
    object.extend(one.remove("description").map(|text| ("description".to_owned(), text)));
    if !both.is_empty() {
        object.insert("required".into(), json!(both));
    }
    if closed {
        object.insert("additionalProperties".into(), false.into());
    }
    object
}

fn is_closed(schema: &Plain) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
        && !schema.contains_key("patternProperties")
}

fn taken_properties(schema: &mut Plain) -> Plain {
    match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Plain::new(),
    }
}

/// Returns a schema that accepts the values of either: constants become one list, all else alternatives.
fn either_value(mine: Value, theirs: Value) -> Value {
    let (Value::Object(mine), Value::Object(theirs)) = (mine, theirs) else { return json!({}) };
    if mine.is_empty() || theirs.is_empty() {
        return json!({});
    }
    if let Some(list) = one_list(&mine, &theirs) {
        return Value::Object(list);
    }
    let branches = |mut side: Plain| match side.remove("anyOf") {
        Some(Value::Array(branches)) if side.is_empty() => branches,
        Some(branches) => {
            side.insert("anyOf".into(), branches);
            vec![Value::Object(side)]
        }
        None => vec![Value::Object(side)],
    };
    let all = [branches(mine), branches(theirs)].concat();
    json!({ "anyOf": all })
}

fn one_list(mine: &Plain, theirs: &Plain) -> Option<Plain> {
    let is_list = |schema: &Plain| {
        schema.keys().all(|k| matches!(k.as_str(), "type" | "const" | "enum" | "description"))
    };
    if mine.get("type") != theirs.get("type") || !is_list(mine) || !is_list(theirs) {
        return None;
    }
    let mut values = constants(mine)?;
    for value in constants(theirs)? {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let mut list = Plain::from_iter([("enum".to_owned(), json!(values))]);
    list.extend(mine.get("type").map(|name| ("type".to_owned(), name.clone())));
    Some(list)
}
