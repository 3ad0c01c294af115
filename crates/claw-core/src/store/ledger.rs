//! What was refused, intended and done.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use super::StoreError;
use crate::id::{AgentId, ApprovalId, CallId, NodeId, SessionKey, TenantId, ToolName, UndoId, UserId};
use crate::port::UnixMillis;
use crate::tool::{Caller, Digest, Effects, PeerKind, SubagentDepth};

/// One line of the ledger before it is written. What it holds is scrubbed already.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Record {
    /// When.
    pub at: UnixMillis,
    /// Whose data it is.
    pub tenant: TenantId,
    /// In which conversation.
    pub session: SessionKey,
    /// Which agent.
    pub agent: AgentId,
    /// For whom.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user: Option<UserId>,
    /// Which call.
    pub call: CallId,
    /// Which tool, as far as one was found.
    pub tool: String,
    /// The rest of what the policy's decision depended on, so that a policy can be replayed over the ledger; `None`
    /// in an outcome, whose intent has it, and in an operation of a person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context: Option<Box<CallContext>>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// The facts about a caller that a policy can tell callers apart by, besides tenant, agent and user.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallContext {
    /// The channel that the message came by.
    pub channel: SmolStr,
    /// The chat within the channel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub chat: Option<SmolStr>,
    /// One person or several.
    #[serde(default)]
    pub peer: PeerKind,
    /// The provider of the calling model.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub provider: Option<SmolStr>,
    /// The caller's place in a tree of subagents.
    #[serde(default)]
    pub subagent: SubagentDepth,
    /// The tools that the message itself allows; `None` where it says nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_allow: Option<Vec<String>>,
}

impl From<&Caller> for CallContext {
    fn from(caller: &Caller) -> Self {
        Self {
            channel: caller.channel.clone(),
            chat: caller.chat_id.clone(),
            peer: caller.peer_kind,
            provider: caller.provider.clone(),
            subagent: caller.subagent,
            request_allow: caller.request_allow.as_ref().map(|allow| allow.to_vec()),
        }
    }
}

/// What happened to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// It was turned away before anything happened.
    Refused {
        /// Which step of the road.
        step: String,
        /// Which rule, in words.
        reason: String,
    },
    /// It is about to run.
    Intent {
        /// Binds tool, arguments, plan and what the ports saw.
        digest: Digest,
        /// What it would do.
        effects: Effects,
        /// The arguments.
        args: Value,
        /// The approval it uses.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        approval: Option<ApprovalId>,
    },
    /// It ended.
    Outcome {
        /// How.
        outcome: Outcome,
        /// How long it ran, in microseconds.
        micros: u64,
        /// The size of what the model was sent.
        bytes: u64,
        /// The error, if it failed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        error: Option<String>,
        /// The changes that its command made in the workspace, if it ran on a layer and made any.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        changes: Option<Box<ChangeRecord>>,
    },
}

/// Changes of a command, as the ledger keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChangeRecord {
    /// Id by which they can be undone.
    pub undo: UndoId,
    /// Number of changed entries.
    pub count: u64,
    /// Digest of the whole list, with sizes and modes.
    pub digest: Digest,
    /// The first paths, scrubbed.
    pub paths: Vec<String>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It worked.
    Done,
    /// It failed, or was cancelled or timed out.
    Failed,
    /// Nobody knows: it had begun when the program died.
    Unknown,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        })
    }
}

/// A written line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Entry {
    /// Its number in the chain, counted from 1.
    pub seq: u64,
    /// Which machine wrote it.
    pub node: NodeId,
    /// What it says.
    #[serde(flatten)]
    pub record: Record,
    /// The hash of the line before it.
    pub prev: Digest,
}

/// What became of the calls of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// Those that worked.
    pub done: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those that began and whose end is not recorded: running, or unknown.
    pub open: u64,
}

/// Keeps what was refused, intended and done.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Writes that a call was refused.
    async fn refuse(&self, record: Record) -> Result<(), StoreError>;
    /// Writes the intent of a call and, in the same transaction, marks its approval used. A call id that has
    /// an intent is not begun again. The approval must be of the same tenant, session, agent, call and digest,
    /// and one whose time is over by [`Record::at`] is expired instead of used.
    async fn begin_call(&self, record: Record) -> Result<(), StoreError>;
    /// Writes how a call ended.
    async fn finish_call(&self, record: Record) -> Result<(), StoreError>;
    /// What became of a call: `None` where it has not begun, [`Outcome::Unknown`] where it has and its end was
    /// not recorded.
    async fn fate(&self, tenant: &TenantId, call: CallId) -> Result<Option<Outcome>, StoreError>;
    /// The last `limit` lines of a tenant, oldest first.
    async fn recent(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Entry>, StoreError>;
    /// At most `limit` lines of a tenant with their positions in the store, latest first: those before a position, or the
    /// last ones where none is given.
    async fn entries_before(
        &self,
        tenant: &TenantId,
        position: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Entry)>, StoreError>;

    /// What became of the calls of a session.
    async fn tally(&self, tenant: &TenantId, session: &SessionKey) -> Result<Tally, StoreError>;
}

impl Record {
    /// The tool's name, where it is one.
    pub fn tool_name(&self) -> Option<ToolName> {
        ToolName::new(&self.tool).ok()
    }
}
