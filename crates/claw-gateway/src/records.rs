//! The ledger and usage. A user sees their own, an administrator all of the tenant.

use clawsmith::app::records::{ChainReport, LedgerPage};
use clawsmith::store::{Entry, Usage, UsageFilter, UsageLine};
use clawsmith::{AgentId, SessionKey, UnixMillis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Json, Query, Visit};
use crate::error::ApiError;
use crate::listing::ListQuery;

/// The most entries of one page.
const PAGE: usize = 500;

/// Filter of the ledger.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LedgerQuery {
    agent_id: Option<AgentId>,
    session_key: Option<SessionKey>,
    tool: Option<String>,
    /// Only entries since then, in milliseconds of Unix time.
    since: Option<i64>,
    /// The `next` of the page before.
    cursor: Option<u64>,
    /// The most entries; 500 at most.
    limit: Option<usize>,
}

/// Entries of the ledger, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entries {
    entries: Vec<Entry>,
    /// The `cursor` of the next, older page; `null` at the end.
    next: Option<u64>,
}

/// Reports on the chains of the ledger.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Verified {
    /// Every chain is as it was written.
    sound: bool,
    chains: Vec<ChainView>,
}

/// A chain of the ledger: one for each node.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChainView {
    chain: String,
    /// Number of sound entries, counted from the first.
    entries: u64,
    /// The first fault; `null` if the chain is sound.
    fault: Option<String>,
}

/// Usage by day and model, the earliest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UsageLines {
    days: Vec<UsageLine>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A page of usage by day and model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UsageDaysQuery {
    agent_id: Option<AgentId>,
    /// The earliest time, in milliseconds of Unix time.
    from: Option<i64>,
    /// Before then.
    to: Option<i64>,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// The most entries; 100 at most.
    limit: Option<usize>,
}

/// Filter of usage.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UsageQuery {
    agent_id: Option<AgentId>,
    /// The earliest time, in milliseconds of Unix time.
    from: Option<i64>,
    /// Before then.
    to: Option<i64>,
}

pub(crate) async fn ledger(
    visit: Visit,
    Query(wanted): Query<LedgerQuery>,
) -> Result<Json<Entries>, ApiError> {
    let page = LedgerPage {
        agent: wanted.agent_id,
        session: wanted.session_key,
        tool: wanted.tool,
        since: wanted.since.map(UnixMillis),
        before: wanted.cursor,
        limit: wanted.limit.unwrap_or(PAGE).clamp(1, PAGE),
    };
    let mut found = visit.app().ledger_page(visit.visitor(), &page).await?;
    found.entries.reverse();
    Ok(Json(Entries { entries: found.entries, next: found.next }))
}

pub(crate) async fn verify(visit: Visit) -> Result<Json<Verified>, ApiError> {
    let chains: Vec<ChainReport> = visit.app().verify_ledger().await?;
    let sound = chains.iter().all(|report| report.fault.is_none());
    let shown = |report: ChainReport| ChainView {
        chain: report.chain,
        entries: report.entries,
        fault: report.fault.map(|fault| fault.to_string()),
    };
    Ok(Json(Verified { sound, chains: chains.into_iter().map(shown).collect() }))
}

impl UsageQuery {
    fn filter(self) -> UsageFilter {
        let (from, to) = (self.from.map(UnixMillis), self.to.map(UnixMillis));
        UsageFilter { agent: self.agent_id, from, to, ..UsageFilter::default() }
    }
}

pub(crate) async fn usage(visit: Visit, Query(wanted): Query<UsageQuery>) -> Result<Json<Usage>, ApiError> {
    Ok(Json(visit.app().usage_for(visit.visitor(), &wanted.filter()).await?))
}

pub(crate) async fn usage_days(
    visit: Visit,
    Query(wanted): Query<UsageDaysQuery>,
) -> Result<Json<UsageLines>, ApiError> {
    let UsageDaysQuery { agent_id, from, to, cursor, limit } = wanted;
    let filter = UsageQuery { agent_id, from, to }.filter();
    let days = visit.app().usage_days_for(visit.visitor(), &filter).await?;
    let key = |line: &UsageLine| format!("{:020} {} {}", line.day.0.max(0), line.provider, line.model);
    let (days, next) = ListQuery { q: None, cursor, limit }.page(days, key, |_| String::new());
    Ok(Json(UsageLines { days, next }))
}
