//! The ledger in pages, and whether it is whole.

use claw_core::port::UnixMillis;
use claw_core::store::{Entry, EntryPage, EntryUser, Tokens, Usage, UsageFilter, UsageLine};
use claw_core::{AgentId, SessionKey};
pub use claw_store::chain::ChainReport;

use super::access::{Permission, Visitor};
use super::{App, Error};

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
    /// The position of the next page; `None` at the end.
    pub next: Option<u64>,
}

impl App {
    /// A page of the ledger of the visitor's tenant: an administrator sees every entry, others their own.
    pub async fn ledger_page(&self, visitor: &Visitor, page: &LedgerPage) -> Result<LedgerEntries, Error> {
        let is_limited_to =
            |agent: &AgentId| visitor.limits.agents.as_ref().is_none_or(|of| of.contains(agent));
        let agents = match &page.agent {
            Some(agent) => Some(Vec::from_iter(Some(agent.clone()).filter(is_limited_to))),
            None => visitor.limits.agents.clone(),
        };
        let user = match &visitor.user {
            _ if visitor.has(Permission::ReadTenantLedger) => EntryUser::Anyone,
            Some(user) => EntryUser::User(user.clone()),
            None => EntryUser::Nobody,
        };
        let (session, tool) = (page.session.clone(), page.tool.clone());
        let wanted = EntryPage { agents, user, session, tool, before: page.before, limit: page.limit };
        let found = self.store.entries(&visitor.tenant, &wanted).await?;
        let is_whole = found.len() >= page.limit;
        let last = found.last().map(|(position, _)| *position);
        let is_recent = |entry: &Entry| page.since.is_none_or(|since| entry.record.at >= since);
        let entries: Vec<Entry> = found.into_iter().map(|(_, entry)| entry).take_while(is_recent).collect();
        let next = last.filter(|_| is_whole && entries.len() >= page.limit);
        Ok(LedgerEntries { entries, next })
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
    if !visitor.has(Permission::ReadTenantLedger) {
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
