//! What models cost: one entry per answer of a model, and sums of them.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::StoreError;
use crate::id::{AgentId, JobId, SessionKey, TenantId, UsageId, UserId};
use crate::port::UnixMillis;

/// Tokens, as a provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tokens {
    /// Read anew.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Put into it.
    pub cache_write: u64,
}

/// One answer of a model, before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewUsage {
    /// Its id. The same id recorded again is the same answer.
    pub id: UsageId,
    /// Whose data it is.
    pub tenant: TenantId,
    /// Which agent asked the model.
    pub agent: AgentId,
    /// For whom.
    pub user: Option<UserId>,
    /// In which conversation.
    pub session: SessionKey,
    /// In which run.
    pub run: Option<JobId>,
    /// Who was paid.
    pub provider: SmolStr,
    /// Which model answered.
    pub model: SmolStr,
    /// What was read and written.
    pub tokens: Tokens,
    /// What it cost in millionths of a US dollar.
    pub cost: i64,
    /// When.
    pub at: UnixMillis,
}

impl NewUsage {
    /// The most that one answer can count: of tokens of a kind, or of millionths of a dollar. No answer comes
    /// near it, and nine million that do still add up to a number that fits.
    pub const MOST: i64 = 1_000_000_000_000;

    /// What no answer of a model can be: a negative cost, which would lift a limit, or one beyond
    /// [`MOST`](Self::MOST).
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

/// Which answers are summed; every part that is given must agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageFilter {
    /// Of this conversation.
    pub session: Option<SessionKey>,
    /// Of this agent.
    pub agent: Option<AgentId>,
    /// Of this user.
    pub user: Option<UserId>,
    /// Of the runs in the tree below this root, the root included.
    pub root: Option<JobId>,
    /// From this time on.
    pub from: Option<UnixMillis>,
    /// Before this time.
    pub to: Option<UnixMillis>,
}

/// What several answers come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Usage {
    /// How many answers.
    pub answers: u64,
    /// Their tokens.
    pub tokens: Tokens,
    /// Their cost in millionths of a US dollar.
    pub cost: i64,
}

/// What one model's answers of one day come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct UsageLine {
    /// The first moment of the day, in UTC.
    pub day: UnixMillis,
    /// Who was paid.
    pub provider: SmolStr,
    /// Which model.
    pub model: SmolStr,
    /// What it comes to.
    #[serde(flatten)]
    pub usage: Usage,
}

/// Whose money is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spender<'a> {
    /// The whole tenant's.
    Tenant,
    /// An agent's.
    Agent(&'a AgentId),
    /// A conversation's.
    Session(&'a SessionKey),
}

/// Keeps what models cost.
#[async_trait]
pub trait UsageLog: Send + Sync {
    /// Records an answer. One whose id was recorded before is left as it is; one that has a
    /// [fault](NewUsage::fault) is refused.
    async fn record_usage(&self, new: NewUsage) -> Result<(), StoreError>;
    /// What the answers that the filter names come to.
    async fn usage(&self, tenant: &TenantId, filter: &UsageFilter) -> Result<Usage, StoreError>;
    /// The same by day, then provider, then model.
    async fn usage_lines(
        &self,
        tenant: &TenantId,
        filter: &UsageFilter,
    ) -> Result<Vec<UsageLine>, StoreError>;
    /// The last answer in a conversation.
    async fn last_usage(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
    ) -> Result<Option<NewUsage>, StoreError>;
    /// What was spent from `since` on, in millionths of a US dollar. Read from an index alone: it is asked
    /// before each answer.
    async fn spent(
        &self,
        tenant: &TenantId,
        spender: Spender<'_>,
        since: UnixMillis,
    ) -> Result<i64, StoreError>;
}
