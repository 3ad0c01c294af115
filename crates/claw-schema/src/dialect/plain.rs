//! Plain schemas, the input of all dialects: no references, no `allOf`, the root an object.
//!
//! A constraint that has no plain form is widened, never narrowed, and the first such loss is recorded: the
//! strict dialect cannot use a schema that lost something.

use serde_json::{Map, Value};

use super::merge::{fold_root, merge, overlap};
use super::reference::resolve;

/// The keywords of a schema. An empty one accepts everything.
pub(super) type Plain = Map<String, Value>;

/// The deepest nesting that is kept; a deeper schema accepts everything.
pub(super) const MAX_DEPTH: usize = 48;
/// The most subschemas that are kept, counting references each time they are inlined; further ones accept
/// everything.
const MAX_SCHEMAS: usize = 2_000;
/// The most alternatives that are kept in one place; with more, the schema accepts everything.
const MAX_ALTERNATIVES: usize = 100;
/// The deepest nesting of constants, defaults and examples.
const MAX_DATA_DEPTH: usize = 16;

/// The first constraint that was widened, in words; `None` if nothing was.
#[derive(Debug, Default)]
pub(super) struct Loss(pub(super) Option<String>);

impl Loss {
    pub(super) fn of(&mut self, what: impl Into<String>) {
        self.0.get_or_insert_with(|| what.into());
    }
}

/// Returns the plain form of a schema of arguments, and the first loss.
pub(super) fn plain(schema: &Value) -> (Plain, Loss) {
    let old = schema.get("$schema").and_then(Value::as_str).is_some_and(|draft| draft.contains("/draft-0"));
    let mut reader = Reader {
        root: schema,
        lone_refs: old,
        following: Vec::new(),
        schemas: 0,
        depth: 0,
        loss: Loss::default(),
    };
    let keywords = reader.read(schema);
    let root = fold_root(keywords, &mut reader.loss);
    (root, reader.loss)
}

struct Reader<'a> {
    root: &'a Value,
    /// True for drafts before 2019-09, which ignore the keywords beside a `$ref`.
    lone_refs: bool,
    following: Vec<&'a str>,
    schemas: usize,
    depth: usize,
    loss: Loss,
}

impl<'a> Reader<'a> {
    fn read(&mut self, schema: &'a Value) -> Plain {
        let Value::Object(keywords) = schema else {
            if schema == &Value::Bool(false) {
                self.loss.of("a schema that nothing satisfies");
            }
            return Plain::new();
        };
        self.schemas += 1;
        if self.depth >= MAX_DEPTH || self.schemas > MAX_SCHEMAS {
            self.loss.of("deep nesting or great size");
            return Plain::new();
        }
        self.depth += 1;
        let plain = self.combined(keywords);
        self.depth -= 1;
        plain
    }

    /// Reads the keywords of a schema together with the schemas it is combined with.
    fn combined(&mut self, keywords: &'a Plain) -> Plain {
        let mut plain = Plain::new();
        let reference = keywords.get("$ref").and_then(Value::as_str);
        let lone = self.lone_refs && reference.is_some();
        for (keyword, value) in keywords {
            if !lone || keyword == "description" {
                self.keyword(&mut plain, keyword, value, keywords);
            }
        }
        if let Some(reference) = reference {
            plain = merge(plain, self.inlined(reference), &mut self.loss);
        }
        if lone {
            return plain;
        }
        for part in array(keywords, "allOf") {
            plain = merge(plain, self.read(part), &mut self.loss);
        }
        for keyword in ["anyOf", "oneOf"] {
            if keywords.contains_key(keyword) {
                let alternatives = self.alternatives(keywords, keyword);
                plain = merge(plain, alternatives, &mut self.loss);
            }
        }
        plain
    }

    fn inlined(&mut self, reference: &'a str) -> Plain {
        let target = resolve(self.root, reference);
        let (Some(target), false) = (target, self.following.contains(&reference)) else {
            self.loss.of(format!("the reference `{reference}`, which leads back to itself or nowhere"));
            return Plain::new();
        };
        self.following.push(reference);
        let plain = self.read(target);
        self.following.pop();
        plain
    }

    fn alternatives(&mut self, keywords: &'a Plain, keyword: &str) -> Plain {
        let mut branches: Vec<Plain> = Vec::new();
        if array(keywords, keyword).count() > MAX_ALTERNATIVES {
            self.loss.of(format!("more than {MAX_ALTERNATIVES} alternatives"));
            return Plain::new();
        }
        for branch in array(keywords, keyword) {
            let branch = self.read(branch);
            if keyword == "oneOf" && branches.iter().any(|other| overlap(other, &branch)) {
                self.loss.of("a `oneOf` whose alternatives may overlap");
            }
            if !branches.contains(&branch) {
                branches.push(branch);
            }
        }
        match branches.len() {
            1 => branches.remove(0),
            _ if branches.iter().any(Plain::is_empty) => Plain::new(),
            _ => Plain::from_iter([("anyOf".to_owned(), branches.into_iter().map(Value::Object).collect())]),
        }
    }

    fn keyword(&mut self, plain: &mut Plain, keyword: &str, value: &'a Value, beside: &'a Plain) {
        let value = match (keyword, value) {
            ("properties" | "patternProperties", Value::Object(schemas)) => Value::Object(
                schemas
                    .iter()
                    .map(|(name, schema)| (name.clone(), Value::Object(self.read(schema))))
                    .collect(),
            ),
            ("additionalProperties", Value::Bool(_)) => value.clone(),
            ("additionalProperties", _) => Value::Object(self.read(value)),
            ("prefixItems", Value::Array(schemas)) => self.list(schemas),
            // Before 2020-12, a list of `items` meant what `prefixItems` means now.
            ("items", Value::Array(schemas)) => {
                let list = self.list(schemas);
                plain.insert("prefixItems".into(), list);
                match beside.get("additionalItems") {
                    Some(rest) => Value::Object(self.read(rest)),
                    None => return,
                }
            }
            ("items", _) => Value::Object(self.read(value)),
            ("type", Value::String(_)) if is_type(value) => value.clone(),
            ("type", Value::Array(names)) if names.iter().all(is_type) => match &names[..] {
                [one] => one.clone(),
                _ => value.clone(),
            },
            ("required", Value::Array(names)) if names.iter().all(Value::is_string) => value.clone(),
            ("enum", Value::Array(_)) | ("const", _) if is_shallow(value, MAX_DATA_DEPTH) => value.clone(),
            ("description" | "pattern" | "format", Value::String(_)) => value.clone(),
            (
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf",
                Value::Number(_),
            ) => value.clone(),
            (
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties",
                Value::Number(_),
            ) => value.clone(),
            ("uniqueItems", Value::Bool(_)) => value.clone(),
            ("default" | "examples", _) => {
                if !is_shallow(value, MAX_DATA_DEPTH) {
                    return;
                }
                value.clone()
            }
            (keyword, _) if CONSTRAINTS.contains(&keyword) => return self.loss.of(format!("`{keyword}`")),
            _ => return,
        };
        plain.insert(keyword.to_owned(), value);
    }

    fn list(&mut self, schemas: &'a [Value]) -> Value {
        schemas.iter().map(|schema| Value::Object(self.read(schema))).collect()
    }
}

/// Keywords that constrain values, and are dropped if they are not in one of the forms above. All others are
/// annotations.
const CONSTRAINTS: [&str; 33] = [
    "$dynamicRef",
    "$recursiveRef",
    "additionalProperties",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "if",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
];

fn array<'a>(keywords: &'a Plain, keyword: &str) -> impl Iterator<Item = &'a Value> {
    keywords.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn is_type(name: &Value) -> bool {
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    name.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn is_shallow(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit > 0 && items.iter().all(|item| is_shallow(item, limit - 1)),
        Value::Object(fields) => limit > 0 && fields.values().all(|field| is_shallow(field, limit - 1)),
        _ => true,
    }
}
