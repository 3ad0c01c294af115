//! The questions that calls wait for: whoever has a key sees and answers their own, an administrator all of the tenant.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use clawsmith::app::Verdict;
use clawsmith::app::access::{Permission, Visitor};
use clawsmith::store::{AccessRole, Approval, ApprovalState};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Gateway;
use crate::error::ApiError;
use crate::guard::Who;

/// An answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    approve: bool,
    /// Why not; the model is told.
    #[serde(default)]
    reason: Option<String>,
}

pub(crate) async fn list(State(gateway): State<Gateway>, who: Who) -> Result<Json<Value>, ApiError> {
    pending(&gateway, &who).await.map(Json)
}

/// The approvals that the visitor sees.
pub(crate) async fn pending(gateway: &Gateway, who: &Who) -> Result<Value, ApiError> {
    who.may(Permission::ReadApprovals)?;
    let pending = gateway.app().of_tenant(&who.0.tenant).pending_approvals().await?;
    let seen = pending.iter().filter(|approval| is_seen(&who.0, approval)).map(shown);
    Ok(json!({ "approvals": seen.collect::<Vec<Value>>() }))
}

pub(crate) async fn answer(
    State(gateway): State<Gateway>,
    who: Who,
    Path(id): Path<String>,
    given: Result<Json<Given>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    let Json(given) = given?;
    give(&gateway, &who, &id, (given.approve, given.reason)).await.map(Json)
}

/// Answers an approval that the visitor sees.
pub(crate) async fn give(
    gateway: &Gateway,
    who: &Who,
    id: &str,
    (approve, reason): (bool, Option<String>),
) -> Result<Value, ApiError> {
    who.may(Permission::AnswerApprovals)?;
    let app = gateway.app().of_tenant(&who.0.tenant);
    let unknown =
        || ApiError::not_found(format!("there is no approval `{}`", id.chars().take(50).collect::<String>()));
    // Only a whole id: a beginning could name another question than the one that was seen.
    let id = id.parse::<clawsmith::ApprovalId>().map_err(|_| unknown())?;
    let found = app.find_approval(&id.to_string()).await?;
    let found = found.filter(|approval| is_seen(&who.0, approval)).ok_or_else(unknown)?;
    if found.state != ApprovalState::Pending {
        let what = format!("approval `{id}` is {} already, and that stands", found.state);
        return Err(ApiError::new(StatusCode::CONFLICT, "already_answered", what));
    }
    let verdict = if approve { Verdict::Once } else { Verdict::Deny { reason } };
    let answered = app.answer_found(&found, verdict, &who.0.name()).await?;
    Ok(shown(&answered.approval))
}

fn is_seen(visitor: &Visitor, approval: &Approval) -> bool {
    visitor.role >= AccessRole::Admin || approval.request.user == visitor.user
}

fn shown(approval: &Approval) -> Value {
    let request = &approval.request;
    json!({
        "id": approval.id,
        "state": approval.state,
        "answeredBy": approval.answered_by,
        "reason": approval.reason,
        "tool": request.tool,
        "effects": request.effects,
        "summary": request.summary,
        "reason": request.reason,
        "agentId": request.agent,
        "userId": request.user,
        "sessionKey": request.session,
        "callId": request.call,
        "runId": request.run,
        "asked": request.asked,
        "expires": request.expires,
    })
}
