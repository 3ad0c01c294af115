//! Reads the stream of generated content.

use claw_core::message::Seal;
use claw_core::port::Stop;
use claw_core::store::Tokens;
use serde_json::Value;

use super::SEAL;
use crate::collect_answer::Gather;
use crate::provider_error::{self, Trouble};
use crate::wire::{self, Reader, count};

#[derive(Default)]
pub(super) struct Stream {
    ended: bool,
    calls: u64,
}

impl Reader for Stream {
    fn event(&mut self, data: &str, gather: &mut Gather<'_>) -> Result<(), Trouble> {
        let event = wire::json(data)?;
        if event.get("error").is_some() {
            return Err(provider_error::of_error(&event));
        }
        if let Some(usage) = event.get("usageMetadata") {
            gather.tokens = tokens(usage);
        }
        if event.get("promptFeedback").is_some_and(|feedback| feedback.get("blockReason").is_some()) {
            self.ended = true;
            gather.stop = Some(Stop::Refused);
            return Ok(());
        }
        let Some(candidate) = event.get("candidates").and_then(|list| list.get(0)) else { return Ok(()) };
        let parts =
            candidate.get("content").and_then(|content| content.get("parts")).and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part, gather);
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            let said = candidate.get("finishMessage").and_then(Value::as_str).unwrap_or("");
            gather.stop = Some(stop(reason, said)?);
            self.ended = true;
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.ended
    }
}

impl Stream {
    fn part(&mut self, part: &Value, gather: &mut Gather<'_>) {
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            if part.get("thought").and_then(Value::as_bool) == Some(true) {
                gather.thinking(text);
            } else {
                gather.text(text);
            }
        }
        if let Some(call) = part.get("functionCall") {
            let words = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or("");
            let seal = part.get("thoughtSignature").and_then(Value::as_str);
            let seal = seal.map(|value| Seal { provider: SEAL.into(), value: value.to_owned() });
            gather.call(self.calls, words("id"), words("name"), seal);
            let args = call.get("args").filter(|args| !args.is_null());
            gather.args(self.calls, &args.map_or_else(|| "{}".to_owned(), Value::to_string));
            self.calls += 1;
        }
    }
}

fn stop(reason: &str, said: &str) -> Result<Stop, Trouble> {
    Ok(match reason {
        "MAX_TOKENS" => Stop::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY"
        | "LANGUAGE" => Stop::Refused,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
            return Err(Trouble::garbled(format!(
                "the model wrote a call that cannot be read ({reason}) {said}"
            )));
        }
        _ => Stop::Done,
    })
}

fn tokens(usage: &Value) -> Tokens {
    let cached = count(usage, "cachedContentTokenCount");
    Tokens {
        input: count(usage, "promptTokenCount").saturating_sub(cached),
        output: count(usage, "candidatesTokenCount").saturating_add(count(usage, "thoughtsTokenCount")),
        cache_read: cached,
        cache_write: 0,
    }
}
