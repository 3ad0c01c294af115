//! Memory documents: a visitor searches and reads their own, the agent's and the tenant's, and writes their own;
//! an administrator writes the others too.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use clawsmith::AgentId;
use clawsmith::app::access::Permission;
use clawsmith::port::{MemoryOwner, MemoryPart, MemoryQuery, MemoryReader};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Gateway;
use crate::error::ApiError;
use crate::guard::Who;

/// The most hits of one search.
const MOST_HITS: usize = 50;
/// The longest question, in bytes.
const LONGEST: usize = 4_000;

/// The agent whose memory is meant.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Whose {
    pub(crate) agent_id: Option<String>,
}

/// A question.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Asked {
    q: String,
    agent_id: Option<String>,
    limit: Option<usize>,
}

/// Lines of a document.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Lines {
    path: String,
    agent_id: Option<String>,
    from: Option<u64>,
    lines: Option<u64>,
}

/// A document to be written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Written {
    path: String,
    text: String,
    agent_id: Option<String>,
    #[serde(default)]
    owner: Owner,
}

/// A document to be removed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Forgotten {
    path: String,
    agent_id: Option<String>,
    #[serde(default)]
    owner: Owner,
}

/// The owner of a document that is changed.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Owner {
    #[default]
    User,
    Agent,
    Tenant,
}

impl From<Owner> for MemoryOwner {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::User => Self::User,
            Owner::Agent => Self::Agent,
            Owner::Tenant => Self::Tenant,
        }
    }
}

/// The reader that a visitor is: their own user, in their own tenant, with an agent that is there.
pub(crate) async fn reader(
    gateway: &Gateway,
    who: &Who,
    agent: Option<&str>,
) -> Result<MemoryReader, ApiError> {
    let agent = agent.unwrap_or("default");
    let id = AgentId::new(agent).map_err(|error| ApiError::invalid(format!("`agentId`: {error}")))?;
    if agent != "default" {
        gateway.app().of_tenant(&who.0.tenant).must_have_agent(agent).await?;
    }
    Ok(MemoryReader { tenant: who.0.tenant.clone(), agent: id, user: who.0.user.clone() })
}

/// Checks that a visitor may change documents of this owner.
pub(crate) fn may_write(who: &Who, owner: Owner) -> Result<(), ApiError> {
    who.may(match owner {
        Owner::User => Permission::WriteMemory,
        Owner::Agent | Owner::Tenant => Permission::WriteSharedMemory,
    })
}

pub(crate) async fn search(
    State(gateway): State<Gateway>,
    who: Who,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadMemory)?;
    let Query(asked) = asked?;
    if asked.q.trim().is_empty() || asked.q.len() > LONGEST {
        return Err(ApiError::invalid(format!("`q` has {} bytes; ask with 1 to {LONGEST}", asked.q.len())));
    }
    let reader = reader(&gateway, &who, asked.agent_id.as_deref()).await?;
    let query = MemoryQuery { text: asked.q, limit: asked.limit.unwrap_or(6).clamp(1, MOST_HITS) };
    let found = gateway.app().of_tenant(&who.0.tenant).search_memory(&reader, &query).await?;
    Ok(Json(json!(found)))
}

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    who: Who,
    whose: Result<Query<Whose>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadMemory)?;
    let Query(whose) = whose?;
    let reader = reader(&gateway, &who, whose.agent_id.as_deref()).await?;
    let cards = gateway.app().of_tenant(&who.0.tenant).list_memory(&reader).await?;
    Ok(Json(json!({ "documents": cards })))
}

pub(crate) async fn read(
    State(gateway): State<Gateway>,
    who: Who,
    lines: Result<Query<Lines>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadMemory)?;
    let Query(lines) = lines?;
    let reader = reader(&gateway, &who, lines.agent_id.as_deref()).await?;
    let part = MemoryPart {
        path: lines.path,
        from: lines.from.unwrap_or(1).max(1),
        lines: lines.lines.unwrap_or(u64::MAX),
    };
    let found = gateway.app().of_tenant(&who.0.tenant).read_memory(&reader, &part).await;
    let found = found.map_err(|error| match error.kind() {
        clawsmith::app::Kind::Invalid => ApiError::not_found(error.message()),
        _ => error.into(),
    })?;
    Ok(Json(json!(found)))
}

pub(crate) async fn write(
    State(gateway): State<Gateway>,
    who: Who,
    written: Result<Json<Written>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    let Json(written) = written?;
    may_write(&who, written.owner)?;
    let reader = reader(&gateway, &who, written.agent_id.as_deref()).await?;
    // What comes in by a key is scrubbed like all else that is stored.
    let scrubber = gateway.sessions().deployment().executor.scrubbers().for_tenant(&who.0.tenant);
    let text = scrubber.said(&written.text);
    let app = gateway.app().of_tenant(&who.0.tenant);
    let version = app.write_memory(&reader, written.owner.into(), &written.path, &text).await?;
    Ok(Json(json!({ "path": written.path, "version": version })))
}

pub(crate) async fn forget(
    State(gateway): State<Gateway>,
    who: Who,
    forgotten: Result<Query<Forgotten>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(forgotten) = forgotten?;
    may_write(&who, forgotten.owner)?;
    let reader = reader(&gateway, &who, forgotten.agent_id.as_deref()).await?;
    let app = gateway.app().of_tenant(&who.0.tenant);
    app.forget_memory(&reader, forgotten.owner.into(), &forgotten.path).await?;
    Ok(Json(json!({ "forgotten": forgotten.path })))
}

pub(crate) async fn status(State(gateway): State<Gateway>, who: Who) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadMemory)?;
    let mut status = gateway.app().of_tenant(&who.0.tenant).memory_status().await?;
    // Paths of other users' documents are not told.
    status.state.failures.retain(|failure| failure.key.user.is_none() || failure.key.user == who.0.user);
    Ok(Json(json!(status)))
}
