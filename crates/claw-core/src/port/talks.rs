//! The conversations that a caller may know of: their list, what was said, and saying something in another one.

use std::path::PathBuf;

use async_trait::async_trait;
use serde::Serialize;
use smol_str::SmolStr;

use super::{Owner, TalkFigures, UnixMillis};
use crate::id::{SessionKey, TenantId};
use crate::image::Image;
use crate::store::{Circle, Role};
use crate::tool::{Caller, PeerKind, ToolError};

/// The conversations of the caller's circle.
#[async_trait]
pub trait Talks: Send + Sync {
    /// They, the latest first.
    async fn list(&self, page: &TalkPage) -> Result<Vec<Talk>, ToolError>;
    /// The last `limit` messages of one before message `before`, oldest first; `None` where it is not in the circle.
    async fn history(
        &self,
        session: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<Line>>, ToolError>;
    /// Says something in another one. It is kept, and answered there.
    async fn send(&self, session: &SessionKey, text: &str) -> Result<Posted, ToolError>;
}

/// The conversations of everyone.
#[async_trait]
pub trait TalkHost: Send + Sync {
    /// Those of a circle.
    async fn list(&self, tenant: &TenantId, circle: &Circle, page: &TalkPage)
    -> Result<Vec<Talk>, ToolError>;
    /// What was said in one of a circle.
    async fn history(
        &self,
        (tenant, circle): (&TenantId, &Circle),
        session: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<Line>>, ToolError>;
    /// The workspace that a session of the caller's circle works in; `None` where it is not in the circle.
    async fn workspace(&self, caller: &Caller, session: &SessionKey) -> Result<Option<PathBuf>, ToolError>;
    /// Says something in one of the caller's circle, for the caller; what is said is scrubbed before.
    async fn send(&self, caller: &Caller, session: &SessionKey, text: &str) -> Result<Posted, ToolError>;
    /// What was said and paid in one.
    async fn figures(&self, owner: &Owner) -> Result<TalkFigures, ToolError>;
}

/// Which part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TalkPage {
    /// Only those with a message since.
    pub since: Option<UnixMillis>,
    /// Only what comes after this one: when it last had a message, and its key.
    pub after: Option<(UnixMillis, SessionKey)>,
    /// At most so many.
    pub limit: usize,
}

/// A conversation in a list.
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
    /// When it began.
    pub started: UnixMillis,
    /// When a message was last accepted.
    pub last: UnixMillis,
    /// How many messages it has.
    pub messages: u64,
    /// How many messages wait for an answer.
    pub waiting: u64,
    /// Whether one is being answered.
    pub running: bool,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its place.
    pub seq: u64,
    /// Who speaks.
    pub role: Role,
    /// When.
    pub at: UnixMillis,
    /// What was said.
    pub words: Vec<Words>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Words {
    /// Words.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(Image),
    /// A tool was called.
    Call {
        /// Which.
        tool: String,
        /// With which arguments.
        args: String,
    },
    /// What came of a call.
    Result {
        /// Of which tool.
        tool: String,
        /// What its model was told.
        text: String,
        /// Whether it failed.
        failed: bool,
    },
}

/// A message that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Posted {
    /// Its place in the conversation.
    pub seq: u64,
    /// How many messages waited there before it.
    pub before: u64,
}
