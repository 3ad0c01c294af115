//! Builds requests for chat completions.

use claw_core::CallId;
use claw_core::message::Part;
use claw_core::port::{Choice, ModelCard, Question};
use serde_json::{Value, json};

use super::{OpenAi, Thinking};
use crate::message_order::{self, Content, Message, Outcome};

pub(super) fn body(quirks: &OpenAi, question: &Question, card: &ModelCard) -> Value {
    let mut body = json!({
        "model": card.model,
        "messages": messages(quirks, question, card.images),
        "stream": true,
    });
    if quirks.ask_usage {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if !question.tools.is_empty() {
        body["tools"] = quirks.dialect.tools(&question.tools).into();
        match &question.choice {
            Choice::Free => {}
            Choice::None => body["tool_choice"] = "none".into(),
            Choice::Any => body["tool_choice"] = "required".into(),
            Choice::Tool(name) => {
                body["tool_choice"] = json!({ "type": "function", "function": { "name": name } });
            }
        }
    }
    let limit = if quirks.completion_tokens { "max_completion_tokens" } else { "max_tokens" };
    body[limit] = question.output.unwrap_or(card.output).min(card.output).into();
    if let Some(temperature) = question.temperature {
        body["temperature"] = message_order::decimal(temperature);
    }
    match (question.thinking, quirks.thinking) {
        (None | Some(0), _) | (_, Thinking::Untold) => {}
        (Some(tokens), Thinking::Effort) => {
            let effort = match tokens {
                ..2_048 => "low",
                2_048..16_384 => "medium",
                _ => "high",
            };
            body["reasoning_effort"] = effort.into();
        }
        (Some(tokens), Thinking::Budget) => body["reasoning"] = json!({ "max_tokens": tokens }),
    }
    body
}

fn messages(quirks: &OpenAi, question: &Question, sees: bool) -> Vec<Value> {
    let mut sent = Vec::new();
    let system = [&question.system.stable, &question.system.changing];
    let system = system.into_iter().filter(|text| !text.is_empty()).map(String::as_str).collect::<Vec<_>>();
    if !system.is_empty() {
        sent.push(json!({ "role": "system", "content": system.join("\n\n") }));
    }
    let messages = message_order::messages(&question.turns, sees);
    let spoke = messages.iter().rposition(|message| matches!(message, Message::User(_))).unwrap_or(0);
    for (at, message) in messages.iter().enumerate() {
        match message {
            Message::User(said) => sent.push(json!({ "role": "user", "content": contents(said) })),
            Message::Model(parts) => sent.push(model(quirks, parts, at > spoke)),
            Message::Results(outcomes) => results(quirks, outcomes, &mut sent),
        }
    }
    sent
}

fn contents(said: &[Content<'_>]) -> Value {
    if let [Content::Text(text)] = said {
        return json!(text);
    }
    let blocks = said.iter().map(|content| match content {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Image { mime, data } => image(mime, data),
    });
    blocks.collect()
}

fn image(mime: &str, data: &[u8]) -> Value {
    let data = message_order::base64(data);
    json!({ "type": "image_url", "image_url": { "url": format!("data:{mime};base64,{data}") } })
}

fn model(quirks: &OpenAi, parts: &[&Part], current: bool) -> Value {
    let mut texts = Vec::new();
    let mut thoughts = Vec::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } => texts.push(text.as_str()),
            Part::Thinking { text, .. } => thoughts.push(text.as_str()),
            Part::Call(wanted) => {
                let arguments = Value::Object(message_order::arguments(&wanted.args)).to_string();
                calls.push(json!({
                    "id": id(quirks, wanted.call),
                    "type": "function",
                    "function": { "name": wanted.tool, "arguments": arguments },
                }));
            }
            Part::Image(_) | Part::Result(_) => {}
        }
    }
    let content = if texts.is_empty() { Value::Null } else { texts.join("\n").into() };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        if quirks.echo && current && !thoughts.is_empty() {
            message["reasoning_content"] = thoughts.concat().into();
        }
        message["tool_calls"] = calls.into();
    }
    message
}

/// Writes results. Images cannot be part of a result here; they follow as if the user had shown them.
fn results(quirks: &OpenAi, outcomes: &[Outcome<'_>], sent: &mut Vec<Value>) {
    for outcome in outcomes {
        let id = id(quirks, outcome.call);
        sent.push(json!({ "role": "tool", "tool_call_id": id, "content": outcome.text }));
    }
    let mut shown = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| !outcome.images.is_empty()) {
        shown.push(json!({ "type": "text", "text": format!("What `{}` shows:", outcome.tool) }));
        shown.extend(outcome.images.iter().map(|(mime, data)| image(mime, data)));
    }
    if !shown.is_empty() {
        sent.push(json!({ "role": "user", "content": shown }));
    }
}

fn id(quirks: &OpenAi, call: CallId) -> String {
    if quirks.short_ids { message_order::short_call_id(call) } else { message_order::call_id(call) }
}
