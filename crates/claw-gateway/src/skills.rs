//! Skills: those that a visitor's agents can use, and accepting, granting and removing them by an
//! administrator.

use claw_core::skill::SkillCard;
use clawsmith::app::SkillView;
use clawsmith::app::access::CallerWish;
use clawsmith::store::{AcceptedSkill, SkillChange, SkillGrant, SkillGrantee, SkillVisibility, StoredSkill};
use clawsmith::{AgentId, Caller, Digest, SkillName, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Body, Json, NoContent, Path, Query, Visit};
use crate::error::ApiError;
use crate::listing::AgentListQuery;

/// The most skills of one answer to a search.
const PAGE: usize = 50;

/// The agent whose skills are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Whose {
    agent_id: Option<String>,
}

/// A search.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Sought {
    query: String,
    limit: Option<usize>,
    agent_id: Option<String>,
}

/// An acceptance of a skill in the visitor's own workspace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Acceptance {
    /// The digest of the skill that was seen.
    digest: Digest,
    agent_id: Option<String>,
}

/// A grant, or a change of a skill's visibility.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Granting {
    agent_id: Option<String>,
    user_id: Option<String>,
    /// The only version that they get; by default the newest.
    version: Option<u64>,
    visibility: Option<SkillVisibility>,
    /// The version for everyone whose grant names none; 0 for the newest.
    pinned: Option<u64>,
}

/// The agent or the user whose grant is revoked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Revoked {
    agent_id: Option<String>,
    user_id: Option<String>,
}

/// Skills, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Skills {
    skills: Vec<SkillCard>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// The skills that a search found, the best first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SkillsFound {
    skills: Vec<SkillCard>,
}

/// A removal.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SkillRemoved {
    /// True if there was a published skill.
    removed: bool,
    /// Number of acceptances that were forgotten.
    forgotten: u64,
}

pub(crate) async fn list(
    visit: Visit,
    Query(wanted): Query<AgentListQuery>,
) -> Result<Json<Skills>, ApiError> {
    let (agent, wanted) = wanted.split();
    let caller = caller(&visit, agent.as_deref()).await?;
    // Several places may have a skill of the same name.
    let key = |card: &SkillCard| format!("{} {}", card.name, card.source);
    let texts = |card: &SkillCard| format!("{} {}", card.name, card.description);
    let (skills, next) = wanted.page(visit.app().skills(&caller).await?, key, texts);
    Ok(Json(Skills { skills, next }))
}

pub(crate) async fn search(
    visit: Visit,
    Query(sought): Query<Sought>,
) -> Result<Json<SkillsFound>, ApiError> {
    let caller = caller(&visit, sought.agent_id.as_deref()).await?;
    let limit = sought.limit.unwrap_or(10).clamp(1, PAGE);
    Ok(Json(SkillsFound { skills: visit.app().search_skills(&caller, &sought.query, limit).await? }))
}

pub(crate) async fn show(
    visit: Visit,
    Path(name): Path<SkillName>,
    Query(whose): Query<Whose>,
) -> Result<Json<SkillView>, ApiError> {
    let caller = caller(&visit, whose.agent_id.as_deref()).await?;
    Ok(Json(visit.app().skill(&caller, &name).await?))
}

pub(crate) async fn accept(
    visit: Visit,
    Path(name): Path<SkillName>,
    Body(acceptance): Body<Acceptance>,
) -> Result<Json<AcceptedSkill>, ApiError> {
    let caller = caller(&visit, acceptance.agent_id.as_deref()).await?;
    let (seen, by) = (Some(&acceptance.digest), visit.visitor().signature());
    Ok(Json(visit.app().accept_skill(&caller, &name, seen, &by).await?))
}

pub(crate) async fn grant(
    visit: Visit,
    Path(name): Path<SkillName>,
    Body(granting): Body<Granting>,
) -> Result<Json<StoredSkill>, ApiError> {
    let app = visit.app();
    if let Some(grantee) = grantee(granting.agent_id.as_deref(), granting.user_id.as_deref())? {
        app.grant_skill(&name, SkillGrant { grantee, version: granting.version }).await?;
    }
    let pinned = granting.pinned.map(|version| Some(version).filter(|version| *version > 0));
    let change = SkillChange { visibility: granting.visibility, pinned };
    Ok(Json(app.change_skill(&name, change).await?))
}

pub(crate) async fn revoke(
    visit: Visit,
    Path(name): Path<SkillName>,
    Query(revoked): Query<Revoked>,
) -> Result<NoContent, ApiError> {
    let grantee = grantee(revoked.agent_id.as_deref(), revoked.user_id.as_deref())?;
    let grantee = grantee.ok_or_else(|| ApiError::invalid("name `agentId` or `userId`"))?;
    visit.app().revoke_skill(&name, &grantee).await?;
    Ok(NoContent)
}

pub(crate) async fn remove(
    visit: Visit,
    Path(name): Path<SkillName>,
) -> Result<Json<SkillRemoved>, ApiError> {
    let (removed, forgotten) = visit.app().remove_skill(&name).await?;
    Ok(Json(SkillRemoved { removed, forgotten }))
}

fn grantee(agent: Option<&str>, user: Option<&str>) -> Result<Option<SkillGrantee>, ApiError> {
    let wrong = |field: &str, error: &dyn std::fmt::Display| ApiError::invalid(format!("`{field}`: {error}"));
    Ok(match (agent, user) {
        (Some(_), Some(_)) => return Err(ApiError::invalid("name `agentId` or `userId`, one at a time")),
        (Some(agent), None) => {
            Some(SkillGrantee::Agent(AgentId::new(agent).map_err(|error| wrong("agentId", &error))?))
        }
        (None, Some(user)) => {
            Some(SkillGrantee::User(UserId::new(user).map_err(|error| wrong("userId", &error))?))
        }
        (None, None) => None,
    })
}

async fn caller(visit: &Visit, agent: Option<&str>) -> Result<Caller, ApiError> {
    let wish = CallerWish { agent, session: None };
    Ok(visit.gateway.app().caller_of(visit.visitor(), &wish).await?)
}
