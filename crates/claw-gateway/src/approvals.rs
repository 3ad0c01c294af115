//! Approvals that calls wait for: a visitor sees and answers their own, an administrator all of the tenant.

use axum::http::StatusCode;
use claw_core::RuleId;
use clawsmith::app::Verdict;
use clawsmith::app::access::{Permission, Visitor};
use clawsmith::store::{Approval, ApprovalState, Rule};
use clawsmith::{AgentId, ApprovalId, CallId, Effects, JobId, SessionKey, ToolName, UnixMillis, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Body, Json, Path, Query, Visit};
use crate::error::ApiError;
use crate::listing::ListQuery;

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    /// The call may run, this once; else it is denied.
    pub(crate) approve: bool,
    /// Why not; the model is told.
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

/// Approvals, oldest first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Approvals {
    pub(crate) approvals: Vec<ApprovalView>,
}

/// An approval that a call waits for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalView {
    /// The approval's id.
    pub id: ApprovalId,
    /// Its state.
    pub state: ApprovalState,
    /// The person or key that answered; `null` while it is pending.
    pub answered_by: Option<String>,
    /// The reason that was given with a no.
    pub answer: Option<String>,
    /// The tool to be called.
    pub tool: ToolName,
    /// The effects of the call.
    pub effects: Effects,
    /// The call as a person reads it, scrubbed.
    pub summary: String,
    /// The rule that asks.
    pub reason: String,
    /// The agent that calls.
    pub agent_id: AgentId,
    /// The user that it acts for.
    pub user_id: Option<UserId>,
    /// The session.
    pub session_key: SessionKey,
    /// The call.
    pub call_id: CallId,
    /// The run; `null` for a call outside of runs.
    pub run_id: Option<JobId>,
    /// Time of the request.
    pub asked: UnixMillis,
    /// Time from which it cannot be answered.
    pub expires: UnixMillis,
}

/// Remembered rules.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rules {
    rules: Vec<RuleView>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A rule that a person gave with a yes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleView {
    id: RuleId,
    tool: ToolName,
    /// The rule as a person reads it.
    text: String,
    /// The person who gave it.
    by: String,
    created: UnixMillis,
    expires: Option<UnixMillis>,
    /// How often it let a call through.
    uses: u64,
    last_used: Option<UnixMillis>,
    revoked: Option<UnixMillis>,
}

impl From<Rule> for RuleView {
    fn from(rule: Rule) -> Self {
        let new = rule.new;
        Self {
            id: new.id,
            tool: new.tool,
            text: new.text,
            by: new.by,
            created: new.created,
            expires: new.expires,
            uses: rule.uses,
            last_used: rule.last_used,
            revoked: rule.revoked,
        }
    }
}

pub(crate) async fn rules(visit: Visit, Query(wanted): Query<ListQuery>) -> Result<Json<Rules>, ApiError> {
    let texts = |rule: &Rule| format!("{} {}", rule.new.tool, rule.new.text);
    let (rules, next) = wanted.page(visit.app().rules().await?, |rule| rule.new.id.to_string(), texts);
    Ok(Json(Rules { rules: rules.into_iter().map(RuleView::from).collect(), next }))
}

pub(crate) async fn revoke_rule(visit: Visit, Path(id): Path<RuleId>) -> Result<Json<RuleView>, ApiError> {
    let revoked = visit.app().revoke_rule(&id.to_string()).await?;
    let revoked = revoked.ok_or_else(|| ApiError::not_found(format!("there is no rule `{id}`")))?;
    Ok(Json(revoked.into()))
}

pub(crate) async fn list(visit: Visit) -> Result<Json<Approvals>, ApiError> {
    pending(&visit).await.map(Json)
}

/// The approvals that the visitor sees.
pub(crate) async fn pending(visit: &Visit) -> Result<Approvals, ApiError> {
    visit.may(Permission::ReadApprovals)?;
    let pending = visit.app().pending_approvals().await?;
    let seen = pending.iter().filter(|approval| is_seen(visit.visitor(), approval)).map(shown);
    Ok(Approvals { approvals: seen.collect() })
}

pub(crate) async fn answer(
    visit: Visit,
    Path(id): Path<ApprovalId>,
    Body(given): Body<Given>,
) -> Result<Json<ApprovalView>, ApiError> {
    give(&visit, id, given).await.map(Json)
}

/// Answers an approval that the visitor sees. Only a whole id is taken: a beginning could name another approval than the
/// one that was seen.
pub(crate) async fn give(visit: &Visit, id: ApprovalId, given: Given) -> Result<ApprovalView, ApiError> {
    visit.may(Permission::AnswerApprovals)?;
    let app = visit.app();
    let found = app.find_approval(&id.to_string()).await?;
    let found = found.filter(|approval| is_seen(visit.visitor(), approval));
    let found = found.ok_or_else(|| ApiError::not_found(format!("there is no approval `{id}`")))?;
    if found.state != ApprovalState::Pending {
        let what = format!("approval `{id}` is {} already, and that stands", found.state);
        return Err(ApiError::new(StatusCode::CONFLICT, "already_answered", what));
    }
    let verdict = if given.approve { Verdict::Once } else { Verdict::Deny { reason: given.reason } };
    let answered = app.answer_found(&found, verdict, &visit.visitor().name()).await?;
    Ok(shown(&answered.approval))
}

fn is_seen(visitor: &Visitor, approval: &Approval) -> bool {
    visitor.sees(&approval.request.agent, approval.request.user.as_ref())
}

fn shown(approval: &Approval) -> ApprovalView {
    let request = approval.request.clone();
    ApprovalView {
        id: approval.id,
        state: approval.state,
        answered_by: approval.answered_by.clone(),
        answer: approval.reason.clone(),
        tool: request.tool,
        effects: request.effects,
        summary: request.summary,
        reason: request.reason,
        agent_id: request.agent,
        user_id: request.user,
        session_key: request.session,
        call_id: request.call,
        run_id: request.run,
        asked: request.asked,
        expires: request.expires,
    }
}
