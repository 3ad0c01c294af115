//! Plain schemas for the providers that take JSON Schema, each without the keywords that it rejects.

use serde_json::{Map, Value};

use super::plain::{Plain, plain};

/// The keywords that a provider accepts beyond types, fields, items, alternatives and constants.
pub(super) struct Keywords {
    takes: &'static [&'static str],
    /// True if the provider closes objects unless they say otherwise.
    closed_by_default: bool,
}

/// All keywords of a plain schema.
pub(super) const FULL: Keywords = Keywords {
    takes: &[
        "default",
        "examples",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "uniqueItems",
    ],
    closed_by_default: false,
};

/// OpenAI's keywords without strict mode. Tuples and patterns of names are left out, since some compatible
/// services reject them.
pub(super) const OPENAI: Keywords = Keywords {
    takes: &[
        "default",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "multipleOf",
        "pattern",
    ],
    closed_by_default: false,
};

/// xAI's keywords: requests with lengths, counts, patterns or formats fail.
pub(super) const XAI: Keywords =
    Keywords { takes: &["default", "maximum", "minimum"], closed_by_default: true };

/// Renders a schema of arguments with these keywords.
pub(super) fn render(keywords: &Keywords, schema: &Value) -> Value {
    Value::Object(keywords.schema(plain(schema).0))
}

impl Keywords {
    fn schema(&self, mut schema: Plain) -> Plain {
        self.open_what_is_not_told(&mut schema);
        let mut rendered: Plain = schema
            .into_iter()
            .filter(|(keyword, _)| {
                STRUCTURE.contains(&keyword.as_str()) || self.takes.contains(&keyword.as_str())
            })
            .map(|(keyword, value)| match keyword.as_str() {
                "properties" | "patternProperties" => (keyword, self.named(value)),
                "items" | "additionalProperties" | "anyOf" | "prefixItems" => (keyword, self.nested(value)),
                _ => (keyword, value),
            })
            .collect();
        let is_object =
            rendered.contains_key("properties") || rendered.get("type").is_some_and(|t| t == "object");
        if self.closed_by_default && is_object {
            rendered.entry("additionalProperties").or_insert(true.into());
        }
        rendered
    }

    /// Removes keywords that would reject values once a keyword they depend on is gone.
    fn open_what_is_not_told(&self, schema: &mut Plain) {
        for (missing, dependent) in [("patternProperties", "additionalProperties"), ("prefixItems", "items")]
        {
            if schema.contains_key(missing) && !self.takes.contains(&missing) {
                schema.remove(dependent);
            }
        }
    }

    fn nested(&self, value: Value) -> Value {
        match value {
            Value::Object(schema) => Value::Object(self.schema(schema)),
            Value::Array(schemas) => schemas.into_iter().map(|schema| self.nested(schema)).collect(),
            other => other,
        }
    }

    fn named(&self, value: Value) -> Value {
        match value {
            Value::Object(schemas) => {
                let render = |(name, schema)| (name, self.nested(schema));
                Value::Object(schemas.into_iter().map(render).collect::<Map<_, _>>())
            }
            other => other,
        }
    }
}

/// The keywords that every provider accepts.
const STRUCTURE: [&str; 9] = [
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "type",
];
