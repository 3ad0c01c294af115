use claw_core::port::Piece;
use proptest::prelude::*;
use serde_json::Value;

use super::{Wire, below};
use crate::anthropic::Anthropic;
use crate::collect_answer::Gather;
use crate::gemini::Gemini;
use crate::openai::OpenAi;
use crate::sse::Events;

/// Words that mean something to a reader, and some that do not.
fn words() -> impl Strategy<Value = Value> {
    let known = [
        "type",
        "error",
        "text",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "text_delta",
        "input_json_delta",
        "signature_delta",
        "thinking_delta",
        "tool_use",
        "redacted_thinking",
        "tool_calls",
        "STOP",
        "stop",
        "MAX_TOKENS",
        "{\"a\":",
        "\u{1f980}",
        "",
    ];
    prop_oneof![
        prop::sample::select(known.to_vec()).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ]
}

/// JSON in the shape of events, with any values.
fn events() -> impl Strategy<Value = Value> {
    let keys = [
        "type",
        "index",
        "delta",
        "content_block",
        "message",
        "usage",
        "error",
        "choices",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "content",
        "parts",
        "candidates",
        "functionCall",
        "args",
        "text",
        "thinking",
        "partial_json",
        "stop_reason",
        "finish_reason",
        "finishReason",
        "usageMetadata",
        "promptTokenCount",
        "cachedContentTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "prompt_tokens",
        "signature",
        "input",
        "prompt_tokens_details",
        "cached_tokens",
        "cache_write_tokens",
        "code",
        "status",
        "details",
        "retryDelay",
    ];
    words().prop_recursive(6, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(keys.to_vec()), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_event_of_any_shape_is_more_than_an_error(events in prop::collection::vec(events(), 1..8)) {
        let wires: [Box<dyn Wire>; 3] =
            [Box::new(OpenAi::at("")), Box::new(Anthropic { adaptive: false }), Box::new(Gemini)];
        for wire in wires {
            let ear = |_: Piece<'_>| {};
            let (mut reader, mut gather) = (wire.reader(), Gather::new(&ear));
            for event in &events {
                let _ = reader.event(&event.to_string(), &mut gather);
            }
            let _ = gather.finish();
        }
    }

    #[test]
    fn no_bytes_are_more_than_an_error(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
        let (mut events, mut ready) = (Events::default(), Vec::new());
        for piece in &pieces {
            let _ = events.take(piece, &mut ready);
        }
        let _ = events.rest();
    }

    #[test]
    fn where_bytes_are_split_does_not_matter(text in "(data: ?[a-z\u{e4}]{0,5}|:|event: x|\r|\n|\r\n){0,20}", at in any::<prop::sample::Index>()) {
        let whole = |pieces: &[&[u8]]| {
            let (mut events, mut ready) = (Events::default(), Vec::new());
            for piece in pieces {
                events.take(piece, &mut ready)?;
            }
            ready.extend(events.rest()?);
            Ok::<_, crate::sse::NoEvents>(ready)
        };
        let bytes = text.as_bytes();
        let at = at.index(bytes.len() + 1);
        prop_assert_eq!(whole(&[bytes]), whole(&[&bytes[..at], &bytes[at..]]));
    }
}

#[test]
fn paths_go_below_the_base() {
    let check = |base: &str, expected: &str| {
        assert_eq!(below(&base.parse().unwrap(), &["a", "b/c"]).as_str(), expected);
    };
    check("http://x", "http://x/a/b%2Fc");
    check("http://x/v1", "http://x/v1/a/b%2Fc");
    check("http://x/v1/", "http://x/v1/a/b%2Fc");
}
