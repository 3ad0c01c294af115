//! Builds requests for Gemini.

use claw_core::message::{Part, Wanted};
use claw_core::port::{Choice, ModelCard, Question};
use claw_schema::dialect::Dialect;
use serde_json::{Value, json};

use super::SEAL;
use crate::message_order::{self, Content, Message, Outcome};

/// Placeholder signature for calls made by another model: Gemini 3 refuses calls without one.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn body(question: &Question, card: &ModelCard) -> Value {
    let messages = message_order::messages(&question.turns, card.images);
    let mut generation =
        json!({ "maxOutputTokens": question.output.unwrap_or(card.output).min(card.output) });
    if let Some(temperature) = question.temperature {
        generation["temperature"] = message_order::decimal(temperature);
    }
    if let Some(tokens) = question.thinking.filter(|tokens| *tokens > 0) {
        generation["thinkingConfig"] = json!({ "includeThoughts": true, "thinkingBudget": tokens });
    }
    let mut body = json!({ "contents": contents(&messages, wants_signatures(&card.model)), "generationConfig": generation });
    let system = [&question.system.stable, &question.system.changing];
    let system = system.into_iter().filter(|text| !text.is_empty()).map(|text| json!({ "text": text }));
    let system: Vec<Value> = system.collect();
    if !system.is_empty() {
        body["systemInstruction"] = json!({ "parts": system });
    }
    if !question.tools.is_empty() {
        body["tools"] = json!([{ "functionDeclarations": Dialect::Gemini.tools(&question.tools) }]);
        let calling = match &question.choice {
            Choice::Free => None,
            Choice::None => Some(json!({ "mode": "NONE" })),
            Choice::Any => Some(json!({ "mode": "ANY" })),
            Choice::Tool(name) => Some(json!({ "mode": "ANY", "allowedFunctionNames": [name] })),
        };
        if let Some(calling) = calling {
            body["toolConfig"] = json!({ "functionCallingConfig": calling });
        }
    }
    body
}

/// Returns whether the model is Gemini 3 or later.
fn wants_signatures(model: &str) -> bool {
    let version = model.rsplit('/').next().and_then(|name| name.strip_prefix("gemini-"));
    let major = version.and_then(|version| version.split(['.', '-']).next()?.parse::<u32>().ok());
    major.is_some_and(|major| major >= 3)
}

fn contents(messages: &[Message<'_>], signatures: bool) -> Vec<Value> {
    let mut sent: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, parts) = match message {
            Message::User(said) => ("user", said.iter().map(content).collect::<Vec<_>>()),
            Message::Results(outcomes) => ("user", results(outcomes)),
            Message::Model(parts) => ("model", spoken(parts, signatures)),
        };
        match sent.last_mut() {
            Some((before, all)) if *before == role => all.extend(parts),
            _ => sent.push((role, parts)),
        }
    }
    sent.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

fn content(content: &Content<'_>) -> Value {
    match content {
        Content::Text(text) => json!({ "text": text }),
        Content::Image { mime, data } => image(mime, data),
    }
}

fn image(mime: &str, data: &[u8]) -> Value {
    let data = message_order::base64(data);
    json!({ "inlineData": { "mimeType": mime, "data": data } })
}

/// All results first, matched with the calls by their order; then their images.
fn results(outcomes: &[Outcome<'_>]) -> Vec<Value> {
    let results = outcomes.iter().map(|outcome| {
        let key = if outcome.failed { "error" } else { "output" };
        json!({ "functionResponse": { "name": outcome.tool, "response": { key: outcome.text } } })
    });
    let images = outcomes.iter().flat_map(|outcome| &outcome.images);
    results.chain(images.map(|(mime, data)| image(mime, data))).collect()
}

fn spoken(parts: &[&Part], signatures: bool) -> Vec<Value> {
    let mut sent = Vec::new();
    let mut first_call = true;
    for part in parts {
        match part {
            Part::Text { text } => sent.push(json!({ "text": text })),
            Part::Call(Wanted { tool, args, seal, .. }) => {
                let mut part =
                    json!({ "functionCall": { "name": tool, "args": message_order::arguments(args) } });
                match seal.as_ref().filter(|seal| seal.provider == SEAL) {
                    Some(seal) => part["thoughtSignature"] = json!(seal.value),
                    None if signatures && first_call => part["thoughtSignature"] = NO_SIGNATURE.into(),
                    None => {}
                }
                first_call = false;
                sent.push(part);
            }
            // Thoughts are not sent back; signatures are sent with the calls.
            Part::Thinking { .. } | Part::Image(_) | Part::Result(_) => {}
        }
    }
    sent
}
