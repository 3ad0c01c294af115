//! The parameters of a custom tool, as far as a template needs them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Key of a parameter's schema that lets its value begin with `-`.
pub const ALLOW_DASH: &str = "x-allow-dash";

/// The parameters by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Parameters(BTreeMap<String, Parameter>);

/// A parameter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Parameter {
    /// Every call must give a value.
    pub(super) required: bool,
    /// The value if a call gives none.
    pub(super) default: Option<Value>,
    /// The value may begin with `-`.
    pub(super) allow_dash: bool,
    /// The value may be a list.
    pub(super) list: bool,
}

impl Parameters {
    /// Reads the root of a schema.
    pub(super) fn read(schema: &Value) -> Self {
        let required = |name: &str| {
            let listed = schema.get("required").and_then(Value::as_array);
            listed.is_some_and(|names| names.iter().any(|listed| listed == name))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let read = |(name, property): (&String, &Value)| {
            let parameter = Parameter {
                required: required(name),
                default: property.get("default").filter(|value| !value.is_null()).cloned(),
                allow_dash: property.get(ALLOW_DASH) == Some(&Value::Bool(true)),
                list: is_list(property),
            };
            (name.clone(), parameter)
        };
        Self(properties.into_iter().flatten().map(read).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Parameter> {
        self.0.get(name)
    }

    /// The names, sorted.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The value of a parameter: the call's, else the default.
    pub(super) fn value<'a>(&'a self, args: &'a Value, name: &str) -> Option<&'a Value> {
        let given = args.get(name).filter(|value| !value.is_null());
        given.or_else(|| self.get(name)?.default.as_ref())
    }
}

fn is_list(property: &Value) -> bool {
    match property.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => property.get("items").is_some(),
    }
}

/// The schema that the model is sent: without our own keys, and closed against unknown arguments.
pub(super) fn for_model(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            property.remove(ALLOW_DASH);
        }
    }
    if let Some(root) = schema.as_object_mut() {
        close(root);
    }
    schema
}

fn close(root: &mut Map<String, Value>) {
    root.entry("additionalProperties").or_insert(Value::Bool(false));
}
