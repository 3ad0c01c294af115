//! The cost of models: one entry per answer, and sums of them.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::StoreError;
use crate::id::{AgentId, JobId, SessionKey, TenantId, UsageId, UserId};
use crate::port::UnixMillis;

/// Tokens, as a provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tokens {
    /// Uncached input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
}

/// One answer of a model, before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewUsage {
    /// Its id. The same id recorded again is the same answer.
    pub id: UsageId,
    /// The tenant that pays.
    pub tenant: TenantId,
    /// The agent that asked the model.
    pub agent: AgentId,
    /// The user the agent acts for; `None` if there is none.
    pub user: Option<UserId>,
    /// The session.
    pub session: SessionKey,
    /// The run; `None` outside runs.
    pub run: Option<JobId>,
    /// The provider.
    pub provider: SmolStr,
    /// The model that answered.
    pub model: SmolStr,
    /// The tokens read and written.
    pub tokens: Tokens,
    /// The cost, in millionths of a US dollar.
    pub cost: i64,
    /// The time.
    pub at: UnixMillis,
}

impl NewUsage {
    /// The most that one answer can count: tokens of a kind, or millionths of a dollar. No real answer comes
    /// near it, and the sum of nine million such answers still fits.
    pub const MOST: i64 = 1_000_000_000_000;

    /// Returns the reason why these figures are impossible: a negative cost, which would lift a limit, or a
    /// figure beyond [`MOST`](Self::MOST).
    pub fn fault(&self) -> Option<String> {
        let Tokens { input, output, cache_read, cache_write } = self.tokens;
        let counts = [input, output, cache_read, cache_write];
        if let Some(count) = counts.into_iter().find(|count| *count > Self::MOST.unsigned_abs()) {
            return Some(format!("{count} tokens are more than one answer can have; see what was reported"));
        }
        let fits = (0..=Self::MOST).contains(&self.cost);
        (!fits).then(|| {
            format!("a cost of {} is not between 0 and {}; see the model's prices", self.cost, Self::MOST)
        })
    }
}

/// A filter of answers; an answer must match every part that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageFilter {
    /// Only answers of this session.
    pub session: Option<SessionKey>,
    /// Only answers of this agent.
    pub agent: Option<AgentId>,
    /// Only answers of this user.
    pub user: Option<UserId>,
    /// Only answers of the runs in the tree below this root, including the root.
    pub root: Option<JobId>,
    /// Only answers from this time on.
    pub from: Option<UnixMillis>,
    /// Only answers before this time.
    pub to: Option<UnixMillis>,
}

/// The total of several answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Usage {
    /// The number of answers.
    pub answers: u64,
    /// Their tokens.
    pub tokens: Tokens,
    /// Their cost in millionths of a US dollar.
    pub cost: i64,
}

/// The total of one model's answers on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct UsageLine {
    /// The first moment of the day, in UTC.
    pub day: UnixMillis,
    /// The provider.
    pub provider: SmolStr,
    /// The model.
    pub model: SmolStr,
    /// The total.
    #[serde(flatten)]
    pub usage: Usage,
}

/// The owner of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spender<'a> {
    /// The whole tenant.
    Tenant,
    /// An agent.
    Agent(&'a AgentId),
    /// A session.
    Session(&'a SessionKey),
}

/// Stores the cost of models.
#[async_trait]
pub trait UsageLog: Send + Sync {
    /// Records an answer. If its id exists, nothing changes; an answer with a [fault](NewUsage::fault) is
    /// refused.
    async fn record_usage(&self, new: NewUsage) -> Result<(), StoreError>;
    /// Returns the total of the answers that match the filter.
    async fn usage(&self, tenant: &TenantId, filter: &UsageFilter) -> Result<Usage, StoreError>;
    /// Returns the totals by day, then provider, then model.
    async fn usage_lines(
        &self,
        tenant: &TenantId,
        filter: &UsageFilter,
    ) -> Result<Vec<UsageLine>, StoreError>;
    /// Returns the last answer in a session.
    async fn last_usage(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
    ) -> Result<Option<NewUsage>, StoreError>;
    /// Returns the amount spent from `since` on, in millionths of a US dollar. This reads an index alone,
    /// since it is called before each answer.
    async fn spent(
        &self,
        tenant: &TenantId,
        spender: Spender<'_>,
        since: UnixMillis,
    ) -> Result<i64, StoreError>;
}
