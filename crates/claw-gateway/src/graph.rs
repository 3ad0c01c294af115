//! The knowledge graph: a visitor searches and exports their own, the agent's and the tenant's, and changes their own; an
//! administrator changes the others too.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use clawsmith::EntityId;
use clawsmith::app::graph::{GraphFormat, GraphLine, entity_kind, graph_start, scrub_facts};
use clawsmith::port::{GraphFound, GraphQuery, GraphStart, MemoryOwner, MemoryReader, UnixMillis};
use clawsmith::store::{EntityPair, GraphState, KeptFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::{Body, Json, Output, Path, Query, Visit};
use crate::error::ApiError;
use crate::memory::{Owner, Whose, may_write, reader};
use crate::openapi::{Operation, Schemas};

/// The most entities that a search finds.
const MOST_FOUND: usize = 100;
/// The most pairs that are listed.
const MOST_PAIRS: usize = 100;

/// A search.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Asked {
    #[serde(default)]
    q: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    entity_id: Option<String>,
    depth: Option<usize>,
    as_of: Option<String>,
    limit: Option<usize>,
    agent_id: Option<String>,
}

/// Facts to be added.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Added {
    facts: Vec<GraphLine>,
    agent_id: Option<String>,
    #[serde(default)]
    owner: Owner,
}

/// Two entities, and whether they are the same.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Decided {
    keep: String,
    other: String,
    #[serde(default)]
    apart: bool,
    agent_id: Option<String>,
}

/// The format of an export.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Exported {
    format: Option<String>,
    agent_id: Option<String>,
}

fn id(what: &str, written: &str) -> Result<EntityId, ApiError> {
    let short: String = written.chars().take(60).collect();
    written
        .parse()
        .map_err(|_| ApiError::invalid(format!("`{what}` is `{short}`, which is not the id of an entity")))
}

fn time(written: &str) -> Result<UnixMillis, ApiError> {
    let short: String = written.chars().take(40).collect();
    clawsmith::graph::time(written)
        .ok_or_else(|| ApiError::invalid(format!("`asOf` is `{short}`; write `2026-05-03` or a time in UTC")))
}

/// Pairs of entities that may be the same.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Pairs {
    pairs: Vec<EntityPair>,
}

/// Two entities that were merged, or parted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PairDecided {
    keep: EntityId,
    other: EntityId,
    apart: bool,
}

/// An entity that was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EntityForgotten {
    forgotten: EntityId,
}

/// The graph as a file.
pub(crate) struct GraphFile {
    format: GraphFormat,
    text: String,
}

impl IntoResponse for GraphFile {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, self.format.mime())], self.text).into_response()
    }
}

impl Output for GraphFile {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        for format in [GraphFormat::JsonLines, GraphFormat::Csv, GraphFormat::Dot] {
            operation.also(StatusCode::OK, format.mime(), json!({ "type": "string" }));
        }
    }
}

/// Checks that a visitor may change facts of this owner.
async fn may_change(visit: &Visit, reader: &MemoryReader, entity: EntityId) -> Result<(), ApiError> {
    let owner = visit.app().owner_of_entity(reader, entity).await?;
    may_write(visit, if owner == MemoryOwner::User { Owner::User } else { Owner::Tenant })
}

pub(crate) async fn search(visit: Visit, Query(asked): Query<Asked>) -> Result<Json<GraphFound>, ApiError> {
    let start = match &asked.entity_id {
        Some(written) => GraphStart::Entity(id("entityId", written)?),
        None => graph_start(&asked.q),
    };
    if asked.q.len() > GraphQuery::LONGEST || matches!(&start, GraphStart::Words(words) if words.is_empty()) {
        let most = GraphQuery::LONGEST;
        return Err(ApiError::invalid(format!(
            "`q` has {} bytes; use 1 to {most}, or `*` for all",
            asked.q.len()
        )));
    }
    let reader = reader(&visit, asked.agent_id.as_deref()).await?;
    let query = GraphQuery {
        start,
        kind: asked.kind.as_deref().map(entity_kind).transpose()?,
        depth: asked.depth.unwrap_or(2).min(GraphQuery::DEEPEST),
        as_of: asked.as_of.as_deref().map(time).transpose()?,
        limit: asked.limit.unwrap_or(10).clamp(1, MOST_FOUND),
    };
    Ok(Json(visit.app().search_graph(&reader, &query).await?))
}

pub(crate) async fn show(
    visit: Visit,
    Path(entity): Path<EntityId>,
    Query(whose): Query<Whose>,
) -> Result<Json<GraphFound>, ApiError> {
    let reader = reader(&visit, whose.agent_id.as_deref()).await?;
    Ok(Json(visit.app().show_entity(&reader, entity).await?))
}

pub(crate) async fn add(visit: Visit, Body(added): Body<Added>) -> Result<Json<KeptFacts>, ApiError> {
    may_write(&visit, added.owner)?;
    let reader = reader(&visit, added.agent_id.as_deref()).await?;
    let mut facts = visit.app().facts_of_lines(added.facts)?;
    // Text that comes in by a key is scrubbed like all else that is stored.
    let scrubber = visit.sessions().deployment().executor.scrubbers().for_tenant(&visit.visitor().tenant);
    scrub_facts(&mut facts, &|text| scrubber.said(text));
    Ok(Json(visit.app().keep_facts(&reader, added.owner.into(), facts).await?))
}

pub(crate) async fn forget(
    visit: Visit,
    Path(entity): Path<EntityId>,
    Query(whose): Query<Whose>,
) -> Result<Json<EntityForgotten>, ApiError> {
    let reader = reader(&visit, whose.agent_id.as_deref()).await?;
    may_change(&visit, &reader, entity).await?;
    visit.app().forget_entity(&reader, entity).await?;
    Ok(Json(EntityForgotten { forgotten: entity }))
}

pub(crate) async fn pairs(visit: Visit, Query(whose): Query<Whose>) -> Result<Json<Pairs>, ApiError> {
    let reader = reader(&visit, whose.agent_id.as_deref()).await?;
    Ok(Json(Pairs { pairs: visit.app().entity_pairs(&reader, MOST_PAIRS).await? }))
}

pub(crate) async fn merge(visit: Visit, Body(decided): Body<Decided>) -> Result<Json<PairDecided>, ApiError> {
    let reader = reader(&visit, decided.agent_id.as_deref()).await?;
    let (keep, other) = (id("keep", &decided.keep)?, id("other", &decided.other)?);
    may_change(&visit, &reader, keep).await?;
    match decided.apart {
        true => visit.app().part_entities(&reader, keep, other).await?,
        false => visit.app().merge_entities(&reader, keep, other).await?,
    }
    Ok(Json(PairDecided { keep, other, apart: decided.apart }))
}

pub(crate) async fn export(visit: Visit, Query(exported): Query<Exported>) -> Result<GraphFile, ApiError> {
    let format = exported.format.as_deref().unwrap_or("jsonl");
    let format = GraphFormat::named(format)
        .ok_or_else(|| ApiError::invalid("`format` is not known; use `jsonl`, `csv` or `dot`"))?;
    let reader = reader(&visit, exported.agent_id.as_deref()).await?;
    Ok(GraphFile { format, text: visit.app().export_graph(&reader, format).await? })
}

pub(crate) async fn status(visit: Visit) -> Result<Json<GraphState>, ApiError> {
    visit.visitor().is_for_all_agents()?;
    let mut status = visit.app().graph_status().await?;
    let user = &visit.visitor().user;
    // Paths of other users' documents are not told.
    status.failures.retain(|failure| failure.key.user.is_none() || failure.key.user == *user);
    Ok(Json(status))
}
