//! MCP clients of ours that run here: the caller of each, and the approvals that it may answer.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::ApprovalId;
use claw_core::store::{Approval, ApprovalState};
use claw_core::tool::Caller;
use claw_mcp::{ClientAnswer, ClientApprovals, Clients, Parts, Served};
use claw_registry::Executor;
use tokio::sync::watch;

use crate::app::{App, InputValues, Verdict};

/// A client that is one caller: the user who starts `clawsmith mcp serve`.
pub struct OneClient {
    executor: Executor,
    caller: Caller,
    approvals: Option<Arc<dyn ClientApprovals>>,
    changes: Vec<watch::Receiver<u64>>,
}

impl OneClient {
    /// A client that acts as `caller` and answers no approvals.
    pub fn new(executor: Executor, caller: Caller, app: &App) -> Self {
        let mut changes = app.tool_changes();
        changes.push(executor.policy_changes());
        Self { executor, caller, approvals: None, changes }
    }

    /// The client is asked for the approvals of its calls, and answers them in the name of `by`.
    #[must_use]
    pub fn answering(mut self, app: &App, by: String) -> Self {
        self.approvals = Some(Arc::new(AnsweringClient { app: app.clone(), by }));
        self
    }
}

/// Answers the approvals of a client's calls in the name of its user.
pub struct AnsweringClient {
    /// The application of the client's tenant.
    pub app: App,
    /// The name under which answers are recorded.
    pub by: String,
}

#[async_trait]
impl ClientApprovals for AnsweringClient {
    async fn pending(&self, id: ApprovalId) -> Result<Approval, String> {
        let found = self.app.find_approval(&id.to_string()).await.map_err(|error| error.to_string())?;
        let found = found.filter(|approval| approval.state == ApprovalState::Pending);
        found.ok_or_else(|| format!("approval `{id}` is not pending"))
    }

    async fn answer(&self, approval: &Approval, answer: ClientAnswer) -> Result<(), String> {
        let verdict = match answer {
            ClientAnswer::Approve(values) if approval.request.input.is_some() => {
                Verdict::Values(InputValues { values, allow_secrets: false })
            }
            ClientAnswer::Approve(_) => Verdict::Once,
            ClientAnswer::Deny => Verdict::Deny { reason: None },
            ClientAnswer::Dismiss => Verdict::Dismiss,
        };
        let answered = self.app.answer_found(approval, verdict, &self.by).await;
        answered.map(drop).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Clients for OneClient {
    async fn served(&self, _parts: Option<&Parts>) -> Result<Served, String> {
        let (executor, caller) = (self.executor.clone(), self.caller.clone());
        Ok(Served { executor, caller, approvals: self.approvals.clone() })
    }

    fn changes(&self) -> Vec<watch::Receiver<u64>> {
        self.changes.clone()
    }
}
