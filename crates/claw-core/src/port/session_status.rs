//! The caller's own session, in figures.

use async_trait::async_trait;
use serde::Serialize;
use smol_str::SmolStr;

use crate::store::{Tally, Usage};
use crate::tool::ToolError;

/// The status of the caller's session.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Returns the present figures.
    async fn status(&self) -> Result<SessionStatus, ToolError>;
}

/// The figures of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionStatus {
    /// Its calls so far, counted by outcome.
    pub calls: Tally,
    /// The number of tools its caller is offered.
    pub tools_offered: usize,
    /// The number of further tools that can be found by searching.
    pub tools_deferred: usize,
    /// Pending approvals.
    pub approvals_pending: usize,
    /// Messages and cost; `None` if sessions are not stored.
    pub talk: Option<TalkFigures>,
}

/// Messages and cost of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TalkFigures {
    /// The number of messages.
    pub messages: u64,
    /// The total usage of its answers.
    pub usage: Usage,
    /// The provider and model of the last answer; `None` if there is no answer.
    pub model: Option<(SmolStr, SmolStr)>,
    /// The tokens that the model read and wrote for the last answer.
    pub context_used: u64,
    /// The number of running background commands.
    pub processes: usize,
}
