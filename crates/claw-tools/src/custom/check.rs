//! Checks a definition before it is stored, as far as that needs no store.

use std::path::{Component, Path};

use claw_core::store::{CustomToolAction, CustomToolDefinition, CustomToolPlace};
use serde_json::Value;

use super::http_template::HttpTemplate;
use super::names::taken;
use super::template::{Template, TemplateError};

/// Most seconds that one call may take.
const LONGEST: u32 = 3600;
/// Most bytes of a description.
const LONGEST_DESCRIPTION: usize = 4096;

/// A definition that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The name is taken or reserved.
    #[error("{0}; use another name")]
    Name(String),
    /// A field has an invalid value.
    #[error("`{field}` {why}")]
    Field {
        /// The field.
        field: &'static str,
        /// The problem, and the form to use.
        why: String,
    },
    /// The template cannot be filled safely.
    #[error("`{field}`, {error}")]
    Template {
        /// The field.
        field: &'static str,
        /// The problem, with its position.
        error: TemplateError,
    },
}

/// A definition's template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Command(Template),
    Argv(Template),
    Http(HttpTemplate),
}

/// Checks a definition for a tool of this place.
pub fn check(place: &CustomToolPlace, definition: &CustomToolDefinition) -> Result<(), DefinitionError> {
    if let Some(why) = taken(place.name.as_str()) {
        return Err(DefinitionError::Name(why));
    }
    action(definition).map(|_| ())
}

/// Checks everything but the name, and reads the template.
pub(super) fn action(definition: &CustomToolDefinition) -> Result<Action, DefinitionError> {
    let wrong = |field, why: String| DefinitionError::Field { field, why };
    let description = definition.description.trim();
    if description.is_empty() || description.len() > LONGEST_DESCRIPTION {
        let why =
            format!("must have 1 to {LONGEST_DESCRIPTION} bytes; say what the tool does and when to use it");
        return Err(wrong("description", why));
    }
    if !(1..=LONGEST).contains(&definition.timeout_seconds) {
        let why = format!("is {}; use 1 to {LONGEST}", definition.timeout_seconds);
        return Err(wrong("timeout_seconds", why));
    }
    parameters(&definition.parameters).map_err(|why| wrong("parameters", why))?;
    for granted in &definition.grants.paths {
        grantable(&granted.path).map_err(|why| wrong("grants.paths", why))?;
    }
    let schema = &definition.parameters;
    let of_template = |field| move |error| DefinitionError::Template { field, error };
    match &definition.action {
        CustomToolAction::Command { template, working_dir } => {
            directory(working_dir).map_err(|why| wrong("working_dir", why))?;
            Template::shell(template, schema).map(Action::Command).map_err(of_template("command"))
        }
        CustomToolAction::Argv { words, working_dir } => {
            directory(working_dir).map_err(|why| wrong("working_dir", why))?;
            Template::words(words, schema).map(Action::Argv).map_err(of_template("argv"))
        }
        CustomToolAction::Http(http) => {
            if !definition.grants.is_empty() {
                let why = "are for commands; a request reaches the one address that it names".to_owned();
                return Err(wrong("grants", why));
            }
            HttpTemplate::read(http, schema).map(Action::Http).map_err(of_template("http"))
        }
    }
}

fn parameters(schema: &Value) -> Result<(), String> {
    let root = schema.as_object().ok_or("must be a JSON Schema object")?;
    if root.get("type").is_some_and(|kind| kind != "object") {
        return Err("must have the type `object` at its root".to_owned());
    }
    match root.get("properties") {
        None | Some(Value::Object(_)) => Ok(()),
        Some(_) => Err("must have an object in `properties`".to_owned()),
    }
}

/// Checks a directory of the workspace.
fn directory(directory: &str) -> Result<(), String> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    match !directory.is_empty() && !directory.contains('\0') && Path::new(directory).components().all(inside)
    {
        true => Ok(()),
        false => Err(format!("is `{}`; name a directory of the workspace", directory.escape_debug())),
    }
}

/// Checks a path that is to be granted: it must be absolute, plain, and not the root.
fn grantable(path: &str) -> Result<(), String> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::RootDir);
    let named = Path::new(path).components().any(|part| matches!(part, Component::Normal(_)));
    let ok =
        path.starts_with('/') && named && !path.contains('\0') && Path::new(path).components().all(plain);
    match ok {
        true => Ok(()),
        false => {
            Err(format!("has `{}`; name an absolute path without `..`, and not `/`", path.escape_debug()))
        }
    }
}
