use claw_core::port::Owner;
use claw_core::store::{Delta, Source, Voice};
use claw_core::{CallId, MessageId, SessionKey, TenantId};

use super::{Hub, MOST_BYTES};

fn within(session: &str) -> Owner {
    Owner { tenant: TenantId::main(), session: SessionKey::new(session).unwrap() }
}

fn delta(source: Source, offset: u64, text: &str) -> Delta {
    Delta { source, voice: Voice::Text, offset, text: text.into() }
}

#[tokio::test]
async fn who_comes_while_it_is_said_has_all_of_it() {
    let (hub, message) = (Hub::default(), Source::Message(MessageId::new()));
    let mut early = hub.listen(&within("cli:me"));
    hub.say(&within("cli:me"), message, Voice::Text, "one ");
    let mut late = hub.listen(&within("cli:me"));
    assert_eq!(hub.so_far(&within("cli:me")), [delta(message, 0, "one ")]);
    hub.say(&within("cli:me"), message, Voice::Text, "two");
    assert_eq!(early.recv().await.unwrap(), delta(message, 0, "one "));
    assert_eq!(early.recv().await.unwrap(), delta(message, 4, "two"));
    assert_eq!(late.recv().await.unwrap(), delta(message, 4, "two"));
    assert_eq!(hub.so_far(&within("cli:you")), [], "another conversation hears nothing");
    hub.said(&within("cli:me"), message);
    assert_eq!(hub.so_far(&within("cli:me")), []);
}

#[tokio::test]
async fn pieces_from_elsewhere_are_told_once_and_in_order() {
    let (hub, message) = (Hub::default(), Source::Message(MessageId::new()));
    let mut told = hub.listen(&within("cli:me"));
    assert!(hub.hear(&within("cli:me"), delta(message, 0, "abc")));
    assert!(hub.hear(&within("cli:me"), delta(message, 0, "abc")), "again");
    assert!(hub.hear(&within("cli:me"), delta(message, 2, "cde")), "half of it again");
    assert!(!hub.hear(&within("cli:me"), delta(message, 9, "xyz")), "something is missing");
    assert_eq!(told.recv().await.unwrap(), delta(message, 0, "abc"));
    assert_eq!(told.recv().await.unwrap(), delta(message, 3, "de"));
    assert!(told.try_recv().is_err());
    assert_eq!(hub.so_far(&within("cli:me")), [delta(message, 0, "abcde")]);
    assert_eq!(hub.own(), [], "only the node that says it says it again");
}

#[tokio::test]
async fn a_message_that_is_too_long_is_told_and_not_kept() {
    let (hub, message) = (Hub::default(), Source::Message(MessageId::new()));
    let piece = "x".repeat(1024 * 1024);
    for _ in 0..=MOST_BYTES / piece.len() as u64 {
        hub.say(&within("cli:me"), message, Voice::Text, &piece);
    }
    assert_eq!(hub.so_far(&within("cli:me")), []);
    assert_eq!(hub.say(&within("cli:me"), message, Voice::Text, "!"), MOST_BYTES + piece.len() as u64);
}

#[tokio::test]
async fn output_of_a_call_is_kept_apart_from_messages_and_forgotten_at_its_end() {
    let hub = Hub::default();
    let (message, call) = (Source::from(MessageId::new()), Source::from(CallId::new()));
    hub.say(&within("cli:me"), message, Voice::Text, "I run it");
    hub.say(&within("cli:me"), call, Voice::Output, "line 1\n");
    hub.say(&within("cli:me"), call, Voice::Output, "line 2\n");
    let output = Delta { source: call, voice: Voice::Output, offset: 0, text: "line 1\nline 2\n".into() };
    assert_eq!(hub.so_far(&within("cli:me")), [delta(message, 0, "I run it"), output]);
    hub.said(&within("cli:me"), call);
    assert_eq!(hub.so_far(&within("cli:me")), [delta(message, 0, "I run it")]);
}

#[test]
fn a_piece_names_its_message_or_its_call() {
    let id = "0190f5fe-7c00-7a00-8000-000000000001";
    for (source, name) in
        [(Source::Message(id.parse().unwrap()), "message"), (Source::Call(id.parse().unwrap()), "call")]
    {
        let piece = delta(source, 3, "abc");
        let json = serde_json::json!({ name: id, "voice": "text", "offset": 3, "text": "abc" });
        assert_eq!(serde_json::to_value(&piece).unwrap(), json);
        assert_eq!(serde_json::from_value::<Delta>(json).unwrap(), piece);
    }
}
