//! The owners of sessions, and queries that are limited to an owner.
//!
//! A session belongs to the party that began it: one person with one agent, or one group with one agent.
//! Every query carries the caller's [`Circle`], and the store reads the rows of that circle alone, so that
//! nothing has to be filtered out afterwards. A session without an owner is in no circle but its own.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use smol_str::SmolStr;

use super::{Accepted, Message, NewJob, NewMessage, SessionLog, StoreError};
use crate::id::{AgentId, JobId, SessionKey, TenantId, UserId};
use crate::port::UnixMillis;
use crate::tool::{Caller, PeerKind};

/// The user or group, the agent and the channel of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Party {
    /// The agent.
    pub agent: AgentId,
    /// The person; in a group, the author is not stored.
    pub user: Option<UserId>,
    /// The channel.
    pub channel: SmolStr,
    /// The chat within it.
    pub chat: Option<SmolStr>,
    /// One person or several.
    pub peer: PeerKind,
}

impl Party {
    /// Returns the fault of its channel or chat name: too long, or with control characters, which would not
    /// compare exactly.
    pub fn fault(&self) -> Option<String> {
        let names = [Some(&self.channel), self.chat.as_ref()];
        let is_odd = |name: &&SmolStr| name.len() > Self::MOST_BYTES || name.chars().any(char::is_control);
        let name = names.into_iter().flatten().find(is_odd)?;
        let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
        let most = Self::MOST_BYTES;
        let rule = format!("use at most {most} bytes without control characters");
        Some(format!("`{shown}` is not a valid name of a channel or chat; {rule}"))
    }

    /// The longest name of a channel or chat, in bytes.
    pub const MOST_BYTES: usize = 512;
}

/// The sessions that a caller may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Circle {
    /// The sessions of one person with one agent.
    User {
        /// The agent.
        agent: AgentId,
        /// The person.
        user: UserId,
    },
    /// The sessions of one group chat with one agent.
    Group {
        /// The agent.
        agent: AgentId,
        /// The channel.
        channel: SmolStr,
        /// The chat within it.
        chat: SmolStr,
    },
    /// This session and no other: the caller is unknown.
    Session(SessionKey),
}

impl Circle {
    /// Returns the circle of a caller.
    pub fn of(caller: &Caller) -> Self {
        let agent = caller.agent.clone();
        match (caller.peer_kind, &caller.user, &caller.chat_id) {
            (PeerKind::Direct, Some(user), _) => Self::User { agent, user: user.clone() },
            (PeerKind::Group, _, Some(chat)) => {
                Self::Group { agent, channel: caller.channel.clone(), chat: chat.clone() }
            }
            _ => Self::Session(caller.session.clone()),
        }
    }
}

/// A session, as its owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conversation {
    /// Its key.
    pub session: SessionKey,
    /// Its owner.
    pub party: Party,
    /// The lane in which its messages are answered.
    pub lane: SmolStr,
    /// The order of its last job.
    pub order: Value,
    /// The title that its owner gave it; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The time of its start.
    pub started: UnixMillis,
    /// The time of the last message, accepted or said by the agent.
    pub last: UnixMillis,
    /// The number of its messages.
    pub messages: u64,
    /// The number of its waiting jobs.
    pub waiting: u64,
    /// True if one of its jobs is leased or parked.
    pub running: bool,
}

/// A page of a list of sessions, latest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationPage {
    /// Only sessions with a message since this time.
    pub since: Option<UnixMillis>,
    /// Only sessions after this one in the list: the time of its last message, and its key.
    pub after: Option<(UnixMillis, SessionKey)>,
    /// The most sessions.
    pub limit: usize,
}

/// A page of the messages of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessagePage {
    /// Only messages before the one with this number.
    pub before: u64,
    /// The most messages: the last ones.
    pub limit: usize,
}

impl MessagePage {
    /// The last messages of a session.
    pub const fn last(limit: usize) -> Self {
        Self { before: u64::MAX, limit }
    }
}

/// The copy of a session that is to be made.
#[derive(Debug, Clone, Copy)]
pub struct Fork<'a> {
    /// The key of the copy.
    pub to: &'a SessionKey,
    /// The present time.
    pub at: UnixMillis,
}

/// Stores the owners of sessions.
#[async_trait]
pub trait Conversations: SessionLog {
    /// Accepts a message like [`accept_message`](SessionLog::accept_message), with its party, in one
    /// transaction. The first party to write owns the session; [`StoreError::Refused`], and nothing stored,
    /// if another party does.
    async fn accept_from(
        &self,
        party: &Party,
        message: NewMessage,
        job: NewJob,
    ) -> Result<Accepted, StoreError>;
    /// Accepts a message like [`accept_from`](Self::accept_from), and checks in the same transaction that `last` is the
    /// latest job of the session and is over. [`StoreError::Refused`], and nothing stored, if not: another message came
    /// first.
    async fn accept_after(
        &self,
        last: JobId,
        party: &Party,
        message: NewMessage,
        job: NewJob,
    ) -> Result<Accepted, StoreError>;
    /// Returns the sessions of a circle.
    async fn conversations(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        page: &ConversationPage,
    ) -> Result<Vec<Conversation>, StoreError>;
    /// Returns one session; `None` if the circle has no session with that key.
    async fn conversation(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
    ) -> Result<Option<Conversation>, StoreError>;
    /// Returns a page of the messages of a session, oldest first; `None` if the circle has no session with that
    /// key.
    async fn said_in(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
        page: MessagePage,
    ) -> Result<Option<Vec<Message>>, StoreError>;
    /// Sets the title of a session; `None` removes it. Returns `false` if the circle has no session with that
    /// key.
    async fn rename_conversation(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
        title: Option<&str>,
    ) -> Result<bool, StoreError>;
    /// Copies the messages and summaries of a session to a new key of the same owner. Returns `false` if the
    /// circle has no session with that key; [`StoreError::Refused`], and nothing copied, if the new key is
    /// taken.
    async fn fork_conversation(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
        fork: Fork<'_>,
    ) -> Result<bool, StoreError>;
    /// Removes a session with its messages, events and summaries. Its ledger, usage and file changes stay.
    /// Returns `false` if the circle has no session with that key; [`StoreError::Refused`], and nothing
    /// removed, while a run of it waits or is active.
    async fn remove_conversation(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
    ) -> Result<bool, StoreError>;
    /// Records that a run of this session read untrusted text, for all its runs from now on. Forks take it along.
    async fn mark_untrusted(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        at: UnixMillis,
    ) -> Result<(), StoreError>;
    /// Returns whether a run of this session read untrusted text.
    async fn is_untrusted(&self, tenant: &TenantId, session: &SessionKey) -> Result<bool, StoreError>;
}
