//! Builds requests for Anthropic's messages API.
//!
//! The request has up to three cache marks: one where the prompt begins to change, which covers the tools
//! too, and one at the end of each of the last two user messages, so that the next request finds the previous
//! one in the cache.

use claw_core::message::{Part, Seal, Wanted};
use claw_core::port::{Choice, ModelCard, Question};
use claw_schema::dialect::Dialect;
use serde_json::{Value, json};

use super::{Anthropic, REDACTED, SEAL};
use crate::message_order::{self, Content, Message, Outcome};

/// The smallest thinking budget that Anthropic accepts, in tokens.
const LEAST_THINKING: u64 = 1_024;

pub(super) fn body(wire: Anthropic, question: &Question, card: &ModelCard) -> Value {
    let messages = message_order::messages(&question.turns, card.images);
    let output = question.output.unwrap_or(card.output).min(card.output);
    let mut body = json!({
        "model": card.model,
        "max_tokens": output,
        "messages": sent(&messages),
        "stream": true,
    });
    let mut tools = Dialect::Anthropic.tools(&question.tools);
    let system = system(question);
    if !system.is_empty() {
        body["system"] = system.into();
    }
    if let Some(last) = tools.last_mut() {
        if question.system.stable.is_empty() {
            mark(last);
        }
        body["tools"] = tools.into();
        match &question.choice {
            Choice::Free => {}
            Choice::None => body["tool_choice"] = json!({ "type": "none" }),
            Choice::Any => body["tool_choice"] = json!({ "type": "any" }),
            Choice::Tool(name) => body["tool_choice"] = json!({ "type": "tool", "name": name }),
        }
    }
    // Anthropic refuses to think about a call that is required.
    let is_free = matches!(question.choice, Choice::Free | Choice::None);
    let thinking = question.thinking.filter(|tokens| *tokens > 0 && is_free && may_think(&messages));
    match thinking {
        Some(_) if wire.adaptive => body["thinking"] = json!({ "type": "adaptive" }),
        Some(tokens) if output > LEAST_THINKING => {
            let budget = tokens.clamp(LEAST_THINKING, output - 1);
            body["thinking"] = json!({ "type": "enabled", "budget_tokens": budget });
        }
        _ => {
            if let Some(temperature) = question.temperature {
                body["temperature"] = message_order::decimal(temperature.min(1.0));
            }
        }
    }
    body
}

fn system(question: &Question) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !question.system.stable.is_empty() {
        let mut block = json!({ "type": "text", "text": question.system.stable });
        mark(&mut block);
        blocks.push(block);
    }
    if !question.system.changing.is_empty() {
        blocks.push(json!({ "type": "text", "text": question.system.changing }));
    }
    blocks
}

fn mark(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// Returns whether thinking can be on. During tool calls, it must have been on from the start: a call of
/// another model has no thought that Anthropic would accept back.
fn may_think(messages: &[Message<'_>]) -> bool {
    let spoke = messages.iter().rposition(|message| matches!(message, Message::User(_))).unwrap_or(0);
    messages.iter().skip(spoke).all(|message| match message {
        Message::Model(parts) => {
            let calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
            !calls || parts.first().is_some_and(|part| thought(part).is_some())
        }
        _ => true,
    })
}

fn sent(messages: &[Message<'_>]) -> Vec<Value> {
    let mut sent: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = match message {
            Message::User(said) => ("user", said.iter().map(content).collect::<Vec<_>>()),
            Message::Results(outcomes) => ("user", outcomes.iter().map(outcome).collect()),
            Message::Model(parts) => ("assistant", parts.iter().filter_map(|part| spoken(part)).collect()),
        };
        match sent.last_mut() {
            Some((before, all)) if *before == role => all.extend(blocks),
            _ => sent.push((role, blocks)),
        }
    }
    sent.retain(|(_, blocks)| !blocks.is_empty());
    for (_, blocks) in sent.iter_mut().rev().filter(|(role, _)| *role == "user").take(2) {
        if let Some(last) = blocks.last_mut() {
            mark(last);
        }
    }
    sent.into_iter().map(|(role, blocks)| json!({ "role": role, "content": blocks })).collect()
}

fn content(content: &Content<'_>) -> Value {
    match content {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Image { mime, data } => image(mime, data),
    }
}

fn image(mime: &str, data: &[u8]) -> Value {
    let data = message_order::base64(data);
    json!({ "type": "image", "source": { "type": "base64", "media_type": mime, "data": data } })
}

fn outcome(outcome: &Outcome<'_>) -> Value {
    let mut content = vec![json!({ "type": "text", "text": outcome.text })];
    content.extend(outcome.images.iter().map(|(mime, data)| image(mime, data)));
    let mut block = json!({ "type": "tool_result", "tool_use_id": message_order::call_id(outcome.call), "content": content });
    if outcome.failed {
        block["is_error"] = true.into();
    }
    block
}

fn spoken(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } => Some(json!({ "type": "text", "text": text })),
        Part::Thinking { .. } => thought(part),
        Part::Call(Wanted { call, tool, args, .. }) => Some(json!({
            "type": "tool_use", "id": message_order::call_id(*call), "name": tool, "input": message_order::arguments(args),
        })),
        Part::Image(_) | Part::Result(_) => None,
    }
}

/// A thought, if Anthropic sealed it.
fn thought(part: &Part) -> Option<Value> {
    let Part::Thinking { text, seal: Some(Seal { provider, value }) } = part else { return None };
    if provider != SEAL {
        return None;
    }
    Some(match value.strip_prefix(REDACTED) {
        Some(data) => json!({ "type": "redacted_thinking", "data": data }),
        None => json!({ "type": "thinking", "thinking": text, "signature": value }),
    })
}
