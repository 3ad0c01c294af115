//! Search by pgvector: an owner gets its own nearest however many others there are, and many passages are not read one by
//! one.

use std::time::Duration;

use claw_core::port::{UnixMillis, unit_vector};
use claw_core::store::{
    DocumentKey, Documents as _, EmbeddingDone, Memories as _, Passage, Shelf, SimilarQuery,
};
use claw_core::{AgentId, TenantId};
use claw_store::PostgresStore;

use crate::postgres::database::Database;

const NOW: UnixMillis = UnixMillis(1_000_000_000_000);
const MODEL: &str = "test:circle";
/// More than are compared one by one.
const MANY: u64 = 2_500;

fn agent(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

/// The vector of the passage `n` of `of`: a place on a quarter of a circle, with numbers that make it longer to compare.
fn vector(n: u64, of: u64) -> Vec<f32> {
    let angle = std::f32::consts::FRAC_PI_2 * n as f32 / of as f32;
    let mut vector = vec![0.01; 64];
    (vector[0], vector[1]) = (angle.cos(), angle.sin());
    unit_vector(&vector).unwrap()
}

/// Stores a document of an agent, with a passage and a vector for each of `places`.
async fn put(store: &PostgresStore, name: &str, places: impl IntoIterator<Item = u64>, of: u64) {
    let key = DocumentKey {
        tenant: TenantId::main(),
        agent: Some(agent(name)),
        user: None,
        shelf: Shelf::Memory,
        path: "memory/places.md".to_owned(),
    };
    store.put_document(&key, "", None, NOW).await.unwrap();
    let passage = |n| Passage {
        first_line: n + 1,
        last_line: n + 1,
        heading: String::new(),
        text: format!("{name} {n}"),
    };
    let passages = places.into_iter().map(passage).collect();
    assert!(store.index_document(&key, 1, passages).await.unwrap());
    let work = store.claim_unembedded(MODEL, NOW, Duration::from_secs(60), 1).await.unwrap();
    let place = |text: &str| text.split(' ').nth(1).unwrap().parse().unwrap();
    let vectors: Vec<_> =
        work[0].passages.iter().map(|passage| (passage.hash, vector(place(&passage.text), of))).collect();
    store.put_embeddings(&key.tenant, MODEL, &vectors, NOW).await.unwrap();
    assert_eq!(store.embed_document(&key, 1, MODEL).await.unwrap(), EmbeddingDone::Stored);
}

/// Returns the texts of the nearest five of an agent to the first place.
async fn near(store: &PostgresStore, name: &str) -> Vec<String> {
    let (tenant, model, vector) = (TenantId::main(), MODEL.to_owned(), vector(0, 1));
    let asked = SimilarQuery { tenant, agent: agent(name), user: None, model, vector, limit: 5 };
    let found = store.similar_passages(&asked).await.unwrap();
    found.into_iter().map(|similar| similar.found.passage.text).collect()
}

/// Returns a database in which a search of the index ends early, and whose plans take the index if they can, as they do
/// by themselves where there are more passages than a test stores.
async fn database() -> Database {
    let database = Database::create().await;
    drop(database.store("first").await);
    assert_eq!(
        database.count("SELECT count(*) FROM pg_extension WHERE extname = 'vector'").await,
        1,
        "these tests need a server with pgvector, as `scripts/with-postgres.sh` brings"
    );
    for setting in ["hnsw.max_scan_tuples = 200", "enable_sort = off"] {
        let alter = "EXECUTE format('ALTER DATABASE %I SET ', current_database())";
        database.run(&format!("DO $$ BEGIN {alter} || '{setting}'; END $$")).await;
    }
    database
}

/// The searches of the index so far. Connections tell theirs when they end, so there must be none.
async fn searches(database: &Database) -> i64 {
    database.wait_until_alone().await;
    let scans = "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes
                 WHERE indexrelname = 'passage_embeddings_64'";
    database.count(scans).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_with_few_passages_gets_its_nearest_among_many_of_others() {
    let database = database().await;
    let store = database.store("one").await;
    put(&store, "many", 0..MANY, 2 * MANY).await;
    // All others are nearer.
    put(&store, "few", (90..110).rev(), 110).await;
    database.run("ANALYZE passage_embeddings").await;
    assert_eq!(near(&store, "few").await, ["few 90", "few 91", "few 92", "few 93", "few 94"]);
    assert_eq!(near(&store, "many").await, ["many 0", "many 1", "many 2", "many 3", "many 4"]);
    assert_eq!(near(&store, "nobody").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_the_index_overlooks_gets_its_nearest() {
    let database = database().await;
    let store = database.store("one").await;
    put(&store, "nearer", 0..MANY, 2 * MANY).await;
    put(&store, "farther", MANY + 1..2 * MANY + 1, 2 * MANY).await;
    database.run("ANALYZE passage_embeddings").await;
    let nearest: Vec<String> = (MANY + 1..MANY + 6).map(|n| format!("farther {n}")).collect();
    assert_eq!(near(&store, "farther").await, nearest);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_passages_are_searched_by_the_index() {
    let database = database().await;
    let store = database.store("one").await;
    put(&store, "many", 0..MANY, MANY).await;
    put(&store, "few", 0..20, 20).await;
    database.run("ANALYZE passage_embeddings").await;
    drop(store);
    let before = searches(&database).await;
    for (name, more) in [("few", 0), ("many", 1)] {
        let store = database.store("two").await;
        assert_eq!(near(&store, name).await.len(), 5);
        drop(store);
        assert_eq!(searches(&database).await - before, more, "searches of the index after that of `{name}`");
    }
}
