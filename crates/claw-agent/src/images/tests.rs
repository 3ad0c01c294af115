use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use claw_core::store::{Blob, BlobCard, Role};
use claw_store_memory::MemoryStore;

use super::*;

/// Counts reads of bytes.
#[derive(Default)]
struct Counting(MemoryStore, AtomicUsize);

#[async_trait]
impl Blobs for Counting {
    async fn put_blob(&self, tenant: &TenantId, blob: &NewBlob, at: UnixMillis) -> Result<(), StoreError> {
        self.0.put_blob(tenant, blob, at).await
    }
    async fn blob(&self, tenant: &TenantId, digest: &Digest) -> Result<Option<Blob>, StoreError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.blob(tenant, digest).await
    }
    async fn blob_card(&self, tenant: &TenantId, digest: &Digest) -> Result<Option<BlobCard>, StoreError> {
        self.0.blob_card(tenant, digest).await
    }
}

/// Returns an image of this many megabytes.
fn image(megabytes: usize, fill: u8) -> Part {
    let mut bytes = vec![fill; megabytes << 20];
    bytes[..10].copy_from_slice(b"\x89PNG\r\n\x1a\n\0\0");
    Part::Image(Image::new("image/png", bytes))
}

/// Stores images, and loads a history that names them, one per turn.
async fn loaded(images: Vec<Part>) -> (Vec<Result<usize, String>>, usize) {
    let (store, tenant) = (Counting::default(), TenantId::main());
    super::store(&store, &tenant, &images, UnixMillis(0)).await.unwrap();
    let unloaded = |part: Part| {
        let parts = serde_json::from_value(serde_json::json!([part])).unwrap();
        Turn { role: Role::User, parts }
    };
    let mut turns: Vec<Turn> = images.into_iter().map(unloaded).collect();
    load(&store, &tenant, &mut turns).await;
    let shown = turns.into_iter().flat_map(|turn| turn.parts).map(|part| match part {
        Part::Image(image) => Ok(image.data().map_or(0, |data| data.len() >> 20)),
        Part::Text { text } => Err(text),
        other => panic!("{other:?}"),
    });
    (shown.collect(), store.1.into_inner())
}

#[tokio::test]
async fn the_newest_images_are_sent_and_older_ones_told_of() {
    let (shown, _) = loaded(vec![image(5, 1), image(6, 2), image(6, 3)]).await;
    let [Err(text), Ok(6), Ok(6)] = &shown[..] else { panic!("{shown:?}") };
    assert!(text.contains("5242880 bytes, is left out"), "{text}");
}

#[tokio::test]
async fn an_image_that_is_named_twice_is_read_once() {
    let (shown, reads) = loaded(vec![image(1, 1), image(1, 1), image(1, 2)]).await;
    assert_eq!((shown, reads), (vec![Ok(1); 3], 2));
}
