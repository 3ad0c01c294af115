use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::Sessions;
use claw_core::store::{Tally, Tokens};
use claw_core::tool::{CallingModel, ErrorKind};

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
            talk: None,
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
    model: one of anthropic
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
      "model": null,
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
        "talk": null,
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
    model: not known
    workspace: /home/ana/project
    time: 2026-11-15T08:30:00Z
    calls: 12 done, 1 failed, 2 refused, 1 open
    tools: 24 offered, 310 more to be searched
    approvals: 1 pending
    ");
}

#[tokio::test]
async fn tells_what_was_said_and_paid() {
    struct Talking;
    #[async_trait]
    impl Sessions for Talking {
        async fn status(&self) -> Result<Figures, ToolError> {
            let tokens = Tokens { input: 1_200, output: 80, cache_read: 300, cache_write: 20 };
            let talk = TalkFigures {
                messages: 9,
                usage: Usage { answers: 4, tokens, cost: 2_003_040 },
                model: Some(("openai".into(), "gpt-last".into())),
                context_used: 1_600,
                processes: 2,
            };
            Ok(Figures { talk: Some(talk), ..Session.status().await? })
        }
    }
    let mut fixture = Fixture::new();
    fixture.ports.sessions = Some(Arc::new(Talking));
    let answered = text(fixture.run::<SessionStatus>(json!({})).await);
    assert!(answered.contains("model: openai/gpt-last\n"), "{answered}");

    let mut fixture = Fixture::new();
    fixture.ports.sessions = Some(Arc::new(Talking));
    fixture.caller.provider = Some("anthropic".into());
    fixture.caller.model = Some(CallingModel { name: "opus".into(), context: 20_000 });
    let answered = text(fixture.run::<SessionStatus>(json!({})).await);
    insta::assert_snapshot!(answered, @"
    session: cli:ana
    agent: main, for ana
    channel: cli, one person
    model: anthropic/opus
    workspace: /home/ana/project
    time: 2026-11-15T08:30:00Z
    calls: 12 done, 1 failed, 2 refused, 1 open
    tools: 24 offered, 310 more to be searched
    approvals: 1 pending
    messages: 9, 4 answers of the model
    tokens: 1200 read, 320 cached, 80 written; cost: $2.003040
    context: 1600 of 20000 tokens at the last answer (8%)
    background commands: 2 running
    ");
}

#[tokio::test]
async fn fails_without_figures() {
    let result = Fixture::new().run::<SessionStatus>(json!({})).await;
    assert_eq!(failure(result, ErrorKind::Unavailable), "this call has no `session` port");
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
