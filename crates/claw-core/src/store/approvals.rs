//! Questions to a person, durable, answered once.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Changes, StoreError};
use crate::id::{AgentId, ApprovalId, CallId, JobId, SessionKey, TenantId, ToolName, UserId};
use crate::port::{InputRequest, UnixMillis};
use crate::tool::{Digest, Effects};

/// Where a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// Nobody has answered.
    Pending,
    /// Yes, and the call has not begun.
    Approved,
    /// No.
    Denied,
    /// Its time is over: nobody answered, or the yes was not used.
    Expired,
    /// The call was given up.
    Cancelled,
    /// Yes, and the call has begun: it covers nothing more.
    Used,
}

impl ApprovalState {
    /// The state as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Used => "used",
        }
    }
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A question before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewApproval {
    /// Whose data it is.
    pub tenant: TenantId,
    /// In which conversation.
    pub session: SessionKey,
    /// Which agent wants it.
    pub agent: AgentId,
    /// For whom.
    pub user: Option<UserId>,
    /// Which call waits.
    pub call: CallId,
    /// The run that makes the call; `None` for a call outside a run. If it is parked when the approval is answered or
    /// closed, it is woken in the same transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<JobId>,
    /// What exactly is being asked; an answer covers this and nothing else.
    pub digest: Digest,
    /// Which tool.
    pub tool: ToolName,
    /// What it would do.
    pub effects: Effects,
    /// The request as a person reads it, scrubbed: the command, the directory, the arguments.
    pub summary: String,
    /// The rule that asked, and why.
    pub reason: String,
    /// When the question was put; for the store, now.
    pub asked: UnixMillis,
    /// When it lapses. From then on it cannot be answered, and a yes cannot be used.
    pub expires: UnixMillis,
    /// What a yes for good would be remembered as; `None` where nothing is remembered of such calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Suggestion>,
    /// Input that is asked for: such an approval is answered with values. `None` for a plain yes or no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<InputRequest>>,
}

/// A rule that could be given with a yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestion {
    /// The rule, as whoever judges a call by it reads it; `None` where there can be none.
    pub rule: Option<Value>,
    /// What it would cover, or why there can be none, as a person reads it.
    pub text: String,
}

/// A stored question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// What is asked.
    #[serde(flatten)]
    pub request: NewApproval,
    /// Where it stands.
    pub state: ApprovalState,
    /// Who answered.
    pub answered_by: Option<String>,
    /// The reason that was given with a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Yes or no.
    pub approve: bool,
    /// Who says so.
    pub by: String,
    /// When it was given; for the store, now.
    pub at: UnixMillis,
    /// The reason of a no, for whoever made the call.
    pub reason: Option<String>,
    /// The values given with a yes to a request for input.
    pub values: Option<Map<String, Value>>,
}

/// Keeps questions and their answers; a change is told as [`Topic::Approvals`](super::Topic::Approvals).
///
/// A store has no clock: what it is given says what time it is. A question that waits, or was approved and not
/// used, is expired from `expires` on, whether or not somebody is there to close it.
#[async_trait]
pub trait Approvals: Changes {
    /// Puts a question, or finds the one that this call put before a restart: same tenant, session, agent, call
    /// and digest, answered or not. One that was cancelled is put anew, and one whose time is over is returned
    /// as expired. A question of the same call about something else is cancelled, whether it waits or was
    /// approved and not used; one of another session or agent is left alone, though it names the same call.
    async fn request(&self, new: NewApproval) -> Result<Approval, StoreError>;
    /// One question; `None` where this tenant has none of that id.
    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError>;
    /// The questions that wait and have not expired by `now`, oldest first.
    async fn pending(&self, tenant: &TenantId, now: UnixMillis) -> Result<Vec<Approval>, StoreError>;
    /// Answers a pending question. The first answer stands. One that comes when the time is over makes the
    /// question expired and counts for nothing.
    async fn answer(&self, tenant: &TenantId, id: ApprovalId, answer: Answer)
    -> Result<Approval, StoreError>;
    /// Takes the values of an approved request for input: it is used from then on, and the values are forgotten. `None`
    /// where it is not approved, or was used.
    async fn take_values(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
    ) -> Result<Option<Map<String, Value>>, StoreError>;
    /// Ends a question nobody will use: it expired, or its call was cancelled. One that is over stays so, and
    /// one that was approved stays so unless it is cancelled.
    async fn close(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        state: ApprovalState,
    ) -> Result<Approval, StoreError>;
}
