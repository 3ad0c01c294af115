//! Conversations: append-only messages, and a log of events that a client can resume from.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::{FeedEvent, Lease, NewJob, Party, SessionEvent, SessionEventBody, StoreError};
use crate::id::{JobId, MessageId, SessionKey, TenantId};
use crate::port::{Owner, UnixMillis};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
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

/// What stands for the beginning of a conversation that is too long to be read. Nothing is lost: the messages stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The last message that it stands for.
    pub upto: u64,
    /// What was said, in short.
    pub text: String,
    /// When it was written.
    pub at: UnixMillis,
}

/// A message that was accepted: both it and its job are durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The message's place in the conversation.
    pub seq: u64,
    /// The job that will answer it.
    pub job: JobId,
}

/// Last act of a run: what it said, how it ended, and who is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// Messages to store in the run, in order.
    pub said: Vec<NewMessage>,
    /// How the job ends.
    pub end: JobEnd,
    /// The message to the parent run; `None` where nobody waits for the result.
    pub announce: Option<Announce>,
}

impl Finish {
    /// A run that is done, with these last messages.
    pub const fn done(said: Vec<NewMessage>) -> Self {
        Self { said, end: JobEnd::Done, announce: None }
    }

    /// A run that obeys a cancel request, with these last messages.
    pub const fn cancelled(said: Vec<NewMessage>) -> Self {
        Self { said, end: JobEnd::Cancelled, announce: None }
    }
}

/// How a worker ends a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobEnd {
    /// The job was carried out.
    Done,
    /// The job was ended on request.
    Cancelled,
}

impl JobEnd {
    /// The end as a word: the job's state from then on.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Result of a child run, for its parent's session.
#[derive(Debug, Clone, PartialEq)]
pub struct Announce {
    /// The run that waits for the result.
    pub parent: JobId,
    /// Owner of the parent's session.
    pub party: Party,
    /// The message that tells of the result.
    pub message: NewMessage,
    /// The job that answers the message, where the parent is not parked.
    pub job: NewJob,
}

/// Outcome of [`SessionLog::finish_run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Places of the run's last messages.
    pub places: Vec<u64>,
    /// Place of the announcement, and the job that answers it: the parent where it was parked.
    pub announced: Option<Accepted>,
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
    /// Takes into a run what waits in its conversation: the messages of jobs that were not begun and ask for the
    /// same as the run's own, in its lane. They are part of the run from then on, and their jobs are done; gives how
    /// many jobs there were. Jobs with a priority below `priority` keep waiting. [`StoreError::LeaseLost`], and nothing
    /// taken, where the job is someone else's by now.
    async fn take_waiting(&self, lease: &Lease, priority: i16) -> Result<usize, StoreError>;
    /// Keeps a summary of the beginning of a conversation, in a run of it. [`StoreError::LeaseLost`], and nothing
    /// kept, where the job is someone else's by now. One that reaches as far as one before stands in its place.
    async fn summarise(
        &self,
        lease: &Lease,
        (tenant, session): (&TenantId, &SessionKey),
        summary: Summary,
    ) -> Result<(), StoreError>;
    /// The summary of a conversation that reaches furthest.
    async fn summary(&self, tenant: &TenantId, session: &SessionKey) -> Result<Option<Summary>, StoreError>;
    /// Ends a run: stores what was said in it, with its events, ends its job and tells its parent, together.
    ///
    /// An announcement to a parked parent becomes part of the parent's run and wakes it; any other is accepted like a
    /// message of its own ([`accept_from`](super::Conversations::accept_from)), with a job that answers it.
    /// [`StoreError::LeaseLost`], and nothing stored, where the job is someone else's by now;
    /// [`StoreError::Refused`], and nothing stored, where the announcement is not for the parent's own session.
    async fn finish_run(&self, lease: &Lease, finish: Finish) -> Result<Finished, StoreError>;
    /// Adds an event to a session's log; returns its place.
    async fn log_event(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        at: UnixMillis,
        event: SessionEventBody,
    ) -> Result<u64, StoreError>;
    /// Returns a number that rises after each message and event of one session, on whichever node. It may rise
    /// without reason, and once for several changes.
    fn session_changes(&self, of: &Owner) -> watch::Receiver<u64>;
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
    /// Events of all sessions of a tenant after place `after` of its feed, in the feed's order, at most `limit`. An event
    /// that is stored later has a higher place than all that were read before.
    async fn feed(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<Vec<FeedEvent>, StoreError>;
    /// The last place of a tenant's feed; 0 where it is empty.
    async fn feed_end(&self, tenant: &TenantId) -> Result<u64, StoreError>;
}
