//! Everything about one tool, as a caller has it: its state here, its arguments, its definition for a model.

use std::sync::Arc;

use claw_core::did_you_mean::nearest;
use claw_core::tool::{Caller, Meta, Spec};
use claw_policy::pipeline::{Subject, Verdict};
use claw_registry::{Registry, Status};
use serde_json::{Value, json};

use super::{Error, Setup, spec, tokens};

/// A tool, for one caller.
pub struct ToolView {
    /// The tool.
    pub meta: Meta,
    /// Whether it works here.
    pub status: Status,
    /// The policy's verdict; `None` for a tool that this build lacks.
    pub verdict: Option<Verdict>,
    /// JSON Schema of its arguments; `None` for a tool that this build lacks.
    pub parameters: Option<Value>,
}

/// An argument of a tool.
pub struct ArgumentView {
    /// The name.
    pub name: String,
    /// The type in words, such as `list of string` or `a | b`.
    pub kind: String,
    /// The argument cannot be left out.
    pub is_required: bool,
    /// The description, on one line.
    pub about: String,
}

impl Setup {
    /// Returns everything about the tool of this name or alias. Creates no store.
    pub async fn tool_view(&self, caller: &Caller, name: &str) -> Result<ToolView, Error> {
        let (registry, own) = self.tools_beside(caller).await?;
        let listed = registry.list();
        let own_spec = own.iter().find(|spec| spec.name.as_str() == name);
        let own_meta = own_spec.and_then(|spec| listed.iter().find(|line| line.meta.name == spec.name));
        let meta = match own_meta {
            Some(line) => Meta::clone(&line.meta),
            None => known_tool(name, &own)?,
        };
        let listing = listed.into_iter().find(|line| line.meta.name == meta.name);
        let status = listing.map_or(Status::NotInBuild, |listing| listing.status);
        let policy = self.enforced_policy().await?;
        let verdict = (status != Status::NotInBuild)
            .then(|| policy.judge(&registry.tool_set(), &Subject::from(caller), &meta));
        let definition = own_spec.cloned().or_else(|| spec(&meta));
        let parameters = definition.map(|spec| Value::clone(&spec.parameters));
        Ok(ToolView { meta, status, verdict, parameters })
    }

    /// Returns the definitions of the named tools; if none is named, of all that this build and the caller have, sorted.
    /// Creates no store.
    pub async fn tool_specs(&self, caller: &Caller, names: &[String]) -> Result<Vec<Spec>, Error> {
        let (_, own) = self.tools_beside(caller).await?;
        if names.is_empty() {
            let builtin = claw_tools::builtin().map(|tool| builtin_spec(&tool.meta));
            let mut all = builtin.chain(own.into_iter().map(Ok)).collect::<Result<Vec<_>, _>>()?;
            all.sort_by(|a, b| a.name.cmp(&b.name));
            return Ok(all);
        }
        let spec = |name: &String| match own.iter().find(|spec| spec.name.as_str() == name) {
            Some(spec) => Ok(spec.clone()),
            None => builtin_spec(&known_tool(name, &own)?),
        };
        names.iter().map(spec).collect()
    }

    /// The registry for a caller, and the definitions of its tools beside the built-in ones.
    async fn tools_beside(&self, caller: &Caller) -> Result<(Arc<Registry>, Vec<Spec>), Error> {
        let Some(app) = self.open_existing().await? else { return Ok((self.registry(), Vec::new())) };
        let found = (app.registry_of(caller).await, app.caller_specs(caller).await);
        app.close().await;
        Ok((found.0?, found.1?))
    }
}

impl ToolView {
    /// The tool as JSON.
    pub fn json(&self) -> Result<Value, Error> {
        let unwritten = |error| Error::failed("the tool cannot be written as JSON").because(error);
        let mut value = serde_json::to_value(&self.meta).map_err(unwritten)?;
        value["tokens"] = json!(tokens(&self.meta).map(|tokens| tokens.count));
        value["status"] = json!(self.status);
        value["verdict"] = json!(self.verdict);
        value["parameters"] = json!(self.parameters);
        Ok(value)
    }

    /// The arguments; `None` for a tool that this build lacks.
    pub fn arguments(&self) -> Option<Vec<ArgumentView>> {
        let schema = self.parameters.as_ref()?;
        let required = schema.get("required").and_then(Value::as_array);
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let arguments = properties.map(|(name, field)| {
            let about = field.get("description").and_then(Value::as_str).unwrap_or_default();
            ArgumentView {
                name: name.clone(),
                kind: kind(field),
                is_required: required.is_some_and(|names| names.iter().any(|required| required == name)),
                about: about.replace('\n', " "),
            }
        });
        Some(arguments.collect())
    }
}

/// Describes the type of an argument.
fn kind(schema: &Value) -> String {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return choices.iter().filter(|choice| !choice.is_null()).map(bare).collect::<Vec<_>>().join(" | ");
    }
    if let Some(only) = schema.get("const") {
        return bare(only);
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(parts) = schema.get(key).and_then(Value::as_array) {
            let mut kinds: Vec<_> = parts.iter().map(kind).filter(|kind| kind != "null").collect();
            kinds.dedup();
            return kinds.join(" | ");
        }
    }
    let name = match schema.get("type") {
        Some(Value::Array(kinds)) => {
            kinds.iter().filter(|kind| *kind != "null").map(bare).collect::<Vec<_>>().join(" | ")
        }
        Some(kind) => bare(kind),
        None => "any".to_owned(),
    };
    match schema.get("items") {
        Some(items) if name == "array" => format!("list of {}", kind(items)),
        _ => name,
    }
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// The tool of the catalogue with this name or alias. An unknown name gets the nearest, also of the caller's `own` tools.
fn known_tool(name: &str, own: &[Spec]) -> Result<Meta, Error> {
    let catalogue = claw_tools::catalogue();
    let by_name = catalogue.iter().find(|meta| meta.name.as_str() == name);
    if let Some(meta) = by_name.or_else(|| catalogue.iter().find(|meta| meta.aliases.contains(name))) {
        return Ok(meta.clone());
    }
    let names = catalogue.iter().map(|meta| meta.name.as_str());
    let error = Error::invalid(format!("there is no tool called `{name}`"));
    Err(match nearest(name, names.chain(own.iter().map(|spec| spec.name.as_str()))) {
        Some(near) => error.hint(format!("clawsmith tools show {near}")),
        None => error.hint("clawsmith tools list --all"),
    })
}

fn builtin_spec(meta: &Meta) -> Result<Spec, Error> {
    spec(meta).ok_or_else(|| {
        let what = format!("`{}` is known but not in this build, so it has no schema yet", meta.name);
        Error::invalid(what).hint("clawsmith tools list")
    })
}
