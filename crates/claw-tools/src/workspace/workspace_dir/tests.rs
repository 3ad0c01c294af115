use claw_core::tool::ErrorKind;
use serde_json::Value;

use super::*;
use crate::fixture::{Fixture, failure, schema, text};

async fn run(args: Value, team: Option<&str>) -> Result<Output, ToolError> {
    let mut fixture = Fixture::new();
    fixture.caller.team_workspace = team.map(Into::into);
    fixture.run::<WorkspaceDir>(args).await
}

#[tokio::test]
async fn the_users_unless_told_otherwise() {
    let team = Some("/srv/teams/red");
    assert_eq!(text(run(json!({}), team).await), "/home/ana/project");
    assert_eq!(text(run(json!({ "context": "user" }), team).await), "/home/ana/project");
    assert_eq!(text(run(json!({ "context": "team" }), team).await), "/srv/teams/red");
}

#[tokio::test]
async fn the_name_that_commands_know_the_workspace_by() {
    let mut fixture = Fixture::new();
    fixture.caller.shown_workspace = Some("/workspace".into());
    assert_eq!(text(fixture.run::<WorkspaceDir>(json!({})).await), "/workspace");
}

#[tokio::test]
async fn says_it_as_data() {
    let details = run(json!({}), None).await.unwrap().details;
    assert_eq!(details, Some(json!({ "context": "user", "path": "/home/ana/project" })));
}

#[tokio::test]
async fn an_agent_without_a_team_is_told_so() {
    let result = run(json!({ "context": "team" }), None).await;
    insta::assert_snapshot!(failure(result, ErrorKind::NotFound), @"agent `main` is in no team; use the workspace of context `user`");
}

#[test]
fn spec() {
    insta::assert_snapshot!(schema::<WorkspaceDir>(), @r#"
    {
      "additionalProperties": false,
      "properties": {
        "context": {
          "default": "user",
          "description": "Workspace owner.",
          "enum": [
            "user",
            "team"
          ],
          "type": "string"
        }
      },
      "type": "object"
    }
    "#);
}
