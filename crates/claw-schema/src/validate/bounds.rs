//! Limits of a schema, checked before it is compiled: MCP servers write schemas, and some are malicious.

use std::collections::HashMap;

use crate::dialect::resolve;
use serde_json::{Map, Value};

use super::SchemaError;
use super::applied::{Reach, applied};
use super::extent::{MAX_DEPTH, is_deeper_than};

/// Most values in a schema.
const MAX_VALUES: usize = 50_000;
/// Most subschemas that look at the same value. With references that each name the next one twice, a schema
/// of a few lines can reach any number.
const MAX_LOOKS: u64 = 10_000;
/// Longest chain of references without a step into the value.
const MAX_CHAIN: usize = 64;

/// Refuses schemas that could not be compiled, or with which a check would take forever.
pub(super) fn examine(schema: &Value) -> Result<(), SchemaError> {
    if is_deeper_than(schema, MAX_DEPTH) {
        return Err(SchemaError::Excessive("deeply nested"));
    }
    let mut survey = Survey { root: schema, values: 0, looks: HashMap::new() };
    survey.walk(schema)
}

struct Survey<'a> {
    root: &'a Value,
    values: usize,
    /// Number of subschemas that look at the value to which a schema, known by its address, applies.
    looks: HashMap<*const Value, u64>,
}

impl<'a> Survey<'a> {
    fn walk(&mut self, schema: &'a Value) -> Result<(), SchemaError> {
        self.count()?;
        match schema {
            Value::Array(items) => items.iter().try_for_each(|item| self.walk(item)),
            Value::Object(keywords) => {
                self.keeps_its_base(schema, keywords)?;
                if self.looks(schema, MAX_CHAIN)? > MAX_LOOKS {
                    return Err(SchemaError::Excessive("convoluted"));
                }
                keywords.iter().try_for_each(|(keyword, inner)| self.walk_keyword(keyword, inner))
            }
            _ => Ok(()),
        }
    }

    fn walk_keyword(&mut self, keyword: &str, inner: &'a Value) -> Result<(), SchemaError> {
        match (keyword, inner) {
            ("const" | "enum" | "default" | "examples", _) => Ok(()),
            // The names in here are not keywords.
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
                Value::Object(named),
            ) => {
                self.count()?;
                named.values().try_for_each(|schema| self.walk(schema))
            }
            _ => self.walk(inner),
        }
    }

    fn count(&mut self) -> Result<(), SchemaError> {
        self.values += 1;
        if self.values > MAX_VALUES { Err(SchemaError::Excessive("large")) } else { Ok(()) }
    }

    /// Refuses a subschema with an address of its own: references in it lead elsewhere than they say.
    fn keeps_its_base(&self, schema: &Value, keywords: &Map<String, Value>) -> Result<(), SchemaError> {
        let is_old = || self.root["$schema"].as_str().is_some_and(|draft| draft.contains("draft-04"));
        let own = keywords.get("$id").or_else(|| keywords.get("id").filter(|_| is_old()));
        match own {
            Some(Value::String(id)) if !std::ptr::eq(schema, self.root) => {
                Err(SchemaError::Reference(id.clone()))
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
        // In a cycle, the validator stops where it began.
        self.looks.insert(address, 1);
        let mut looks = 1_u64;
        for (reach, part) in applied(keywords) {
            let part = match reach {
                Reach::Here => part,
                Reach::Reference(reference) => resolve(self.root, reference)
                    .ok_or_else(|| SchemaError::Reference(reference.to_owned()))?,
                _ => continue,
            };
            looks = looks.saturating_add(self.looks(part, chain)?);
        }
        self.looks.insert(address, looks);
        Ok(looks)
    }
}
