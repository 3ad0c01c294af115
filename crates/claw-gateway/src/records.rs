//! The ledger, usage and agents. A user sees their own, an administrator all of the tenant.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use clawsmith::UnixMillis;
use clawsmith::app::access::{Permission, Visitor};
use clawsmith::store::{AccessRole, Entry, UsageFilter};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Gateway;
use crate::error::ApiError;
use crate::guard::Who;

/// The most entries of the ledger that are looked at.
const MOST_ENTRIES: usize = 10_000;
/// The most entries of one answer.
const PAGE: usize = 500;

/// Filter of the ledger.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Which {
    agent_id: Option<String>,
    session_key: Option<String>,
    tool: Option<String>,
    /// Only entries since then, in milliseconds of Unix time.
    since: Option<i64>,
    limit: Option<usize>,
}

/// Filter of usage.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Costs {
    agent_id: Option<String>,
    /// From then on, in milliseconds of Unix time.
    from: Option<i64>,
    /// Before then.
    to: Option<i64>,
}

pub(crate) async fn ledger(
    State(gateway): State<Gateway>,
    who: Who,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadLedger)?;
    let Query(which) = which?;
    let found = gateway.app().store().recent(&who.0.tenant, MOST_ENTRIES).await;
    let found = found.map_err(clawsmith::app::Error::from)?;
    let limit = which.limit.unwrap_or(PAGE).clamp(1, PAGE);
    let mut entries: Vec<&Entry> =
        found.iter().rev().filter(|entry| is_seen(&who.0, entry) && which.fits(entry)).take(limit).collect();
    entries.reverse();
    Ok(Json(json!({ "entries": entries, "searched": found.len() })))
}

impl Which {
    fn fits(&self, entry: &Entry) -> bool {
        let record = &entry.record;
        let is =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        is(&self.agent_id, record.agent.as_str())
            && is(&self.session_key, record.session.as_str())
            && is(&self.tool, &record.tool)
            && self.since.is_none_or(|since| record.at >= UnixMillis(since))
    }
}

fn is_seen(visitor: &Visitor, entry: &Entry) -> bool {
    visitor.role >= AccessRole::Admin || entry.record.user == visitor.user
}

pub(crate) async fn usage(
    State(gateway): State<Gateway>,
    who: Who,
    costs: Result<Query<Costs>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadLedger)?;
    let Query(costs) = costs?;
    let agent = costs.agent_id.map(clawsmith::AgentId::new).transpose();
    let agent = agent.map_err(|error| ApiError::invalid(format!("`agentId`: {error}")))?;
    let user = who.0.user.clone().filter(|_| who.0.role < AccessRole::Admin);
    let (from, to) = (costs.from.map(UnixMillis), costs.to.map(UnixMillis));
    let filter = UsageFilter { agent, user, from, to, ..UsageFilter::default() };
    let usage = gateway.app().store().usage(&who.0.tenant, &filter).await;
    Ok(Json(json!(usage.map_err(clawsmith::app::Error::from)?)))
}

pub(crate) async fn agents(State(gateway): State<Gateway>, who: Who) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadAgents)?;
    let agents = gateway.app().of_tenant(&who.0.tenant).agents(&who.0.tenant).await?;
    let shown = |view: &clawsmith::app::AgentView| {
        let agent = &view.agent;
        json!({
            "id": agent.id, "name": agent.name, "about": agent.about, "kind": agent.kind,
            "provider": agent.provider, "model": agent.model,
        })
    };
    Ok(Json(json!({ "agents": agents.iter().map(shown).collect::<Vec<Value>>() })))
}
