//! The policy over HTTP: explanations, lint findings, and the effect of another configuration.

use clawsmith::app::access::CallerWish;
use clawsmith::app::policy::{PolicyDiff, PolicyFinding};
use clawsmith::app::replay::{Replay, ago, since};
use clawsmith::{AgentId, SubagentDepth};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::{Body, Json, Visit};
use crate::error::ApiError;

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

/// A configuration that judges recorded calls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayRequest {
    /// The configuration file's text, in TOML.
    config: String,
    /// The time to go back: days (`7d`, which is the default) or hours (`12h`).
    since: Option<String>,
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
    let app = visit.gateway.app();
    app.may_read_policy(visit.visitor())?;
    let since = since(asked.since.as_deref().unwrap_or("7d"));
    let since = since.map_err(|error| ApiError::invalid(format!("`since`: {error}")))?;
    Ok(Json(app.replay(app.proposed(asked.config)?, ago(since)).await?))
}
