//! The suite of [`Memories`]: vectors are computed once, belong to one version and one model, and are
//! compared only for their owner.

use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{UnixMillis, unit_vector};
use claw_core::store::{DocumentKey, EmbeddingDone, Memories, MemoryState, PassageHash, Shelf, SimilarQuery};
use claw_core::{AgentId, TenantId, UserId};

use crate::fixture::{NOW, tenant};

const LEASE: Duration = Duration::from_secs(60);
const MODEL: &str = "test:bird/3";

/// Runs the suite; `make` creates an empty store. Run it on a runtime with several threads.
pub async fn memories<S: Memories + 'static>(make: impl AsyncFn() -> S) {
    a_document_is_work_until_it_has_vectors(make().await).await;
    a_lease_keeps_others_away(make().await).await;
    vectors_are_known_by_their_hash(make().await).await;
    refuses_vectors_of_another_length_under_one_model(make().await).await;
    a_changed_document_loses_its_vectors(make().await).await;
    a_changed_model_is_work_again(make().await).await;
    finds_the_nearest_for_the_asker_alone(make().await).await;
    finds_the_nearest_of_many(make().await).await;
    changed_documents_that_wait_do_not_hide_others(make().await).await;
    failures_wait_and_are_told(make().await).await;
    many_indexers_store_each_vector_once(make().await).await;
}

/// Returns a vector with the direction of a text's words: heron, stork, and all else.
fn vector(text: &str) -> Vec<f32> {
    let count = |word: &str| text.matches(word).count() as f32;
    unit_vector(&[count("heron"), count("stork"), 0.1]).unwrap()
}

/// Embeds as an indexer does; returns the paths.
async fn embed(store: &impl Memories, model: &str, now: UnixMillis) -> Vec<String> {
    let mut paths = Vec::new();
    for work in store.claim_unembedded(model, now, LEASE, 100).await.unwrap() {
        let vectors: Vec<(PassageHash, Vec<f32>)> =
            work.passages.iter().map(|passage| (passage.hash, vector(&passage.text))).collect();
        store.put_embeddings(&work.key.tenant, model, &vectors, now).await.unwrap();
        assert_eq!(
            store.embed_document(&work.key, work.version, model).await.unwrap(),
            EmbeddingDone::Stored
        );
        paths.push(work.key.path);
    }
    paths.sort();
    paths
}

async fn put(store: &impl Memories, key: &DocumentKey, text: &str) {
    let seen = store.document(key).await.unwrap().map(|document| document.version);
    store.put_document(key, text, seen, NOW).await.unwrap();
}

async fn near(store: &impl Memories, asked: SimilarQuery) -> Vec<(String, f32)> {
    let found = store.similar_passages(&asked).await.unwrap();
    found.into_iter().map(|similar| (similar.found.passage.text, similar.similarity)).collect()
}

async fn state(store: &impl Memories) -> MemoryState {
    store.memory_state(&TenantId::main(), Some(MODEL)).await.unwrap()
}

async fn a_document_is_work_until_it_has_vectors(store: impl Memories) {
    assert_eq!(store.claim_unembedded(MODEL, NOW, LEASE, 10).await.unwrap(), []);
    put(&store, &key("memory/a.md"), "# Birds\n\na heron").await;
    put(&store, &key("memory/empty.md"), "").await;
    let context = DocumentKey { shelf: Shelf::Context, ..key("SOUL.md") };
    put(&store, &context, "a heron").await;
    let before = state(&store).await;
    assert_eq!((before.documents, before.passages, before.unembedded, before.vectors), (2, 1, 2, 0));
    assert_eq!(near(&store, question("heron")).await, []);

    let work = store.claim_unembedded(MODEL, NOW, LEASE, 10).await.unwrap();
    let mut work: Vec<_> = work.iter().map(|work| (work.key.path.as_str(), work)).collect();
    work.sort_by_key(|(path, _)| *path);
    let (_, birds) = work[0];
    assert_eq!((birds.version, birds.tries, birds.passages.len()), (1, 0, 1));
    assert_eq!(
        birds.passages[0].text, "Birds\n# Birds\n\na heron",
        "headings are part of what a vector says"
    );
    assert_eq!(work[1].1.passages, []);
    let missing = store.embed_document(&birds.key, 1, MODEL).await.unwrap();
    assert_eq!(missing, EmbeddingDone::Missing, "no vector is known");
    for (_, work) in &work {
        let vectors: Vec<_> =
            work.passages.iter().map(|passage| (passage.hash, vector(&passage.text))).collect();
        store.put_embeddings(&work.key.tenant, MODEL, &vectors, NOW).await.unwrap();
        assert_eq!(store.embed_document(&work.key, 1, MODEL).await.unwrap(), EmbeddingDone::Stored);
    }
    let after = state(&store).await;
    assert_eq!((after.unembedded, after.vectors, after.cached), (0, 1, 1));
    assert_eq!(embed(&store, MODEL, later(1_000_000)).await, [""; 0]);
    let found = store.similar_passages(&question("heron")).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].found.version, found[0].found.passage.first_line), (1, 1));
    assert_eq!(found[0].found.passage.heading, "Birds");
    assert!((found[0].similarity - 1.0).abs() < 0.01, "{}", found[0].similarity);
}

async fn a_lease_keeps_others_away(store: impl Memories) {
    put(&store, &key("memory/a.md"), "a heron").await;
    assert_eq!(store.claim_unembedded(MODEL, NOW, LEASE, 10).await.unwrap().len(), 1);
    assert_eq!(store.claim_unembedded(MODEL, NOW, LEASE, 10).await.unwrap(), [], "somebody has it");
    let again = store.claim_unembedded(MODEL, later(60_000), LEASE, 10).await.unwrap();
    assert_eq!(again[0].tries, 1, "the indexer that had it is gone");
    put(&store, &key("memory/a.md"), "a stork").await;
    assert_eq!(embed(&store, MODEL, later(60_000)).await, ["memory/a.md"], "another version is work at once");
}

async fn vectors_are_known_by_their_hash(store: impl Memories) {
    let ours = TenantId::main();
    let hash = |n: u8| [n; 32];
    let (one, two) = (vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0]);
    store.put_embeddings(&ours, MODEL, &[(hash(1), one.clone()), (hash(2), two.clone())], NOW).await.unwrap();
    store.put_embeddings(&ours, MODEL, &[(hash(1), two.clone())], NOW).await.unwrap();
    store.put_embeddings(&ours, MODEL, &[], NOW).await.unwrap();
    let mut known = store.embeddings(&ours, MODEL, &[hash(1), hash(2), hash(3)]).await.unwrap();
    known.sort_by_key(|(hash, _)| *hash);
    assert_eq!(known, [(hash(1), one), (hash(2), two)], "what is known stays");
    assert_eq!(store.embeddings(&ours, "other", &[hash(1)]).await.unwrap(), []);
    assert_eq!(
        store.embeddings(&tenant("other"), MODEL, &[hash(1)]).await.unwrap(),
        [],
        "nor to another tenant"
    );
}

async fn refuses_vectors_of_another_length_under_one_model(store: impl Memories) {
    let ours = TenantId::main();
    let put = async |tenant: &TenantId, model: &str, vectors: &[(u8, usize)]| {
        let vectors: Vec<_> = vectors.iter().map(|(n, length)| ([*n; 32], vec![0.5; *length])).collect();
        store.put_embeddings(tenant, model, &vectors, NOW).await
    };
    put(&ours, MODEL, &[(1, 3)]).await.unwrap();
    for mixed in [&[(2, 4)][..], &[(2, 3), (3, 2)]] {
        let refused = put(&ours, MODEL, mixed).await.unwrap_err().to_string();
        assert!(refused.contains("its earlier vectors have 3"), "{refused}");
    }
    assert!(put(&ours, "other", &[(1, 4), (2, 3)]).await.is_err(), "among each other");
    assert_eq!(store.embeddings(&ours, MODEL, &[[2; 32], [3; 32]]).await.unwrap(), [], "none of them");
    put(&ours, "other", &[(1, 4)]).await.unwrap();
    put(&tenant("other"), MODEL, &[(1, 4)]).await.unwrap();
}

async fn a_changed_document_loses_its_vectors(store: impl Memories) {
    let at = key("memory/a.md");
    put(&store, &at, "a heron").await;
    embed(&store, MODEL, NOW).await;
    assert_eq!(near(&store, question("heron")).await.len(), 1);
    put(&store, &at, "a stork").await;
    assert_eq!(near(&store, question("heron")).await, [], "what stood there is not found");
    assert_eq!(store.embed_document(&at, 1, MODEL).await.unwrap(), EmbeddingDone::Stale);
    embed(&store, MODEL, NOW).await;
    assert_eq!(near(&store, question("stork")).await[0].0, "a stork");
    store.remove_document(&at, 2, NOW).await.unwrap();
    assert_eq!(near(&store, question("stork")).await, []);
    assert_eq!(state(&store).await.vectors, 0);
    assert_eq!(store.embed_document(&at, 2, MODEL).await.unwrap(), EmbeddingDone::Stale);
}

async fn a_changed_model_is_work_again(store: impl Memories) {
    put(&store, &key("memory/a.md"), "a heron").await;
    embed(&store, MODEL, NOW).await;
    let other = "test:other/3";
    let asked = SimilarQuery { model: other.to_owned(), ..question("heron") };
    assert_eq!(near(&store, asked.clone()).await, [], "vectors of two models are never compared");
    assert_eq!(embed(&store, other, NOW).await, ["memory/a.md"]);
    assert_eq!(near(&store, asked).await.len(), 1);
    assert_eq!(near(&store, question("heron")).await, []);
    assert_eq!(embed(&store, other, NOW).await, [""; 0]);
}

async fn finds_the_nearest_for_the_asker_alone(store: impl Memories) {
    let of = |name: &str| DocumentKey { user: Some(user(name)), ..key("MEMORY.md") };
    let keys = [
        (key("MEMORY.md"), "own"),
        (of("ann"), "ann"),
        (of("ben"), "ben"),
        (DocumentKey { agent: Some(agent("other")), ..key("MEMORY.md") }, "foreign"),
        (DocumentKey { agent: None, ..key("MEMORY.md") }, "shared"),
        (DocumentKey { tenant: tenant("other"), ..key("MEMORY.md") }, "stranger"),
    ];
    for (key, name) in &keys {
        put(&store, key, &format!("heron of {name}")).await;
    }
    embed(&store, MODEL, NOW).await;
    let seen = async |asked: SimilarQuery| -> Vec<String> {
        let mut seen: Vec<String> =
            near(&store, asked).await.into_iter().map(|(text, _)| text.replace("heron of ", "")).collect();
        seen.sort();
        seen
    };
    let asked = question("heron");
    assert_eq!(seen(asked.clone()).await, ["ann", "own", "shared"]);
    assert_eq!(
        seen(SimilarQuery { user: Some(user("ben")), ..asked.clone() }).await,
        ["ben", "own", "shared"]
    );
    assert_eq!(seen(SimilarQuery { user: None, ..asked.clone() }).await, ["own", "shared"]);
    assert_eq!(seen(SimilarQuery { agent: agent("other"), ..asked.clone() }).await, ["foreign", "shared"]);
    assert_eq!(seen(SimilarQuery { tenant: tenant("other"), ..asked.clone() }).await, ["stranger"]);
    assert_eq!(seen(SimilarQuery { tenant: tenant("third"), ..asked.clone() }).await, [""; 0]);
    assert_eq!(seen(SimilarQuery { limit: 0, ..asked.clone() }).await, [""; 0]);
    assert_eq!(seen(SimilarQuery { vector: vec![1.0; 7], ..asked.clone() }).await.len(), 0, "another length");
    assert_eq!(seen(SimilarQuery { vector: Vec::new(), ..asked }).await.len(), 0);
}

async fn finds_the_nearest_of_many(store: impl Memories) {
    for n in 0..30 {
        let text = format!("{}{}note {n}", "heron ".repeat(n), "stork ".repeat(30 - n));
        put(&store, &key(&format!("memory/{n}.md")), &text).await;
    }
    embed(&store, MODEL, NOW).await;
    let found = near(&store, SimilarQuery { limit: 5, ..question("heron") }).await;
    let numbers: Vec<&str> = found.iter().filter_map(|(text, _)| text.rsplit(' ').next()).collect();
    assert_eq!(numbers, ["29", "28", "27", "26", "25"], "the nearest first");
    assert!(found.is_sorted_by(|one, next| one.1 >= next.1));
    // The next search sees removals and additions.
    for n in 10..30 {
        store.remove_document(&key(&format!("memory/{n}.md")), 1, NOW).await.unwrap();
    }
    put(&store, &key("memory/new.md"), "heron heron").await;
    embed(&store, MODEL, NOW).await;
    let found = near(&store, SimilarQuery { limit: 3, ..question("heron") }).await;
    assert_eq!(found.len(), 3);
    assert_eq!(found[0].0, "heron heron");
}

async fn changed_documents_that_wait_do_not_hide_others(store: impl Memories) {
    // Both numbers of changed documents: most of all, and a few of them.
    for (changed, others) in [(60, 0..5), (30, 5..300)] {
        for n in 0..changed {
            put(&store, &key(&format!("memory/near-{n}.md")), &format!("heron, {others:?}, {n}")).await;
        }
        for n in others.clone() {
            put(&store, &key(&format!("memory/far-{n}.md")), &format!("stork {n}")).await;
        }
        while !embed(&store, MODEL, NOW).await.is_empty() {}
        let asked = || SimilarQuery { limit: 3, ..question("heron") };
        let found = near(&store, asked()).await;
        assert!(found.len() == 3 && found.iter().all(|(text, _)| text.starts_with("heron")), "{found:?}");
        for n in 0..changed {
            put(&store, &key(&format!("memory/near-{n}.md")), &format!("stork, {others:?}, {n}")).await;
        }
        let found = near(&store, asked()).await;
        assert!(found.len() == 3 && found.iter().all(|(text, _)| text.starts_with("stork")), "{found:?}");
    }
}

async fn failures_wait_and_are_told(store: impl Memories) {
    let at = key("memory/a.md");
    put(&store, &at, "a heron").await;
    let work = store.claim_unembedded(MODEL, NOW, LEASE, 10).await.unwrap();
    store.fail_embedding(&at, work[0].version, "status 429\0", later(90_000)).await.unwrap();
    store.fail_embedding(&at, 9, "of another version", later(1)).await.unwrap();
    assert_eq!(store.claim_unembedded(MODEL, later(89_999), LEASE, 10).await.unwrap(), []);
    let told = state(&store).await.failures;
    assert_eq!((told.len(), told[0].tries, told[0].next), (1, 1, later(90_000)));
    assert!(told[0].error.starts_with("status 429"), "{}", told[0].error);
    assert_eq!(store.memory_state(&tenant("other"), Some(MODEL)).await.unwrap(), MemoryState::default());
    assert_eq!(embed(&store, MODEL, later(90_000)).await, ["memory/a.md"]);
    assert_eq!(state(&store).await.failures, []);
}

async fn many_indexers_store_each_vector_once(store: impl Memories + 'static) {
    let store = Arc::new(store);
    for n in 0..20 {
        put(&*store, &key(&format!("memory/{n}.md")), &format!("a heron, number {n}")).await;
    }
    let indexers: Vec<_> = (0..4)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { embed(&*store, MODEL, NOW).await })
        })
        .collect();
    let mut all = Vec::new();
    for indexer in indexers {
        all.extend(indexer.await.unwrap());
    }
    assert_eq!(all.len(), 20, "nobody did what another did: {all:?}");
    assert_eq!(state(&*store).await.vectors, 20);
    assert_eq!(near(&*store, SimilarQuery { limit: 100, ..question("heron") }).await.len(), 20);
}

fn later(millis: i64) -> UnixMillis {
    UnixMillis(NOW.0 + millis)
}

fn agent(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

fn key(path: &str) -> DocumentKey {
    let (tenant, agent) = (TenantId::main(), Some(agent("main")));
    DocumentKey { tenant, agent, user: None, shelf: Shelf::Memory, path: path.to_owned() }
}

/// Ann's query.
fn question(text: &str) -> SimilarQuery {
    SimilarQuery {
        tenant: TenantId::main(),
        agent: agent("main"),
        user: Some(user("ann")),
        model: MODEL.to_owned(),
        vector: vector(text),
        limit: 10,
    }
}
