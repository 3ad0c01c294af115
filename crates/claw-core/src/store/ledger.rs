//! The ledger: refused, intended and finished calls.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use super::StoreError;
use crate::id::{AgentId, ApprovalId, CallId, NodeId, SessionKey, TenantId, ToolName, UndoId, UserId};
use crate::port::UnixMillis;
use crate::tool::{Caller, Digest, Effects, PeerKind, SubagentDepth};

/// One ledger entry before it is written. Its contents are already scrubbed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Record {
    /// The time.
    pub at: UnixMillis,
    /// The tenant that owns the call.
    pub tenant: TenantId,
    /// The session.
    pub session: SessionKey,
    /// The agent.
    pub agent: AgentId,
    /// The user the agent acts for; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user: Option<UserId>,
    /// The call.
    pub call: CallId,
    /// The tool; the requested name if none was found.
    pub tool: String,
    /// The further facts that the policy's decision depended on, so that a policy can be replayed over the
    /// ledger; `None` in an outcome, whose intent has it, and in an operation of a person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context: Option<Box<CallContext>>,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// The facts about a caller that a policy distinguishes callers by, besides tenant, agent and user.
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
    /// The tools that the message itself allows; `None` if it does not restrict them.
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

/// An event of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The call was refused before anything happened.
    Refused {
        /// The step of the road that refused it.
        step: String,
        /// The rule that refused it, in words.
        reason: String,
        /// The arguments of a call that a tool rule or an approval rule refused, so that a policy can be replayed over it;
        /// `None` at other steps, and if they are no valid JSON.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        args: Option<Value>,
    },
    /// The call is about to run.
    Intent {
        /// The digest of tool, arguments, plan and sights.
        digest: Digest,
        /// The effects of the call.
        effects: Effects,
        /// The arguments.
        args: Value,
        /// The approval it uses; `None` if it needs none.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        approval: Option<ApprovalId>,
    },
    /// The call ended.
    Outcome {
        /// The outcome.
        outcome: Outcome,
        /// The running time, in microseconds.
        micros: u64,
        /// The size of the result sent to the model, in bytes.
        bytes: u64,
        /// The error, if it failed.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        error: Option<String>,
        /// The changes that its command made in the workspace, if it ran on a layer and made any.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        changes: Option<Box<ChangeRecord>>,
    },
}

/// Changes of a command, as the ledger stores them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChangeRecord {
    /// Id by which they can be undone; `None` if the command could change nothing but the workspace, and did not.
    pub undo: Option<UndoId>,
    /// Number of changed entries.
    pub count: u64,
    /// Digest of the whole list, with sizes and modes.
    pub digest: Digest,
    /// The first paths, scrubbed.
    pub paths: Vec<String>,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The call succeeded.
    Done,
    /// The call failed, was cancelled or timed out.
    Failed,
    /// The outcome is unknown: the program died during the call.
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

/// A written ledger entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Entry {
    /// Its number in the chain, counted from 1.
    pub seq: u64,
    /// The machine that wrote it.
    pub node: NodeId,
    /// Its contents.
    #[serde(flatten)]
    pub record: Record,
    /// The hash of the entry before it.
    pub prev: Digest,
}

/// The calls of a session, counted by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// Calls that succeeded.
    pub done: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Calls without a recorded end: running, or unknown.
    pub open: u64,
}

/// A page of the ledger: the latest entries that match all given parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryPage {
    /// Only entries of these agents; `None` for all.
    pub agents: Option<Vec<AgentId>>,
    /// Only entries of this user.
    pub user: EntryUser,
    /// Only entries of this session.
    pub session: Option<SessionKey>,
    /// Only entries of this tool, by a name of ASCII letters, digits, `_` and `-`: entries with another name match none.
    pub tool: Option<String>,
    /// Only entries before this position; `None` for the latest.
    pub before: Option<u64>,
    /// The most entries.
    pub limit: usize,
}

/// The user that entries of the ledger are of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EntryUser {
    /// All entries.
    #[default]
    Anyone,
    /// Entries of calls for no user.
    Nobody,
    /// Entries of calls for this user.
    User(UserId),
}

impl EntryPage {
    /// Returns a page of all entries before a position, or of the latest ones.
    pub fn all(before: Option<u64>, limit: usize) -> Self {
        Self { before, limit, ..Self::default() }
    }

    /// Returns whether an entry matches, wherever it is.
    pub fn matches(&self, record: &Record) -> bool {
        let is_of_user = match &self.user {
            EntryUser::Anyone => true,
            EntryUser::Nobody => record.user.is_none(),
            EntryUser::User(user) => record.user.as_ref() == Some(user),
        };
        is_of_user
            && self.agents.as_ref().is_none_or(|agents| agents.contains(&record.agent))
            && self.session.as_ref().is_none_or(|session| *session == record.session)
            && self.tool.as_ref().is_none_or(|tool| record.plain_tool() == Some(tool.as_str()))
    }
}

/// Stores refused, intended and finished calls.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Writes that a call was refused.
    async fn refuse(&self, record: Record) -> Result<(), StoreError>;
    /// Writes the intent of a call and, in the same transaction, marks its approval used. A call id that has
    /// an intent is not begun again. The approval must have the same tenant, session, agent, call and digest;
    /// if it has expired by [`Record::at`], it is marked expired instead of used.
    async fn begin_call(&self, record: Record) -> Result<(), StoreError>;
    /// Writes the outcome of a call.
    async fn finish_call(&self, record: Record) -> Result<(), StoreError>;
    /// Returns the outcome of a call: `None` if it has not begun, [`Outcome::Unknown`] if it has begun and no
    /// end is recorded.
    async fn fate(&self, tenant: &TenantId, call: CallId) -> Result<Option<Outcome>, StoreError>;
    /// Returns the last `limit` entries of a tenant, oldest first.
    async fn recent(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Entry>, StoreError>;
    /// Returns the entries of a tenant that a page asks for, with their positions in the store, latest first. Fewer than the
    /// page's limit: there are no more.
    async fn entries(&self, tenant: &TenantId, page: &EntryPage) -> Result<Vec<(u64, Entry)>, StoreError>;

    /// Returns the calls of a session, counted by outcome.
    async fn tally(&self, tenant: &TenantId, session: &SessionKey) -> Result<Tally, StoreError>;
}

impl Record {
    /// Returns the tool's name if it is a plain word: ASCII letters, digits, `_` and `-`.
    pub fn plain_tool(&self) -> Option<&str> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        Some(self.tool.as_str()).filter(|tool| !tool.is_empty() && tool.bytes().all(is_plain))
    }

    /// Returns the tool's name; `None` if the text is no valid name.
    pub fn tool_name(&self) -> Option<ToolName> {
        ToolName::new(&self.tool).ok()
    }
}
