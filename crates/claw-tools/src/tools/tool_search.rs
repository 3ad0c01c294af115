//! `tool_search`: finds tools that were not sent, by what they do. The found tools become callable.

use std::fmt::Write as _;

use claw_core::port::Hit;
use claw_core::tool::{Call, Cost, Effect, Group, Meta, Need, Output, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// More schemas than this at once would crowd out the conversation.
const MOST: usize = 20;

#[derive(Default)]
pub(crate) struct ToolSearch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Task the tool should do, or its name.
    query: String,
    /// The most tools to return.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    limit: usize,
}

fn five() -> usize {
    5
}

impl Tool for ToolSearch {
    type Args = Args;
    const META: Meta = Meta::new("tool_search", Group::Tools)
        .effects(&[Effect::Read])
        .cost(Cost::Light)
        .aliases(&["ToolSearch", "mcp_tool_search"])
        .needs(&[Need::Catalogue])
        .standing()
        .about("Search for tools that are not listed. Tools that you find can then be called.");

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let query = args.query.trim();
        if query.is_empty() {
            return Err(ToolError::invalid("`query` is empty").try_instead("say what the tool should do"));
        }
        let catalogue = call.catalogue()?;
        let hits = catalogue.search(query, args.limit.clamp(1, MOST));
        let text = match hits.as_slice() {
            [] => format!(
                "none of {} searchable tools matches `{query}`; try other words for what it should do",
                catalogue.deferred()
            ),
            hits => describe(hits),
        };
        Ok(Output::text(text).with_details(json!({ "tools": hits })))
    }
}

fn describe(hits: &[Hit]) -> String {
    let mut text = match hits.len() {
        1 => "1 tool found; it can be called now:".to_owned(),
        found => format!("{found} tools found; they can be called now:"),
    };
    for hit in hits {
        let _ = write!(text, "\n\n{}: {}\nparameters: {}", hit.name, hit.about, hit.parameters);
    }
    text
}

#[cfg(test)]
mod tests;
