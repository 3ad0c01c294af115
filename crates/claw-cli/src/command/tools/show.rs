//! `clawsmith tools show`: everything about one tool.

use std::io;

use clap::Args;
use claw_core::tool::{Meta, Spec};
use claw_policy::pipeline::{Subject, Verdict};
use claw_registry::Status;
use claw_terminal::{Cell, Out, Table};
use clawsmith::app;
use clawsmith::app::tool_list::known_tool;
use serde_json::{Value, json};

use super::custom;
use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::failure::Outcome;
use crate::opened::{runtime, with_existing_app};

/// The tool to show, and its caller.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The tool's name, or an alias.
    name: String,
    #[command(flatten)]
    caller: CallerArgs,
}

impl Show {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = self.caller.load(session)?;
        if let Some(shown) = custom::show(session, &setup, &self.name, &self.caller)? {
            return Ok(shown);
        }
        let caller = self.caller.caller_here(&setup)?;
        let of_caller = with_existing_app(&setup, async |app| {
            Ok((app.registry_of(&caller).await?, app.caller_specs(&caller).await?))
        })?;
        let (registry, own) = of_caller.unwrap_or_else(|| (setup.registry(), Vec::new()));
        let own = own.into_iter().find(|spec| spec.name.as_str() == self.name);
        let policy = runtime()?.block_on(setup.enforced_policy())?;
        let listed = registry.list();
        let of_own = |spec: &Spec| listed.iter().find(|line| line.meta.name == spec.name);
        let meta = match own.as_ref().and_then(of_own) {
            Some(line) => Meta::clone(&line.meta),
            None => known_tool(&self.name)?,
        };
        let listing = listed.into_iter().find(|line| line.meta.name == meta.name);
        let status = listing.map_or(Status::NotInBuild, |listing| listing.status);
        let verdict = (status != Status::NotInBuild)
            .then(|| policy.judge(&registry.tool_set(), &Subject::from(&caller), &meta));
        let parameters = own.or_else(|| app::spec(&meta)).map(|spec| Value::clone(&spec.parameters));
        let mut value = serde_json::to_value(&meta)?;
        value["tokens"] = json!(app::tokens(&meta).map(|tokens| tokens.count));
        value["status"] = json!(status);
        value["verdict"] = json!(verdict);
        value["parameters"] = json!(parameters);
        session.shown(&value, |out| {
            facts(out, &meta, &status, verdict.as_ref())?;
            Ok(parameters.iter().try_for_each(|parameters| fields(out, parameters))?)
        })
    }
}

fn facts(out: &mut Out, meta: &Meta, status: &Status, verdict: Option<&Verdict>) -> io::Result<()> {
    let names = |list: Vec<String>| if list.is_empty() { "none".to_owned() } else { list.join(", ") };
    let status = match status {
        Status::Ready => "ready".to_owned(),
        Status::Unavailable(reason) => format!("unavailable: {reason}"),
        Status::NotInBuild => "known, but not in this build".to_owned(),
    };
    let allowed =
        verdict.map(|verdict| format!("{}: {}", if verdict.allowed { "yes" } else { "no" }, verdict.trace));
    let tokens = app::tokens(meta)
        .map(|tokens| format!("{}{}", tokens.count, if tokens.estimated { " (estimated)" } else { "" }));
    let lines = [
        ("status", Some(status)),
        ("allowed", allowed),
        ("section", Some(meta.heading().label.into_owned())),
        ("groups", Some(names(meta.groups().map(|group| format!("group:{group}")).collect()))),
        ("effects", Some(meta.effects.to_string())),
        ("cost", Some(meta.cost.name().to_owned())),
        ("needs", Some(names(meta.needs.iter().map(|need| need.name().to_owned()).collect()))),
        ("aliases", Some(names(meta.aliases.iter().map(|alias| (*alias).to_owned()).collect()))),
        ("timeout", meta.timeout_secs.map(|seconds| format!("{seconds} s"))),
        ("tokens", tokens),
    ];
    out.heading(meta.title())?;
    out.prose(&meta.about)?;
    out.line("")?;
    let given = lines.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.into_iter().try_for_each(|(name, value)| out.line(format_args!("{name:<9}{value}")))
}

/// The arguments as a table.
fn fields(out: &mut Out, schema: &Value) -> io::Result<()> {
    out.line("")?;
    out.heading("arguments")?;
    let properties = schema.get("properties").and_then(Value::as_object).filter(|fields| !fields.is_empty());
    let Some(properties) = properties else { return out.line("none") };
    let required = schema.get("required").and_then(Value::as_array);
    let mut table = Table::new(["name", "type", "required", "about"]);
    for (name, field) in properties {
        let needed = required.is_some_and(|names| names.iter().any(|required| required == name));
        let about = field.get("description").and_then(Value::as_str).unwrap_or_default();
        let needed = if needed { Cell::warning("yes") } else { Cell::quiet("no") };
        table.row([Cell::strong(name), Cell::new(kind(field)), needed, Cell::new(about.replace('\n', " "))]);
    }
    out.table(&table)
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
