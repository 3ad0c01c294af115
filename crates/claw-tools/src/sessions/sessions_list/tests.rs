use std::sync::Arc;

use claw_core::tool::{ErrorKind, PeerKind};

use super::*;
use crate::fixture::{Fixture, NOW, Talking, failure, schema, text};

fn talk(key: &str, minutes_ago: i64) -> Talk {
    Talk {
        session: SessionKey::new(key).unwrap(),
        channel: "cli".into(),
        chat: None,
        peer: PeerKind::Direct,
        started: UnixMillis(0),
        last: UnixMillis(NOW.0 - minutes_ago * MINUTE),
        messages: 4,
        waiting: 0,
        running: false,
    }
}

fn fixture() -> (Fixture, Arc<Talking>) {
    let talks = vec![
        talk("cli:ana", 0),
        Talk { chat: Some("notes".into()), waiting: 2, running: true, ..talk("cli:notes", 5) },
        Talk { waiting: 1, ..talk("cli:plan", 90) },
    ];
    let talking = Arc::new(Talking { talks, ..Talking::default() });
    let mut fixture = Fixture::new();
    fixture.ports.talks = Some(talking.clone());
    (fixture, talking)
}

#[tokio::test]
async fn lists_what_there_is() {
    insta::assert_snapshot!(text(fixture().0.run::<SessionsList>(json!({})).await), @"
    cli:ana (this one): cli, 4 messages, last 2026-11-15T08:30:00Z
    cli:notes: cli notes, 4 messages, last 2026-11-15T08:25:00Z, answering, 2 waiting
    cli:plan: cli, 4 messages, last 2026-11-15T07:00:00Z, 1 waiting
    ");
}

#[tokio::test]
async fn goes_on_where_a_list_ended() {
    let output = fixture().0.run::<SessionsList>(json!({ "limit": 2 })).await.unwrap();
    let next = output.details.as_ref().unwrap()["next"].as_str().unwrap().to_owned();
    assert!(output.model_text().ends_with(&format!("there are more; next: after = {next}")));
    let (fixture, talking) = fixture();
    let rest = text(fixture.run::<SessionsList>(json!({ "limit": 2, "after": next })).await);
    assert_eq!(rest, "cli:plan: cli, 4 messages, last 2026-11-15T07:00:00Z, 1 waiting");
    let asked = talking.pages.lock().unwrap().pop().unwrap();
    assert_eq!(asked.after, Some((UnixMillis(NOW.0 - 5 * MINUTE), "cli:notes".parse().unwrap())));
}

#[tokio::test]
async fn asks_for_the_active_ones_alone() {
    let (fixture, talking) = fixture();
    let listed = text(fixture.run::<SessionsList>(json!({ "active_minutes": 10 })).await);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let asked = talking.pages.lock().unwrap().pop().unwrap();
    assert_eq!(asked.since, Some(UnixMillis(NOW.0 - 10 * MINUTE)));
}

#[tokio::test]
async fn says_that_there_are_none() {
    let mut fixture = Fixture::new();
    fixture.ports.talks = Some(Arc::new(Talking::default()));
    assert_eq!(text(fixture.run::<SessionsList>(json!({})).await), "there are no sessions");
}

#[tokio::test]
async fn refuses_an_end_that_was_made_up() {
    for after in ["", "cli:me", "x@cli:me", "1@me", "99999999999999999999@cli:me"] {
        let result = fixture().0.run::<SessionsList>(json!({ "after": after })).await;
        let message = failure(result, ErrorKind::Invalid);
        assert!(
            message.ends_with("pass the `next` of the previous list as `after`, or leave `after` out to start from the beginning"),
            "{message}"
        );
    }
}

#[test]
fn spec() {
    insta::assert_snapshot!(schema::<SessionsList>(), @r#"
    {
      "additionalProperties": false,
      "properties": {
        "active_minutes": {
          "description": "Only sessions with a message in the last N minutes.",
          "format": "uint32",
          "minimum": 1,
          "type": [
            "integer",
            "null"
          ]
        },
        "after": {
          "description": "The `next` that the previous list gave.",
          "type": [
            "string",
            "null"
          ]
        },
        "limit": {
          "default": 20,
          "description": "The most sessions to return.",
          "format": "uint",
          "maximum": 100,
          "minimum": 1,
          "type": "integer"
        }
      },
      "type": "object"
    }
    "#);
}
