//! Generated content, from the server's side.

use claw_core::CallId;
use claw_core::message::{Args, Part, ToolResult, Turn, Wanted};
use claw_core::port::{Choice, Fault, Question, Stop};
use claw_core::store::Role;
use claw_core::tool::Block;
use claw_llm::{Scene, Step};
use serde_json::{Value, json};

use super::{Event, Manners, Wire, broken, openai, pause, tokens};

pub(super) struct Gemini;

impl Wire for Gemini {
    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn refusal(&self, status: u16, message: &str) -> Value {
        let kind = match status {
            401 => "UNAUTHENTICATED",
            429 => "RESOURCE_EXHAUSTED",
            500.. => "UNAVAILABLE",
            _ => "INVALID_ARGUMENT",
        };
        json!([{ "error": { "code": status, "message": message, "status": kind } }])
    }

    fn read(&self, body: &Value) -> Result<Question, String> {
        let mut question = Question::default();
        let mut system = body["systemInstruction"]["parts"].as_array().into_iter().flatten();
        let mut text = || system.next().and_then(|part| part["text"].as_str()).unwrap_or_default().to_owned();
        question.system.stable = text();
        question.system.changing = text();
        let mut open: Vec<(CallId, String)> = Vec::new();
        let mut last = "";
        for content in body["contents"].as_array().ok_or("no `contents`")? {
            let role = content["role"].as_str().ok_or("content without `role`")?;
            if role == last || (last.is_empty() && role != "user") {
                return Err(format!("please ensure that roles alternate, but `{role}` follows `{last}`"));
            }
            last = role;
            let (mut parts, mut results) = (Vec::new(), Vec::new());
            for part in content["parts"].as_array().filter(|parts| !parts.is_empty()).ok_or("no `parts`")? {
                if let Some(response) = part.get("functionResponse") {
                    results.push(result(response, &mut open)?);
                } else {
                    parts.push(read(part, role, &mut open)?);
                }
            }
            if role == "user" && !open.is_empty() {
                let message =
                    "the number of function response parts is not equal to that of function call parts";
                return Err(message.into());
            }
            if !results.is_empty() {
                question.turns.push(Turn { role: Role::Tool, parts: results });
            }
            if !parts.is_empty() {
                let role = if role == "user" { Role::User } else { Role::Assistant };
                question.turns.push(Turn { role, parts });
            }
        }
        if last != "user" {
            return Err("the last content must be the user's".into());
        }
        question.tools = openai::specs(body["tools"][0]["functionDeclarations"].as_array(), |tool| tool)?;
        let mode = &body["toolConfig"]["functionCallingConfig"]["mode"];
        question.choice = if mode == "NONE" { Choice::None } else { Choice::Free };
        Ok(question)
    }

    fn events(&self, scene: &Scene, _: &Manners) -> Vec<Event> {
        let mut events = Vec::new();
        let mut reason = match scene.stop {
            Stop::Done | Stop::Calls => "STOP",
            Stop::Length => "MAX_TOKENS",
            Stop::Refused => "SAFETY",
        };
        for step in &scene.steps {
            match step {
                Step::Say { text, pace } => {
                    for piece in pace.pieces(text) {
                        events.extend(pause(pace.delay));
                        events.push(parts(json!([{ "text": piece }])));
                    }
                }
                Step::Think { text, pace } => {
                    for piece in pace.pieces(text) {
                        events.extend(pause(pace.delay));
                        events.push(parts(json!([{ "text": piece, "thought": true }])));
                    }
                }
                // Calls come whole or not at all.
                Step::Call { cut: true, .. } => {}
                Step::Call { tool, args, pace, .. } => {
                    events.extend(pause(pace.delay));
                    match serde_json::from_str::<Value>(args) {
                        Ok(args) => {
                            let call = json!({ "name": tool, "args": args });
                            let signature = format!("signed {tool}");
                            events.push(parts(
                                json!([{ "functionCall": call, "thoughtSignature": signature }]),
                            ));
                        }
                        Err(_) => reason = "MALFORMED_FUNCTION_CALL",
                    }
                }
                Step::Wait(time) => events.push(Event::Wait(*time)),
                Step::Hang => events.push(Event::Hang),
                Step::Fail { fault, message } => {
                    events.push(broken(*fault).unwrap_or_else(|| {
                        let status = match fault {
                            Fault::RateLimited { .. } => 429,
                            Fault::Unavailable => 503,
                            _ => 400,
                        };
                        Event::Send(format!("data: {}\n\n", self.refusal(status, message)[0]))
                    }));
                    return events;
                }
            }
        }
        let counted = tokens(scene);
        let usage = json!({
            "promptTokenCount": counted.input + counted.cache_read,
            "cachedContentTokenCount": counted.cache_read,
            "candidatesTokenCount": counted.output,
        });
        let last = json!({ "candidates": [{ "finishReason": reason }], "usageMetadata": usage });
        // Google ends lines as mail does.
        events.push(Event::Send(format!("data: {last}\r\n\r\n")));
        events
    }

    fn whole(&self, _: &Scene) -> Option<Value> {
        None
    }
}

fn parts(parts: Value) -> Event {
    let event = json!({ "candidates": [{ "content": { "role": "model", "parts": parts } }] });
    Event::Send(format!("data: {event}\r\n\r\n"))
}

fn read(part: &Value, role: &str, open: &mut Vec<(CallId, String)>) -> Result<Part, String> {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        return Ok(Part::text(text));
    }
    if let Some(data) = part.get("inlineData") {
        return super::image(&data["mimeType"], &data["data"]);
    }
    let call = part.get("functionCall").filter(|_| role == "model").ok_or("a part of no known kind")?;
    let tool = call["name"].as_str().ok_or("a call without a name")?.to_owned();
    if !call["args"].is_object() {
        return Err("args must be an object".into());
    }
    let id = CallId::new();
    open.push((id, tool.clone()));
    let args = Args::Json(call["args"].clone());
    Ok(Part::Call(Wanted { call: id, model_id: "".into(), tool, args, seal: None }))
}

fn result(response: &Value, open: &mut Vec<(CallId, String)>) -> Result<Part, String> {
    let tool = response["name"].as_str().ok_or("a result without a name")?;
    let at = open.iter().position(|(_, name)| name == tool).ok_or(format!("a result of no call: {tool}"))?;
    let (call, tool) = open.remove(at);
    let response = &response["response"];
    let failed = response.get("error").is_some();
    let text = response["output"].as_str().or(response["error"].as_str()).ok_or("a result without text")?;
    let content = vec![Block::Text { text: text.to_owned() }];
    Ok(Part::Result(ToolResult { call, model_id: "".into(), tool, content, failed }))
}
