//! The description of a tool for the model.

use std::sync::Arc;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::Meta;
use crate::id::ToolName;

/// Name, description and the schema of the arguments. Rendered for a provider by `claw-schema`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spec {
    /// The name by which the model calls it.
    pub name: ToolName,
    /// The description for the model.
    pub description: SmolStr,
    /// JSON Schema of the arguments; its root is an object.
    pub parameters: Arc<Value>,
}

impl Spec {
    /// Returns the spec of a tool with arguments of type `A`.
    pub fn of<A: JsonSchema>(meta: &Meta) -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
        if let Value::Object(root) = &mut schema {
            root.remove("title");
            root.remove("description");
        }
        Self::with_schema(meta, schema)
    }

    /// Returns the spec of a tool whose schema is known only at run time. A root that is not an object
    /// becomes one.
    pub fn with_schema(meta: &Meta, schema: Value) -> Self {
        let mut root = match schema {
            Value::Object(root) => root,
            _ => Map::new(),
        };
        root.insert("type".into(), json!("object"));
        root.entry("properties").or_insert_with(|| json!({}));
        Self {
            name: meta.name.clone(),
            description: meta.about.clone(),
            parameters: Arc::new(Value::Object(root)),
        }
    }
}
