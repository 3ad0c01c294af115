//! Approvals that calls wait for: a visitor sees and answers their own, an administrator all of the tenant.

use std::time::Duration;

use axum::http::StatusCode;
use claw_core::RuleId;
use claw_core::port::InputRequest;
use clawsmith::app::access::{Permission, Visitor};
use clawsmith::app::{InputValues, RuleFor, Verdict};
use clawsmith::store::{Approval, ApprovalState, Rule, RuleWidth};
use clawsmith::{AgentId, ApprovalId, CallId, Effects, JobId, SessionKey, ToolName, UnixMillis, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::{Body, Json, Path, Query, Visit};
use crate::error::ApiError;
use crate::listing::ListQuery;

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Given {
    /// The call may run, this once; else it is denied.
    pub(crate) approve: bool,
    /// The reason for a denial; the model is told.
    #[serde(default)]
    pub(crate) reason: Option<String>,
    /// With a yes: do not ask about such calls again.
    #[serde(default)]
    pub(crate) always: Option<AlwaysGiven>,
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

/// A rule that is given with a yes.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AlwaysGiven {
    /// One of the approval's `widths`; the first if left out.
    pub(crate) width: Option<RuleWidth>,
    /// The callers that the rule covers. More than the session, or the session of a group, takes an administrator.
    pub(crate) scope: AlwaysScope,
    /// Seconds for which the rule is valid; if left out, until it is revoked.
    #[schemars(range(min = 1, max = 315_360_000))]
    pub(crate) seconds: Option<u32>,
}

/// The callers that a rule covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AlwaysScope {
    /// The agent that asks, in this session.
    #[default]
    Session,
    /// The agent that asks, in all its sessions.
    Agent,
    /// Every agent of the tenant.
    Tenant,
}

/// A rule that could be given with a yes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WidthView {
    /// How much it would cover.
    pub width: RuleWidth,
    /// The calls that it would cover, as a person reads it.
    pub covers: String,
}

/// Approvals, oldest first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Approvals {
    pub(crate) approvals: Vec<ApprovalView>,
}

/// A page of the pending approvals, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalPage {
    approvals: Vec<ApprovalView>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
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
    /// The reason given with a denial.
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
    /// Rules that could be given with a yes (`always`), the narrowest first.
    pub widths: Vec<WidthView>,
    /// Directories outside the workspace that a yes grants. Only an administrator answers then.
    pub directories: Vec<String>,
    /// The input that an MCP server asks for, in its own words; `null` for a plain yes or no.
    pub input: Option<InputRequest>,
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
    /// The number of calls it let through.
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
    let texts = |rule: &Rule| format!("{} {} {}", rule.new.id, rule.new.tool, rule.new.text);
    let (rules, next) = wanted.page(visit.app().rules().await?, |rule| rule.new.id.to_string(), texts);
    Ok(Json(Rules { rules: rules.into_iter().map(RuleView::from).collect(), next }))
}

pub(crate) async fn revoke_rule(visit: Visit, Path(id): Path<RuleId>) -> Result<Json<RuleView>, ApiError> {
    let revoked = visit.app().revoke_rule(&id.to_string()).await?;
    let revoked = revoked.ok_or_else(|| ApiError::not_found(format!("there is no rule `{id}`")))?;
    Ok(Json(revoked.into()))
}

pub(crate) async fn rule(visit: Visit, Path(id): Path<RuleId>) -> Result<Json<RuleView>, ApiError> {
    let found = visit.app().rules().await?.into_iter().find(|rule| rule.new.id == id);
    let found = found.ok_or_else(|| ApiError::not_found(format!("there is no rule `{id}`")))?;
    Ok(Json(found.into()))
}

pub(crate) async fn list(
    visit: Visit,
    Query(wanted): Query<ListQuery>,
) -> Result<Json<ApprovalPage>, ApiError> {
    let texts = |approval: &ApprovalView| format!("{} {} {}", approval.id, approval.tool, approval.summary);
    let approvals = pending(&visit).await?.approvals;
    // Ids begin with their time: the order is that of the requests.
    let (approvals, next) = wanted.page(approvals, |approval| approval.id.to_string(), texts);
    Ok(Json(ApprovalPage { approvals, next }))
}

/// The approvals that the visitor sees.
pub(crate) async fn pending(visit: &Visit) -> Result<Approvals, ApiError> {
    visit.may(Permission::ReadApprovals)?;
    let pending = visit.app().pending_approvals().await?;
    let of_all = Permission::ReadTenantApprovals;
    let seen = pending.iter().filter(|approval| is_seen(visit.visitor(), of_all, approval)).map(shown);
    Ok(Approvals { approvals: seen.collect() })
}

pub(crate) async fn get(visit: Visit, Path(id): Path<ApprovalId>) -> Result<Json<ApprovalView>, ApiError> {
    Ok(Json(shown(&found(&visit, Permission::ReadTenantApprovals, id).await?)))
}

/// The approval of an id that the visitor sees: their own or, with the permission `of_all`, that of anyone.
async fn found(visit: &Visit, of_all: Permission, id: ApprovalId) -> Result<Approval, ApiError> {
    let found = visit.app().find_approval(&id.to_string()).await?;
    let found = found.filter(|approval| is_seen(visit.visitor(), of_all, approval));
    found.ok_or_else(|| ApiError::not_found(format!("there is no approval `{id}`")))
}

pub(crate) async fn answer(
    visit: Visit,
    Path(id): Path<ApprovalId>,
    Body(given): Body<Given>,
) -> Result<Json<ApprovalView>, ApiError> {
    give(&visit, id, given).await.map(Json)
}

/// Answers an approval that the visitor can see. Only a whole id is accepted: a beginning could match another
/// approval than the one that was seen.
pub(crate) async fn give(visit: &Visit, id: ApprovalId, given: Given) -> Result<ApprovalView, ApiError> {
    visit.may(Permission::AnswerApprovals)?;
    let app = visit.app();
    let found = found(visit, Permission::AnswerForTenant, id).await?;
    if found.state != ApprovalState::Pending {
        let what = format!("approval `{id}` is already {}; an answer is final", found.state);
        return Err(ApiError::new(StatusCode::CONFLICT, "already_answered", what));
    }
    let verdict = verdict(visit, &found, given)?;
    let answered = app.answer_found(&found, verdict, &visit.visitor().signature()).await?;
    Ok(shown(&answered.approval))
}

fn verdict(visit: &Visit, found: &Approval, given: Given) -> Result<Verdict, ApiError> {
    let is_admin = visit.visitor().has(Permission::AnswerForTenant);
    let forbidden = |what: &str| ApiError::new(StatusCode::FORBIDDEN, "forbidden", what);
    let Given { approve, reason, always, values, allow_secrets, dismiss } = given;
    if !approve {
        return match (always, values, dismiss) {
            (None, None, false) => Ok(Verdict::Deny { reason }),
            (None, None, true) => Ok(Verdict::Dismiss),
            (Some(_), ..) => {
                Err(ApiError::invalid("`always` requires `approve` to be true").hint("leave `always` out"))
            }
            (None, Some(_), _) => Err(ApiError::invalid("`values` require `approve` to be true")),
        };
    }
    if dismiss {
        return Err(ApiError::invalid("`dismiss` requires `approve` to be false"));
    }
    if let Some(values) = values {
        return Ok(Verdict::Values(InputValues { values, allow_secrets }));
    }
    if !found.request.directories.is_empty() && !is_admin {
        let what = "approving grants directories of this machine, which only an administrator may do";
        return Err(forbidden(what));
    }
    let Some(AlwaysGiven { width, scope, seconds }) = always else { return Ok(Verdict::Once) };
    if scope != AlwaysScope::Session && !is_admin {
        return Err(forbidden("only an administrator may remember a rule for more than this session")
            .hint("leave `scope` out, or set it to `session`"));
    }
    if is_of_group(&found.request.session) && !is_admin {
        let what = "only an administrator may remember a rule in the session of a group: it would hold for all of its users";
        return Err(
            forbidden(what).hint("leave `always` out to approve this one call, or ask an administrator")
        );
    }
    let scope = match scope {
        AlwaysScope::Session => RuleFor::Session,
        AlwaysScope::Agent => RuleFor::Agent,
        AlwaysScope::Tenant => {
            visit.visitor().is_for_all_agents()?;
            RuleFor::Tenant
        }
    };
    let lasts = seconds.map(|seconds| Duration::from_secs(seconds.into()));
    Ok(Verdict::Always { scope, lasts, width })
}

/// Returns whether several users share a session: `agent:AGENT:CHANNEL:group:CHAT`. No part can hold a `:`, which is escaped.
fn is_of_group(session: &SessionKey) -> bool {
    let mut parts = session.as_str().split(':');
    parts.next() == Some("agent") && parts.nth(2) == Some("group")
}

fn is_seen(visitor: &Visitor, of_all: Permission, approval: &Approval) -> bool {
    visitor.sees(of_all, &approval.request.agent, approval.request.user.as_ref())
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
        widths: request
            .remember
            .map(|suggestions| suggestions.rules)
            .unwrap_or_default()
            .into_iter()
            .map(|rule| WidthView { width: rule.width, covers: rule.text })
            .collect(),
        directories: request.directories.iter().map(|root| root.path.display().to_string()).collect(),
        input: request.input.map(|input| *input),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(session: &str, expected: bool) {
        assert_eq!(is_of_group(&SessionKey::new(session).unwrap()), expected, "{session}");
    }

    #[test]
    fn a_session_of_a_group_is_told_from_one_of_a_person() {
        check("agent:default:telegram:group:-100", true);
        check("agent:default:http:group:a%3ab", true);
        check("agent:default:http:direct:group:tools", false);
        check("agent:default:http:direct:ann:group", false);
        check("agent:group:group:direct:ann", false);
        check("agent:default:cli:direct:ann", false);
        check("cli:a:b:group", false);
    }
}
