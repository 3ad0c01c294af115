//! The policy over HTTP: explanations, lint findings, and the effect of another configuration.

use std::time::Duration;

use axum::http::StatusCode;
use clawsmith::app::access::CallerWish;
use clawsmith::app::policy::{PolicyDiff, PolicyFinding};
use clawsmith::app::replay::{ProposedRules, Replay, ReplayRange, since};
use clawsmith::{AgentId, SubagentDepth};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::{Body, Json, Visit};
use crate::error::ApiError;

/// The time after which a replay that found another one running is tried again.
const REPLAY_RETRY: Duration = Duration::from_secs(5);

/// A request to explain why an agent has a tool or not.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExplainRequest {
    tool: String,
    /// The agent; by default `default`.
    agent_id: Option<AgentId>,
    /// The provider of the agent's model.
    provider: Option<String>,
    /// The agent's place among subagents.
    subagent: Option<SubagentDepth>,
    /// The tools that the message itself allows.
    request_allow: Option<Vec<String>>,
}

/// An explanation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Explained {
    /// The caller has the tool.
    allowed: bool,
    /// The explanation in words.
    text: String,
    /// The steps of the decision, and the changes that would turn it around.
    explanation: Value,
}

/// A configuration to check.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LintRequest {
    /// The configuration file's text, in TOML; by default the current configuration.
    config: Option<String>,
}

/// Doubtful rules, the worst first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Findings {
    findings: Vec<PolicyFinding>,
}

/// A configuration to compare with the current one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffRequest {
    /// The configuration file's text, in TOML.
    config: String,
}

/// The tools that each agent gains and loses.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Differences {
    differences: PolicyDiff,
}

/// Rules that judge recorded calls, either whole or as a change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayRequest {
    /// The configuration file's text, in TOML; in a tenant other than the deployment's own, the tenant's rules (`allow` and
    /// `deny`).
    config: Option<String>,
    /// A change to the current configuration or rules, in TOML: its keys replace the current ones.
    change: Option<String>,
    /// The beginning of the range, so long ago: days (`7d`, which is the default) or hours (`12h`).
    since: Option<String>,
    /// The end of the range, so long ago; by default now.
    until: Option<String>,
}

pub(crate) async fn explain(
    visit: Visit,
    Body(asked): Body<ExplainRequest>,
) -> Result<Json<Explained>, ApiError> {
    let wish = CallerWish { agent: asked.agent_id.as_ref().map(AgentId::as_str), session: None };
    let mut caller = visit.gateway.app().caller_of(visit.visitor(), &wish).await?;
    caller.provider = asked.provider.map(Into::into);
    caller.subagent = asked.subagent.unwrap_or_default();
    caller.request_allow = asked.request_allow.map(Into::into);
    let explained = visit.app().explain_tool(&caller, &asked.tool).await?;
    let (allowed, text) = (explained.verdict.allowed, explained.to_string());
    Ok(Json(Explained { allowed, text, explanation: json!(explained) }))
}

pub(crate) async fn lint(visit: Visit, Body(asked): Body<LintRequest>) -> Result<Json<Findings>, ApiError> {
    let app = visit.gateway.app();
    app.may_read_policy(visit.visitor())?;
    let other = asked.config.map(|text| app.proposed(text)).transpose()?;
    Ok(Json(Findings { findings: app.lint_policy(other.as_ref()) }))
}

pub(crate) async fn diff(
    visit: Visit,
    Body(asked): Body<DiffRequest>,
) -> Result<Json<Differences>, ApiError> {
    let app = visit.gateway.app();
    app.may_read_policy(visit.visitor())?;
    Ok(Json(Differences { differences: app.diff_policy(&app.proposed(asked.config)?)? }))
}

pub(crate) async fn replay(visit: Visit, Body(asked): Body<ReplayRequest>) -> Result<Json<Replay>, ApiError> {
    let rules = match (asked.config, asked.change) {
        (Some(text), None) => ProposedRules::Whole(text),
        (None, Some(text)) => ProposedRules::Change(text),
        _ => return Err(ApiError::invalid("give either `config` (whole) or `change` (a part of it)")),
    };
    let time =
        |name: &str, text: &str| since(text).map_err(|error| ApiError::invalid(format!("`{name}`: {error}")));
    let until = asked.until.map(|text| time("until", &text)).transpose()?;
    let range = ReplayRange::ago(time("since", asked.since.as_deref().unwrap_or("7d"))?, until)?;
    let app = visit.app();
    let proposal = app.proposal(visit.visitor(), rules).await?;
    // A replay takes a processor for a while, and administrators of every tenant may ask for one.
    let Ok(_only) = visit.gateway.0.replays.try_acquire() else {
        let what = "a replay is running, and a gateway runs one at a time";
        return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "replay_in_progress", what)
            .retry_after(REPLAY_RETRY)
            .hint("try again when it has ended, or replay a shorter range"));
    };
    Ok(Json(app.replay(proposal, range).await?))
}
