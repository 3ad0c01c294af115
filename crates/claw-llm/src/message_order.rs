//! Brings the conversation into the order that every provider accepts.
//!
//! - Every call is followed by its result, and the results of one answer are not interrupted. A call without
//!   a result gets one that says so; a result without its call is left out.
//! - The first message is the user's, the last one is not the model's, and no role follows itself.
//! - No message is empty.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine as _;
use claw_core::CallId;
use claw_core::image::Image;
use claw_core::message::{Args, Part, ToolResult, Turn};
use claw_core::store::Role;
use claw_core::tool::Block;
use serde_json::{Map, Value, json};

/// A message of the request.
#[derive(Debug, PartialEq)]
pub(crate) enum Message<'a> {
    User(Vec<Content<'a>>),
    /// Text, thoughts and calls of a model.
    Model(Vec<&'a Part>),
    /// The results of the preceding calls, in their order.
    Results(Vec<Outcome<'a>>),
}

#[derive(Debug, PartialEq)]
pub(crate) enum Content<'a> {
    Text(Cow<'a, str>),
    Image { mime: &'a str, data: &'a [u8] },
}

#[derive(Debug, PartialEq)]
pub(crate) struct Outcome<'a> {
    pub(crate) call: CallId,
    pub(crate) tool: &'a str,
    pub(crate) text: String,
    /// Images, as media type and bytes.
    pub(crate) images: Vec<(&'a str, &'a [u8])>,
    pub(crate) failed: bool,
}

const UNSEEN: &str = "[a picture; this model does not see pictures]";

/// The turns as messages. Images become text for a model that does not read images.
pub(crate) fn messages(turns: &[Turn], sees: bool) -> Vec<Message<'_>> {
    let told: HashMap<CallId, &ToolResult> = turns
        .iter()
        .flat_map(|turn| &turn.parts)
        .filter_map(|part| match part {
            Part::Result(told) => Some((told.call, told)),
            _ => None,
        })
        .collect();
    let mut messages = Vec::with_capacity(turns.len() + 1);
    for turn in turns {
        match turn.role {
            Role::User => user(&mut messages, contents(turn, sees, "")),
            Role::System => user(&mut messages, contents(turn, sees, "[System] ")),
            Role::Assistant => model(&mut messages, turn, &told, sees),
            // Results are already in their places.
            Role::Tool => {}
        }
    }
    if !matches!(messages.first(), Some(Message::User(_))) {
        messages.insert(0, Message::User(vec![Content::Text("(The conversation goes on.)".into())]));
    }
    if matches!(messages.last(), Some(Message::Model(_))) {
        messages.push(Message::User(vec![Content::Text("Go on.".into())]));
    }
    messages
}

fn user<'a>(messages: &mut Vec<Message<'a>>, said: Vec<Content<'a>>) {
    if said.is_empty() {
        return;
    }
    match messages.last_mut() {
        Some(Message::User(before)) => before.extend(said),
        _ => messages.push(Message::User(said)),
    }
}

fn contents<'a>(turn: &'a Turn, sees: bool, prefix: &str) -> Vec<Content<'a>> {
    let contents = turn.parts.iter().filter_map(|part| match part {
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } if prefix.is_empty() => Some(Content::Text(text.into())),
        Part::Text { text } => Some(Content::Text(format!("{prefix}{text}").into())),
        Part::Image(image) => Some(match shown(image, sees) {
            Ok((mime, data)) => Content::Image { mime, data },
            Err(text) => Content::Text(text.into()),
        }),
        Part::Thinking { .. } | Part::Call(_) | Part::Result(_) => None,
    });
    contents.collect()
}

fn model<'a>(
    messages: &mut Vec<Message<'a>>,
    turn: &'a Turn,
    told: &HashMap<CallId, &'a ToolResult>,
    sees: bool,
) {
    let said = turn.parts.iter().filter(|part| match part {
        Part::Text { text } => !text.trim().is_empty(),
        Part::Thinking { .. } | Part::Call(_) => true,
        Part::Image(_) | Part::Result(_) => false,
    });
    let said: Vec<&Part> = said.collect();
    // A message with only a thought is left out.
    if said.iter().all(|part| matches!(part, Part::Thinking { .. })) {
        return;
    }
    match messages.last_mut() {
        Some(Message::Model(before)) => before.extend(said),
        _ => messages.push(Message::Model(said)),
    }
    let outcomes = turn.calls().map(|wanted| match told.get(&wanted.call) {
        Some(told) => outcome(told, sees),
        None => Outcome {
            call: wanted.call,
            tool: &wanted.tool,
            text: "no result of this call is known; it may or may not have happened".to_owned(),
            images: Vec::new(),
            failed: true,
        },
    });
    let outcomes: Vec<_> = outcomes.collect();
    if !outcomes.is_empty() {
        messages.push(Message::Results(outcomes));
    }
}

fn outcome(told: &ToolResult, sees: bool) -> Outcome<'_> {
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for block in &told.content {
        match block {
            Block::Text { text } => texts.push(text.clone()),
            Block::Resource { uri, text, .. } => {
                texts.push(text.as_ref().map_or_else(|| uri.clone(), |text| format!("{uri}\n{text}")));
            }
            Block::Attachment(attachment) => texts.push(attachment.to_string()),
            Block::Image(image) => match shown(image, sees) {
                Ok(shown) => images.push(shown),
                Err(text) => texts.push(text),
            },
        }
    }
    texts.retain(|text| !text.is_empty());
    let mut text = texts.join("\n");
    if text.trim().is_empty() {
        text = if images.is_empty() { "(nothing)".to_owned() } else { "(see the picture)".to_owned() };
    }
    Outcome { call: told.call, tool: &told.tool, text, images, failed: told.failed }
}

/// The type and bytes of an image, or the text in its place if it cannot be shown.
fn shown(image: &Image, sees: bool) -> Result<(&str, &[u8]), String> {
    match image.data() {
        _ if !sees => Err(UNSEEN.to_owned()),
        Some(data) => Ok((&image.mime, data)),
        None => Err(image.missing()),
    }
}

/// Encodes bytes as every provider accepts them.
pub(crate) fn base64(data: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(data)
}

/// The arguments of a call as an object, which all providers require.
pub(crate) fn arguments(args: &Args) -> Map<String, Value> {
    match args {
        Args::Json(Value::Object(map)) => map.clone(),
        Args::Json(value) => Map::from_iter([("value".to_owned(), value.clone())]),
        Args::Broken { text, .. } => Map::from_iter([("unreadable".to_owned(), json!(text))]),
    }
}

/// The id of a call in requests. Models repeat their ids and providers disagree about the form, so it is
/// derived from ours.
pub(crate) fn call_id(call: CallId) -> String {
    let hex: String = call.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("call_{hex}")
}

/// The same in nine letters and digits, as Mistral requires.
pub(crate) fn short_call_id(call: CallId) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let [.., a, b, c, d, e, f, g, h] = *call.as_bytes();
    let mut number = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    let digits = (0..9).map(|_| {
        let digit = DIGITS[usize::try_from(number % 36).unwrap_or(0)];
        number /= 36;
        char::from(digit)
    });
    digits.collect()
}

/// A temperature as it was configured: `0.7`, not `0.699999988`.
pub(crate) fn decimal(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

#[cfg(test)]
mod tests;
