use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::Sessions;
use claw_core::store::Tally;
use claw_core::tool::ErrorKind;

use super::*;
use crate::fixture::{Fixture, failure, schema, text};

struct Session;

#[async_trait]
impl Sessions for Session {
    async fn status(&self) -> Result<Figures, ToolError> {
        Ok(Figures {
            calls: Tally { done: 12, failed: 1, refused: 2, open: 1 },
            tools_offered: 24,
            tools_deferred: 310,
            approvals_pending: 1,
        })
    }
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.ports.sessions = Some(Arc::new(Session));
    fixture
}

#[tokio::test]
async fn tells_all_that_is_known() {
    let mut fixture = fixture();
    fixture.caller.provider = Some("anthropic".into());
    fixture.caller.channel = "telegram".into();
    fixture.caller.chat_id = Some("-100123".into());
    fixture.caller.peer_kind = PeerKind::Group;
    let output = fixture.run::<SessionStatus>(json!({})).await.unwrap();
    insta::assert_snapshot!(output.model_text(), @"
    session: cli:ana
    agent: main, for ana
    channel: telegram, chat -100123, a group
    provider: anthropic
    workspace: /home/ana/project
    time: 2026-11-15T08:30:00Z
    calls: 12 done, 1 failed, 2 refused, 1 open
    tools: 24 offered, 310 more to be searched
    approvals: 1 pending
    ");
    insta::assert_json_snapshot!(output.details, @r#"
    {
      "agent": "main",
      "channel": "telegram",
      "chat_id": "-100123",
      "peer_kind": "group",
      "provider": "anthropic",
      "session": "cli:ana",
      "status": {
        "approvals_pending": 1,
        "calls": {
          "done": 12,
          "failed": 1,
          "open": 1,
          "refused": 2
        },
        "tools_deferred": 310,
        "tools_offered": 24
      },
      "time": "2026-11-15T08:30:00Z",
      "user": "ana",
      "workspace": "/home/ana/project"
    }
    "#);
}

#[tokio::test]
async fn says_what_is_not_known() {
    let mut fixture = fixture();
    fixture.caller.user = None;
    insta::assert_snapshot!(text(fixture.run::<SessionStatus>(json!({})).await), @"
    session: cli:ana
    agent: main, for nobody in particular
    channel: cli, one person
    provider: not known
    workspace: /home/ana/project
    time: 2026-11-15T08:30:00Z
    calls: 12 done, 1 failed, 2 refused, 1 open
    tools: 24 offered, 310 more to be searched
    approvals: 1 pending
    ");
}

#[tokio::test]
async fn fails_without_figures() {
    let result = Fixture::new().run::<SessionStatus>(json!({})).await;
    assert_eq!(failure(result, ErrorKind::Unavailable), "this call has no `sessions` port");
}

#[test]
fn spec() {
    insta::assert_snapshot!(schema::<SessionStatus>(), @r#"
    {
      "additionalProperties": false,
      "properties": {},
      "type": "object"
    }
    "#);
}
