//! Chat completions, as OpenAI's clients speak them: the model's name picks the agent.
//!
//! An agent keeps its sessions; such a client sends the whole conversation each time. Without the header
//! `x-clawsmith-session` a request begins a new session, and the messages before the last question are passed
//! to the agent as history. With it, the session continues and only new messages are added.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use clawsmith::AgentId;
use clawsmith::store::Tokens;
use futures_util::stream::unfold;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answering::{AnswerItem, Answering, Ended};
use crate::api::{Body, Json, Output, Replied, Visit};
use crate::client_tools::{self, ChatTool, ToolCall};
use crate::error::ApiError;
use crate::openapi::{Operation, Schemas};
use crate::question::{Question, Said, ask, session_in};

/// A request. Settings that an agent decides by itself (temperature and the like) are accepted and ignored.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Completion {
    /// The agent: `agent:NAME`, `NAME`, or `clawsmith` for the default one.
    model: String,
    messages: Vec<Said>,
    /// Send the answer as it comes, as server-sent events.
    #[serde(default)]
    stream: bool,
    stream_options: Option<StreamOptions>,
    /// Tools that the client makes itself, beside the agent's own: functions, under names that are none of the agent's.
    #[serde(default)]
    tools: Vec<ChatTool>,
    /// `auto`, `none`, `required`, or a function of `tools`.
    tool_choice: Option<Value>,
    /// The only tools to offer, of those that the agent has.
    allowed_tools: Option<Vec<String>>,
    /// The number of answers: 1 alone.
    n: Option<u32>,
}

/// Options of a stream.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
pub(crate) struct StreamOptions {
    /// Send the usage before the end.
    #[serde(default)]
    include_usage: bool,
}

/// The agents, as models of OpenAI's API.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelList {
    object: &'static str,
    data: Vec<ModelCard>,
}

/// An agent, as a model.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelCard {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
}

/// An answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChatCompletion {
    id: String,
    object: &'static str,
    created: u64,
    model: String,
    choices: Vec<Choice>,
    usage: ChatUsage,
}

/// The only choice of a completion.
#[derive(Debug, Serialize, JsonSchema)]
struct Choice {
    index: u32,
    message: Answered,
    finish_reason: &'static str,
    logprobs: Option<Value>,
}

/// The message of an answer.
#[derive(Debug, Serialize, JsonSchema)]
struct Answered {
    role: &'static str,
    content: Option<String>,
    refusal: Option<String>,
    /// Calls of the client's tools: it makes them, and sends their results as `tool` messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
}

/// Tokens, in the form of chat completions.
#[derive(Debug, Serialize, JsonSchema)]
struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

impl From<Tokens> for ChatUsage {
    fn from(used: Tokens) -> Self {
        let prompt_tokens = used.input + used.cache_read + used.cache_write;
        let total_tokens = prompt_tokens + used.output;
        Self { prompt_tokens, completion_tokens: used.output, total_tokens }
    }
}

/// The answers to a request.
pub(crate) struct Completed;

impl Output for Completed {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.header(
            "x-clawsmith-session",
            "Key of your session to continue; if left out, a new session is started.",
        );
        operation.reply(StatusCode::OK, "The answer.", Some(schemas.shown::<ChatCompletion>()));
        operation.also(StatusCode::OK, "text/event-stream", json!({ "type": "string" }));
    }
}

/// The agents, as models.
pub(crate) async fn models(visit: Visit) -> Result<Json<ModelList>, ApiError> {
    let agents = visit.app().agents(&visit.visitor().tenant).await?;
    let mut names: Vec<String> = agents.iter().map(|agent| format!("agent:{}", agent.agent.id)).collect();
    if !names.iter().any(|name| name == "agent:default") {
        names.insert(0, "agent:default".to_owned());
    }
    let app = visit.app();
    let aliases = &app.setup().config().gateway.aliases;
    names.extend(aliases.keys().cloned());
    let is_usable = |name: &String| {
        let name = aliases.get(name).map_or_else(|| name.clone(), |agent| format!("agent:{agent}"));
        let agent = name.strip_prefix("agent:").and_then(|name| AgentId::new(name).ok());
        agent.is_some_and(|agent| visit.visitor().may_use(&agent).is_ok())
    };
    names.retain(is_usable);
    let card = |id| ModelCard { id, object: "model", created: 0, owned_by: "clawsmith" };
    Ok(Json(ModelList { object: "list", data: names.into_iter().map(card).collect() }))
}

pub(crate) async fn create(
    visit: Visit,
    headers: HeaderMap,
    Body(completion): Body<Completion>,
) -> Result<Replied<Completed>, ApiError> {
    if completion.n.is_some_and(|n| n != 1) {
        return Err(ApiError::invalid("`n` must be 1"));
    }
    let question = Question {
        model: &completion.model,
        session: session_in(&headers)?,
        allowed_tools: completion.allowed_tools.as_deref(),
        messages: &completion.messages,
        tools: client_tools::of_chat(completion.tools, completion.tool_choice.as_ref())?,
    };
    let answering = ask(&visit, question).await?;
    let head = answering.head();
    let response = match completion.stream {
        true => streamed(answering, completion.stream_options.unwrap_or_default()),
        false => whole(answering).await?,
    };
    Ok((head, response).into_response().into())
}

fn id(answering: &Answering) -> String {
    format!("chatcmpl-{}", answering.run)
}

const fn finish_reason(ended: Ended) -> &'static str {
    match ended {
        Ended::Stop => "stop",
        Ended::Limit => "length",
        Ended::Called => "tool_calls",
    }
}

/// Returns the complete answer.
async fn whole(mut answering: Answering) -> Result<Response, ApiError> {
    let (mut content, mut tool_calls) = (String::new(), Vec::new());
    let ended = loop {
        match answering.next().await {
            AnswerItem::Words(words) => content.push_str(&words),
            AnswerItem::Handed(call) => tool_calls.push(call),
            AnswerItem::Call { .. } | AnswerItem::Result { .. } => {}
            AnswerItem::End(ended) => break ended,
            AnswerItem::Failed(why) => {
                return Err(ApiError::new(StatusCode::BAD_GATEWAY, "run_failed", why));
            }
        }
    };
    let content = (tool_calls.is_empty() || !content.is_empty()).then_some(content);
    let message = Answered { role: "assistant", content, refusal: None, tool_calls };
    let choice = Choice { index: 0, message, finish_reason: finish_reason(ended), logprobs: None };
    let completion = ChatCompletion {
        id: id(&answering),
        object: "chat.completion",
        created: answering.created,
        model: answering.model.clone(),
        choices: vec![choice],
        usage: answering.usage().await.into(),
    };
    Ok(Json(completion).into_response())
}

fn chunk(answering: &Answering, delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": id(answering), "object": "chat.completion.chunk", "created": answering.created,
        "model": answering.model,
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish, "logprobs": null }],
    })
}

/// An answer that is streamed.
struct Streaming {
    answering: Answering,
    options: StreamOptions,
    /// The number of calls that were handed to the client.
    handed: usize,
    /// Events that wait to be sent.
    waiting: VecDeque<Event>,
    is_over: bool,
}

impl Streaming {
    fn send(&mut self, value: &Value) {
        self.waiting.push_back(Event::default().data(value.to_string()));
    }

    fn delta(&mut self, delta: &Value) {
        let chunk = chunk(&self.answering, delta, None);
        self.send(&chunk);
    }

    /// Takes the next item of the run.
    async fn advance(&mut self) {
        match self.answering.next().await {
            AnswerItem::Words(words) => self.delta(&json!({ "content": words })),
            AnswerItem::Handed(call) => self.hand_over(&call),
            AnswerItem::End(ended) => {
                let last = chunk(&self.answering, &json!({}), Some(finish_reason(ended)));
                self.send(&last);
                if self.options.include_usage {
                    let mut chunk = chunk(&self.answering, &json!({}), None);
                    chunk["choices"] = json!([]);
                    chunk["usage"] = json!(ChatUsage::from(self.answering.usage().await));
                    self.send(&chunk);
                }
                self.end();
            }
            AnswerItem::Failed(why) => {
                let error =
                    json!({ "message": why, "type": "server_error", "param": null, "code": "run_failed" });
                self.send(&json!({ "error": error }));
                self.end();
            }
            // Calls are the agent's own affair here.
            AnswerItem::Call { .. } | AnswerItem::Result { .. } => {
                self.waiting.push_back(Event::default().comment("a call"));
            }
        }
    }

    /// Sends a call in two deltas, as a client expects them: its name, then its arguments.
    fn hand_over(&mut self, call: &ToolCall) {
        let index = self.handed;
        self.handed += 1;
        let mut named = json!(call);
        named["index"] = index.into();
        named["function"]["arguments"] = "".into();
        self.delta(&json!({ "tool_calls": [named] }));
        let arguments = json!({ "index": index, "function": { "arguments": call.function.arguments } });
        self.delta(&json!({ "tool_calls": [arguments] }));
    }

    fn end(&mut self) {
        self.waiting.push_back(Event::default().data("[DONE]"));
        self.is_over = true;
    }
}

/// Streams the answer.
fn streamed(answering: Answering, options: StreamOptions) -> Response {
    let mut streaming = Streaming { answering, options, handed: 0, waiting: VecDeque::new(), is_over: false };
    streaming.delta(&json!({ "role": "assistant", "content": "" }));
    let events = unfold(streaming, |mut streaming| async move {
        loop {
            if let Some(event) = streaming.waiting.pop_front() {
                return Some((Ok::<Event, Infallible>(event), streaming));
            }
            if streaming.is_over {
                return None;
            }
            streaming.advance().await;
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}
