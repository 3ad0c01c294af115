//! Live output: pieces of messages that are not stored yet, and of the output of calls that still run.
//!
//! Pieces are not rows. They live in memory on the node that runs the model or the call and reach other nodes some
//! at a time. Once the message or the call's result is stored, it is read from there and the pieces are forgotten.
//! A listener that comes in between gets everything so far.

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::id::{CallId, MessageId};
use crate::port::Owner;

/// Origin of a piece.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A message that a model is saying.
    Message(MessageId),
    /// A call that is running.
    Call(CallId),
}

impl From<MessageId> for Source {
    fn from(message: MessageId) -> Self {
        Self::Message(message)
    }
}

impl From<CallId> for Source {
    fn from(call: CallId) -> Self {
        Self::Call(call)
    }
}

/// What a piece is a piece of.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Voice {
    /// What is said.
    Text,
    /// What is thought before it is said.
    Thinking,
    /// Output of a running call.
    Output,
}

/// A piece of a message that is being said, or of the output of a running call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Delta {
    /// The message or the call.
    #[serde(flatten)]
    pub source: Source,
    /// What it is a piece of.
    pub voice: Voice,
    /// How many bytes of it came before.
    pub offset: u64,
    /// What comes next.
    pub text: String,
}

/// Passes on messages and output while they come.
///
/// Nothing here is durable, and nothing waits: a listener that is too slow is told that pieces were left out
/// (`Lagged`) and asks for everything so far.
pub trait Streams: Send + Sync {
    /// Adds a piece to a message or to the output of a call.
    fn say(&self, within: &Owner, source: Source, voice: Voice, text: &str);
    /// Forgets the pieces of a message or call: it is stored, or never will be.
    fn said(&self, within: &Owner, source: Source);
    /// Returns everything so far of messages and calls that are not over, in the order they began.
    fn so_far(&self, within: &Owner) -> Vec<Delta>;
    /// Returns the pieces of a session from now on, from whichever node.
    fn listen(&self, within: &Owner) -> broadcast::Receiver<Delta>;
}
