//! Skills: what a visitor's agents could use, and what an administrator accepts, grants and removes.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use clawsmith::app::access::{CallerWish, Permission};
use clawsmith::store::{SkillChange, SkillGrant, SkillGrantee, SkillVisibility};
use clawsmith::{AgentId, Caller, Digest, SkillName, UserId};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Gateway;
use crate::error::ApiError;
use crate::guard::Who;

/// The most skills of one answer to a search.
const PAGE: usize = 50;

/// The agent whose skills are meant.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Whose {
    agent_id: Option<String>,
}

/// A search.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Sought {
    query: String,
    limit: Option<usize>,
    agent_id: Option<String>,
}

/// An acceptance of a skill in the visitor's own workspace.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Acceptance {
    /// The digest of the skill that was looked at.
    digest: Digest,
    agent_id: Option<String>,
}

/// A grant, or a change of who may use a skill.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Granting {
    agent_id: Option<String>,
    user_id: Option<String>,
    /// The only version that they get; the newest where none is given.
    version: Option<u64>,
    visibility: Option<SkillVisibility>,
    /// The version that everyone without one of their own gets; 0 for the newest.
    pinned: Option<u64>,
}

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    who: Who,
    whose: Result<Query<Whose>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadSkills)?;
    let Query(whose) = whose?;
    let caller = caller(&gateway, &who, whose.agent_id.as_deref()).await?;
    let skills = gateway.app().of_tenant(&who.0.tenant).skills(&caller).await?;
    Ok(Json(json!({ "skills": skills })))
}

pub(crate) async fn search(
    State(gateway): State<Gateway>,
    who: Who,
    sought: Result<Query<Sought>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadSkills)?;
    let Query(sought) = sought?;
    let caller = caller(&gateway, &who, sought.agent_id.as_deref()).await?;
    let limit = sought.limit.unwrap_or(10).clamp(1, PAGE);
    let app = gateway.app().of_tenant(&who.0.tenant);
    Ok(Json(json!({ "skills": app.search_skills(&caller, &sought.query, limit).await? })))
}

pub(crate) async fn show(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    whose: Result<Query<Whose>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadSkills)?;
    let Query(whose) = whose?;
    let name = named(&name)?;
    let caller = caller(&gateway, &who, whose.agent_id.as_deref()).await?;
    Ok(Json(json!(gateway.app().of_tenant(&who.0.tenant).skill(&caller, &name).await?)))
}

pub(crate) async fn accept(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    body: Result<Json<Acceptance>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageSkills)?;
    let Json(acceptance) = body?;
    let name = named(&name)?;
    let caller = caller(&gateway, &who, acceptance.agent_id.as_deref()).await?;
    let app = gateway.app().of_tenant(&who.0.tenant);
    let accepted = app.accept_skill(&caller, &name, Some(&acceptance.digest), &who.0.name()).await?;
    Ok(Json(json!(accepted)))
}

pub(crate) async fn grant(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    body: Result<Json<Granting>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageSkills)?;
    let Json(granting) = body?;
    let name = named(&name)?;
    let app = gateway.app().of_tenant(&who.0.tenant);
    if let Some(grantee) = granting.grantee()? {
        app.grant_skill(&name, SkillGrant { grantee, version: granting.version }).await?;
    }
    let pinned = granting.pinned.map(|version| Some(version).filter(|version| *version > 0));
    let change = SkillChange { visibility: granting.visibility, pinned };
    Ok(Json(json!(app.change_skill(&name, change).await?)))
}

pub(crate) async fn revoke(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    body: Result<Json<Granting>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageSkills)?;
    let Json(granting) = body?;
    let name = named(&name)?;
    let grantee = granting.grantee()?;
    let grantee = grantee.ok_or_else(|| ApiError::invalid("name `agentId` or `userId`"))?;
    gateway.app().of_tenant(&who.0.tenant).revoke_skill(&name, &grantee).await?;
    Ok(Json(json!({ "revoked": true })))
}

pub(crate) async fn remove(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageSkills)?;
    let (removed, forgotten) = gateway.app().of_tenant(&who.0.tenant).remove_skill(&named(&name)?).await?;
    Ok(Json(json!({ "removed": removed, "forgotten": forgotten })))
}

impl Granting {
    fn grantee(&self) -> Result<Option<SkillGrantee>, ApiError> {
        let wrong =
            |field: &str, error: &dyn std::fmt::Display| ApiError::invalid(format!("`{field}`: {error}"));
        Ok(match (&self.agent_id, &self.user_id) {
            (Some(_), Some(_)) => {
                return Err(ApiError::invalid("name `agentId` or `userId`, one at a time"));
            }
            (Some(agent), None) => {
                Some(SkillGrantee::Agent(AgentId::new(agent).map_err(|error| wrong("agentId", &error))?))
            }
            (None, Some(user)) => {
                Some(SkillGrantee::User(UserId::new(user).map_err(|error| wrong("userId", &error))?))
            }
            (None, None) => None,
        })
    }
}

async fn caller(gateway: &Gateway, who: &Who, agent: Option<&str>) -> Result<Caller, ApiError> {
    let wish = CallerWish { agent, session: None };
    Ok(gateway.app().caller_of(&who.0, &wish).await?)
}

fn named(name: &str) -> Result<SkillName, ApiError> {
    SkillName::new(name).map_err(|error| ApiError::invalid(error.to_string()))
}
