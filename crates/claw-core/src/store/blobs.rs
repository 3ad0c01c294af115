//! Blobs: bytes by their digest, for images, results and attachments.
//!
//! Each tenant has its own blobs: the same bytes of two tenants are two blobs, and a digest finds nothing in
//! another tenant. Within a tenant the same bytes are stored once. Blobs never change, and are stored before
//! a message that names them.

use std::sync::Arc;

use async_trait::async_trait;
use smol_str::SmolStr;

use super::StoreError;
use crate::attachment::Attachment;
use crate::id::TenantId;
use crate::image::{self, Image, WrongType};
use crate::media_type::is_media_type;
use crate::port::UnixMillis;
use crate::tool::Digest;

const PUT: &str = "could not store the blob";

/// A blob before it is stored. Its type has been checked against its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBlob {
    mime: SmolStr,
    digest: Digest,
    bytes: Arc<[u8]>,
}

impl NewBlob {
    /// Checks the type and computes the digest. Bytes that are claimed to be an image and are not are
    /// rejected.
    pub fn new(mime: &str, bytes: impl Into<Arc<[u8]>>) -> Result<Self, StoreError> {
        let bytes = bytes.into();
        let digest = Digest::of_bytes(&bytes);
        Self::checked(mime, digest, bytes)
    }

    /// Returns the blob of an image; `None` if its bytes are not loaded.
    pub fn of_image(image: &Image) -> Option<Result<Self, StoreError>> {
        image.data().map(|bytes| Self::checked(&image.mime, image.digest, Arc::clone(bytes)))
    }

    /// The blob of an attachment; `None` where its bytes are not at hand.
    pub fn of_attachment(attachment: &Attachment) -> Option<Result<Self, StoreError>> {
        let Attachment { mime, digest, .. } = attachment;
        attachment.data().map(|bytes| Self::checked(mime, *digest, Arc::clone(bytes)))
    }

    fn checked(mime: &str, digest: Digest, bytes: Arc<[u8]>) -> Result<Self, StoreError> {
        if !is_media_type(mime) {
            return Err(refused("its type does not read; write one such as `image/png`".to_owned()));
        }
        image::check_type(mime, &bytes).map_err(wrong_type)?;
        Ok(Self { mime: mime.into(), digest, bytes })
    }

    /// The media type.
    pub fn mime(&self) -> &str {
        &self.mime
    }

    /// The digest of the bytes, which is the blob's name.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The bytes.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }
}

/// A stored blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// The media type that it was first put with.
    pub mime: SmolStr,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

/// A stored blob without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobCard {
    /// The media type that it was first put with.
    pub mime: SmolStr,
    /// Its length in bytes.
    pub bytes: u64,
    /// The time at which it was first put.
    pub at: UnixMillis,
}

/// The most bytes that blobs may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobLimits {
    /// One blob.
    pub blob: u64,
    /// All blobs of a tenant together.
    pub tenant: u64,
}

impl Default for BlobLimits {
    fn default() -> Self {
        Self { blob: 16 << 20, tenant: 1 << 30 }
    }
}

impl BlobLimits {
    /// Rejects a blob that is too large by itself.
    pub fn check_blob(&self, blob: &NewBlob) -> Result<(), StoreError> {
        let (bytes, most) = (blob.bytes.len() as u64, self.blob);
        if bytes <= most {
            return Ok(());
        }
        Err(refused(format!(
            "it has {bytes} bytes, and a blob may have {most}; make it smaller, or raise `store.blob_mib`"
        )))
    }

    /// Rejects a blob for which a tenant that holds `held` bytes has no room.
    pub fn check_room(&self, held: u64, blob: &NewBlob) -> Result<(), StoreError> {
        let (bytes, most) = (blob.bytes.len() as u64, self.tenant);
        if held.saturating_add(bytes) <= most {
            return Ok(());
        }
        Err(refused(format!(
            "the tenant's blobs have {held} bytes; with {bytes} more they would have more than {most}; raise \
             `store.tenant_blobs_mib`"
        )))
    }
}

/// Stores blobs, separately for each tenant.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores a blob within [`BlobLimits`]; [`StoreError::Refused`] beyond them. Bytes that the tenant
    /// already has change nothing and need no room.
    async fn put_blob(&self, tenant: &TenantId, blob: &NewBlob, at: UnixMillis) -> Result<(), StoreError>;
    /// Returns the tenant's blob of this digest. [`StoreError::Damaged`] if the bytes no longer match it.
    async fn blob(&self, tenant: &TenantId, digest: &Digest) -> Result<Option<Blob>, StoreError>;
    /// Returns the blob without its bytes.
    async fn blob_card(&self, tenant: &TenantId, digest: &Digest) -> Result<Option<BlobCard>, StoreError>;
}

fn wrong_type(wrong: WrongType) -> StoreError {
    refused(format!("{wrong}; put it as what it is"))
}

const fn refused(why: String) -> StoreError {
    StoreError::Refused { what: PUT, why }
}
