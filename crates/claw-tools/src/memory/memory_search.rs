//! `memory_search`: finds passages of memory documents that answer a question.

use claw_core::message::fenced;
use claw_core::port::{MemoryFound, MemoryHit, MemoryQuery};
use claw_core::tool::{Call, Effect, Group, Meta, Need, Output, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The longest question, in bytes.
const LONGEST: usize = 4_000;

#[derive(Default)]
pub(crate) struct MemorySearch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The question, or words that the answer may contain.
    query: String,
    /// The most hits to return.
    #[serde(default = "six", alias = "maxResults")]
    #[schemars(range(min = 1, max = 50))]
    max_results: usize,
}

fn six() -> usize {
    6
}

impl Tool for MemorySearch {
    type Args = Args;
    const META: Meta = Meta::new("memory_search", Group::Memory)
        .effects(&[Effect::Read])
        .needs(&[Need::Memory])
        .about(
            "Search the memory (`MEMORY.md` and `memory/`) of the user, the agent and the tenant. Search it \
             before you answer questions about earlier work, people, dates or preferences; read more with `memory_get`.",
        );

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let text = args.query.trim();
        if text.is_empty() {
            return Err(ToolError::invalid("`query` is empty")
                .try_instead("ask a question, or pass words to look for"));
        }
        if text.len() > LONGEST {
            let message = format!("`query` has {} bytes; at most {LONGEST} are allowed", text.len());
            return Err(ToolError::invalid(message).try_instead("ask a shorter question"));
        }
        let query = MemoryQuery { text: text.to_owned(), limit: args.max_results.clamp(1, 50) };
        let found = call.memory()?.search(&query).await?;
        let mut text = shown(&found);
        if found.hits.iter().any(|hit| hit.provenance.untrusted) {
            text = fenced(&text, call.id(), "memory_search");
        }
        Ok(Output::text(text).with_details(json!(found)))
    }
}

fn shown(found: &MemoryFound) -> String {
    let mut parts: Vec<String> = found.hits.iter().zip(1..).map(|(hit, n)| entry(n, hit)).collect();
    if parts.is_empty() {
        parts.push("nothing in memory matches; try other words".to_owned());
    }
    parts.extend(found.note.as_ref().map(|note| format!("({note})")));
    parts.join("\n\n")
}

fn entry(n: usize, hit: &MemoryHit) -> String {
    let MemoryHit { path, start_line, end_line, score, heading, text, why, provenance } = hit;
    let under = if heading.is_empty() { String::new() } else { format!(" under \"{heading}\"") };
    let mut reasons = vec![format!("{}'s", why.owner.name())];
    if !why.words.is_empty() {
        reasons.push(format!("words: {}", why.words.join(", ")));
    }
    if why.beside {
        reasons.push("beside a hit".to_owned());
    }
    if let Some(similarity) = why.similarity {
        reasons.push(format!("similarity {similarity:.2}"));
    }
    if provenance.untrusted {
        reasons.push("untrusted: its writer had read untrusted text".to_owned());
    }
    let score = if why.beside { String::new() } else { format!("score {score:.2}; ") };
    format!("{n}. {path}:{start_line}-{end_line}{under} ({score}{})\n{text}", reasons.join("; "))
}

#[cfg(test)]
mod tests;
