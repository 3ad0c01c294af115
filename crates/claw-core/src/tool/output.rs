//! The result of a successful call.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use crate::attachment::Attachment;
use crate::id::ArtifactId;
use crate::image::Image;

/// The result of a successful call.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Output {
    /// The content for the model.
    pub content: Vec<Block>,
    /// The text for the user; `None` if it is the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_user: Option<String>,
    /// True to show the user nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// The handle of work that goes on in the background, under which its end is reported; `None` if the work
    /// is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<SmolStr>,
    /// Files to deliver with the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// The result as data, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The work product itself, if the content only mentions it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliverable: Option<String>,
    /// The most bytes of text to send to the model, if the call asked for less than the deployment's limit.
    /// The whole result is stored.
    #[serde(skip)]
    pub most_bytes: Option<usize>,
    /// The usage of a model that the tool asked; `None` if it asked none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// One part of the content for the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image. A tool returns it with its bytes; the executor stores them and passes the image on by its
    /// digest.
    Image(Image),
    /// Bytes that models do not read, such as audio. The road stores them and passes them on by their digest.
    Attachment(Attachment),
    /// A resource that can be fetched.
    Resource {
        /// Its URI.
        uri: String,
        /// Its media type; `None` if unknown.
        mime: Option<SmolStr>,
        /// Its text; `None` if it was not sent along.
        text: Option<String>,
    },
}

/// A file to deliver with the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// The stored file.
    pub artifact: ArtifactId,
    /// Its media type, such as `audio/mpeg`.
    pub mime: SmolStr,
    /// Its name as the user sees it.
    pub name: String,
    /// A line to show beside it.
    pub caption: Option<String>,
}

/// The usage of a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// The provider.
    pub provider: SmolStr,
    /// The model.
    pub model: SmolStr,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// The cost, in millionths of a US dollar.
    pub cost_micros: u64,
}

impl Output {
    /// Makes a result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::Text { text: text.into() }], ..Self::default() }
    }

    /// Makes a result of data: pretty-printed for the model, and as details for programs.
    pub fn json(value: impl Serialize) -> Result<Self, super::ToolError> {
        let value = serde_json::to_value(value).map_err(super::ToolError::internal)?;
        let text = serde_json::to_string_pretty(&value).map_err(super::ToolError::internal)?;
        Ok(Self { details: Some(value), ..Self::text(text) })
    }

    /// Makes a result of an image.
    pub fn image(mime: impl Into<SmolStr>, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { content: vec![Block::Image(Image::new(mime, bytes))], ..Self::default() }
    }

    /// Makes a result of work that goes on in the background under a handle.
    pub fn pending(handle: impl Into<SmolStr>, text: impl Into<String>) -> Self {
        Self { pending: Some(handle.into()), ..Self::text(text) }
    }

    /// Shows the user another text than the model.
    #[must_use]
    pub fn for_user(mut self, text: impl Into<String>) -> Self {
        self.for_user = Some(text.into());
        self
    }

    /// Shows the user nothing.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    /// Adds the result as data.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Limits the text for the model to this many bytes; the whole result is stored.
    #[must_use]
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.most_bytes = Some(bytes);
        self
    }

    /// Adds a block for the model.
    #[must_use]
    pub fn and(mut self, block: Block) -> Self {
        self.content.push(block);
        self
    }

    /// Returns all text for the model, with a line break between blocks; an image as one line with its type
    /// and size, a resource as a marker and its text.
    pub fn model_text(&self) -> String {
        let mut text = String::new();
        for block in &self.content {
            if !text.is_empty() {
                text.push('\n');
            }
            match block {
                Block::Text { text: words } => text.push_str(words),
                Block::Image(image) => text.push_str(&image.to_string()),
                Block::Attachment(attachment) => text.push_str(&attachment.to_string()),
                Block::Resource { uri, text: words, .. } => {
                    text.push_str(&format!("[resource {uri}]"));
                    if let Some(words) = words {
                        text.push('\n');
                        text.push_str(words);
                    }
                }
            }
        }
        text
    }
}
