use std::sync::Arc;

use claw_core::image::Image;
use claw_core::port::UnixMillis;
use claw_core::tool::ErrorKind;

use super::*;
use crate::fixture::{Fixture, NOW, Talking, failure, schema, text};

fn fixture() -> Fixture {
    let line = |seq, role, words| TalkLine { seq, role, at: UnixMillis(NOW.0), words };
    let said = |text: &str| Words::Text { text: text.to_owned() };
    let call = Words::Call { tool: "exec".into(), args: r#"{"command":"ls"}"#.into() };
    let result = Words::Result { tool: "exec".into(), text: "a.txt".into(), failed: false };
    let lines = vec![
        line(
            1,
            Role::User,
            vec![said("list the files"), Words::Image(Image::new("image/png", &b"four"[..]))],
        ),
        line(2, Role::Assistant, vec![call]),
        line(3, Role::Tool, vec![result]),
        line(4, Role::Assistant, vec![said(&"é".repeat(3_000))]),
    ];
    let mut fixture = Fixture::new();
    fixture.ports.talks = Some(Arc::new(Talking { lines, ..Talking::default() }));
    fixture
}

#[tokio::test]
async fn shows_what_was_said() {
    let shown = text(fixture().run::<SessionsHistory>(json!({ "session_key": "cli:mine" })).await);
    assert!(
        shown.starts_with(
            "#1 user, 2026-11-15T08:30:00Z:\nlist the files\n[image image/png, 4 bytes]\n\n#4 agent,"
        ),
        "{shown}"
    );
    assert!(shown.ends_with("é [cut after 4000 of 6000 bytes]"), "{shown}");
}

#[tokio::test]
async fn shows_calls_where_they_are_wanted() {
    let args = json!({ "session_key": "cli:mine", "include_tools": true, "limit": 2, "before": 4 });
    let output = fixture().run::<SessionsHistory>(args).await.unwrap();
    insta::assert_snapshot!(output.model_text(), @r#"
    #2 agent, 2026-11-15T08:30:00Z:
    [called exec with {"command":"ls"}]

    #3 tool, 2026-11-15T08:30:00Z:
    [exec gave: a.txt]

    there is more; next: before = 2
    "#);
    assert_eq!(output.details.unwrap()["next"], 2);
}

#[tokio::test]
async fn refuses_what_is_not_theirs_as_what_is_not_there() {
    let result = fixture().run::<SessionsHistory>(json!({ "session_key": "cli:other" })).await;
    insta::assert_snapshot!(failure(result, ErrorKind::NotFound), @"there is no session `cli:other` that you may use; call `sessions_list` for the sessions that you may use");
    let result = fixture().run::<SessionsHistory>(json!({ "session_key": "no key" })).await;
    assert!(failure(result, ErrorKind::Invalid).ends_with("take a key from `sessions_list`"));
}

#[test]
fn spec() {
    insta::assert_snapshot!(schema::<SessionsHistory>(), @r#"
    {
      "additionalProperties": false,
      "properties": {
        "before": {
          "description": "Only messages before the one with this number.",
          "format": "uint64",
          "minimum": 1,
          "type": [
            "integer",
            "null"
          ]
        },
        "include_tools": {
          "default": false,
          "description": "Also show tool calls and their results.",
          "type": "boolean"
        },
        "limit": {
          "default": 20,
          "description": "The most messages to return, counted from the latest.",
          "format": "uint",
          "maximum": 100,
          "minimum": 1,
          "type": "integer"
        },
        "session_key": {
          "description": "Key of the session, as `sessions_list` shows it.",
          "type": "string"
        }
      },
      "required": [
        "session_key"
      ],
      "type": "object"
    }
    "#);
}
