//! Memory documents: a visitor searches and reads their own, the agent's and the tenant's, and writes their own;
//! an administrator writes the others too.

use clawsmith::AgentId;
use clawsmith::app::access::Permission;
use clawsmith::app::memory::{MemoryCard, MemoryStatus};
use clawsmith::port::{MemoryFound, MemoryOwner, MemoryPart, MemoryQuery, MemoryReader, MemoryText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::{Body, Json, Query, Visit};
use crate::error::ApiError;
use crate::listing::AgentListQuery;

/// The most hits of one search.
const MOST_HITS: usize = 50;
/// The longest question, in bytes.
const LONGEST: usize = 4_000;

/// The agent whose memory is used.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Whose {
    pub(crate) agent_id: Option<String>,
}

/// A search.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Asked {
    q: String,
    agent_id: Option<String>,
    limit: Option<usize>,
}

/// Lines of a document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Lines {
    path: String,
    agent_id: Option<String>,
    from: Option<u64>,
    lines: Option<u64>,
}

/// A document to be written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Written {
    path: String,
    text: String,
    agent_id: Option<String>,
    #[serde(default)]
    owner: Owner,
}

/// A document to be removed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Forgotten {
    path: String,
    agent_id: Option<String>,
    #[serde(default)]
    owner: Owner,
}

/// Memory documents, by path.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Documents {
    documents: Vec<MemoryCard>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A document that was written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DocumentWritten {
    path: String,
    version: u64,
}

/// A document that was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DocumentForgotten {
    forgotten: String,
}

/// The owner of a document that is changed.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
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

/// Returns the reader for a visitor: their own user and tenant, with an existing agent.
pub(crate) async fn reader(visit: &Visit, agent: Option<&str>) -> Result<MemoryReader, ApiError> {
    let agent = agent.unwrap_or("default");
    let id = AgentId::new(agent).map_err(|error| ApiError::invalid(format!("`agentId`: {error}")))?;
    visit.visitor().may_use(&id)?;
    if agent != "default" {
        visit.app().must_have_agent(agent).await?;
    }
    let visitor = visit.visitor();
    Ok(MemoryReader { tenant: visitor.tenant.clone(), agent: id, user: visitor.user.clone() })
}

/// Checks that a visitor may change documents of this owner.
pub(crate) fn may_write(visit: &Visit, owner: Owner) -> Result<(), ApiError> {
    match owner {
        Owner::User => Ok(()),
        Owner::Agent | Owner::Tenant => visit.may(Permission::WriteSharedMemory),
    }
}

pub(crate) async fn search(visit: Visit, Query(asked): Query<Asked>) -> Result<Json<MemoryFound>, ApiError> {
    if asked.q.trim().is_empty() || asked.q.len() > LONGEST {
        return Err(ApiError::invalid(format!("`q` has {} bytes; use 1 to {LONGEST}", asked.q.len())));
    }
    let reader = reader(&visit, asked.agent_id.as_deref()).await?;
    let query = MemoryQuery { text: asked.q, limit: asked.limit.unwrap_or(6).clamp(1, MOST_HITS) };
    Ok(Json(visit.app().search_memory(&reader, &query).await?))
}

pub(crate) async fn list(
    visit: Visit,
    Query(wanted): Query<AgentListQuery>,
) -> Result<Json<Documents>, ApiError> {
    let (agent, wanted) = wanted.split();
    let reader = reader(&visit, agent.as_deref()).await?;
    // Several owners may have the same path.
    let key = |one: &MemoryCard| format!("{} {}", one.card.key.path, json!(one.owner).as_str().unwrap_or(""));
    let (documents, next) =
        wanted.page(visit.app().list_memory(&reader).await?, key, |one| one.card.key.path.clone());
    Ok(Json(Documents { documents, next }))
}

pub(crate) async fn read(visit: Visit, Query(lines): Query<Lines>) -> Result<Json<MemoryText>, ApiError> {
    let reader = reader(&visit, lines.agent_id.as_deref()).await?;
    let part = MemoryPart {
        path: lines.path,
        from: lines.from.unwrap_or(1).max(1),
        lines: lines.lines.unwrap_or(u64::MAX),
    };
    Ok(Json(visit.app().read_memory(&reader, &part).await?))
}

pub(crate) async fn write(
    visit: Visit,
    Body(written): Body<Written>,
) -> Result<Json<DocumentWritten>, ApiError> {
    may_write(&visit, written.owner)?;
    let reader = reader(&visit, written.agent_id.as_deref()).await?;
    // Text that comes in by a key is scrubbed like all else that is stored.
    let scrubber = visit.sessions().deployment().executor.scrubbers().for_tenant(&visit.visitor().tenant);
    let text = scrubber.said(&written.text);
    let version = visit.app().write_memory(&reader, written.owner.into(), &written.path, &text).await?;
    Ok(Json(DocumentWritten { path: written.path, version }))
}

pub(crate) async fn forget(
    visit: Visit,
    Query(forgotten): Query<Forgotten>,
) -> Result<Json<DocumentForgotten>, ApiError> {
    may_write(&visit, forgotten.owner)?;
    let reader = reader(&visit, forgotten.agent_id.as_deref()).await?;
    visit.app().forget_memory(&reader, forgotten.owner.into(), &forgotten.path).await?;
    Ok(Json(DocumentForgotten { forgotten: forgotten.path }))
}

pub(crate) async fn status(visit: Visit) -> Result<Json<MemoryStatus>, ApiError> {
    visit.visitor().is_for_all_agents()?;
    let mut status = visit.app().memory_status().await?;
    let user = &visit.visitor().user;
    // Paths of other users' documents are not told.
    status.state.failures.retain(|failure| failure.key.user.is_none() || failure.key.user == *user);
    Ok(Json(status))
}
