//! The JSON Schema of the configuration, for editors and for our own checks.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::Config;

/// The JSON Schema of `clawsmith.toml`.
pub fn schema() -> Value {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Config>();
    let mut schema = schema.to_value();
    if let Value::Object(root) = &mut schema {
        root.insert("title".into(), "clawsmith.toml".into());
    }
    schema
}

/// The schema without references, in which keys are looked up.
static INLINE: LazyLock<Value> = LazyLock::new(|| {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.into_generator().into_root_schema_for::<Config>().to_value()
});

/// The schema of one place in the configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node(&'static Value);

/// The result of looking up a key.
pub(super) enum Child {
    /// A place that the schema describes.
    Known(Node),
    /// An unknown key; the list has the known ones.
    Unknown(Vec<&'static str>),
    /// Anything is valid below here.
    Anything,
}

impl Node {
    pub(super) fn root() -> Self {
        Self(&INLINE)
    }

    pub(super) fn child(self, key: &str) -> Child {
        let Some(object) = self.object() else {
            return if self.0.get("type").is_none() { Child::Anything } else { Child::Unknown(Vec::new()) };
        };
        let properties = object.get("properties").and_then(Value::as_object);
        if let Some(known) = properties.and_then(|known| known.get(key)) {
            return Child::Known(Self(known));
        }
        match object.get("additionalProperties") {
            Some(Value::Bool(false)) => {
                let names = properties.map(|known| known.keys().map(String::as_str).collect());
                Child::Unknown(names.unwrap_or_default())
            }
            Some(schema @ Value::Object(_)) => Child::Known(Self(schema)),
            _ => Child::Anything,
        }
    }

    /// Returns whether keys here are names that people choose, such as agents.
    pub(super) fn is_map(self) -> bool {
        self.object().is_some_and(|object| object.get("properties").is_none())
    }

    pub(super) fn is_object(self) -> bool {
        self.object().is_some()
    }

    /// Returns whether a value of this type is valid here.
    pub(super) fn takes(self, kind: &str) -> bool {
        let is = |schema: &Value| match schema.get("type") {
            Some(Value::String(one)) => one == kind,
            Some(Value::Array(some)) => some.iter().any(|one| one == kind),
            _ => kind == "string" && (schema.get("enum").is_some() || schema.get("const").is_some()),
        };
        is(self.0) || self.alternatives().any(is)
    }

    /// Returns the numbers below here that are out of bounds: each one's path, and the valid range.
    pub(super) fn out_of_bounds(self, path: &str, value: &Value) -> Vec<(String, String)> {
        match value {
            Value::Object(fields) => {
                let below = fields.iter().filter_map(|(name, value)| match self.child(name) {
                    Child::Known(node) => {
                        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                        Some(node.out_of_bounds(&path, value))
                    }
                    Child::Unknown(_) | Child::Anything => None,
                });
                below.flatten().collect()
            }
            Value::Number(number) => {
                let problem = number.as_i64().and_then(|number| self.bound(number));
                let message = problem.map(|bound| format!("`{path}` is {number}; use {bound}"));
                message.map(|message| (path.to_owned(), message)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The bound that a number is beyond.
    fn bound(self, number: i64) -> Option<String> {
        let limit = |key| {
            let of = |schema: &Value| schema.get(key).and_then(Value::as_i64);
            of(self.0).or_else(|| self.alternatives().find_map(of))
        };
        match (limit("minimum"), limit("maximum")) {
            (Some(least), _) if number < least => Some(format!("at least {least}")),
            (_, Some(most)) if number > most => Some(format!("at most {most}")),
            _ => None,
        }
    }

    fn object(self) -> Option<&'static Value> {
        let is = |schema: &&Value| {
            schema.get("properties").is_some() || schema.get("additionalProperties").is_some()
        };
        Some(self.0).filter(is).or_else(|| self.alternatives().find(is))
    }

    fn alternatives(self) -> impl Iterator<Item = &'static Value> {
        let of = |key| self.0.get(key).and_then(Value::as_array).into_iter().flatten();
        of("anyOf").chain(of("oneOf"))
    }
}
