//! Chat completions, from the server's side.

use std::collections::HashMap;

use claw_core::CallId;
use claw_core::message::{Args, Part, ToolResult, Turn, Wanted};
use claw_core::port::{Choice, Fault, Question, Stop};
use claw_core::store::Role;
use claw_core::tool::{Block, Spec};
use claw_llm::{Scene, Step};
use serde_json::{Value, json};

use super::{Event, Manners, Wire, broken, in_turns, pause, tokens};

pub(super) struct OpenAi;

impl Wire for OpenAi {
    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn refusal(&self, status: u16, message: &str) -> Value {
        json!({ "error": { "message": message, "type": "error", "code": status.to_string() } })
    }

    fn read(&self, body: &Value) -> Result<Question, String> {
        let mut question = Question::default();
        let mut names: HashMap<String, (CallId, String)> = HashMap::new();
        let mut open: Vec<String> = Vec::new();
        for message in body["messages"].as_array().ok_or("no `messages`")? {
            let role = message["role"].as_str().ok_or("a message without `role`")?;
            if role != "tool" && !open.is_empty() {
                return Err(format!("calls without results: {open:?}"));
            }
            match role {
                "system" => question.system.stable = words(&message["content"]),
                "user" => {
                    question.turns.push(Turn { role: Role::User, parts: contents(&message["content"]) });
                }
                "assistant" => {
                    let mut parts = contents(&message["content"]);
                    for call in message["tool_calls"].as_array().into_iter().flatten() {
                        let id = call["id"]
                            .as_str()
                            .filter(|id| id.len() <= 40)
                            .ok_or("a call without a short id")?;
                        let tool =
                            call["function"]["name"].as_str().ok_or("a call without a name")?.to_owned();
                        let args = call["function"]["arguments"].as_str().ok_or("arguments are not text")?;
                        let args = Args::Json(serde_json::from_str(args).map_err(|e| e.to_string())?);
                        let ours = CallId::new();
                        if names.insert(id.to_owned(), (ours, tool.clone())).is_some() {
                            return Err(format!("the id {id} occurs twice"));
                        }
                        open.push(id.to_owned());
                        parts.push(Part::Call(Wanted {
                            call: ours,
                            model_id: id.into(),
                            tool,
                            args,
                            seal: None,
                        }));
                    }
                    question.turns.push(Turn { role: Role::Assistant, parts });
                }
                "tool" => {
                    let id = message["tool_call_id"].as_str().ok_or("a result without an id")?;
                    let at = open
                        .iter()
                        .position(|known| known == id)
                        .ok_or(format!("a result of no call: {id}"))?;
                    open.remove(at);
                    let (call, tool) = names[id].clone();
                    let text = message["content"].as_str().ok_or("a result that is not text")?.to_owned();
                    let content = vec![Block::Text { text }];
                    let told = ToolResult { call, model_id: id.into(), tool, content, failed: false };
                    question.turns.push(Turn { role: Role::Tool, parts: vec![Part::Result(told)] });
                }
                other => return Err(format!("no role `{other}`")),
            }
        }
        if !open.is_empty() {
            return Err(format!("calls without results: {open:?}"));
        }
        question.tools = specs(body["tools"].as_array(), |tool| &tool["function"])?;
        question.choice = if body["tool_choice"] == "none" { Choice::None } else { Choice::Free };
        Ok(question)
    }

    fn events(&self, scene: &Scene, manners: &Manners) -> Vec<Event> {
        let mut events = Vec::new();
        let send = |events: &mut Vec<Event>, delta: Value| {
            events.push(chunk(json!([{ "index": 0, "delta": delta }])));
        };
        let mut calls = Vec::new();
        for (at, step) in scene.steps.iter().enumerate() {
            match step {
                Step::Say { text, pace } => {
                    for piece in pace.pieces(text) {
                        events.extend(pause(pace.delay));
                        send(&mut events, json!({ "content": piece }));
                    }
                }
                Step::Think { text, pace } => {
                    for piece in pace.pieces(text) {
                        events.extend(pause(pace.delay));
                        send(&mut events, json!({ "reasoning_content": piece }));
                    }
                }
                Step::Call { tool, args, id, pace, .. } => {
                    let id = id.clone().unwrap_or_else(|| format!("call_{at}"));
                    calls.push((id, tool.clone(), pace.pieces(args).map(str::to_owned).collect::<Vec<_>>()));
                    // Those that follow each other are sent together.
                    if !matches!(scene.steps.get(at + 1), Some(Step::Call { .. })) {
                        send_calls(&calls, manners.interleaved, &mut events);
                    }
                }
                Step::Wait(time) => events.push(Event::Wait(*time)),
                Step::Hang => events.push(Event::Hang),
                Step::Fail { fault, message } => {
                    events.push(broken(*fault).unwrap_or_else(|| {
                        let kind = match fault {
                            Fault::RateLimited { .. } => "rate_limit_exceeded",
                            Fault::Unavailable => "server_error",
                            _ => "invalid_request_error",
                        };
                        let error = json!({ "error": { "message": message, "type": kind } });
                        Event::Send(format!("data: {error}\n\n"))
                    }));
                    return events;
                }
            }
        }
        let reason = finish(scene);
        events.push(chunk(json!([{ "index": 0, "delta": {}, "finish_reason": reason }])));
        let usage = json!({ "object": "chat.completion.chunk", "choices": [], "usage": usage(scene) });
        events.push(Event::Send(format!("data: {usage}\n\ndata: [DONE]\n\n")));
        events
    }

    fn whole(&self, scene: &Scene) -> Option<Value> {
        let mut message = json!({ "role": "assistant", "content": "" });
        let mut calls = Vec::new();
        for step in &scene.steps {
            match step {
                Step::Say { text, .. } => message["content"] = json!(text),
                Step::Call { tool, args, .. } => {
                    // Ollama once sent arguments as an object, without ids and numbers.
                    let arguments: Value = serde_json::from_str(args).ok()?;
                    calls.push(json!({ "function": { "name": tool, "arguments": arguments } }));
                }
                _ => return None,
            }
        }
        message["tool_calls"] = calls.into();
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish(scene) });
        Some(json!({ "object": "chat.completion", "choices": [choice], "usage": usage(scene) }))
    }
}

fn send_calls(calls: &[(String, String, Vec<String>)], interleaved: bool, events: &mut Vec<Event>) {
    let start = |at: usize| {
        let (id, tool, _) = &calls[at];
        let function = json!({ "name": tool, "arguments": "" });
        let call = json!({ "index": at, "id": id, "type": "function", "function": function });
        chunk(json!([{ "index": 0, "delta": { "tool_calls": [call] } }]))
    };
    let pieces: Vec<_> = calls.iter().map(|(_, _, pieces)| pieces.clone()).collect();
    let mut begun = 0;
    if interleaved {
        events.extend((0..calls.len()).map(start));
        begun = calls.len();
    }
    for (at, piece) in in_turns(&pieces, interleaved) {
        while begun <= at {
            events.push(start(begun));
            begun += 1;
        }
        let call = json!({ "index": at, "function": { "arguments": piece } });
        events.push(chunk(json!([{ "index": 0, "delta": { "tool_calls": [call] } }])));
    }
    events.extend((begun..calls.len()).map(start));
}

fn chunk(choices: Value) -> Event {
    let chunk = json!({ "id": "x", "object": "chat.completion.chunk", "choices": choices, "usage": null });
    Event::Send(format!("data: {chunk}\n\n"))
}

fn finish(scene: &Scene) -> &'static str {
    match scene.stop {
        Stop::Done => "stop",
        Stop::Calls => "tool_calls",
        Stop::Length => "length",
        Stop::Refused => "content_filter",
    }
}

fn usage(scene: &Scene) -> Value {
    let tokens = tokens(scene);
    json!({
        "prompt_tokens": tokens.input + tokens.cache_read + tokens.cache_write,
        "completion_tokens": tokens.output,
        "prompt_tokens_details": { "cached_tokens": tokens.cache_read, "cache_write_tokens": tokens.cache_write },
    })
}

fn words(content: &Value) -> String {
    content.as_str().unwrap_or_default().to_owned()
}

fn contents(content: &Value) -> Vec<Part> {
    match content {
        Value::String(text) => vec![Part::text(text)],
        Value::Array(blocks) => blocks.iter().filter_map(block).collect(),
        _ => Vec::new(),
    }
}

fn block(block: &Value) -> Option<Part> {
    match block["type"].as_str()? {
        "text" => Some(Part::text(block["text"].as_str()?)),
        "image_url" => {
            let (mime, data) =
                block["image_url"]["url"].as_str()?.strip_prefix("data:")?.split_once(";base64,")?;
            super::image(&mime.into(), &data.into()).ok()
        }
        _ => None,
    }
}

/// Tools by their names; the rest is the dialects' affair.
pub(super) fn specs(
    tools: Option<&Vec<Value>>,
    inner: impl Fn(&Value) -> &Value,
) -> Result<Vec<Spec>, String> {
    let specs = tools.into_iter().flatten().map(|tool| {
        let name = inner(tool)["name"].as_str().ok_or("a tool without a name")?;
        let name = claw_core::ToolName::new(name).map_err(|error| error.to_string())?;
        Ok(Spec { name, description: "".into(), parameters: json!({ "type": "object" }).into() })
    });
    specs.collect()
}
