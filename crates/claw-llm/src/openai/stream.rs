//! Reads the stream of a chat completion.

use claw_core::port::Stop;
use claw_core::store::Tokens;
use serde_json::Value;

use crate::collect_answer::Gather;
use crate::provider_error::{self, Trouble};
use crate::wire::{self, Reader, count};

/// Most calls in one answer.
const MOST_CALLS: u64 = 1_000;

#[derive(Default)]
pub(super) struct Stream {
    /// `[DONE]` or a stop reason has arrived.
    ended: bool,
    /// Number of calls so far, for servers that do not number them.
    calls: u64,
    /// Our key of each server index, as (server index, key).
    keys: Vec<(u64, u64)>,
    begun: bool,
}

impl Reader for Stream {
    fn event(&mut self, data: &str, gather: &mut Gather<'_>) -> Result<(), Trouble> {
        let data = data.trim();
        if data == "[DONE]" {
            if !self.begun {
                return Err(Trouble::garbled("the stream ended before the answer began"));
            }
            self.ended = true;
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        let chunk = wire::json(data)?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(provider_error::of_error(&chunk));
        }
        self.begun = true;
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            gather.tokens = tokens(usage);
        }
        let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) else { return Ok(()) };
        let said = choice.get("delta").filter(|delta| delta.is_object()).or_else(|| choice.get("message"));
        if let Some(said) = said {
            self.said(said, gather);
        }
        if self.calls > MOST_CALLS {
            return Err(Trouble::garbled(format!("it wants more than {MOST_CALLS} calls at once")));
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str).filter(|r| !r.is_empty()) {
            self.ended = true;
            if gather.stop != Some(Stop::Refused) {
                gather.stop = Some(stop(reason)?);
            }
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.ended
    }
}

impl Stream {
    fn said(&mut self, said: &Value, gather: &mut Gather<'_>) {
        let words = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or("");
        // Servers that send both fields send the same in both.
        let thought = words("reasoning_content");
        gather.thinking(if thought.is_empty() { words("reasoning") } else { thought });
        match said.get("content") {
            Some(Value::String(text)) => gather.text(text),
            // Mistral sends lists while it thinks.
            Some(Value::Array(blocks)) => blocks.iter().for_each(|block| self.block(block, gather)),
            _ => {}
        }
        let refusal = words("refusal");
        if !refusal.is_empty() {
            gather.text(refusal);
            gather.stop = Some(Stop::Refused);
        }
        for call in said.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call, gather);
        }
    }

    fn block(&mut self, block: &Value, gather: &mut Gather<'_>) {
        if let Some(text) = block.get("text").and_then(Value::as_str) {
            gather.text(text);
        }
        for thought in block.get("thinking").and_then(Value::as_array).into_iter().flatten() {
            gather.thinking(thought.get("text").and_then(Value::as_str).unwrap_or(""));
        }
    }

    /// Reads a call or a piece of one. Calls are distinguished by index and id: some servers give all calls
    /// the same index, some none, and some repeat the id with every piece.
    fn call(&mut self, call: &Value, gather: &mut Gather<'_>) {
        let id = call.get("id").and_then(Value::as_str).unwrap_or("");
        let function = call.get("function");
        let name = function.and_then(|f| f.get("name")).and_then(Value::as_str).unwrap_or("");
        let index = call.get("index").and_then(Value::as_u64);
        let known = match index {
            Some(index) => self.keys.iter().rfind(|(of, _)| *of == index).map(|(_, key)| *key),
            None if id.is_empty() && name.is_empty() => self.calls.checked_sub(1),
            None => (0..self.calls).rfind(|key| !id.is_empty() && gather.call_of(*key) == Some(id)),
        };
        let same = known.filter(|key| {
            let before = gather.call_of(*key).unwrap_or("");
            id.is_empty() || before.is_empty() || id == before
        });
        let key = match same {
            Some(key) => {
                gather.name(key, name);
                key
            }
            None => {
                let key = self.calls;
                self.calls += 1;
                if let Some(index) = index {
                    self.keys.push((index, key));
                }
                gather.call(key, id, name, None);
                key
            }
        };
        match function.and_then(|function| function.get("arguments")) {
            Some(Value::String(piece)) => gather.args(key, piece),
            Some(whole @ Value::Object(_)) => gather.args(key, &whole.to_string()),
            _ => true,
        };
    }
}

fn stop(reason: &str) -> Result<Stop, Trouble> {
    Ok(match reason {
        "length" | "max_tokens" | "model_length" => Stop::Length,
        "tool_calls" | "function_call" => Stop::Calls,
        "content_filter" | "refusal" => Stop::Refused,
        // OpenRouter's answer if the provider behind it failed.
        "error" => {
            return Err(Trouble::new(
                claw_core::port::Fault::Unavailable,
                "the provider stopped the answer with an error",
            ));
        }
        _ => Stop::Done,
    })
}

fn tokens(usage: &Value) -> Tokens {
    let details = usage.get("prompt_tokens_details").unwrap_or(&Value::Null);
    let cached = count(details, "cached_tokens").max(count(usage, "prompt_cache_hit_tokens"));
    let written = count(details, "cache_write_tokens");
    Tokens {
        input: count(usage, "prompt_tokens").saturating_sub(cached.saturating_add(written)),
        output: count(usage, "completion_tokens"),
        cache_read: cached,
        cache_write: written,
    }
}
