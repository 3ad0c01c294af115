//! Approvals that calls wait for: a visitor sees and answers their own, an administrator all of the tenant.

use axum::http::StatusCode;
use claw_core::RuleId;
use claw_core::port::InputRequest;
use clawsmith::app::access::{Permission, Visitor};
use clawsmith::app::{InputValues, Verdict};
use clawsmith::store::{AccessRole, Approval, ApprovalState, Rule};
use clawsmith::{AgentId, ApprovalId, CallId, Effects, JobId, SessionKey, ToolName, UnixMillis, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::{Body, Json, Path, Visit};
use crate::error::ApiError;

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Given {
    /// The call may run, this once; else it is denied.
    pub(crate) approve: bool,
    /// Why not; the model is told.
    #[serde(default)]
    pub(crate) reason: Option<String>,
    /// The values for a request for input, by the names of its fields; only with `approve`.
    #[serde(default)]
    pub(crate) values: Option<Map<String, Value>>,
    /// Sends values that look like secrets all the same.
    #[serde(default)]
    pub(crate) allow_secrets: bool,
    /// Dismisses a request for input: neither given nor declined. Not with `approve`.
    #[serde(default)]
    pub(crate) dismiss: bool,
}

impl Given {
    fn verdict(self) -> Result<Verdict, ApiError> {
        let Self { approve, reason, values, allow_secrets, dismiss } = self;
        match (approve, values, dismiss) {
            (true, Some(values), false) => Ok(Verdict::Values(InputValues { values, allow_secrets })),
            (true, None, false) => Ok(Verdict::Once),
            (false, None, false) => Ok(Verdict::Deny { reason }),
            (false, None, true) => Ok(Verdict::Dismiss),
            (false, Some(_), _) => Err(ApiError::invalid("`values` come with `approve`")),
            (true, _, true) => Err(ApiError::invalid("`dismiss` does not come with `approve`")),
        }
    }
}

/// Approvals, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Approvals {
    approvals: Vec<ApprovalView>,
}

/// An approval that a call waits for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApprovalView {
    id: ApprovalId,
    state: ApprovalState,
    /// The person or key that answered; `null` while it is pending.
    answered_by: Option<String>,
    /// The reason that was given with a no.
    answer: Option<String>,
    tool: ToolName,
    effects: Effects,
    /// The call as a person reads it, scrubbed.
    summary: String,
    /// The rule that asks.
    reason: String,
    agent_id: AgentId,
    user_id: Option<UserId>,
    session_key: SessionKey,
    call_id: CallId,
    run_id: Option<JobId>,
    asked: UnixMillis,
    expires: UnixMillis,
    /// The input that an MCP server asks for, in its own words; `null` for a plain yes or no.
    input: Option<InputRequest>,
}

/// Remembered rules.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rules {
    rules: Vec<RuleView>,
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

pub(crate) async fn rules(visit: Visit) -> Result<Json<Rules>, ApiError> {
    let rules = visit.app().rules().await?;
    Ok(Json(Rules { rules: rules.into_iter().map(RuleView::from).collect() }))
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
    let verdict = given.verdict()?;
    let answered = app.answer_found(&found, verdict, &visit.visitor().name()).await?;
    Ok(shown(&answered.approval))
}

fn is_seen(visitor: &Visitor, approval: &Approval) -> bool {
    let is_of_agent = visitor.may_use(&approval.request.agent).is_ok();
    is_of_agent && (visitor.role >= AccessRole::Admin || approval.request.user == visitor.user)
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
        input: request.input.map(|input| *input),
    }
}
