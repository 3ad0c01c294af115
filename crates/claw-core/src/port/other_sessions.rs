//! The sessions that a caller may see: listing them, reading them, and sending a message to another one.

use std::path::PathBuf;

use async_trait::async_trait;
use serde::Serialize;
use smol_str::SmolStr;

use super::{Owner, TalkFigures, UnixMillis};
use crate::id::{SessionKey, TenantId};
use crate::image::Image;
use crate::store::{Circle, Role};
use crate::tool::{Caller, PeerKind, ToolError};

/// The sessions of the caller's circle.
#[async_trait]
pub trait Talks: Send + Sync {
    /// Returns the sessions, latest first.
    async fn list(&self, page: &TalkPage) -> Result<Vec<Talk>, ToolError>;
    /// Returns the last `limit` messages of a session before message `before`, oldest first; `None` if the
    /// session is not in the circle.
    async fn history(
        &self,
        session: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<TalkLine>>, ToolError>;
    /// Sends a message to another session. It is stored, and answered there.
    async fn send(&self, session: &SessionKey, text: &str) -> Result<Posted, ToolError>;
}

/// The sessions of all tenants.
#[async_trait]
pub trait TalkHost: Send + Sync {
    /// Returns the sessions of a circle.
    async fn list(&self, tenant: &TenantId, circle: &Circle, page: &TalkPage)
    -> Result<Vec<Talk>, ToolError>;
    /// Returns messages of a session; `None` if it is not in the circle.
    async fn history(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
        page: TalkLines,
    ) -> Result<Option<Vec<TalkLine>>, ToolError>;
    /// Returns the workspace of a session; `None` if it is not in the caller's circle.
    async fn workspace(&self, caller: &Caller, session: &SessionKey) -> Result<Option<PathBuf>, ToolError>;
    /// Sends a message for the caller to a session of the caller's circle; the text is scrubbed first.
    async fn send(&self, caller: &Caller, session: &SessionKey, text: &str) -> Result<Posted, ToolError>;
    /// Returns the messages and cost of a session in figures.
    async fn figures(&self, owner: &Owner) -> Result<TalkFigures, ToolError>;
}

/// A page of the messages of a session, counted from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TalkLines {
    /// Only messages before this number; `None` for the last ones.
    pub before: Option<u64>,
    /// The most messages.
    pub limit: usize,
}

/// A page of a list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TalkPage {
    /// Only sessions with a message since this time.
    pub since: Option<UnixMillis>,
    /// Only sessions after this one in the list: the time of its last message, and its key.
    pub after: Option<(UnixMillis, SessionKey)>,
    /// The most sessions.
    pub limit: usize,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Talk {
    /// Its key.
    pub session: SessionKey,
    /// The channel.
    pub channel: SmolStr,
    /// The chat within it.
    pub chat: Option<SmolStr>,
    /// One person or several.
    pub peer: PeerKind,
    /// The time of its start.
    pub started: UnixMillis,
    /// The time of the last accepted message.
    pub last: UnixMillis,
    /// The number of its messages.
    pub messages: u64,
    /// The number of messages that wait for an answer.
    pub waiting: u64,
    /// True if a message is being answered.
    pub running: bool,
}

/// A message of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TalkLine {
    /// Its number.
    pub seq: u64,
    /// The author.
    pub role: Role,
    /// The time.
    pub at: UnixMillis,
    /// The content.
    pub words: Vec<Words>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Words {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(Image),
    /// A tool call.
    Call {
        /// The tool.
        tool: String,
        /// The arguments.
        args: String,
    },
    /// The result of a call.
    Result {
        /// The tool.
        tool: String,
        /// The text for the model.
        text: String,
        /// True if the call failed.
        failed: bool,
    },
}

/// An accepted message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Posted {
    /// Its number in the session.
    pub seq: u64,
    /// The number of messages that waited there before it.
    pub before: u64,
}
