use std::sync::Arc;

use claw_core::graph::{EntityFacts, GraphSource};
use claw_core::port::{GraphHost as _, GraphQuery, GraphStart, UnixMillis};
use claw_core::store::{FactsFrom, GraphOwner, GraphStore as _, NewEntity, NewFacts};
use claw_core::{NodeId, TenantId};
use claw_store::SqliteStore;

use super::StoredGraph;
use crate::recall::StoredMemory;
use crate::recall::tests::{Meaning, put, reader};

/// Two documents, each with an entity whose words are not those of its text.
async fn filled() -> Arc<SqliteStore> {
    let store = SqliteStore::memory(NodeId::local()).await.unwrap();
    let ann = reader(Some("ann"));
    let owner = GraphOwner { tenant: TenantId::main(), agent: Some(ann.agent), user: ann.user };
    for (path, text, name) in [
        ("memory/garden.md", "a stork visits the garden", "Adebar"),
        ("memory/money.md", "the invoice is due in March", "Acme"),
    ] {
        put(&store, (Some("main"), Some("ann")), path, text).await;
        let source = Some(GraphSource::new(path.to_owned(), 1, 1));
        let entity = NewEntity { said: EntityFacts::new(name, "thing"), source };
        let facts = NewFacts { entities: vec![entity], relations: Vec::new() };
        store.keep_facts(&FactsFrom::Person(owner.clone()), facts, UnixMillis(1)).await.unwrap();
    }
    Arc::new(store)
}

async fn found(graph: &StoredGraph, text: &str) -> (Vec<(String, usize)>, Option<String>) {
    let start = GraphStart::Words(text.to_owned());
    let query = GraphQuery { start, kind: None, depth: 0, as_of: None, limit: 10 };
    let found = graph.search(&reader(Some("ann")), &query).await.unwrap();
    let told = found.found.into_iter().map(|found| (found.entity.said.name, found.words.len()));
    (told.collect(), found.note)
}

#[tokio::test]
async fn entities_of_similar_passages_are_found_and_fused_with_those_of_words() {
    let store = filled().await;
    let model = Arc::new(Meaning::default());
    let memory = StoredMemory::new(Arc::clone(&store) as _, Some(model));
    memory.indexer().run().await.unwrap();
    let graph = StoredGraph::new(Arc::clone(&store) as _, memory);
    let told = |name: &str, words: usize| (name.to_owned(), words);
    let (birds, note) = found(&graph, "which birds come by").await;
    assert_eq!((birds.first(), note), (Some(&told("Adebar", 0)), None), "{birds:?}");
    let (both, _) = found(&graph, "Acme and its birds").await;
    assert_eq!(both, [told("Acme", 1), told("Adebar", 0)], "the one that both lists have comes first");

    let words = StoredGraph::new(Arc::clone(&store) as _, StoredMemory::new(store, None));
    let (birds, note) = found(&words, "which birds come by").await;
    assert_eq!(birds, []);
    assert!(note.unwrap().contains("words alone"));
}
