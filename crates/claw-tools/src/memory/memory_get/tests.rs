use std::sync::Arc;

use claw_core::tool::ErrorKind;
use insta::assert_snapshot;
use serde_json::json;

use super::MemoryGet;
use crate::fixture::{Fixture, Remembering, failure, text};

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.ports.memory = Some(Arc::new(Remembering::default()));
    fixture
}

#[tokio::test]
async fn reads_all_or_some_lines() {
    let whole = text(fixture().run::<MemoryGet>(json!({ "path": "memory/garden.md" })).await);
    assert_snapshot!(whole, @r"
    memory/garden.md (user's), lines 1 to 3 of 3
    # Garden
    a heron came on Monday
    and left
    ");
    let some =
        text(fixture().run::<MemoryGet>(json!({ "path": "memory/garden.md", "from": 2, "lines": 1 })).await);
    assert_snapshot!(some, @r"
    memory/garden.md (user's), lines 2 to 2 of 3; next: from = 3
    a heron came on Monday
    ");
}

#[tokio::test]
async fn says_what_there_is_where_a_path_is_wrong() {
    let said =
        failure(fixture().run::<MemoryGet>(json!({ "path": "memory/gone.md" })).await, ErrorKind::NotFound);
    assert!(said.contains("there is no memory document `memory/gone.md`"), "{said}");
    assert!(said.contains("there are `MEMORY.md`, `memory/garden.md`"), "{said}");
    let past = json!({ "path": "memory/garden.md", "from": 9 });
    let said = failure(fixture().run::<MemoryGet>(past).await, ErrorKind::Invalid);
    assert!(said.contains("has 3 lines"), "{said}");
}
