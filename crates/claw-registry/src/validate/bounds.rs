//! What a schema may cost, found out before it is compiled: MCP servers write these, and some mean harm.

use std::collections::HashMap;

use claw_core::tool::dialect::resolve;
use serde_json::{Map, Value};

use super::SchemaError;

/// Nesting that neither arguments nor schemas may pass. `serde_json` refuses deeper text as well.
pub(super) const MAX_DEPTH: usize = 128;
/// Values in a schema.
const MAX_VALUES: usize = 50_000;
/// Subschemas that look at one and the same value. References to references that each name the next one twice
/// reach any number with a schema of a few lines.
const MAX_LOOKS: u64 = 10_000;
/// References that lead to one another without a step into the value.
const MAX_CHAIN: usize = 64;

/// Refuses schemas that could not be compiled, or would take forever to check with.
pub(super) fn examine(schema: &Value) -> Result<(), SchemaError> {
    if is_deeper_than(schema, MAX_DEPTH) {
        return Err(SchemaError::Excessive("deeply nested"));
    }
    let mut survey = Survey { root: schema, values: 0, looks: HashMap::new() };
    survey.walk(schema)
}

/// Stops at the limit, so that the depth of what it looks at is no danger to the stack.
pub(super) fn is_deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| is_deeper_than(item, limit - 1)),
        Value::Object(fields) => limit == 0 || fields.values().any(|field| is_deeper_than(field, limit - 1)),
        _ => false,
    }
}

struct Survey<'a> {
    root: &'a Value,
    values: usize,
    /// How many subschemas look at the value that a schema, known by its address, is applied to.
    looks: HashMap<*const Value, u64>,
}

impl<'a> Survey<'a> {
    fn walk(&mut self, schema: &'a Value) -> Result<(), SchemaError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(SchemaError::Excessive("large"));
        }
        match schema {
            Value::Array(items) => items.iter().try_for_each(|item| self.walk(item)),
            Value::Object(keywords) => {
                if self.looks(schema, MAX_CHAIN)? > MAX_LOOKS {
                    return Err(SchemaError::Excessive("convoluted"));
                }
                let is_data = |keyword: &str| matches!(keyword, "const" | "enum" | "default" | "examples");
                keywords
                    .iter()
                    .filter(|(keyword, _)| !is_data(keyword))
                    .try_for_each(|(_, inner)| self.walk(inner))
            }
            _ => Ok(()),
        }
    }

    fn looks(&mut self, schema: &'a Value, chain: usize) -> Result<u64, SchemaError> {
        let Value::Object(keywords) = schema else { return Ok(1) };
        let address: *const Value = schema;
        if let Some(known) = self.looks.get(&address) {
            return Ok(*known);
        }
        let Some(chain) = chain.checked_sub(1) else { return Err(SchemaError::Excessive("convoluted")) };
        // In a ring, the validator stops where it began.
        self.looks.insert(address, 1);
        let mut looks = 1_u64;
        for part in self.in_place(keywords)? {
            looks = looks.saturating_add(self.looks(part, chain)?);
        }
        self.looks.insert(address, looks);
        Ok(looks)
    }

    /// The schemas that are applied to the same value as this one.
    fn in_place(&self, keywords: &'a Map<String, Value>) -> Result<Vec<&'a Value>, SchemaError> {
        let mut parts = Vec::new();
        for (keyword, inner) in keywords {
            match (keyword.as_str(), inner) {
                ("$ref", Value::String(reference)) => parts.push(
                    resolve(self.root, reference).ok_or_else(|| SchemaError::Reference(reference.clone()))?,
                ),
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => parts.extend(all),
                ("not" | "if" | "then" | "else", inner) => parts.push(inner),
                ("dependentSchemas", Value::Object(all)) => parts.extend(all.values()),
                _ => {}
            }
        }
        Ok(parts)
    }
}
