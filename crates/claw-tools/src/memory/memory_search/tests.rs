use std::sync::Arc;

use claw_core::tool::ErrorKind;
use insta::assert_snapshot;
use serde_json::json;

use super::MemorySearch;
use crate::fixture::{Fixture, Remembering, failure, schema, text};

fn fixture() -> (Fixture, Arc<Remembering>) {
    let (mut fixture, memory) = (Fixture::new(), Arc::new(Remembering::default()));
    fixture.ports.memory = Some(Arc::clone(&memory) as _);
    (fixture, memory)
}

#[tokio::test]
async fn a_hit_says_where_what_and_why() {
    let (fixture, memory) = fixture();
    let said = text(fixture.run::<MemorySearch>(json!({ "query": " heron? " })).await);
    assert_snapshot!(said, @r#"
    1. memory/garden.md:2-2 under "Garden" (score 0.92; user's; words: heron; similarity 0.50)
    a heron came on Monday

    (searched by words alone: no embedding model is configured)
    "#);
    let queries = memory.queries.lock().unwrap();
    assert_eq!((queries[0].text.as_str(), queries[0].limit), ("heron?", 6));
}

#[tokio::test]
async fn text_beside_a_hit_is_told_as_such() {
    let (fixture, _) = fixture();
    let said = text(fixture.run::<MemorySearch>(json!({ "query": "heron left" })).await);
    assert_snapshot!(said, @r#"
    1. memory/garden.md:2-2 under "Garden" (score 0.92; user's; words: heron; similarity 0.50)
    a heron came on Monday

    2. memory/garden.md:3-3 under "Garden" (user's; beside a hit)
    and left

    (searched by words alone: no embedding model is configured)
    "#);
}

#[tokio::test]
async fn nothing_found_says_so_and_how_it_was_searched() {
    let (fixture, _) = fixture();
    let said = text(fixture.run::<MemorySearch>(json!({ "query": "stork", "max_results": 50 })).await);
    assert!(
        said.starts_with("nothing in memory matches; try other words\n\n(searched by words alone"),
        "{said}"
    );
}

#[tokio::test]
async fn questions_without_words_or_without_end_are_refused() {
    let (empty, _) = fixture();
    let said = failure(empty.run::<MemorySearch>(json!({ "query": " \n" })).await, ErrorKind::Invalid);
    assert!(said.contains("`query` is empty"), "{said}");
    let (long, memory) = fixture();
    let query = "heron ".repeat(10_000);
    let said = failure(long.run::<MemorySearch>(json!({ "query": query })).await, ErrorKind::Invalid);
    assert!(said.contains("60000 bytes") || said.contains("59999 bytes"), "{said}");
    assert_eq!(memory.queries.lock().unwrap().len(), 0);
}

#[test]
fn schema_is_small() {
    assert!(schema::<MemorySearch>().contains("\"query\""));
}
