//! Messages, from the server's side.

use std::collections::HashMap;

use claw_core::CallId;
use claw_core::message::{Args, Part, ToolResult, Turn, Wanted};
use claw_core::port::{Choice, Fault, Question, Stop};
use claw_core::store::Role;
use claw_core::tool::Block;
use claw_llm::{Scene, Step};
use serde_json::{Value, json};

use super::{Event, Manners, Wire, broken, in_turns, openai, pause, tokens};

pub(super) struct Anthropic;

impl Wire for Anthropic {
    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn refusal(&self, status: u16, message: &str) -> Value {
        let kind = match status {
            401 => "authentication_error",
            429 => "rate_limit_error",
            500.. => "overloaded_error",
            _ => "invalid_request_error",
        };
        json!({ "type": "error", "error": { "type": kind, "message": message } })
    }

    fn read(&self, body: &Value) -> Result<Question, String> {
        if body["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
            return Err("max_tokens: field required".into());
        }
        let marks = body.to_string().matches("\"cache_control\"").count();
        if marks > 4 {
            return Err(format!("a maximum of 4 blocks with cache_control may be provided, found {marks}"));
        }
        let mut question = Question::default();
        let mut system = body["system"].as_array().into_iter().flatten();
        let mut text =
            || system.next().and_then(|block| block["text"].as_str()).unwrap_or_default().to_owned();
        question.system.stable = text();
        question.system.changing = text();
        let mut reader = Reader::default();
        for message in body["messages"].as_array().ok_or("no `messages`")? {
            reader.message(message)?;
        }
        if reader.turns.last().is_none_or(|turn| turn.role == Role::Assistant) {
            return Err("the conversation must end with a user message".into());
        }
        question.turns = reader.turns;
        question.tools = openai::specs(body["tools"].as_array(), |tool| tool)?;
        question.choice = if body["tool_choice"]["type"] == "none" { Choice::None } else { Choice::Free };
        Ok(question)
    }

    fn events(&self, scene: &Scene, manners: &Manners) -> Vec<Event> {
        let counted = tokens(scene);
        let usage = json!({
            "input_tokens": counted.input, "output_tokens": 1,
            "cache_read_input_tokens": counted.cache_read, "cache_creation_input_tokens": counted.cache_write,
        });
        let mut events = Vec::new();
        // A scene that begins with a wait waits before its first byte.
        let skip = scene.steps.iter().take_while(|step| matches!(step, Step::Wait(_) | Step::Hang)).count();
        for step in &scene.steps[..skip] {
            events.push(if let Step::Wait(time) = step { Event::Wait(*time) } else { Event::Hang });
        }
        events.push(event(
            json!({ "type": "message_start", "message": { "role": "assistant", "usage": usage } }),
        ));
        events.push(event(json!({ "type": "ping" })));
        let mut index = 0;
        let mut calls = Vec::new();
        for (at, step) in scene.steps.iter().enumerate().skip(skip) {
            match step {
                Step::Say { text, pace } => {
                    begin(&mut events, index, json!({ "type": "text", "text": "" }));
                    for piece in pace.pieces(text) {
                        events.extend(pause(pace.delay));
                        delta(&mut events, index, json!({ "type": "text_delta", "text": piece }));
                    }
                    end(&mut events, index);
                    index += 1;
                }
                Step::Think { text, pace } => {
                    begin(&mut events, index, json!({ "type": "thinking", "thinking": "", "signature": "" }));
                    for piece in pace.pieces(text) {
                        events.extend(pause(pace.delay));
                        delta(&mut events, index, json!({ "type": "thinking_delta", "thinking": piece }));
                    }
                    delta(
                        &mut events,
                        index,
                        json!({ "type": "signature_delta", "signature": signature(text) }),
                    );
                    end(&mut events, index);
                    index += 1;
                }
                Step::Call { tool, args, id, pace, .. } => {
                    let id = id.clone().unwrap_or_else(|| format!("toolu_{at}"));
                    calls.push((id, tool.clone(), pace.pieces(args).map(str::to_owned).collect::<Vec<_>>()));
                    if !matches!(scene.steps.get(at + 1), Some(Step::Call { .. })) {
                        send_calls(&calls, index, manners.interleaved, &mut events);
                        index += calls.len();
                        calls.clear();
                    }
                }
                Step::Wait(time) => events.push(Event::Wait(*time)),
                Step::Hang => events.push(Event::Hang),
                Step::Fail { fault, message } => {
                    let refusal = || event(self.refusal(status(*fault), message));
                    events.push(broken(*fault).unwrap_or_else(refusal));
                    return events;
                }
            }
        }
        let reason = match scene.stop {
            Stop::Done => "end_turn",
            Stop::Calls => "tool_use",
            Stop::Length => "max_tokens",
            Stop::Refused => "refusal",
        };
        let usage = json!({ "output_tokens": counted.output });
        events.push(event(
            json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": usage }),
        ));
        events.push(event(json!({ "type": "message_stop" })));
        events
    }

    fn whole(&self, _: &Scene) -> Option<Value> {
        None
    }
}

/// Returns the signature of a thought, which must be sent back with it.
/// Returns the HTTP status that Anthropic answers a fault with.
fn status(fault: Fault) -> u16 {
    match fault {
        Fault::RateLimited { .. } => 429,
        Fault::Unavailable => 529,
        Fault::Unauthorised => 401,
        _ => 400,
    }
}

fn signature(thought: &str) -> String {
    format!("signed {} bytes", thought.len())
}

fn event(data: Value) -> Event {
    Event::Send(format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default()))
}

fn begin(events: &mut Vec<Event>, index: usize, block: Value) {
    events.push(event(json!({ "type": "content_block_start", "index": index, "content_block": block })));
}

fn delta(events: &mut Vec<Event>, index: usize, delta: Value) {
    events.push(event(json!({ "type": "content_block_delta", "index": index, "delta": delta })));
}

fn end(events: &mut Vec<Event>, index: usize) {
    events.push(event(json!({ "type": "content_block_stop", "index": index })));
}

fn send_calls(
    calls: &[(String, String, Vec<String>)],
    first: usize,
    interleaved: bool,
    events: &mut Vec<Event>,
) {
    let block = |at: usize| {
        let (id, tool, _) = &calls[at];
        json!({ "type": "tool_use", "id": id, "name": tool, "input": {} })
    };
    let pieces: Vec<_> = calls.iter().map(|(_, _, pieces)| pieces.clone()).collect();
    let mut begun = 0;
    if interleaved {
        (0..calls.len()).for_each(|at| begin(events, first + at, block(at)));
        begun = calls.len();
    }
    for (at, piece) in in_turns(&pieces, interleaved) {
        while begun <= at {
            begin(events, first + begun, block(begun));
            begun += 1;
        }
        delta(events, first + at, json!({ "type": "input_json_delta", "partial_json": piece }));
    }
    (begun..calls.len()).for_each(|at| begin(events, first + at, block(at)));
    (0..calls.len()).for_each(|at| end(events, first + at));
}

/// Reads messages and refuses what the real server refuses.
#[derive(Default)]
struct Reader {
    turns: Vec<Turn>,
    calls: HashMap<String, (CallId, String)>,
    open: Vec<String>,
    last: String,
}

impl Reader {
    fn message(&mut self, message: &Value) -> Result<(), String> {
        let role = message["role"].as_str().ok_or("a message without `role`")?;
        if role == self.last || (self.last.is_empty() && role != "user") {
            return Err(format!("roles must alternate and begin with the user, but `{role}` follows"));
        }
        role.clone_into(&mut self.last);
        let blocks = message["content"].as_array().filter(|blocks| !blocks.is_empty());
        let blocks = blocks.ok_or("messages must have content")?;
        let (mut parts, mut results) = (Vec::new(), Vec::new());
        for block in blocks {
            let kind = block["type"].as_str().ok_or("a block without `type`")?;
            match (role, kind) {
                (_, "text") => {
                    let text = block["text"].as_str().filter(|text| !text.trim().is_empty());
                    parts.push(Part::text(text.ok_or("text content blocks must be non-empty")?));
                }
                ("user", "image") => {
                    let source = &block["source"];
                    parts.push(super::image(&source["media_type"], &source["data"])?);
                }
                ("user", "tool_result") => results.push(self.result(block)?),
                ("assistant", "thinking") => {
                    let thought = block["thinking"].as_str().unwrap_or_default();
                    if block["signature"] != signature(thought) {
                        return Err("invalid `signature` in `thinking` block".into());
                    }
                }
                ("assistant", "tool_use") => parts.push(self.call(block)?),
                _ => return Err(format!("no block `{kind}` for `{role}`")),
            }
        }
        if role == "assistant" {
            self.turns.push(Turn { role: Role::Assistant, parts });
            return Ok(());
        }
        if !self.open.is_empty() {
            return Err(format!(
                "`tool_use` ids without `tool_result` blocks immediately after: {:?}",
                self.open
            ));
        }
        if !results.is_empty() {
            self.turns.push(Turn { role: Role::Tool, parts: results });
        }
        if !parts.is_empty() {
            self.turns.push(Turn { role: Role::User, parts });
        }
        Ok(())
    }

    fn call(&mut self, block: &Value) -> Result<Part, String> {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let id =
            block["id"].as_str().filter(|id| !id.is_empty() && id.chars().all(fine)).ok_or("a call's id")?;
        let tool = block["name"].as_str().ok_or("a call without a name")?.to_owned();
        if !block["input"].is_object() {
            return Err("tool_use.input: input should be a valid dictionary".into());
        }
        let call = CallId::new();
        if self.calls.insert(id.to_owned(), (call, tool.clone())).is_some() {
            return Err("`tool_use` ids must be unique".into());
        }
        self.open.push(id.to_owned());
        let args = Args::Json(block["input"].clone());
        Ok(Part::Call(Wanted { call, model_id: id.into(), tool, args, seal: None }))
    }

    fn result(&mut self, block: &Value) -> Result<Part, String> {
        let id = block["tool_use_id"].as_str().ok_or("a result without an id")?;
        let at = self.open.iter().position(|known| known == id);
        self.open.remove(at.ok_or(format!("unexpected `tool_use_id` found in `tool_result` blocks: {id}"))?);
        let (call, tool) = self.calls[id].clone();
        let texts =
            block["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
        let content = texts.map(|text| Block::Text { text: text.to_owned() }).collect();
        let failed = block["is_error"] == true;
        Ok(Part::Result(ToolResult { call, model_id: id.into(), tool, content, failed }))
    }
}
