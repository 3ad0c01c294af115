//! Messages and their parts, independent of the provider.
//!
//! The content of a stored message is a list of these parts as JSON, so that the history can be sent to
//! another provider than the one that answered. It names images and holds none of their bytes.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use crate::id::CallId;
use crate::image::Image;
use crate::store::Role;
use crate::tool::Block;

pub use crate::untrusted_fence::{MARK, MARK_END, fenced, is_fenced, is_mark};

/// One message of a session, as a model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The author.
    pub role: Role,
    /// The content.
    pub parts: Vec<Part>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's reasoning before its answer.
    Thinking {
        /// The reasoning; empty if the provider does not reveal it.
        text: String,
        /// The provider's signature, sent back unchanged with the reasoning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<Seal>,
    },
    /// An image, by the digest of its bytes.
    Image(Image),
    /// The model calls a tool.
    Call(Wanted),
    /// The result of a call.
    Result(ToolResult),
}

/// An opaque value of one provider that is sent back to it unchanged; other providers ignore it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The wire format it belongs to: `anthropic`, `gemini`, ...
    pub provider: SmolStr,
    /// The value, as text.
    pub value: String,
}

/// A call that a model requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// Our id of the call.
    pub call: CallId,
    /// The model's id of it; generated if the provider has none.
    pub model_id: SmolStr,
    /// The name the model used.
    pub tool: String,
    /// The arguments.
    pub args: Args,
    /// The provider's signature, sent back unchanged with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
}

/// The arguments of a call as they arrived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Args {
    /// Valid JSON.
    Json(Value),
    /// Invalid JSON.
    Broken {
        /// The received text.
        text: String,
        /// True if the text was cut off, by the limit of the answer's length for instance.
        cut: bool,
    },
}

/// The result of a call, as the model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Our id of the call.
    pub call: CallId,
    /// The model's id of it.
    pub model_id: SmolStr,
    /// The tool.
    pub tool: String,
    /// The content for the model.
    pub content: Vec<Block>,
    /// True if the call failed or was refused, or if its outcome is unknown.
    pub failed: bool,
}

impl Turn {
    /// Makes a message with one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::text(text)] }
    }

    /// Returns the calls in it, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Wanted> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(wanted) => Some(wanted),
            _ => None,
        })
    }

    /// Returns all its text, without reasoning.
    pub fn words(&self) -> String {
        let words = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        words.collect::<Vec<_>>().join("\n")
    }
}

impl Part {
    /// Makes a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}
