//! What a call gives back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use crate::attachment::Attachment;
use crate::id::ArtifactId;
use crate::image::Image;

/// The result of a call that worked.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Output {
    /// What the model reads.
    pub content: Vec<Block>,
    /// What the user reads, where it differs from what the model reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_user: Option<String>,
    /// The user is shown nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// The work goes on; its end is told under this handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<SmolStr>,
    /// Files to deliver with the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// The result as data, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The work product itself, where the content only speaks of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliverable: Option<String>,
    /// The most bytes of text that the model is sent of this result, where the call asked for less than the
    /// deployment's limit. The whole is kept.
    #[serde(skip)]
    pub most_bytes: Option<usize>,
    /// What a model that the tool asked has used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// One piece of what the model reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// An image. A tool gives it with its bytes; the road stores them and passes the image on by its digest.
    Image(Image),
    /// Bytes that models do not read, such as audio. The road stores them and passes them on by their digest.
    Attachment(Attachment),
    /// Something that can be fetched.
    Resource {
        /// Where.
        uri: String,
        /// What it is, if known.
        mime: Option<SmolStr>,
        /// Its text, if it came along.
        text: Option<String>,
    },
}

/// A file to deliver with the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// The kept file.
    pub artifact: ArtifactId,
    /// Such as `audio/mpeg`.
    pub mime: SmolStr,
    /// Its name as the user sees it.
    pub name: String,
    /// A line beside it.
    pub caption: Option<String>,
}

/// What a model has used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Who ran the model.
    pub provider: SmolStr,
    /// Which model.
    pub model: SmolStr,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Millionths of a US dollar.
    pub cost_micros: u64,
}

impl Output {
    /// Words for the model.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::Text { text: text.into() }], ..Self::default() }
    }

    /// Data: pretty-printed for the model, kept as details for programs.
    pub fn json(value: impl Serialize) -> Result<Self, super::ToolError> {
        let value = serde_json::to_value(value).map_err(super::ToolError::internal)?;
        let text = serde_json::to_string_pretty(&value).map_err(super::ToolError::internal)?;
        Ok(Self { details: Some(value), ..Self::text(text) })
    }

    /// An image of these bytes.
    pub fn image(mime: impl Into<SmolStr>, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { content: vec![Block::Image(Image::new(mime, bytes))], ..Self::default() }
    }

    /// Work that goes on in the background under a handle.
    pub fn pending(handle: impl Into<SmolStr>, text: impl Into<String>) -> Self {
        Self { pending: Some(handle.into()), ..Self::text(text) }
    }

    /// Shows the user something else than the model.
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

    /// Sends the model at most so many bytes of text; the whole is kept.
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

    /// All the words for the model, a line between blocks; an image as one line with its type and size, a
    /// resource as a mark and its text.
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
