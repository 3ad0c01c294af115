//! Attachments: bytes of a result that models do not read, such as audio. A result names them by type, digest and size; the
//! bytes are kept in the blob store.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::media_type;
use crate::tool::Digest;

/// Bytes that are kept and not shown to a model.
#[derive(Clone, Serialize, Deserialize)]
pub struct Attachment {
    /// The media type, such as `audio/wav`.
    pub mime: SmolStr,
    /// The digest of the bytes, by which the blob store finds them.
    pub digest: Digest,
    /// The length in bytes.
    pub bytes: u64,
    /// The address of the resource whose contents they are; `None` where they came by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The bytes, where they are at hand. They are never serialised.
    #[serde(skip)]
    data: Option<Arc<[u8]>>,
}

impl Attachment {
    /// An attachment of these bytes. A type that is none becomes [`media_type::UNKNOWN`].
    pub fn new(mime: impl AsRef<str>, uri: Option<String>, data: impl Into<Arc<[u8]>>) -> Self {
        let data = data.into();
        let (digest, bytes) = (Digest::of_bytes(&data), data.len() as u64);
        Self { mime: media_type::of(mime.as_ref()), digest, bytes, uri, data: Some(data) }
    }

    /// The bytes; `None` where only the name is at hand.
    pub fn data(&self) -> Option<&Arc<[u8]>> {
        self.data.as_ref()
    }

    /// Drops the bytes and keeps the name.
    pub fn unload(&mut self) {
        self.data = None;
    }

    /// The attachment is audio.
    pub fn is_audio(&self) -> bool {
        self.mime.starts_with("audio/")
    }
}

/// The one line that stands for an attachment in a text.
impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_audio() { "audio" } else { "file" };
        // Earlier builds stored what a server wrote.
        write!(f, "[{kind} {}, {} bytes", media_type::of(&self.mime), self.bytes)?;
        match &self.uri {
            Some(uri) => write!(f, ", of {uri}]"),
            None => f.write_str("]"),
        }
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mime, digest, bytes, uri, data } = self;
        let at_hand = data.is_some();
        write!(
            f,
            "Attachment {{ mime: {mime:?}, digest: {digest}, bytes: {bytes}, uri: {uri:?}, at_hand: {at_hand} }}"
        )
    }
}

/// The digest stands for the bytes.
impl PartialEq for Attachment {
    fn eq(&self, other: &Self) -> bool {
        (&self.mime, self.digest, self.bytes, &self.uri)
            == (&other.mime, other.digest, other.bytes, &other.uri)
    }
}

impl Eq for Attachment {}
