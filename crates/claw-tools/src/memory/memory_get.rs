//! `memory_get`: reads lines of one memory document.

use claw_core::message::fenced;
use claw_core::port::MemoryPart;
use claw_core::tool::{Call, Cost, Effect, Group, Meta, Need, Output, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::format;

/// Most paths named if a document is not found.
const NAMED: usize = 20;

#[derive(Default)]
pub(crate) struct MemoryGet;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Path of the document, as `memory_search` shows it.
    path: String,
    /// First line to read.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    from: u64,
    /// The most lines to return.
    #[serde(default = "two_hundred")]
    #[schemars(range(min = 1, max = 2000))]
    lines: u64,
}

fn one() -> u64 {
    1
}

fn two_hundred() -> u64 {
    200
}

impl Tool for MemoryGet {
    type Args = Args;
    const META: Meta = Meta::new("memory_get", Group::Memory)
        .effects(&[Effect::Read])
        .cost(Cost::Light)
        .needs(&[Need::Memory])
        .about("Read one memory document, or some lines of it.");

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let memory = call.memory()?;
        let part = MemoryPart { path: args.path, from: args.from.max(1), lines: args.lines.clamp(1, 2_000) };
        let Some(found) = memory.get(&part).await? else {
            let paths = memory.paths().await?;
            let shown: String = part.path.chars().take(200).collect();
            return Err(ToolError::not_found(format!("there is no memory document `{shown}`"))
                .try_instead(named(&paths)));
        };
        if found.start_line > found.total && found.total > 0 {
            let message = format!("`{}` has {}", found.path, format::count(found.total, "line", "lines"));
            return Err(ToolError::invalid(message).try_instead("read it from line 1"));
        }
        let head = match found.total {
            0 => format!("{} ({}'s) is empty", found.path, found.owner.name()),
            total => format!(
                "{} ({}'s), lines {} to {} of {total}{}",
                found.path,
                found.owner.name(),
                found.start_line,
                found.end_line,
                if found.end_line < total {
                    format!("; next: from = {}", found.end_line + 1)
                } else {
                    String::new()
                },
            ),
        };
        let mut text = format!("{head}\n{}", found.text);
        if found.provenance.untrusted {
            let head = format!("{head}; untrusted: its writer had read untrusted text");
            text = format!("{head}\n{}", fenced(&found.text, call.id(), &found.path));
        }
        Ok(Output::text(text).with_details(json!(found)))
    }
}

fn named(paths: &[String]) -> String {
    if paths.is_empty() {
        return "there are no memory documents yet; write one to `MEMORY.md` or below `memory/`".to_owned();
    }
    let first: Vec<String> = paths.iter().take(NAMED).map(|path| format!("`{path}`")).collect();
    let more = paths.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("there are {}{rest}", first.join(", "))
}

#[cfg(test)]
mod tests;
