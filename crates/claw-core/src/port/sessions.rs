//! The caller's own session, in figures.

use async_trait::async_trait;
use serde::Serialize;

use crate::store::Tally;
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
}
