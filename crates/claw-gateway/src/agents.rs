//! Agents and their context files.

use clawsmith::app::context::ContextOwner;
use clawsmith::app::policy::PolicyFinding;
use clawsmith::app::{AgentCard, AgentChange, AgentView};
use clawsmith::policy_config::AgentTools;
use clawsmith::store::DocumentCard;
use clawsmith::{AgentId, UnixMillis, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Body, Created, IfMatch, Json, NoContent, Path, Path2, Query, Versioned, Visit};
use crate::error::ApiError;
use crate::listing::ListQuery;

/// Agents, by id.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Agents {
    agents: Vec<AgentCard>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// An agent with its tool rules.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentShown {
    #[serde(flatten)]
    card: AgentCard,
    /// The tool rules of the configuration file.
    configured: Option<AgentTools>,
    /// The tool rules of the store.
    stored: Option<AgentTools>,
}

/// An agent to be added.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAgent {
    id: AgentId,
    #[serde(flatten)]
    change: AgentChange,
}

/// An agent that was written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentWritten {
    agent: AgentShown,
    /// Findings about rules that may not do what was meant.
    findings: Vec<PolicyFinding>,
}

/// The user whose context files are listed or changed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ContextQuery {
    /// The user who owns the files; left out for the agent's files, which all users share.
    user_id: Option<UserId>,
}

/// A page of context files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ContextListQuery {
    /// The user who owns the files; left out for the agent's files, which all users share.
    user_id: Option<UserId>,
    /// Only files whose name contains this, whatever the case.
    q: Option<String>,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// The most entries; 100 at most.
    limit: Option<usize>,
}

/// Context files, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ContextFiles {
    files: Vec<ContextCard>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A context file, without its text.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContextCard {
    name: String,
    /// The user who owns it; `null` for all users.
    user_id: Option<UserId>,
    version: u64,
    bytes: u64,
    at: UnixMillis,
}

/// A context file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ContextText {
    name: String,
    version: u64,
    text: String,
}

/// The text of a context file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContextWrite {
    text: String,
}

/// A context file that was written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ContextWritten {
    name: String,
    version: u64,
}

impl From<AgentView> for AgentShown {
    fn from(view: AgentView) -> Self {
        Self { card: AgentCard::from(&view), configured: view.configured, stored: view.stored }
    }
}

impl From<DocumentCard> for ContextCard {
    fn from(card: DocumentCard) -> Self {
        let DocumentCard { key, version, bytes, at, .. } = card;
        Self { name: key.path, user_id: key.user, version, bytes, at }
    }
}

async fn view(visit: &Visit, id: &AgentId) -> Result<AgentView, ApiError> {
    visit.visitor().may_use(id)?;
    let found = visit.app().agent(&visit.visitor().tenant, id).await?;
    found.ok_or_else(|| ApiError::not_found(format!("there is no agent `{id}`")))
}

pub(crate) async fn list(visit: Visit, Query(wanted): Query<ListQuery>) -> Result<Json<Agents>, ApiError> {
    let mut agents = visit.app().agents(&visit.visitor().tenant).await?;
    agents.retain(|view| visit.visitor().may_use(&view.agent.id).is_ok());
    let id = |view: &AgentView| view.agent.id.to_string();
    let texts = |view: &AgentView| format!("{} {} {}", view.agent.id, view.agent.name, view.agent.about);
    let (agents, next) = wanted.page(agents, id, texts);
    Ok(Json(Agents { agents: agents.iter().map(AgentCard::from).collect(), next }))
}

pub(crate) async fn get(visit: Visit, Path(id): Path<AgentId>) -> Result<Versioned<AgentShown>, ApiError> {
    let view = view(&visit, &id).await?;
    Ok(Versioned(view.version, view.into()))
}

pub(crate) async fn create(
    visit: Visit,
    Body(new): Body<NewAgent>,
) -> Result<Created<AgentWritten>, ApiError> {
    let id = new.id;
    let findings = visit.app().add_agent(&id, new.change.of_new(&id)?).await?;
    Ok(Created(AgentWritten { agent: view(&visit, &id).await?.into(), findings }))
}

pub(crate) async fn update(
    visit: Visit,
    Path(id): Path<AgentId>,
    seen: IfMatch,
    Body(change): Body<AgentChange>,
) -> Result<Versioned<AgentWritten>, ApiError> {
    let edited = visit.app().edit_agent(&id, seen.0, |setup| change.over(setup)).await;
    let findings = edited.map_err(|error| seen.failed(error))?;
    let view = view(&visit, &id).await?;
    Ok(Versioned(view.version, AgentWritten { agent: view.into(), findings }))
}

pub(crate) async fn remove(
    visit: Visit,
    Path(id): Path<AgentId>,
    seen: IfMatch,
) -> Result<NoContent, ApiError> {
    visit.app().remove_agent(&id, seen.0).await.map_err(|error| seen.failed(error))?;
    Ok(NoContent)
}

pub(crate) async fn files(
    visit: Visit,
    Path(agent): Path<AgentId>,
    Query(wanted): Query<ContextListQuery>,
) -> Result<Json<ContextFiles>, ApiError> {
    let ContextListQuery { user_id, q, cursor, limit } = wanted;
    let files = visit.app().context_files(&ContextOwner { agent, user: user_id }).await?;
    let name = |card: &DocumentCard| card.key.path.clone();
    let (files, next) = ListQuery { q, cursor, limit }.page(files, name, name);
    Ok(Json(ContextFiles { files: files.into_iter().map(ContextCard::from).collect(), next }))
}

pub(crate) async fn file(
    visit: Visit,
    Path2(agent, name): Path2<AgentId, String>,
    Query(whose): Query<ContextQuery>,
) -> Result<Versioned<ContextText>, ApiError> {
    let owner = ContextOwner { agent, user: whose.user_id };
    let found = visit.app().context_file(&owner, &name).await?;
    let version = found.version;
    Ok(Versioned(Some(version), ContextText { name, version, text: found.text }))
}

pub(crate) async fn write_file(
    visit: Visit,
    Path2(agent, name): Path2<AgentId, String>,
    Query(whose): Query<ContextQuery>,
    seen: IfMatch,
    Body(write): Body<ContextWrite>,
) -> Result<Versioned<ContextWritten>, ApiError> {
    let owner = ContextOwner { agent, user: whose.user_id };
    // Text that comes in by a key is scrubbed like all else that is stored.
    let scrubber = visit.sessions().deployment().executor.scrubbers().for_tenant(&visit.visitor().tenant);
    let text = scrubber.said(&write.text);
    let written = visit.app().write_context_file(&owner, &name, &text, seen.0).await;
    let version = written.map_err(|error| seen.failed(error))?;
    Ok(Versioned(Some(version), ContextWritten { name, version }))
}

pub(crate) async fn remove_file(
    visit: Visit,
    Path2(agent, name): Path2<AgentId, String>,
    Query(whose): Query<ContextQuery>,
    seen: IfMatch,
) -> Result<NoContent, ApiError> {
    let owner = ContextOwner { agent, user: whose.user_id };
    let removed = visit.app().remove_context_file(&owner, &name, seen.0).await;
    removed.map_err(|error| seen.failed(error))?;
    Ok(NoContent)
}
