//! Images of messages: stored before a message names them, loaded just before a model is asked.
//!
//! Messages hold names alone. An image without stored bytes becomes a line of text in the request, so that a
//! lost blob never stops a session.

use std::collections::HashMap;
use std::sync::Arc;

use claw_core::TenantId;
use claw_core::image::{self, Image};
use claw_core::message::{Part, Turn};
use claw_core::port::UnixMillis;
use claw_core::store::{Blobs, NewBlob, StoreError};
use claw_core::tool::{Block, Digest};

/// The most bytes of images in one request. Base64 adds a third, and no provider accepts more than 20 MB.
const SENT: usize = 14 << 20;

/// Stores the images of a message that is about to be stored. An image without bytes must already be stored
/// for this tenant.
pub(crate) async fn store(
    blobs: &(impl Blobs + ?Sized),
    tenant: &TenantId,
    parts: &[Part],
    at: UnixMillis,
) -> Result<(), StoreError> {
    for part in parts {
        let Part::Image(image) = part else { continue };
        let blob = match NewBlob::of_image(image) {
            Some(blob) => blob?,
            None => stored(blobs, tenant, image).await?,
        };
        image::check_image(&image.mime, blob.bytes()).map_err(|wrong| refused(image, &wrong.to_string()))?;
        blobs.put_blob(tenant, &blob, at).await?;
    }
    Ok(())
}

async fn stored(
    blobs: &(impl Blobs + ?Sized),
    tenant: &TenantId,
    image: &Image,
) -> Result<NewBlob, StoreError> {
    let found = blobs.blob(tenant, &image.digest).await?;
    let found = found.ok_or_else(|| refused(image, "no image with this digest is stored; send its bytes"))?;
    NewBlob::new(&image.mime, found.bytes)
}

fn refused(image: &Image, why: &str) -> StoreError {
    StoreError::Refused { what: "could not store the message", why: format!("image {}: {why}", image.digest) }
}

/// Loads the images that turns name, newest first. Missing ones, and those beyond [`SENT`], become text.
pub(crate) async fn load(blobs: &(impl Blobs + ?Sized), tenant: &TenantId, turns: &mut [Turn]) {
    let mut loader = Loader { blobs, tenant, found: HashMap::new(), left: SENT };
    for part in turns.iter_mut().rev().flat_map(|turn| turn.parts.iter_mut().rev()) {
        match part {
            Part::Image(image) => {
                if let Err(text) = loader.load(image).await {
                    *part = Part::text(text);
                }
            }
            Part::Result(told) => {
                for block in told.content.iter_mut().rev() {
                    if let Block::Image(image) = block
                        && let Err(text) = loader.load(image).await
                    {
                        *block = Block::Text { text };
                    }
                }
            }
            Part::Text { .. } | Part::Thinking { .. } | Part::Call(_) => {}
        }
    }
}

struct Loader<'a, B: ?Sized> {
    blobs: &'a B,
    tenant: &'a TenantId,
    /// The bytes that were read for this request.
    found: HashMap<Digest, Option<Arc<[u8]>>>,
    /// The bytes that the request still has room for.
    left: usize,
}

impl<B: Blobs + ?Sized> Loader<'_, B> {
    /// Attaches an image's bytes; the error is the text that replaces it.
    async fn load(&mut self, image: &mut Image) -> Result<(), String> {
        if usize::try_from(image.bytes).is_ok_and(|bytes| bytes > self.left) {
            return Err(self.left_out(image));
        }
        let data = match self.found.get(&image.digest) {
            Some(found) => found.clone(),
            None => {
                let found = self.read(image).await;
                self.found.insert(image.digest, found.clone());
                found
            }
        };
        let data = data.filter(|data| image::check_image(&image.mime, data).is_ok());
        let Some(data) = data else { return Err(image.missing()) };
        let Some(left) = self.left.checked_sub(data.len()) else { return Err(self.left_out(image)) };
        self.left = left;
        if image.load(data) { Ok(()) } else { Err(image.missing()) }
    }

    /// Reads the stored bytes. If the store fails, that is logged, and the image is missing for now.
    async fn read(&self, image: &Image) -> Option<Arc<[u8]>> {
        match self.blobs.blob(self.tenant, &image.digest).await {
            Ok(found) => found.map(|blob| blob.bytes),
            Err(error) => {
                tracing::warn!(%error, digest = %image.digest, "an image could not be read");
                None
            }
        }
    }

    fn left_out(&self, image: &Image) -> String {
        let Image { mime, bytes, .. } = image;
        format!("[image {mime}, {bytes} bytes, is left out: newer images fill the {SENT} bytes of a request]")
    }
}

#[cfg(test)]
mod tests;
