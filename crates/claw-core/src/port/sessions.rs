//! The caller's own session, in figures.

use async_trait::async_trait;
use serde::Serialize;
use smol_str::SmolStr;

use crate::store::{Tally, Usage};
use crate::tool::ToolError;

/// What can be known of the caller's session.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// The figures now.
    async fn status(&self) -> Result<SessionStatus, ToolError>;
}

/// The figures of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionStatus {
    /// What became of its calls so far.
    pub calls: Tally,
    /// How many tools its caller is offered.
    pub tools_offered: usize,
    /// How many more can be found by searching.
    pub tools_deferred: usize,
    /// Questions to a person that wait for an answer.
    pub approvals_pending: usize,
    /// What was said and paid; `None` where conversations are not kept.
    pub talk: Option<TalkFigures>,
}

/// What was said and paid in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TalkFigures {
    /// How many messages there are.
    pub messages: u64,
    /// What its answers come to.
    pub usage: Usage,
    /// Who gave the last answer: provider and model.
    pub model: Option<(SmolStr, SmolStr)>,
    /// How many tokens the model read and wrote for it.
    pub context_used: u64,
    /// Commands that run in the background.
    pub processes: usize,
}
