//! What is being said right now: pieces of messages that are not stored yet.
//!
//! Pieces are not rows. They live in memory on the node that runs the model and reach other nodes some at a
//! time; when the message is stored, it is read from there and its pieces are forgotten. Who comes while it is
//! being said gets what was said so far.

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::id::MessageId;
use crate::port::Owner;

/// What a piece is a piece of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Voice {
    /// What is said.
    Text,
    /// What is thought before it is said.
    Thinking,
}

/// A piece of a message that is being said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// Which message.
    pub message: MessageId,
    /// What it is a piece of.
    pub voice: Voice,
    /// How many bytes of it came before.
    pub offset: u64,
    /// What comes next.
    pub text: String,
}

/// Tells of messages while they are being said.
///
/// Nothing here is durable, and nothing waits: who listens too slowly is told that pieces were left out
/// (`Lagged`) and asks for what was said so far.
pub trait Streams: Send + Sync {
    /// Says a piece of a message, after those said before.
    fn say(&self, within: &Owner, message: MessageId, voice: Voice, text: &str);
    /// The message is stored, or will never be: its pieces are forgotten.
    fn said(&self, within: &Owner, message: MessageId);
    /// What was said so far of messages that are not stored yet, in the order they began.
    fn so_far(&self, within: &Owner) -> Vec<Delta>;
    /// What is said in a conversation from now on, on whichever node.
    fn listen(&self, within: &Owner) -> broadcast::Receiver<Delta>;
}
