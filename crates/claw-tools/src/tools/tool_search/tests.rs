use std::sync::Arc;

use claw_core::ToolName;
use claw_core::port::Catalogue;
use claw_core::tool::ErrorKind;
use serde_json::Value;

use super::*;
use crate::fixture::{Fixture, failure, schema, text};

/// Finds every tool whose name contains the query.
struct Shelf(usize);

impl Catalogue for Shelf {
    fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let hits = (0..self.0).map(|number| Hit {
            name: ToolName::new(format!("github_issue_{number}")).unwrap(),
            about: format!("Read issue {number}."),
            parameters: json!({ "type": "object", "properties": { "number": { "type": "integer" } } }),
        });
        hits.filter(|hit| hit.name.as_str().contains(query)).take(limit).collect()
    }

    fn deferred(&self) -> usize {
        self.0
    }
}

async fn run(args: Value) -> Result<Output, ToolError> {
    let mut fixture = Fixture::new();
    fixture.ports.catalogue = Some(Arc::new(Shelf(50)));
    fixture.run::<ToolSearch>(args).await
}

#[tokio::test]
async fn shows_how_to_call_what_it_found() {
    insta::assert_snapshot!(text(run(json!({ "query": "issue", "limit": 2 })).await), @r#"
    2 tools found; they can be called now:

    github_issue_0: Read issue 0.
    parameters: {"properties":{"number":{"type":"integer"}},"type":"object"}

    github_issue_1: Read issue 1.
    parameters: {"properties":{"number":{"type":"integer"}},"type":"object"}
    "#);
    insta::assert_snapshot!(text(run(json!({ "query": " issue_49 " })).await), @r#"
    1 tool found; it can be called now:

    github_issue_49: Read issue 49.
    parameters: {"properties":{"number":{"type":"integer"}},"type":"object"}
    "#);
}

#[tokio::test]
async fn returns_five_unless_told_and_twenty_at_most() {
    for (args, expected) in [
        (json!({ "query": "issue" }), 5),
        (json!({ "query": "issue", "limit": 0 }), 1),
        (json!({ "query": "issue", "limit": 7 }), 7),
        (json!({ "query": "issue", "limit": 1000 }), 20),
    ] {
        let details = run(args).await.unwrap().details.unwrap();
        assert_eq!(details["tools"].as_array().unwrap().len(), expected);
    }
}

#[tokio::test]
async fn says_what_to_try_where_nothing_matches() {
    insta::assert_snapshot!(text(run(json!({ "query": "weather" })).await), @"none of 50 searchable tools matches `weather`; try other words for what it should do");
}

#[tokio::test]
async fn refuses_an_empty_query() {
    let result = run(json!({ "query": " " })).await;
    insta::assert_snapshot!(failure(result, ErrorKind::Invalid), @"`query` is empty; say what the tool should do");
}

#[test]
fn spec() {
    insta::assert_snapshot!(schema::<ToolSearch>(), @r#"
    {
      "additionalProperties": false,
      "properties": {
        "limit": {
          "default": 5,
          "description": "The most tools to return.",
          "format": "uint",
          "maximum": 20,
          "minimum": 1,
          "type": "integer"
        },
        "query": {
          "description": "Task the tool should do, or its name.",
          "type": "string"
        }
      },
      "required": [
        "query"
      ],
      "type": "object"
    }
    "#);
}
