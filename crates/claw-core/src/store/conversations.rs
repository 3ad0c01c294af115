//! Whose conversations are, and the questions that only their owners get answered.
//!
//! A conversation belongs to whoever began it: one person with one agent, or one group with one agent. Every question
//! here carries the [`Circle`] of who asks, and the store answers it from the rows of that circle alone: nothing is
//! read that would have to be left out afterwards. A conversation without an owner is in nobody's circle but its own.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use smol_str::SmolStr;

use super::{Accepted, Message, NewJob, NewMessage, SessionLog, StoreError};
use crate::id::{AgentId, SessionKey, TenantId, UserId};
use crate::port::UnixMillis;
use crate::tool::{Caller, PeerKind};

/// Who talks with an agent in a conversation, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Party {
    /// Which agent.
    pub agent: AgentId,
    /// Which person; whoever speaks in a group is not kept.
    pub user: Option<UserId>,
    /// The channel.
    pub channel: SmolStr,
    /// The chat within it.
    pub chat: Option<SmolStr>,
    /// One person or several.
    pub peer: PeerKind,
}

impl Party {
    /// Whether a conversation of this party is one of the other too. One person is the same wherever they write
    /// from; a group is its chat, whoever writes there.
    pub fn is_same_owner(&self, other: &Self) -> bool {
        let same = match self.peer {
            PeerKind::Direct => self.user == other.user,
            PeerKind::Group => (&self.channel, &self.chat) == (&other.channel, &other.chat),
        };
        same && self.peer == other.peer && self.agent == other.agent
    }

    /// What is wrong with its names: they are compared, so nothing in them may be lost on the way.
    pub fn fault(&self) -> Option<String> {
        let names = [Some(&self.channel), self.chat.as_ref()];
        let is_odd = |name: &&SmolStr| name.len() > Self::MOST_BYTES || name.chars().any(char::is_control);
        let name = names.into_iter().flatten().find(is_odd)?;
        let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
        let most = Self::MOST_BYTES;
        Some(format!("`{shown}` is no channel or chat; use at most {most} bytes without control characters"))
    }

    /// The longest name of a channel or chat.
    pub const MOST_BYTES: usize = 512;
}

/// Whose conversations somebody may know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Circle {
    /// Those of one person with one agent.
    User {
        /// Which agent.
        agent: AgentId,
        /// Which person.
        user: UserId,
    },
    /// Those of one group chat with one agent.
    Group {
        /// Which agent.
        agent: AgentId,
        /// The channel.
        channel: SmolStr,
        /// The chat within it.
        chat: SmolStr,
    },
    /// This one and no other: nobody knows who asks.
    Session(SessionKey),
}

impl Circle {
    /// What a caller may know of.
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

/// A conversation, as its owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conversation {
    /// Its key.
    pub session: SessionKey,
    /// Whose it is.
    pub party: Party,
    /// The lane in which its messages are answered.
    pub lane: SmolStr,
    /// What its last job was to do.
    pub order: Value,
    /// The title that its owner gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it began.
    pub started: UnixMillis,
    /// When a message was last accepted.
    pub last: UnixMillis,
    /// How many messages it has.
    pub messages: u64,
    /// How many of its jobs wait.
    pub waiting: u64,
    /// A job of it is leased or parked.
    pub running: bool,
}

/// Which part of a list: the latest first, after the last one of the part before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationPage {
    /// Only what had a message since.
    pub since: Option<UnixMillis>,
    /// Only what comes after this one: when it last had a message, and its key.
    pub after: Option<(UnixMillis, SessionKey)>,
    /// At most so many.
    pub limit: usize,
}

/// Keeps whose conversations are.
#[async_trait]
pub trait Conversations: SessionLog {
    /// Accepts a message like [`accept_message`](SessionLog::accept_message), from somebody, all of it together. The
    /// first to write owns the conversation; [`StoreError::Refused`], and nothing stored, where somebody else does.
    async fn accept_from(
        &self,
        party: &Party,
        message: NewMessage,
        job: NewJob,
    ) -> Result<Accepted, StoreError>;
    /// The conversations of a circle.
    async fn conversations(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        page: &ConversationPage,
    ) -> Result<Vec<Conversation>, StoreError>;
    /// One of them; `None` where the circle has none of that key, whoever else may have one.
    async fn conversation(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
    ) -> Result<Option<Conversation>, StoreError>;
    /// The last `limit` messages of one of them before message `before`, oldest first; `None` as above.
    async fn said_in(
        &self,
        (tenant, circle): (&TenantId, &Circle),
        session: &SessionKey,
        before: u64,
        limit: usize,
    ) -> Result<Option<Vec<Message>>, StoreError>;
    /// Gives one of them a title; `None` takes it away. Returns false where the circle has none of that key.
    async fn rename_conversation(
        &self,
        (tenant, circle): (&TenantId, &Circle),
        session: &SessionKey,
        title: Option<&str>,
    ) -> Result<bool, StoreError>;
    /// Copies the messages and summaries of one of them to a new key of the same owner. Returns false where the circle
    /// has none of that key; [`StoreError::Refused`], and nothing copied, where the new key is taken.
    async fn fork_conversation(
        &self,
        (tenant, circle): (&TenantId, &Circle),
        session: &SessionKey,
        (to, at): (&SessionKey, UnixMillis),
    ) -> Result<bool, StoreError>;
    /// Removes one of them with its messages, events and summaries. Ledger, usage and changes of files stay. Returns
    /// false where the circle has none of that key; [`StoreError::Refused`], and nothing removed, while a run of it waits
    /// or goes on.
    async fn remove_conversation(
        &self,
        (tenant, circle): (&TenantId, &Circle),
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
