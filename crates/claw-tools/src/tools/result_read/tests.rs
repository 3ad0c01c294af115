use std::sync::Arc;

use async_trait::async_trait;
use claw_core::CallId;
use claw_core::port::Artifact;
use claw_core::tool::ErrorKind;
use serde_json::Value;

use super::*;
use crate::fixture::{Fixture, failure, schema, text};

const ID: &str = "01920000-0000-7000-8000-000000000001";

/// A single kept text.
struct Shelf(String);

#[async_trait]
impl Artifacts for Shelf {
    async fn list(&self) -> Result<Vec<Artifact>, ToolError> {
        let id = ID.parse().unwrap();
        let call: CallId = ID.parse().unwrap();
        Ok(vec![Artifact { id, call, bytes: self.0.len(), lines: self.0.lines().count() }])
    }

    async fn lines(&self, _: ArtifactId, first: usize, count: usize) -> Result<Part, ToolError> {
        let lines: Vec<&str> = self.0.lines().skip(first - 1).take(count).collect();
        Ok(Part { text: lines.join("\n"), first, count: lines.len(), total: self.0.lines().count() })
    }
}

async fn run(kept: &str, args: Value) -> Result<Output, ToolError> {
    let mut fixture = Fixture::new();
    fixture.ports.artifacts = Some(Arc::new(Shelf(kept.to_owned())));
    fixture.run::<ResultRead>(args).await
}

fn numbers(count: usize) -> String {
    (1..=count).map(|number| format!("row {number}\n")).collect()
}

#[tokio::test]
async fn lists_what_is_kept() {
    insta::assert_snapshot!(text(run(&numbers(3), json!({})).await), @"
    kept results, newest first:
    01920000-0000-7000-8000-000000000001: 3 lines, 18 bytes
    ");
}

#[tokio::test]
async fn reads_page_by_page_and_says_how_to_go_on() {
    let kept = numbers(450);
    for (first, header, last) in [
        (1, "lines 1 to 200 of 450; next: first = 201", "row 200"),
        (201, "lines 201 to 400 of 450; next: first = 401", "row 400"),
        (401, "lines 401 to 450 of 450; the end", "row 450"),
    ] {
        let text = text(run(&kept, json!({ "artifact": ID, "first": first })).await);
        assert_eq!(text.lines().next(), Some(header));
        assert_eq!(text.lines().last(), Some(last));
    }
    let page = run(&kept, json!({ "artifact": ID, "first": 3, "count": 2 })).await.unwrap();
    insta::assert_snapshot!(page.model_text(), @"
    lines 3 to 4 of 450; next: first = 5
    row 3
    row 4
    ");
    insta::assert_json_snapshot!(page.details, @r#"
    {
      "artifact": "01920000-0000-7000-8000-000000000001",
      "first": 3,
      "last": 4,
      "next": {
        "first": 5,
        "skip": 0
      },
      "total": 450
    }
    "#);
}

#[tokio::test]
async fn finds_lines_by_what_they_contain() {
    let kept = numbers(5_000);
    fn find(contains: &str, first: usize, count: usize) -> Value {
        json!({ "artifact": ID, "contains": contains, "first": first, "count": count })
    }
    insta::assert_snapshot!(text(run(&kept, find("499", 1, 4)).await), @"
    4 lines with `499` from line 1 of 5000 on; next: first = 4499
    499: row 499
    1499: row 1499
    2499: row 2499
    3499: row 3499
    ");
    insta::assert_snapshot!(text(run(&kept, find("499", 4993, 200)).await), @"
    7 lines with `499` from line 4993 of 5000 on; no more
    4993: row 4993
    4994: row 4994
    4995: row 4995
    4996: row 4996
    4997: row 4997
    4998: row 4998
    4999: row 4999
    ");
    insta::assert_snapshot!(text(run(&kept, find("column", 1, 200)).await), @"0 lines with `column` from line 1 of 5000 on; no more");
}

/// Follows `next` to the end and returns the parts put together.
async fn read_through(kept: &str) -> String {
    let mut whole = String::new();
    let mut next = json!({ "first": 1, "skip": 0 });
    while !next.is_null() {
        let args = json!({ "artifact": ID, "count": 1000, "first": next["first"], "skip": next["skip"] });
        let output = run(kept, args).await.unwrap();
        let text = output.model_text();
        assert!(text.len() < PAGE_BYTES + 200);
        whole.push_str(text.split_once('\n').unwrap().1);
        next = output.details.unwrap()["next"].take();
        if next["skip"] == 0 {
            whole.push('\n');
        }
    }
    whole
}

#[tokio::test]
async fn everything_can_be_reached_however_long_the_lines() {
    let long = "é".repeat(20_000);
    for kept in [numbers(5_000), long.clone(), format!("a\n{long}\n\nb\n{long}\nc"), "\n\n".to_owned()] {
        assert_eq!(read_through(&kept).await.trim_end(), kept.trim_end());
    }
}

#[tokio::test]
async fn shows_where_in_a_long_line_the_text_is() {
    let kept = format!("{}needle{}", "x".repeat(30_000), "y".repeat(30_000));
    let told = text(run(&kept, json!({ "artifact": ID, "contains": "needle" })).await);
    assert!(told.contains("1: [byte 29900 of 60006] xxx") && told.contains("xneedley"), "{told}");
    assert!(told.len() < 600);
}

#[tokio::test]
async fn errors_say_what_to_try() {
    let mut told = String::new();
    for args in [
        json!({ "artifact": "seven" }),
        json!({ "artifact": ID, "first": 4 }),
        json!({ "artifact": ID, "first": 4, "contains": "row" }),
    ] {
        told.push_str(&failure(run(&numbers(3), args).await, ErrorKind::Invalid));
        told.push('\n');
    }
    insta::assert_snapshot!(told, @"
    `seven` is not the id of a kept result; call `result_read` without `artifact` to list the kept results
    `01920000-0000-7000-8000-000000000001` has 3 lines, none from line 4 on; start at an earlier line
    `01920000-0000-7000-8000-000000000001` has 3 lines, none from line 4 on; start at an earlier line
    ");
}

#[test]
fn spec() {
    insta::assert_snapshot!(schema::<ResultRead>(), @r#"
    {
      "additionalProperties": false,
      "properties": {
        "artifact": {
          "description": "Id of the kept result. Leave out to list them.",
          "type": [
            "string",
            "null"
          ]
        },
        "contains": {
          "description": "Return only the lines that contain this text, numbered.",
          "type": [
            "string",
            "null"
          ]
        },
        "count": {
          "default": 200,
          "description": "The most lines to return.",
          "format": "uint",
          "maximum": 1000,
          "minimum": 1,
          "type": "integer"
        },
        "first": {
          "default": 1,
          "description": "First line to read.",
          "format": "uint",
          "minimum": 1,
          "type": "integer"
        },
        "skip": {
          "default": 0,
          "description": "Bytes to skip of the first line, if it is too long for one call.",
          "format": "uint",
          "minimum": 0,
          "type": "integer"
        }
      },
      "type": "object"
    }
    "#);
}
