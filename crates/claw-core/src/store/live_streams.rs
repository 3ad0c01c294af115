//! Live output: pieces of messages that are not stored yet, and of the output of running calls.
//!
//! Pieces are not rows. They live in memory on the node that runs the model or the call and reach other nodes
//! in batches. Once the message or the call's result is stored, readers get it from there and the pieces are
//! dropped. A listener that joins in between gets everything so far.

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::id::{CallId, MessageId};
use crate::port::Owner;

/// The source of a piece.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A message that a model is writing.
    Message(MessageId),
    /// A running call.
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

/// The kind of text that a piece belongs to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Voice {
    /// The answer.
    Text,
    /// The reasoning before the answer.
    Thinking,
    /// The length of a call's arguments, while the model writes them: a dot for each byte.
    Arguments,
    /// Output of a running call.
    Output,
}

/// A piece of a message that is being written, or of the output of a running call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Delta {
    /// The message or the call.
    #[serde(flatten)]
    pub source: Source,
    /// The kind of text.
    pub voice: Voice,
    /// The number of bytes before it.
    pub offset: u64,
    /// The text.
    pub text: String,
}

/// Passes on messages and output while they arrive.
///
/// Nothing here is durable, and nothing waits: a listener that is too slow learns that pieces were dropped
/// (`Lagged`) and asks for everything so far.
pub trait Streams: Send + Sync {
    /// Adds a piece to a message or to the output of a call.
    fn say(&self, within: &Owner, source: Source, voice: Voice, text: &str);
    /// Drops the pieces of a message or call: it is stored, or never will be.
    fn said(&self, within: &Owner, source: Source);
    /// Returns everything so far of unfinished messages and calls, in the order they began.
    fn so_far(&self, within: &Owner) -> Vec<Delta>;
    /// Returns the pieces of a session from now on, from every node.
    fn listen(&self, within: &Owner) -> broadcast::Receiver<Delta>;
}
