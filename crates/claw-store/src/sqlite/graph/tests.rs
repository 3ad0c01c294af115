//! The plans that SQLite makes for the statements of the graph.

use claw_core::NodeId;
use sqlx::{AssertSqlSafe, query_as};

use super::{POSTINGS, SqliteStore, VALID};

/// Without the list as the first table, all entities of an owner would be read for a few.
#[tokio::test]
async fn statements_begin_with_the_list_that_they_get() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("claw.db"), NodeId::local()).await.unwrap();
    for (sql, looked_up) in [(VALID, "(owner=? AND id=?)"), (POSTINGS, "(owner=? AND word=?)")] {
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        let plan: Vec<(i64, i64, i64, String)> = query_as(explain).fetch_all(&store.readers).await.unwrap();
        let steps: Vec<&str> = plan.iter().map(|(.., step)| step.as_str()).collect();
        assert!(steps[0].starts_with("SCAN w "), "{steps:?}");
        assert!(steps[1].ends_with(looked_up), "{steps:?}");
    }
}
