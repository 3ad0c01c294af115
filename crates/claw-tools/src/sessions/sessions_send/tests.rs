use std::sync::Arc;

use claw_core::tool::ErrorKind;

use super::*;
use crate::fixture::{Fixture, Talking, failure, schema, text};

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.ports.talks = Some(Arc::new(Talking::default()));
    fixture
}

#[tokio::test]
async fn says_where_the_message_went() {
    let args = json!({ "session_key": "cli:mine", "message": " hello \n" });
    insta::assert_snapshot!(text(fixture().run::<SessionsSend>(args).await), @"message #5 of session cli:mine is accepted; it is the next to be answered there");
}

#[tokio::test]
async fn refuses_what_is_no_message() {
    for (message, expected) in
        [(" \n".to_owned(), "empty"), ("x".repeat(MOST_BYTES + 1), "longer than 32768")]
    {
        let result =
            fixture().run::<SessionsSend>(json!({ "session_key": "cli:mine", "message": message })).await;
        let told = failure(result, ErrorKind::Invalid);
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn spec() {
    insta::assert_snapshot!(schema::<SessionsSend>(), @r#"
    {
      "additionalProperties": false,
      "properties": {
        "message": {
          "description": "Text to send.",
          "maxLength": 32768,
          "minLength": 1,
          "type": "string"
        },
        "session_key": {
          "description": "Key of the session, as `sessions_list` shows it; not this one.",
          "type": "string"
        }
      },
      "required": [
        "session_key",
        "message"
      ],
      "type": "object"
    }
    "#);
}
