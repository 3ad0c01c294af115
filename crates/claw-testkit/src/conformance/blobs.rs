//! The suite of [`Blobs`]: bytes by digest, stored once, within limits, and separate for each tenant.

use std::sync::Arc;

use claw_core::TenantId;
use claw_core::port::UnixMillis;
use claw_core::store::{BlobCard, BlobLimits, Blobs, NewBlob, StoreError};
use claw_core::tool::Digest;

use crate::fixture::{NOW, PNG, tenant};

/// Small limits, so that they are reached.
const LIMITS: BlobLimits = BlobLimits { blob: 1000, tenant: 2500 };
/// The number of concurrent writers.
const RACERS: u8 = 16;

/// Runs the suite of a blob store; `make` creates an empty one with these limits.
pub async fn blobs<S: Blobs + 'static>(make: impl AsyncFn(BlobLimits) -> S) {
    gives_back_what_was_put(make(BlobLimits::default()).await).await;
    keeps_the_same_bytes_once(make(LIMITS).await).await;
    gives_nobody_the_blob_of_another_tenant(make(LIMITS).await).await;
    refuses_a_blob_that_is_too_large(make(LIMITS).await).await;
    refuses_a_type_that_lies();
    takes_the_same_bytes_from_many_at_once(Arc::new(make(LIMITS).await)).await;
}

/// Runs the suite of a store that refuses blobs beyond a tenant's limit.
pub async fn blob_room<S: Blobs + 'static>(make: impl AsyncFn(BlobLimits) -> S) {
    refuses_what_a_tenant_has_no_room_for(make(LIMITS).await).await;
    lets_no_more_in_than_there_is_room_for(Arc::new(make(LIMITS).await)).await;
}

fn main() -> TenantId {
    TenantId::main()
}

fn bytes(length: usize, fill: u8) -> NewBlob {
    NewBlob::new("application/octet-stream", vec![fill; length]).unwrap()
}

#[track_caller]
fn refusal(outcome: Result<impl Sized, StoreError>) -> String {
    match outcome {
        Err(StoreError::Refused { why, .. }) => why,
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("not refused"),
    }
}

async fn gives_back_what_was_put(store: impl Blobs) {
    let every_byte: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    for (mime, content) in [("image/png", PNG), ("text/plain", b""), ("x/y", &every_byte)] {
        let blob = NewBlob::new(mime, content).unwrap();
        let digest = Digest::of_bytes(content);
        assert_eq!(blob.digest(), digest);
        assert_eq!(store.blob(&main(), &digest).await.unwrap(), None);
        assert_eq!(store.blob_card(&main(), &digest).await.unwrap(), None);
        store.put_blob(&main(), &blob, NOW).await.unwrap();
        let found = store.blob(&main(), &digest).await.unwrap().unwrap();
        assert_eq!((found.mime.as_str(), &found.bytes[..]), (mime, content));
        let card = BlobCard { mime: mime.into(), bytes: content.len() as u64, at: NOW };
        assert_eq!(store.blob_card(&main(), &digest).await.unwrap(), Some(card));
    }
}

async fn keeps_the_same_bytes_once(store: impl Blobs) {
    let first = NewBlob::new("text/plain", vec![7; 1000]).unwrap();
    store.put_blob(&main(), &first, NOW).await.unwrap();
    // Were each put kept, the tenant would have no room for the fourth.
    for _ in 0..4 {
        let again = NewBlob::new("text/html", vec![7; 1000]).unwrap();
        store.put_blob(&main(), &again, UnixMillis(NOW.0 + 1)).await.unwrap();
    }
    let card = store.blob_card(&main(), &first.digest()).await.unwrap();
    assert_eq!(card, Some(BlobCard { mime: "text/plain".into(), bytes: 1000, at: NOW }));
}

async fn gives_nobody_the_blob_of_another_tenant(store: impl Blobs) {
    let (other, blob) = (tenant("other"), bytes(10, 1));
    store.put_blob(&main(), &blob, NOW).await.unwrap();
    assert_eq!(store.blob(&other, &blob.digest()).await.unwrap(), None);
    assert_eq!(store.blob_card(&other, &blob.digest()).await.unwrap(), None);
    store.put_blob(&other, &blob, UnixMillis(1)).await.unwrap();
    let card = store.blob_card(&other, &blob.digest()).await.unwrap().unwrap();
    assert_eq!(card.at, UnixMillis(1), "its own, and not the one that was there");
}

async fn refuses_a_blob_that_is_too_large(store: impl Blobs) {
    store.put_blob(&main(), &bytes(1000, 1), NOW).await.unwrap();
    let large = bytes(1001, 1);
    let why = refusal(store.put_blob(&main(), &large, NOW).await);
    assert!(why.contains("1001 bytes") && why.contains("may have 1000"), "{why}");
    assert_eq!(store.blob_card(&main(), &large.digest()).await.unwrap(), None);
}

fn refuses_a_type_that_lies() {
    for (mime, content) in [
        ("image/png", &b"password: hunter2"[..]),
        ("image/gif", b"GIF89a password: hunter2"),
        ("image/jpeg", PNG),
        ("image/svg+xml", b"<svg/>"),
    ] {
        let why = refusal(NewBlob::new(mime, content));
        assert!(why.contains(&format!("claimed to be `{mime}`")), "{why}");
    }
    let long = format!("a/{}", "b".repeat(99));
    for mime in ["", "png", "image/", "/png", "a/b\n", "a/b; c=d", "a/b]", "a/b:c", "a/b/c", &long] {
        refusal(NewBlob::new(mime, PNG));
    }
}

async fn takes_the_same_bytes_from_many_at_once(store: Arc<impl Blobs + 'static>) {
    let put = (0..RACERS).map(|_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.put_blob(&main(), &bytes(900, 3), NOW).await })
    });
    for put in put.collect::<Vec<_>>() {
        put.await.unwrap().unwrap();
    }
}

async fn refuses_what_a_tenant_has_no_room_for(store: impl Blobs) {
    for fill in [1, 2] {
        store.put_blob(&main(), &bytes(1000, fill), NOW).await.unwrap();
    }
    let why = refusal(store.put_blob(&main(), &bytes(501, 3), NOW).await);
    assert!(why.contains("have 2000 bytes") && why.contains("501") && why.contains("2500"), "{why}");
    store.put_blob(&main(), &bytes(500, 3), NOW).await.unwrap();
    store.put_blob(&main(), &bytes(1000, 1), NOW).await.unwrap();
    store.put_blob(&tenant("other"), &bytes(1000, 1), NOW).await.unwrap();
}

async fn lets_no_more_in_than_there_is_room_for(store: Arc<impl Blobs + 'static>) {
    let put = (0..RACERS).map(|fill| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.put_blob(&main(), &bytes(1000, fill), NOW).await.is_ok() })
    });
    let mut stored = 0;
    for put in put.collect::<Vec<_>>() {
        stored += u32::from(put.await.unwrap());
    }
    assert_eq!(stored, 2, "2500 bytes have room for two of 1000");
}
