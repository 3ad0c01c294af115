//! Images. A message or a result names an image by type, digest and size; the bytes travel beside it and are
//! never serialised with it.
//!
//! The bytes are stored in the blob store (`store::Blobs`) before the message that names them, and are loaded
//! again just before a model is asked.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::text;
use crate::tool::Digest;

/// The image types that models read.
pub const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// An image, named by the digest of its bytes.
#[derive(Clone, Serialize, Deserialize)]
pub struct Image {
    /// Its media type, such as `image/png`.
    pub mime: SmolStr,
    /// The digest of its bytes, by which the blob store finds them.
    pub digest: Digest,
    /// Its length in bytes.
    pub bytes: u64,
    /// The bytes, if they are loaded. They are never serialised.
    #[serde(skip)]
    data: Option<Arc<[u8]>>,
}

impl Image {
    /// Makes an image of these bytes, unchecked: call [`check_image`] before it is stored.
    pub fn new(mime: impl Into<SmolStr>, data: impl Into<Arc<[u8]>>) -> Self {
        let data = data.into();
        let (digest, bytes) = (Digest::of_bytes(&data), data.len() as u64);
        Self { mime: mime.into(), digest, bytes, data: Some(data) }
    }

    /// The bytes; `None` if they are not loaded.
    pub fn data(&self) -> Option<&Arc<[u8]>> {
        self.data.as_ref()
    }

    /// Attaches the bytes. Returns `false` and attaches nothing if they do not have the digest.
    pub fn load(&mut self, data: Arc<[u8]>) -> bool {
        let is_named = Digest::of_bytes(&data) == self.digest;
        if is_named {
            self.data = Some(data);
        }
        is_named
    }

    /// Drops the bytes; type, digest and size stay.
    pub fn unload(&mut self) {
        self.data = None;
    }

    /// Returns the line that replaces the image if its bytes are not stored.
    pub fn missing(&self) -> String {
        let Self { mime, digest, bytes, .. } = self;
        format!("[image {mime}, {bytes} bytes, is missing: nothing is stored under {digest}]")
    }
}

/// The one line that represents an image in a text.
impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[image {}, {} bytes]", self.mime, self.bytes)
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mime, digest, bytes, data } = self;
        let at_hand = data.is_some();
        write!(f, "Image {{ mime: {mime:?}, digest: {digest}, bytes: {bytes}, at_hand: {at_hand} }}")
    }
}

/// Compares digests instead of bytes.
impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        (&self.mime, self.digest, self.bytes) == (&other.mime, other.digest, other.bytes)
    }
}

impl Eq for Image {}

/// The bytes do not have the claimed media type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("claimed to be `{claimed}`, but its bytes are `{found}`")]
pub struct WrongType {
    /// The claimed media type.
    pub claimed: SmolStr,
    /// The type of the bytes by their content; `text/plain` for everything that decodes as text.
    pub found: &'static str,
}

/// Rejects bytes that are claimed to be an image and are not; any other claimed type passes.
pub fn check_type(mime: &str, bytes: &[u8]) -> Result<(), WrongType> {
    let is_claimed = mime.get(..6).is_some_and(|class| class.eq_ignore_ascii_case("image/"));
    if is_claimed { check_image(mime, bytes) } else { Ok(()) }
}

/// Rejects bytes that are not an image of this type, and types that models do not read. Text is never an
/// image, whatever its first bytes look like: otherwise it could pass where text is scrubbed and images are
/// not.
pub fn check_image(mime: &str, bytes: &[u8]) -> Result<(), WrongType> {
    let found = type_of(bytes);
    let is_read = IMAGE_TYPES.contains(&found);
    if is_read && found == mime { Ok(()) } else { Err(WrongType { claimed: mime.into(), found }) }
}

/// Returns the media type of the content: `text/plain` for text, `application/octet-stream` if unknown.
pub fn type_of(bytes: &[u8]) -> &'static str {
    match text::decode(bytes) {
        Ok(_) => "text/plain",
        Err(found) => found,
    }
}

#[cfg(test)]
mod tests;
