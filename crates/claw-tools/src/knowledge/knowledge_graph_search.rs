//! `knowledge_graph_search`: finds known things and their relations, fenced as data.

use claw_core::graph::{kind, time};
use claw_core::message::fenced;
use claw_core::port::{GraphQuery, GraphStart};
use claw_core::tool::{Call, Effect, Group, Meta, Need, Output, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Most entities found by words.
const FOUND: usize = 10;
/// Most entities listed by `*`.
const LISTED: usize = 30;

#[derive(Default)]
pub(crate) struct KnowledgeGraphSearch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Names or words to look for; `*` lists everything. Not needed with `entity_id`.
    #[serde(default)]
    query: String,
    /// Only entities of this type, such as `person`.
    #[serde(default)]
    entity_type: Option<String>,
    /// Id of an entity from a search: show its relations.
    #[serde(default)]
    entity_id: Option<String>,
    /// Number of relations to follow.
    #[serde(default = "two")]
    #[schemars(range(min = 0, max = 5))]
    max_depth: usize,
    /// Date to answer for, like `2026-05-03`; default now.
    #[serde(default)]
    as_of: Option<String>,
}

fn two() -> usize {
    2
}

impl Tool for KnowledgeGraphSearch {
    type Args = Args;
    const META: Meta = Meta::new("knowledge_graph_search", Group::Knowledge)
        .effects(&[Effect::Read])
        .needs(&[Need::Graph])
        .about(
            "Search the knowledge graph: people, organizations, places and their relations, with dates and sources. \
             Use it for who, where and since when; `memory_search` finds the original text.",
        );

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let query = query(args)?;
        let found = call.graph()?.search(&query).await?;
        if let (GraphStart::Entity(id), []) = (&query.start, found.found.as_slice()) {
            return Err(ToolError::not_found(format!("there is no entity `{id}` at that time"))
                .try_instead("search by a name, and use an id that the answer shows"));
        }
        let text = fenced(&found.to_string(), call.id(), "knowledge_graph_search");
        Ok(Output::text(text).with_details(json!(found)))
    }
}

fn query(args: Args) -> Result<GraphQuery, ToolError> {
    let text = args.query.trim();
    if text.len() > GraphQuery::LONGEST {
        let message =
            format!("`query` has {} bytes; at most {} are allowed", text.len(), GraphQuery::LONGEST);
        return Err(ToolError::invalid(message).try_instead("ask with a few words"));
    }
    let (start, limit) = match (&args.entity_id, text) {
        (Some(id), _) => {
            let short: String = id.chars().take(60).collect();
            let wrong = || ToolError::invalid(format!("`entity_id` is `{short}`, which is not an id"));
            let id = id.trim().parse().map_err(|_| wrong().try_instead("search by a name first"))?;
            (GraphStart::Entity(id), 1)
        }
        (None, "") => {
            return Err(ToolError::invalid("`query` is empty").try_instead("ask with a name, or `*` for all"));
        }
        (None, "*") => (GraphStart::All, LISTED),
        (None, text) => (GraphStart::Words(text.to_owned()), FOUND),
    };
    let as_of = args.as_of.map(|written| {
        let short: String = written.chars().take(40).collect();
        let wrong = || ToolError::invalid(format!("`as_of` is `{short}`, which is not a time"));
        time(&written).ok_or_else(|| wrong().try_instead("write `2026-05-03` or `2026-05-03T10:00:00Z`"))
    });
    let kind = args.entity_type.filter(|written| !written.trim().is_empty());
    let kind = kind.map(|written| kind_of(&written)).transpose()?;
    let depth = args.max_depth.min(GraphQuery::DEEPEST);
    Ok(GraphQuery { start, kind, depth, as_of: as_of.transpose()?, limit })
}

fn kind_of(written: &str) -> Result<String, ToolError> {
    kind(written).map_err(|why| ToolError::invalid(format!("`entity_type`: {why}")))
}

#[cfg(test)]
mod tests;
