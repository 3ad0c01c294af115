//! OpenAI's strict schemas: closed objects, every field required, optional fields nullable.

use std::{fmt, mem};

use serde_json::{Value, json};

use super::merge::{alternatives, constants, required, types};
use super::plain::{Loss, Plain, plain};

/// OpenAI's own limits.
const MAX_NESTING: usize = 10;
const MAX_FIELDS: usize = 5_000;
const MAX_ENUM: usize = 1_000;
const FORMATS: [&str; 9] =
    ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"];

/// The reason why a schema has no strict form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStrict {
    /// The constraint that strict schemas cannot express.
    pub reason: String,
}

impl fmt::Display for NotStrict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a strict schema cannot say {}", self.reason)
    }
}

impl std::error::Error for NotStrict {}

/// Returns the strict form of a schema of arguments, or the reason why it has none.
pub fn strict(schema: &Value) -> Result<Value, NotStrict> {
    let (root, loss) = plain(schema);
    if let Some(reason) = loss.0 {
        return Err(NotStrict { reason });
    }
    let mut writer = Writer { nesting: 0, fields: 0, values: 0 };
    writer.of_type("object", &root).map(Value::Object)
}

struct Writer {
    nesting: usize,
    fields: usize,
    values: usize,
}

fn cannot<T>(what: impl Into<String>) -> Result<T, NotStrict> {
    Err(NotStrict { reason: what.into() })
}

impl Writer {
    /// Renders a schema as alternatives of one type each.
    fn schema(&mut self, schema: &Plain, optional: bool) -> Result<Value, NotStrict> {
        let mut loss = Loss::default();
        let mut branches: Vec<Plain> = Vec::new();
        let mut nullable = optional;
        for alternative in alternatives(schema.clone(), &mut loss) {
            for name in type_names(&alternative)? {
                let branch = self.of_type(name, &alternative)?;
                match name {
                    "null" => nullable = true,
                    _ if branches.contains(&branch) => {}
                    _ => branches.push(branch),
                }
            }
        }
        if let Some(reason) = loss.0 {
            return cannot(reason);
        }
        Ok(match (&mut branches[..], nullable) {
            ([one], false) => Value::Object(mem::take(one)),
            ([one], true) if !one.contains_key("enum") => {
                let name = one.remove("type");
                one.insert("type".into(), json!([name, "null"]));
                Value::Object(mem::take(one))
            }
            ([], _) => json!({ "type": "null" }),
            (_, false) => json!({ "anyOf": branches }),
            (_, true) => {
                branches.push(Plain::from_iter([("type".to_owned(), "null".into())]));
                json!({ "anyOf": branches })
            }
        })
    }

    fn of_type(&mut self, name: &str, schema: &Plain) -> Result<Plain, NotStrict> {
        let (kept, refused): (&[&str], &[&str]) = match name {
            "string" => (&["pattern"], &["minLength", "maxLength"]),
            "integer" | "number" => {
                (&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"], &[])
            }
            "array" => (&["minItems", "maxItems"], &["uniqueItems", "prefixItems"]),
            "object" => (&[], &["minProperties", "maxProperties", "patternProperties"]),
            _ => (&[], &[]),
        };
        if let Some(refused) = refused.iter().find(|keyword| schema.contains_key(**keyword)) {
            return cannot(format!("`{refused}`"));
        }
        let mut rendered = Plain::from_iter([("type".to_owned(), name.into())]);
        for keyword in kept.iter().chain(&["description"]) {
            rendered.extend(schema.get(*keyword).map(|value| ((*keyword).to_owned(), value.clone())));
        }
        let format = schema.get("format").filter(|format| name == "string" && is_known(format));
        rendered.extend(format.map(|format| ("format".to_owned(), format.clone())));
        if let Some(values) = self.constants(name, schema)? {
            rendered.insert("enum".into(), values);
        }
        match name {
            "object" => self.fields(&mut rendered, schema)?,
            "array" => match schema.get("items").and_then(Value::as_object) {
                Some(items) => {
                    let items = self.nested(|writer| writer.schema(items, false))?;
                    rendered.insert("items".into(), items);
                }
                None => return cannot("a list of anything"),
            },
            _ => {}
        }
        Ok(rendered)
    }

    fn constants(&mut self, name: &str, schema: &Plain) -> Result<Option<Value>, NotStrict> {
        let Some(values) = constants(schema) else { return Ok(None) };
        if schema.contains_key("const") && schema.contains_key("enum") {
            return cannot("a constant beside an enum");
        }
        if values.iter().any(|value| value.is_array() || value.is_object()) {
            return cannot("a list or an object as a constant");
        }
        let is_of_type = |value: &&&Value| match name {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            _ => value.is_null(),
        };
        let values: Vec<_> = values.iter().filter(is_of_type).collect();
        self.values += values.len();
        match values.len() {
            0 => cannot(format!("a constant that is not of type {name}")),
            _ if self.values > MAX_ENUM => cannot(format!("more than {MAX_ENUM} constants")),
            _ if name == "null" => Ok(None),
            _ => Ok(Some(json!(values))),
        }
    }

    fn fields(&mut self, rendered: &mut Plain, schema: &Plain) -> Result<(), NotStrict> {
        let empty = Plain::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let is_closed = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => true,
            None => false,
            Some(_) => return cannot("an object with fields of any name"),
        };
        if properties.is_empty() && !is_closed && self.nesting > 0 {
            return cannot("an object with fields of any name");
        }
        let needed = required(schema);
        if needed.iter().any(|name| !properties.contains_key(*name)) {
            return cannot("a required field that is not declared");
        }
        self.fields += properties.len();
        if self.fields > MAX_FIELDS {
            return cannot(format!("more than {MAX_FIELDS} fields"));
        }
        let mut written = Plain::new();
        for (name, field) in properties {
            let field = field.as_object().unwrap_or(&empty);
            let field = self.nested(|writer| writer.schema(field, !needed.contains(name.as_str())))?;
            written.insert(name.clone(), field);
        }
        rendered.insert("required".into(), written.keys().cloned().collect());
        rendered.insert("properties".into(), Value::Object(written));
        rendered.insert("additionalProperties".into(), false.into());
        Ok(())
    }

    fn nested<T>(&mut self, write: impl FnOnce(&mut Self) -> Result<T, NotStrict>) -> Result<T, NotStrict> {
        if self.nesting == MAX_NESTING {
            return cannot(format!("more than {MAX_NESTING} levels"));
        }
        self.nesting += 1;
        let written = write(self);
        self.nesting -= 1;
        written
    }
}

fn type_names(schema: &Plain) -> Result<Vec<&str>, NotStrict> {
    match types(schema) {
        Some(types) if types.contains("number") => {
            Ok(types.into_iter().filter(|name| *name != "integer").collect())
        }
        Some(types) => Ok(types.into_iter().collect()),
        None if schema.contains_key("properties") => Ok(vec!["object"]),
        None if schema.contains_key("items") => Ok(vec!["array"]),
        None => cannot("a value of any type"),
    }
}

fn is_known(format: &Value) -> bool {
    format.as_str().is_some_and(|format| FORMATS.contains(&format))
}
