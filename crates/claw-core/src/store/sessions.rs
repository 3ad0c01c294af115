//! Conversations: append-only messages, and a log of events that a client can resume from.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use super::{Lease, NewJob, StoreError};
use crate::id::{JobId, MessageId, SessionKey, TenantId};
use crate::port::UnixMillis;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person, or whoever stands for one.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
    /// The system itself.
    System,
}

impl Role {
    /// The role as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::System => "system",
        }
    }
}

/// A message before it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewMessage {
    /// Its id. The same id sent again is the same message.
    pub id: MessageId,
    /// Whose data it is.
    pub tenant: TenantId,
    /// In which conversation; it begins with its first message.
    pub session: SessionKey,
    /// Who speaks.
    pub role: Role,
    /// What is said: blocks, calls, results.
    pub content: Value,
    /// When.
    pub at: UnixMillis,
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// What was said.
    #[serde(flatten)]
    pub new: NewMessage,
    /// Its place in the conversation, counted from 1 without gaps.
    pub seq: u64,
    /// The run that it is part of: the job that answers it, or in which it was said. Messages that came while a
    /// run went on stand between those of the run; this tells them apart.
    pub run: JobId,
}

/// Something that happened in a conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionEvent {
    /// Its place in the log, counted from 1 without gaps.
    pub seq: u64,
    /// When.
    pub at: UnixMillis,
    /// What kind: `message`, `run`, `tool`, `approval`.
    pub kind: SmolStr,
    /// What happened.
    pub body: Value,
}

/// A message that was accepted: both it and its job are durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The message's place in the conversation.
    pub seq: u64,
    /// The job that will answer it.
    pub job: JobId,
}

/// Keeps conversations.
#[async_trait]
pub trait SessionLog: Send + Sync {
    /// Stores a message, the event that tells of it and the job that will answer it, together. A message id
    /// that was accepted before is not stored again; the answer is that of the first time.
    async fn accept_message(&self, message: NewMessage, job: NewJob) -> Result<Accepted, StoreError>;
    /// Stores what was said in a run that goes on, with its events. [`StoreError::LeaseLost`], and nothing
    /// stored, where the job is someone else's by now. A message whose id is known is not stored again.
    async fn say_in_run(&self, lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError>;
    /// Ends a run: stores what was said in it, with its events, and marks its job done, together.
    /// [`StoreError::LeaseLost`], and nothing stored, where the job is someone else's by now.
    async fn finish_run(&self, lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError>;
    /// Adds an event to a conversation's log; gives its place.
    async fn log_event(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        event: (UnixMillis, SmolStr, Value),
    ) -> Result<u64, StoreError>;
    /// Messages after `after`, oldest first, at most `limit`.
    async fn messages(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError>;
    /// Events after `after`, oldest first, at most `limit`.
    async fn events(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<SessionEvent>, StoreError>;
}
