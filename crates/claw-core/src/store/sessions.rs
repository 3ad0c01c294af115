//! Sessions: append-only messages, and a log of events that a client can resume from.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::{FeedEvent, Lease, NewJob, Party, SessionEvent, SessionEventBody, StoreError};
use crate::id::{JobId, MessageId, SessionKey, TenantId};
use crate::port::{Owner, UnixMillis};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person, or a program acting as one.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
    /// The system itself.
    System,
}

impl Role {
    /// Returns the role as a word.
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
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The session, which begins with its first message.
    pub session: SessionKey,
    /// The author.
    pub role: Role,
    /// The content: blocks, calls, results.
    pub content: Value,
    /// The time.
    pub at: UnixMillis,
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// The message.
    #[serde(flatten)]
    pub new: NewMessage,
    /// Its number in the session, counted from 1 without gaps.
    pub seq: u64,
    /// The run it is part of: the job that answers it, or that produced it. Messages that arrive during a run
    /// stand between those of the run; this tells them apart.
    pub run: JobId,
}

/// A summary that replaces the beginning of a session that is too long for the model. The messages stay
/// stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The last message that it covers.
    pub upto: u64,
    /// The text.
    pub text: String,
    /// The time it was written.
    pub at: UnixMillis,
}

/// An accepted message: the message and its job are durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The message's number in the session.
    pub seq: u64,
    /// The job that will answer it.
    pub job: JobId,
}

/// The last step of a run: its messages, its end, and the announcement to its parent.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// Messages to store in the run, in order.
    pub said: Vec<NewMessage>,
    /// The end of the job.
    pub end: JobEnd,
    /// The message to the parent run; `None` if nobody waits for the result.
    pub announce: Option<Announce>,
    /// The event that tells the session of the end, stored with it; `None` if nobody is told.
    pub event: Option<EndEvent>,
}

/// An event to be added to the log of a session.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// The session.
    pub owner: Owner,
    /// The time of the event.
    pub at: UnixMillis,
    /// The event.
    pub body: SessionEventBody,
}

/// The event of a run's end.
#[derive(Debug, Clone, PartialEq)]
pub struct EndEvent {
    /// The session of the run.
    pub session: SessionKey,
    /// Time of the end.
    pub at: UnixMillis,
    /// The event.
    pub body: SessionEventBody,
}

impl Finish {
    /// Stores this event with the end.
    #[must_use]
    pub fn telling(self, event: Option<EndEvent>) -> Self {
        Self { event, ..self }
    }

    /// Ends a run as done, with these last messages.
    pub const fn done(said: Vec<NewMessage>) -> Self {
        Self { said, end: JobEnd::Done, announce: None, event: None }
    }

    /// Ends a run as cancelled on request, with these last messages.
    pub const fn cancelled(said: Vec<NewMessage>) -> Self {
        Self { said, end: JobEnd::Cancelled, announce: None, event: None }
    }
}

/// The end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobEnd {
    /// The job is complete.
    Done,
    /// The job was ended on request.
    Cancelled,
}

impl JobEnd {
    /// Returns the end as a word: the job's state from then on.
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
    /// The message with the result.
    pub message: NewMessage,
    /// The job that answers the message, if the parent is not parked.
    pub job: NewJob,
}

/// Outcome of [`SessionLog::finish_run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Numbers of the run's last messages.
    pub places: Vec<u64>,
    /// Number of the announcement, and the job that answers it: the parent if it was parked. `None` without
    /// an announcement.
    pub announced: Option<Accepted>,
}

/// Stores sessions.
#[async_trait]
pub trait SessionLog: Send + Sync {
    /// Stores a message, its event and the job that will answer it, in one transaction. A message id that was
    /// accepted before is not stored again; the first outcome is returned.
    async fn accept_message(&self, message: NewMessage, job: NewJob) -> Result<Accepted, StoreError>;
    /// Stores messages of a run that goes on, with their events; returns their numbers.
    /// [`StoreError::LeaseLost`], and nothing stored, if the lease is lost. A message whose id is known is
    /// not stored again.
    async fn say_in_run(&self, lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError>;
    /// Moves the waiting messages of a run's session into the run; returns the number of jobs they came from.
    /// Takes only jobs with the run's lane and payload and at least this priority that were never started and
    /// have no cancel request; these jobs are then done. [`StoreError::LeaseLost`], and nothing taken, if the
    /// lease is lost.
    async fn take_waiting(&self, lease: &Lease, priority: i16) -> Result<usize, StoreError>;
    /// Stores a summary of the beginning of a session, in one of its runs. [`StoreError::LeaseLost`], and
    /// nothing stored, if the lease is lost. A summary up to the same message as an earlier one replaces it.
    async fn summarise(&self, lease: &Lease, of: &Owner, summary: Summary) -> Result<(), StoreError>;
    /// Returns the summary of a session that covers the most messages.
    async fn summary(&self, tenant: &TenantId, session: &SessionKey) -> Result<Option<Summary>, StoreError>;
    /// Ends a run: stores its messages and their events, ends its job and tells its parent, in one
    /// transaction.
    ///
    /// An announcement to a parked parent becomes part of the parent's run and wakes it; any other is
    /// accepted like a message of its own ([`accept_from`](super::Conversations::accept_from)), with a job
    /// that answers it. [`StoreError::LeaseLost`], and nothing stored, if the lease is lost;
    /// [`StoreError::Refused`], and nothing stored, if the announcement is not for the parent's own session.
    async fn finish_run(&self, lease: &Lease, finish: Finish) -> Result<Finished, StoreError>;
    /// Adds an event to a session's log; returns its number.
    async fn log_event(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        at: UnixMillis,
        event: SessionEventBody,
    ) -> Result<u64, StoreError>;
    /// Adds events to the logs of their sessions, in order, all or none.
    async fn log_events(&self, events: Vec<NewEvent>) -> Result<(), StoreError>;
    /// Returns a number that rises after each message and event of one session, on any node. It may rise
    /// without reason, and once for several changes.
    fn session_changes(&self, of: &Owner) -> watch::Receiver<u64>;
    /// Returns messages after number `after`, oldest first, at most `limit`.
    async fn messages(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError>;
    /// Returns events after number `after`, oldest first, at most `limit`.
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
