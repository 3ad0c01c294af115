//! Reads the stream of a message.

use claw_core::message::Seal;
use claw_core::port::Stop;
use serde_json::Value;

use super::{REDACTED, SEAL};
use crate::collect_answer::Gather;
use crate::provider_error::{self, Trouble};
use crate::wire::{self, Reader, count};

#[derive(Default)]
pub(super) struct Stream {
    /// The stop reason has arrived.
    ended: bool,
}

impl Reader for Stream {
    fn event(&mut self, data: &str, gather: &mut Gather<'_>) -> Result<(), Trouble> {
        let event = wire::json(data)?;
        let Some(kind) = event.get("type").and_then(Value::as_str) else {
            return match event.get("error") {
                Some(_) => Err(provider_error::of_error(&event)),
                None => Err(Trouble::garbled("an event has no `type`")),
            };
        };
        match kind {
            "message_start" => {
                if let Some(usage) = event.get("message").and_then(|message| message.get("usage")) {
                    usage_of(usage, gather);
                }
            }
            "content_block_start" => {
                let block = event.get("content_block").unwrap_or(&Value::Null);
                begin(count(&event, "index"), block, gather);
            }
            "content_block_delta" => {
                let delta = event.get("delta").unwrap_or(&Value::Null);
                more(count(&event, "index"), delta, gather)?;
            }
            "message_delta" => {
                if let Some(usage) = event.get("usage") {
                    usage_of(usage, gather);
                }
                let reason = event.get("delta").and_then(|delta| delta.get("stop_reason"));
                if let Some(reason) = reason.and_then(Value::as_str) {
                    self.ended = true;
                    gather.stop = Some(stop(reason));
                }
            }
            "error" => return Err(provider_error::of_error(&event)),
            // `ping`, ends of blocks, the end, and unknown events.
            _ => {}
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.ended
    }
}

fn begin(index: u64, block: &Value, gather: &mut Gather<'_>) {
    let words = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or("");
    match words("type") {
        "text" => gather.text(words("text")),
        "thinking" => gather.thinking(words("thinking")),
        "redacted_thinking" => gather.sealed(seal(format!("{REDACTED}{}", words("data")))),
        "tool_use" => {
            gather.call(index, words("id"), words("name"), None);
            // Empty here and streamed in pieces; compatible servers may send the whole.
            if let Some(input) = block.get("input").and_then(Value::as_object).filter(|map| !map.is_empty()) {
                gather.args(index, &Value::Object(input.clone()).to_string());
            }
        }
        _ => {}
    }
}

fn more(index: u64, delta: &Value, gather: &mut Gather<'_>) -> Result<(), Trouble> {
    let words = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or("");
    match words("type") {
        "text_delta" => gather.text(words("text")),
        "thinking_delta" => gather.thinking(words("thinking")),
        "signature_delta" => gather.seal_thinking(seal(words("signature").to_owned())),
        "input_json_delta" if !gather.args(index, words("partial_json")) => {
            return Err(Trouble::garbled(format!("arguments came for call {index}, which had not begun")));
        }
        _ => {}
    }
    Ok(())
}

fn seal(value: String) -> Seal {
    Seal { provider: SEAL.into(), value }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "tool_use" => Stop::Calls,
        "refusal" => Stop::Refused,
        _ => Stop::Done,
    }
}

/// Reads token counts, which come at the start and again at the end, some of them only once.
fn usage_of(usage: &Value, gather: &mut Gather<'_>) {
    let tokens = &mut gather.tokens;
    for (key, place) in [
        ("input_tokens", &mut tokens.input),
        ("output_tokens", &mut tokens.output),
        ("cache_read_input_tokens", &mut tokens.cache_read),
        ("cache_creation_input_tokens", &mut tokens.cache_write),
    ] {
        if let Some(count) = usage.get(key).and_then(Value::as_u64) {
            *place = count;
        }
    }
}
