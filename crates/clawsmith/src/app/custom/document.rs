//! A custom tool as people write and read it: JSON for `tools add`, in files and over HTTP.

use std::collections::BTreeMap;

use claw_core::TenantId;
use claw_core::port::UnixMillis;
use claw_core::store::{
    CustomToolAction, CustomToolCard, CustomToolDefinition, CustomToolGrants, CustomToolHttp,
};
use claw_store::vault::CustomToolValues;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::Error;

/// A custom tool as it is written. `Debug` shows no value of a variable or header.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomToolDocument {
    /// The name that a model calls it by.
    pub name: String,
    /// The tool's purpose, for the model.
    pub description: String,
    /// JSON Schema of the arguments; none where left out.
    #[serde(default = "CustomToolDefinition::no_parameters")]
    pub parameters: Value,
    /// A shell command with `{{.name}}` for each argument.
    pub command: Option<String>,
    /// A program and its arguments, run without a shell.
    pub argv: Option<Vec<String>>,
    /// A request to an HTTP endpoint.
    pub http: Option<HttpDocument>,
    /// The directory that commands start in, relative to the workspace.
    #[serde(alias = "working_directory")]
    pub working_dir: Option<String>,
    /// Time limit of one call, in seconds; 60 where left out.
    pub timeout_seconds: Option<u32>,
    /// Variables of the command, which are sealed.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: BTreeMap<String, SecretString>,
    /// The one agent that has it; every agent where left out.
    #[serde(alias = "agent_id")]
    pub agent: Option<String>,
    /// Agents are offered it; yes where left out.
    pub enabled: Option<bool>,
    /// Access beyond that of the agent's own commands; none where left out.
    #[serde(default)]
    pub grants: CustomToolGrants,
}

/// A request as it is written.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpDocument {
    /// The method; `GET` where left out.
    pub method: Option<String>,
    /// The address with `{{.name}}` in its path or query.
    pub url: String,
    /// Headers, which are sealed.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: BTreeMap<String, SecretString>,
    /// The JSON body.
    pub body: Option<Value>,
}

impl CustomToolDocument {
    /// Reads JSON.
    pub fn parse(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| not_a_tool(&error))
    }

    /// Reads a JSON value.
    pub fn from_value(value: Value) -> Result<Self, Error> {
        serde_json::from_value(value).map_err(|error| not_a_tool(&error))
    }

    /// Splits the document into the definition and its values.
    pub(super) fn read(self, tenant: &TenantId) -> Result<(CustomToolCard, CustomToolValues), Error> {
        let place = super::place(tenant, &self.name, self.agent.as_deref())?;
        let working_dir = self.working_dir.filter(|dir| !dir.is_empty()).unwrap_or_else(|| ".".to_owned());
        let mut headers = BTreeMap::new();
        let action = match (self.command, self.argv, self.http) {
            (Some(template), None, None) => CustomToolAction::Command { template, working_dir },
            (None, Some(words), None) => CustomToolAction::Argv { words, working_dir },
            (None, None, Some(http)) => {
                if !self.env.is_empty() {
                    return Err(Error::invalid("`env` is for commands; a request has `http.headers`"));
                }
                headers = http.headers;
                let method = http.method.unwrap_or_else(|| "GET".to_owned()).to_ascii_uppercase();
                let names = headers.keys().cloned().collect();
                CustomToolAction::Http(CustomToolHttp {
                    method,
                    url: http.url,
                    body: http.body,
                    headers: names,
                })
            }
            _ => {
                return Err(Error::invalid("give exactly one of `command`, `argv` and `http`"));
            }
        };
        let values =
            CustomToolValues::new(self.env, headers).map_err(|error| Error::invalid(error.to_string()))?;
        let definition = CustomToolDefinition {
            description: self.description,
            parameters: self.parameters,
            action,
            timeout_seconds: self.timeout_seconds.unwrap_or(CustomToolDefinition::TIMEOUT),
            grants: self.grants,
            enabled: self.enabled.unwrap_or(true),
        };
        let variables = values.names();
        let card = CustomToolCard { place, definition, variables, version: 0, at: UnixMillis(0) };
        Ok((card, values))
    }
}

fn not_a_tool(error: &serde_json::Error) -> Error {
    Error::invalid(format!("this is not a valid custom tool: {error}"))
        .hint("see docs/custom-tools.md for the fields")
}

/// A custom tool as it is shown: names of variables and headers, never their values.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct CustomToolView(Value);

impl schemars::JsonSchema for CustomToolView {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CustomToolView".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "The document that defined the tool, with the names of its variables and headers and no value.",
            "required": ["name", "description", "variables", "version", "updated"],
            "properties": {
                "name": { "type": "string" },
                "description": { "type": "string" },
                "variables": { "type": "array", "items": { "type": "string" } },
                "version": { "type": "integer" },
                "updated": { "type": "integer" },
            },
        })
    }
}

impl From<&CustomToolCard> for CustomToolView {
    fn from(card: &CustomToolCard) -> Self {
        let mut view = written(card);
        view.insert("variables".into(), json!(card.variables));
        view.insert("version".into(), json!(card.version));
        view.insert("updated".into(), json!(card.at));
        if let CustomToolAction::Http(http) = &card.definition.action
            && let Some(Value::Object(shown)) = view.get_mut("http")
        {
            shown.insert("headers".into(), json!(http.headers));
        }
        Self(Value::Object(view))
    }
}

/// The document of a stored tool, without its values.
fn written(card: &CustomToolCard) -> Map<String, Value> {
    let CustomToolDefinition { description, parameters, action, timeout_seconds, grants, enabled } =
        &card.definition;
    let mut written = Map::new();
    written.insert("name".into(), json!(card.place.name));
    written.insert("agent".into(), json!(card.place.agent));
    written.insert("description".into(), json!(description));
    written.insert("parameters".into(), parameters.clone());
    match action {
        CustomToolAction::Command { template, working_dir } => {
            written.insert("command".into(), json!(template));
            written.insert("working_dir".into(), json!(working_dir));
        }
        CustomToolAction::Argv { words, working_dir } => {
            written.insert("argv".into(), json!(words));
            written.insert("working_dir".into(), json!(working_dir));
        }
        CustomToolAction::Http(CustomToolHttp { method, url, body, headers: _ }) => {
            written.insert("http".into(), json!({ "method": method, "url": url, "body": body }));
        }
    }
    written.insert("timeout_seconds".into(), json!(timeout_seconds));
    written.insert("grants".into(), json!(grants));
    written.insert("enabled".into(), json!(enabled));
    written
}

/// Refuses to send a sealed header to another server than the one that it was given for.
fn stays_or_is_given_again(
    before: Option<&Value>,
    url: &str,
    headers: &Map<String, Value>,
    given: Option<&Value>,
) -> Result<(), Error> {
    // An address begins with its server, before any placeholder.
    let origin = |url: &str| {
        let start = url.split("{{").next().unwrap_or_default();
        claw_net::Url::parse(start).ok().map(|url| url.origin().ascii_serialization())
    };
    let old = before.and_then(|http| http.get("url")).and_then(Value::as_str).and_then(origin);
    let new = origin(url);
    if old.is_some() && old == new {
        return Ok(());
    }
    let kept: Vec<&str> = headers.keys().map(String::as_str).filter(|name| !is_given(given, name)).collect();
    if kept.is_empty() {
        return Ok(());
    }
    let of = old.unwrap_or_else(|| "another server".to_owned());
    let told = format!(
        "the secret header `{}` was set for `{of}`, and is not sent to another server",
        kept.join("`, `")
    );
    Err(Error::invalid(told).hint("set it again in `http.headers`, or remove it with `null`"))
}

/// Returns whether a change sets or removes a named value.
fn is_given(given: Option<&Value>, name: &str) -> bool {
    match given {
        Some(Value::Null) => true,
        given => given.and_then(|given| given.get(name)).is_some(),
    }
}

/// Refuses to give sealed variables, named by `kept`, to another command than the one that they were given for.
fn runs_the_same_or_is_given_again(
    before: &CustomToolDefinition,
    after: &CustomToolDocument,
    kept: &[String],
) -> Result<(), Error> {
    let directory = after.working_dir.as_deref().filter(|dir| !dir.is_empty()).unwrap_or(".");
    let runs_the_same = match &before.action {
        CustomToolAction::Command { template, working_dir } => {
            after.command.as_ref() == Some(template) && working_dir == directory
        }
        CustomToolAction::Argv { words, working_dir } => {
            after.argv.as_ref() == Some(words) && working_dir == directory
        }
        CustomToolAction::Http(_) => false,
    };
    if runs_the_same && before.grants == after.grants {
        return Ok(());
    }
    let kept: Vec<&str> =
        kept.iter().map(String::as_str).filter(|name| after.env.contains_key(*name)).collect();
    if kept.is_empty() {
        return Ok(());
    }
    let told = format!(
        "the secret variable `{}` was set for the command, working directory and grants that the tool has, and \
         is not given to others",
        kept.join("`, `")
    );
    Err(Error::invalid(told).hint(
        "set it again in the same change, in `env` or with `--from-env`, or remove it with `null` in `env`",
    ))
}

/// Returns the document of a tool with some fields changed.
pub(super) fn changed(
    card: &CustomToolCard,
    values: &CustomToolValues,
    change: Value,
) -> Result<CustomToolDocument, Error> {
    let Value::Object(mut change) = change else {
        return Err(Error::invalid("a change is a JSON object with the fields that change"));
    };
    let mut document = written(card);
    let exposed = |(name, value): (&str, &SecretString)| (name.to_owned(), json!(value.expose_secret()));
    let mut env: Map<String, Value> = values.env().map(exposed).collect();
    let mut headers: Map<String, Value> = values.headers().map(exposed).collect();
    let given = change.remove("env");
    let kept = values.env().map(|(name, _)| name.to_owned());
    let kept: Vec<String> = kept.filter(|name| !is_given(given.as_ref(), name)).collect();
    merge(&mut env, given, "env")?;
    if let Some(Value::Object(http)) = change.get_mut("http") {
        let given = http.remove("headers");
        if let Some(url) = http.get("url").and_then(Value::as_str) {
            stays_or_is_given_again(document.get("http"), url, &headers, given.as_ref())?;
        }
        merge(&mut headers, given, "http.headers")?;
        if let Some(Value::Object(known)) = document.get("http") {
            for (name, value) in known {
                http.entry(name).or_insert_with(|| value.clone());
            }
        }
    }
    // Another way to do it replaces the one before, with all that goes with it.
    const WAYS: [&str; 3] = ["command", "argv", "http"];
    if WAYS.iter().any(|way| change.get(*way).is_some_and(|value| !value.is_null())) {
        WAYS.iter().for_each(|way| drop(document.remove(*way)));
        if change.contains_key("http") {
            document.remove("working_dir");
            env.clear();
        }
    }
    for (name, value) in change {
        match value {
            Value::Null => document.remove(&name),
            value => document.insert(name, value),
        };
    }
    document.insert("env".into(), Value::Object(env));
    if let Some(Value::Object(http)) = document.get_mut("http") {
        http.insert("headers".into(), Value::Object(headers));
    }
    let document = CustomToolDocument::from_value(Value::Object(document))?;
    runs_the_same_or_is_given_again(&card.definition, &document, &kept)?;
    Ok(document)
}

/// Merges named values over others; `null` removes one, or all.
fn merge(values: &mut Map<String, Value>, change: Option<Value>, field: &str) -> Result<(), Error> {
    match change {
        None => {}
        Some(Value::Null) => values.clear(),
        Some(Value::Object(change)) => {
            for (name, value) in change {
                match value {
                    Value::Null => values.remove(&name),
                    value => values.insert(name, value),
                };
            }
        }
        Some(_) => return Err(Error::invalid(format!("`{field}` must be an object of names and values"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
