//! The ledger in pages, and whether it is whole.

use claw_core::port::UnixMillis;
use claw_core::store::{AccessRole, Entry, Tokens, Usage, UsageFilter, UsageLine};
use claw_core::{AgentId, SessionKey};
pub use claw_store::chain::ChainReport;

use super::access::Visitor;
use super::{App, Error};

/// The number of entries read at a time.
const READ: usize = 500;
/// The most entries scanned for one page.
const MOST_LOOKED_AT: usize = 10_000;

/// The filter and position of a page of the ledger; all given parts must match.
#[derive(Debug, Clone, Default)]
pub struct LedgerPage {
    /// Only entries of this agent.
    pub agent: Option<AgentId>,
    /// Only entries of this session.
    pub session: Option<SessionKey>,
    /// Only entries of this tool.
    pub tool: Option<String>,
    /// Only entries since then.
    pub since: Option<UnixMillis>,
    /// Only entries before this position: the `next` of the page before.
    pub before: Option<u64>,
    /// The most entries.
    pub limit: usize,
}

/// A page of the ledger.
#[derive(Debug)]
pub struct LedgerEntries {
    /// The entries, latest first.
    pub entries: Vec<Entry>,
    /// The position of the next page; `None` at the end. A page can be short or empty and yet not be the
    /// last, if many scanned entries did not match.
    pub next: Option<u64>,
}

impl LedgerPage {
    fn fits(&self, entry: &Entry) -> bool {
        let record = &entry.record;
        self.agent.as_ref().is_none_or(|agent| *agent == record.agent)
            && self.session.as_ref().is_none_or(|session| *session == record.session)
            && self.tool.as_ref().is_none_or(|tool| *tool == record.tool)
    }
}

impl App {
    /// A page of the ledger of the visitor's tenant: an administrator sees every entry, others their own.
    pub async fn ledger_page(&self, visitor: &Visitor, page: &LedgerPage) -> Result<LedgerEntries, Error> {
        let (mut entries, mut position, mut looked_at) = (Vec::new(), page.before, 0);
        let is_seen = |entry: &Entry| visitor.sees(&entry.record.agent, entry.record.user.as_ref());
        loop {
            let read = self.store.entries_before(&visitor.tenant, position, READ).await?;
            let is_last = read.len() < READ;
            for (at, entry) in read {
                if page.since.is_some_and(|since| entry.record.at < since) {
                    return Ok(LedgerEntries { entries, next: None });
                }
                position = Some(at);
                if is_seen(&entry) && page.fits(&entry) {
                    entries.push(entry);
                    if entries.len() >= page.limit {
                        return Ok(LedgerEntries { entries, next: position });
                    }
                }
            }
            looked_at += READ;
            if is_last {
                return Ok(LedgerEntries { entries, next: None });
            }
            if looked_at >= MOST_LOOKED_AT {
                return Ok(LedgerEntries { entries, next: position });
            }
        }
    }

    /// Tokens and cost that a visitor may see: an administrator those of the tenant, others their own, and with a key that is
    /// limited to agents those of these agents alone.
    pub async fn usage_for(&self, visitor: &Visitor, filter: &UsageFilter) -> Result<Usage, Error> {
        let mut sum = Usage::default();
        for filter in filters(visitor, filter)? {
            let Usage { answers, tokens, cost } = self.store.usage(&visitor.tenant, &filter).await?;
            sum.answers += answers;
            sum.cost += cost;
            add(&mut sum.tokens, &tokens);
        }
        Ok(sum)
    }

    /// The same by day and model.
    pub async fn usage_days_for(
        &self,
        visitor: &Visitor,
        filter: &UsageFilter,
    ) -> Result<Vec<UsageLine>, Error> {
        let mut lines: Vec<UsageLine> = Vec::new();
        for filter in filters(visitor, filter)? {
            for line in self.store.usage_lines(&visitor.tenant, &filter).await? {
                let same = lines.iter_mut().find(|known| {
                    (known.day, &known.provider, &known.model) == (line.day, &line.provider, &line.model)
                });
                match same {
                    Some(known) => {
                        known.usage.answers += line.usage.answers;
                        known.usage.cost += line.usage.cost;
                        add(&mut known.usage.tokens, &line.usage.tokens);
                    }
                    None => lines.push(line),
                }
            }
        }
        Ok(lines)
    }

    /// Checks the chains of this tenant's ledger.
    pub async fn verify_ledger(&self) -> Result<Vec<ChainReport>, Error> {
        let mut reports = self.store.verify().await?;
        reports.retain(|report| report.tenant == self.tenant().as_str());
        Ok(reports)
    }
}

/// The filters whose sums a visitor may see.
fn filters(visitor: &Visitor, filter: &UsageFilter) -> Result<Vec<UsageFilter>, Error> {
    let mut filter = filter.clone();
    if visitor.role < AccessRole::Admin {
        filter.user = visitor.user.clone();
    }
    match (&filter.agent, &visitor.limits.agents) {
        (Some(agent), _) => {
            visitor.may_use(agent)?;
            Ok(vec![filter])
        }
        (None, None) => Ok(vec![filter]),
        (None, Some(agents)) => {
            let of = |agent: &AgentId| UsageFilter { agent: Some(agent.clone()), ..filter.clone() };
            Ok(agents.iter().map(of).collect())
        }
    }
}

fn add(sum: &mut Tokens, more: &Tokens) {
    sum.input += more.input;
    sum.output += more.output;
    sum.cache_read += more.cache_read;
    sum.cache_write += more.cache_write;
}
