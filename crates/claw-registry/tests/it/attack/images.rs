//! Images of a result: stored only for its tenant, before anything names them.

use claw_core::image::Image;
use claw_core::store::{BlobLimits, Blobs as _, Outcome};
use claw_registry::Reply;
use claw_store_memory::MemoryLimits;
use claw_testkit::fixture::{PNG, tenant};
use claw_testkit::{FailingStore, StoreMethod};

use super::*;

/// The images of a reply.
fn images(reply: &Reply) -> Vec<Image> {
    let output = reply.outcome.as_ref().unwrap();
    let images = output.content.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image.clone()),
        _ => None,
    });
    images.collect()
}

fn shoots(bytes: &'static [u8]) -> Arc<dyn AnyTool> {
    gives("shoot", move || Ok(Output::image("image/png", bytes))).0
}

#[tokio::test]
async fn an_image_is_stored_for_its_tenant_and_for_no_other() {
    let bench = Bench::new(Setup::default());
    bench.executor.registry().register(shoots(PNG)).unwrap();
    for _ in 0..2 {
        let reply = bench.call("shoot", json!({})).await;
        let [image] = &images(&reply)[..] else { panic!("{reply:?}") };
        let stored = bench.store.blob(&TenantId::main(), &image.digest).await.unwrap().unwrap();
        assert_eq!((stored.mime.as_str(), &stored.bytes[..]), ("image/png", PNG));
        assert_eq!(bench.store.blob(&tenant("other"), &image.digest).await.unwrap(), None);
        assert_eq!(image.data().unwrap()[..], *PNG, "who embeds the tools has the bytes at once");
    }
}

#[tokio::test]
async fn an_image_that_is_too_large_for_the_store_becomes_a_line_with_both_numbers() {
    let blobs = BlobLimits { blob: 50, tenant: 1000 };
    let store = Arc::new(MemoryStore::with_limits(MemoryLimits { blobs, ..MemoryLimits::default() }));
    let bench = Bench::new(Setup { store, ..Setup::default() });
    bench.executor.registry().register(shoots(PNG)).unwrap();
    let reply = bench.call("shoot", json!({})).await;
    let text = reply.model_text();
    assert!(reply.is_done() && images(&reply).is_empty(), "{text}");
    assert!(text.contains(&format!("it has {} bytes, and a blob may have 50", PNG.len())), "{text}");
}

#[tokio::test]
async fn a_store_that_fails_costs_the_image_and_not_the_call() {
    let store = Arc::new(FailingStore::new(MemoryStore::new()));
    let bench = Bench::new(Setup { calls: Some(store.clone()), ..Setup::default() });
    bench.executor.registry().register(shoots(PNG)).unwrap();
    store.fail(StoreMethod::PutBlob);
    let reply = bench.call("shoot", json!({})).await;
    assert!(images(&reply).is_empty(), "nothing names what is not stored");
    assert!(reply.model_text().contains("could not be stored: the store failed"), "{}", reply.model_text());
    let fate = store.fate(&TenantId::main(), reply.call).await.unwrap();
    assert_eq!(fate, Some(Outcome::Done));
}

#[tokio::test]
async fn text_in_the_dress_of_an_image_is_scrubbed_and_not_stored() {
    let bench = Bench::new(Setup::default());
    bench.executor.scrubbers().add(SECRET).unwrap();
    let (tool, _) =
        gives("shoot", || Ok(Output::image("image/gif", format!("GIF89a {SECRET}").into_bytes())));
    bench.executor.registry().register(tool).unwrap();
    let reply = bench.call("shoot", json!({})).await;
    assert!(images(&reply).is_empty());
    assert!(reply.model_text().contains("GIF89a [REDACTED]"), "{}", reply.model_text());
}
