//! An approver answers the approvals of calls that wait, inside the program that makes them.

use std::panic::AssertUnwindSafe;

use async_trait::async_trait;
use claw_core::store::{Answer, Approval};
use futures_util::FutureExt as _;

use crate::{Executor, Offer};

/// Answers approvals. A call that waits for its approval ([`Asking::Possible`](crate::Asking::Possible)) asks it; an answer
/// from elsewhere that is stored first stands.
///
/// ```
/// # use claw_registry::{ApprovalAnswer, Approver};
/// # use claw_core::store::Approval;
/// struct ReadsOnly;
///
/// #[async_trait::async_trait]
/// impl Approver for ReadsOnly {
///     async fn answer(&self, approval: &Approval) -> ApprovalAnswer {
///         match approval.request.effects.read_only() {
///             true => ApprovalAnswer::yes("the program"),
///             false => ApprovalAnswer::no("the program").because("only reading is allowed here"),
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait Approver: Send + Sync {
    /// Answers one approval. The call waits meanwhile, until the approval expires at most; then this is dropped.
    async fn answer(&self, approval: &Approval) -> ApprovalAnswer;
}

/// An approver's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// The call may run, once and as it was shown.
    pub approve: bool,
    /// Name of the person or program that answers; the ledger keeps it.
    pub by: String,
    /// The reason of a no, which the model is told.
    pub reason: Option<String>,
}

impl ApprovalAnswer {
    /// The call may run, once and as it was shown.
    pub fn yes(by: impl Into<String>) -> Self {
        Self { approve: true, by: by.into(), reason: None }
    }

    /// The call is refused.
    pub fn no(by: impl Into<String>) -> Self {
        Self { approve: false, by: by.into(), reason: None }
    }

    /// Gives the reason of a no.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// Waits for the approver's answer and stores it. Never ends where there is no approver: the answer comes from elsewhere. An
/// approver that panics says no.
pub(crate) async fn answer(executor: &Executor, offer: &Offer, approval: &Approval) {
    let Some(approver) = executor.0.approver.clone() else { return std::future::pending().await };
    let asked = AssertUnwindSafe(approver.answer(approval)).catch_unwind().await;
    let said = asked.unwrap_or_else(|_| {
        tracing::error!(approval = %approval.id, "the approver panicked");
        ApprovalAnswer::no("the approver").because("it failed")
    });
    let scrubber = executor.0.scrubbers.for_tenant(&offer.caller().tenant);
    let answer = Answer {
        approve: said.approve,
        by: said.by,
        at: offer.0.registry.world().clock.now(),
        reason: said.reason.filter(|_| !said.approve).map(|reason| scrubber.text(&reason)),
        values: None,
    };
    if let Err(error) = executor.0.store.answer(&offer.caller().tenant, approval.id, answer).await {
        // Somebody else's answer stands, or the approval has expired.
        tracing::debug!(%error, approval = %approval.id, "the approver's answer was not stored");
    }
}
