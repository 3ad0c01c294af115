//! Approvals: questions to a person, durable, answered once.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Changes, StoreError};
use crate::id::{AgentId, ApprovalId, CallId, JobId, SessionKey, TenantId, ToolName, UserId};
use crate::port::{InputRequest, Root, UnixMillis};
use crate::tool::{Digest, Effects};

/// The state of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// Not answered yet.
    Pending,
    /// Approved, and the call has not begun.
    Approved,
    /// Denied.
    Denied,
    /// Expired: unanswered, or approved and not used in time.
    Expired,
    /// The call was abandoned.
    Cancelled,
    /// Approved, and the call has begun: the approval covers nothing more.
    Used,
}

impl ApprovalState {
    /// Returns the state as a word.
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

/// An approval before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewApproval {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The session of the call.
    pub session: SessionKey,
    /// The agent that makes the call.
    pub agent: AgentId,
    /// The user the agent acts for; `None` if there is none.
    pub user: Option<UserId>,
    /// The call that waits.
    pub call: CallId,
    /// The run that makes the call; `None` for a call outside a run. If it is parked when the approval is answered or
    /// closed, it is woken in the same transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<JobId>,
    /// The digest of the question; an answer covers this and nothing else.
    pub digest: Digest,
    /// The tool.
    pub tool: ToolName,
    /// The effects that the call would have.
    pub effects: Effects,
    /// The request as a person reads it, scrubbed: the command, the directory, the arguments.
    pub summary: String,
    /// The rule that requires approval, and the reason.
    pub reason: String,
    /// The time of the question; the store takes it as now.
    pub asked: UnixMillis,
    /// The time of expiry. From then on it cannot be answered, and a yes cannot be used.
    pub expires: UnixMillis,
    /// Rules that could be given with a yes; `None` where nothing is remembered of such calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Suggestions>,
    /// Directories outside the workspace that a yes lets the call reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<Root>,
    /// Input that is asked for: such an approval is answered with values. `None` for a plain yes or no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<InputRequest>>,
}

/// Rules that could be given with a yes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Suggestions {
    /// The rules, the narrowest first.
    pub rules: Vec<Suggestion>,
    /// Why there is none, as a person reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impossible: Option<String>,
}

impl Suggestions {
    /// No rule can be given, for this reason.
    pub fn impossible(why: impl Into<String>) -> Self {
        Self { rules: Vec::new(), impossible: Some(why.into()) }
    }
}

/// A rule that a person can store with a yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestion {
    /// The width: how many of the calls like this one it covers.
    pub width: RuleWidth,
    /// The rule, as whoever judges a call by it reads it.
    pub rule: Value,
    /// The calls that it would cover, as a person reads it.
    pub text: String,
}

/// How much a rule covers beside the call that it is given with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleWidth {
    /// This very command.
    Exact,
    /// These programs with these options, on any path of the workspace.
    Paths,
    /// Every address of this host.
    Host,
    /// This directory and all below it, for file tools and commands alike.
    Directory,
}

impl RuleWidth {
    /// The width as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Paths => "paths",
            Self::Host => "host",
            Self::Directory => "directory",
        }
    }
}

impl fmt::Display for RuleWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A stored approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The question.
    #[serde(flatten)]
    pub request: NewApproval,
    /// The state.
    pub state: ApprovalState,
    /// The person who answered; `None` if nobody did.
    pub answered_by: Option<String>,
    /// The reason given with a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// True for yes.
    pub approve: bool,
    /// The person who answers.
    pub by: String,
    /// The time of the answer; the store takes it as now.
    pub at: UnixMillis,
    /// The reason of a no, for the caller.
    pub reason: Option<String>,
    /// The values given with a yes to a request for input.
    pub values: Option<Map<String, Value>>,
}

/// Stores approvals and their answers; a change is announced as
/// [`Topic::Approvals`](super::Topic::Approvals).
///
/// A store has no clock: its arguments carry the present time. An approval that is pending, or approved and
/// not used, is expired from `expires` on, even if nobody closes it.
#[async_trait]
pub trait Approvals: Changes {
    /// Asks for approval, or finds the approval that this call asked for before a restart: same tenant,
    /// session, agent, call and digest, answered or not. A cancelled one is asked again, and an expired one
    /// is returned as expired. An approval of the same call with another digest is cancelled if it is pending
    /// or approved and not used; one of another session or agent is left alone, though it names the same
    /// call.
    async fn request(&self, new: NewApproval) -> Result<Approval, StoreError>;
    /// Returns one approval; `None` if this tenant has none with that id.
    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError>;
    /// Returns the pending approvals that have not expired by `now`, oldest first.
    async fn pending(&self, tenant: &TenantId, now: UnixMillis) -> Result<Vec<Approval>, StoreError>;
    /// Answers a pending approval. The first answer stands. An answer after the expiry marks the approval as
    /// expired and has no other effect.
    async fn answer(&self, tenant: &TenantId, id: ApprovalId, answer: Answer)
    -> Result<Approval, StoreError>;
    /// Takes the values of an approved request for input: it is used from then on, and the values are forgotten. `None`
    /// where it is not approved, or was used.
    async fn take_values(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
    ) -> Result<Option<Map<String, Value>>, StoreError>;
    /// Closes an approval that nobody will use: it expired, or its call was cancelled. A closed one stays
    /// unchanged, and an approved one too unless it is cancelled.
    async fn close(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        state: ApprovalState,
    ) -> Result<Approval, StoreError>;
}
