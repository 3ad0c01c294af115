//! The knowledge graph: a visitor searches and exports their own, the agent's and the tenant's, and changes their own; an
//! administrator changes the others too.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use clawsmith::EntityId;
use clawsmith::app::access::Permission;
use clawsmith::app::graph::{GraphFormat, GraphLine, entity_kind, graph_start, scrub_facts};
use clawsmith::port::{GraphQuery, GraphStart, MemoryOwner, MemoryReader, UnixMillis};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Gateway;
use crate::error::ApiError;
use crate::guard::Who;
use crate::memory::{Owner, Whose, may_write, reader};

/// The most entities that a search finds.
const MOST_FOUND: usize = 100;
/// The most pairs that are listed.
const MOST_PAIRS: usize = 100;

/// A question.
#[derive(Debug, Deserialize)]
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
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Added {
    facts: Vec<GraphLine>,
    agent_id: Option<String>,
    #[serde(default)]
    owner: Owner,
}

/// Two entities, and whether they are one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Decided {
    keep: String,
    other: String,
    #[serde(default)]
    apart: bool,
    agent_id: Option<String>,
}

/// The format of an export.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Exported {
    format: Option<String>,
    agent_id: Option<String>,
}

fn id(what: &str, written: &str) -> Result<EntityId, ApiError> {
    let short: String = written.chars().take(60).collect();
    written
        .parse()
        .map_err(|_| ApiError::invalid(format!("`{what}` is `{short}`, which is no id of an entity")))
}

fn time(written: &str) -> Result<UnixMillis, ApiError> {
    let short: String = written.chars().take(40).collect();
    clawsmith::graph::time(written)
        .ok_or_else(|| ApiError::invalid(format!("`asOf` is `{short}`; write `2026-05-03` or a time in UTC")))
}

/// Checks that a visitor may change facts of this owner.
async fn may_change(
    gateway: &Gateway,
    who: &Who,
    reader: &MemoryReader,
    entity: EntityId,
) -> Result<(), ApiError> {
    // Whoever may write nothing learns nothing of what is there.
    may_write(who, Owner::User)?;
    let owner = gateway.app().of_tenant(&who.0.tenant).owner_of_entity(reader, entity).await?;
    may_write(who, if owner == MemoryOwner::User { Owner::User } else { Owner::Tenant })
}

pub(crate) async fn search(
    State(gateway): State<Gateway>,
    who: Who,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadMemory)?;
    let Query(asked) = asked?;
    let start = match &asked.entity_id {
        Some(written) => GraphStart::Entity(id("entityId", written)?),
        None => graph_start(&asked.q),
    };
    if asked.q.len() > GraphQuery::LONGEST || matches!(&start, GraphStart::Words(words) if words.is_empty()) {
        let most = GraphQuery::LONGEST;
        return Err(ApiError::invalid(format!(
            "`q` has {} bytes; ask with 1 to {most}, or `*` for all",
            asked.q.len()
        )));
    }
    let reader = reader(&gateway, &who, asked.agent_id.as_deref()).await?;
    let query = GraphQuery {
        start,
        kind: asked.kind.as_deref().map(entity_kind).transpose()?,
        depth: asked.depth.unwrap_or(1).min(GraphQuery::DEEPEST),
        as_of: asked.as_of.as_deref().map(time).transpose()?,
        limit: asked.limit.unwrap_or(10).clamp(1, MOST_FOUND),
    };
    let found = gateway.app().of_tenant(&who.0.tenant).search_graph(&reader, &query).await?;
    Ok(Json(json!(found)))
}

pub(crate) async fn show(
    State(gateway): State<Gateway>,
    who: Who,
    Path(entity): Path<String>,
    whose: Result<Query<Whose>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadMemory)?;
    let Query(whose) = whose?;
    let reader = reader(&gateway, &who, whose.agent_id.as_deref()).await?;
    let entity = id("entity", &entity)?;
    Ok(Json(json!(gateway.app().of_tenant(&who.0.tenant).show_entity(&reader, entity).await?)))
}

pub(crate) async fn add(
    State(gateway): State<Gateway>,
    who: Who,
    added: Result<Json<Added>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    let Json(added) = added?;
    may_write(&who, added.owner)?;
    let reader = reader(&gateway, &who, added.agent_id.as_deref()).await?;
    let app = gateway.app().of_tenant(&who.0.tenant);
    let mut facts = app.facts_of_lines(added.facts)?;
    // What comes in by a key is scrubbed like all else that is stored.
    let scrubber = gateway.sessions().deployment().executor.scrubbers().for_tenant(&who.0.tenant);
    scrub_facts(&mut facts, &|text| scrubber.said(text));
    Ok(Json(json!(app.keep_facts(&reader, added.owner.into(), facts).await?)))
}

pub(crate) async fn forget(
    State(gateway): State<Gateway>,
    who: Who,
    Path(entity): Path<String>,
    whose: Result<Query<Whose>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(whose) = whose?;
    let reader = reader(&gateway, &who, whose.agent_id.as_deref()).await?;
    let entity = id("entity", &entity)?;
    may_change(&gateway, &who, &reader, entity).await?;
    gateway.app().of_tenant(&who.0.tenant).forget_entity(&reader, entity).await?;
    Ok(Json(json!({ "forgotten": entity })))
}

pub(crate) async fn pairs(
    State(gateway): State<Gateway>,
    who: Who,
    whose: Result<Query<Whose>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadMemory)?;
    let Query(whose) = whose?;
    let reader = reader(&gateway, &who, whose.agent_id.as_deref()).await?;
    let pairs = gateway.app().of_tenant(&who.0.tenant).entity_pairs(&reader, MOST_PAIRS).await?;
    Ok(Json(json!({ "pairs": pairs })))
}

pub(crate) async fn merge(
    State(gateway): State<Gateway>,
    who: Who,
    decided: Result<Json<Decided>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    let Json(decided) = decided?;
    let reader = reader(&gateway, &who, decided.agent_id.as_deref()).await?;
    let (keep, other) = (id("keep", &decided.keep)?, id("other", &decided.other)?);
    may_change(&gateway, &who, &reader, keep).await?;
    let app = gateway.app().of_tenant(&who.0.tenant);
    match decided.apart {
        true => app.part_entities(&reader, keep, other).await?,
        false => app.merge_entities(&reader, keep, other).await?,
    }
    Ok(Json(json!({ "keep": keep, "other": other, "apart": decided.apart })))
}

pub(crate) async fn export(
    State(gateway): State<Gateway>,
    who: Who,
    exported: Result<Query<Exported>, QueryRejection>,
) -> Result<Response, ApiError> {
    who.may(Permission::ReadMemory)?;
    let Query(exported) = exported?;
    let format = exported.format.as_deref().unwrap_or("jsonl");
    let format = GraphFormat::named(format)
        .ok_or_else(|| ApiError::invalid("`format` is not known; use `jsonl`, `csv` or `dot`"))?;
    let reader = reader(&gateway, &who, exported.agent_id.as_deref()).await?;
    let text = gateway.app().of_tenant(&who.0.tenant).export_graph(&reader, format).await?;
    Ok(([(CONTENT_TYPE, format.mime())], text).into_response())
}

pub(crate) async fn status(State(gateway): State<Gateway>, who: Who) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadMemory)?;
    let mut status = gateway.app().of_tenant(&who.0.tenant).graph_status().await?;
    // Paths of other users' documents are not told.
    status.failures.retain(|failure| failure.key.user.is_none() || failure.key.user == who.0.user);
    Ok(Json(json!(status)))
}
