//! Responses, as OpenAI's clients speak them: one answer of an agent, with the calls that it made.
//!
//! A response is a run: its id is `resp_` and the run's. `previous_response_id` continues the session of that
//! run. The agent makes the calls here, not the client, so they are shown as `mcp_call` items, which clients
//! know as calls made by the server.

mod stored;

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use clawsmith::store::{JobFilter, Tokens};
use clawsmith::{CallId, JobId};
use futures_util::stream::unfold;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answering::{
    Answering, Content, ContentPart, Ended, ImageUrl, Question, Said, Told, ask, session_in,
};
use crate::api::{Body, Json, Output, Replied, Visit};
use crate::completions::refuse_tools;
use crate::error::ApiError;
use crate::openapi::{Operation, Schemas};

pub(crate) use self::stored::get;

/// The start of a response's id, before that of its run.
const PREFIX: &str = "resp_";
/// The server label of calls.
const LABEL: &str = "clawsmith";

/// A request. Settings that an agent decides by itself (temperature and the like) are accepted and ignored.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Create {
    /// The agent: `agent:NAME`, `NAME`, or `clawsmith` for the default one.
    model: String,
    /// A text, or messages.
    input: Given,
    /// Instructions of the client, beside the agent's own.
    instructions: Option<String>,
    /// The response that this one follows, in the same session.
    previous_response_id: Option<String>,
    /// Send the answer as it comes, as server-sent events.
    #[serde(default)]
    stream: bool,
    /// Tools of the client, which are refused: the agent has its own.
    #[serde(default)]
    tools: Vec<Value>,
    /// The only tools to offer, of those that the agent has.
    allowed_tools: Option<Vec<String>>,
    /// Return before the answer is complete; not supported.
    #[serde(default)]
    background: bool,
    /// Metadata of the client, returned unchanged.
    #[serde(default)]
    metadata: Map<String, Value>,
}

/// A text, or messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Given {
    Text(String),
    Items(Vec<Item>),
}

/// A message.
#[derive(Debug, Deserialize, JsonSchema)]
struct Item {
    /// `message`.
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    content: Option<ItemContent>,
}

/// A text, or texts and images.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum ItemContent {
    Text(String),
    Parts(Vec<ItemPart>),
}

/// A text or an image.
#[derive(Debug, Deserialize, JsonSchema)]
struct ItemPart {
    /// `input_text`, `output_text` or `input_image`.
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    /// A data URL.
    image_url: Option<String>,
}

impl Item {
    fn said(self) -> Result<Said, ApiError> {
        let kind = self.kind.as_deref().unwrap_or("message");
        if kind != "message" {
            let kind: String = kind.chars().take(50).collect();
            return Err(ApiError::invalid(format!("an item of the type `{kind}` is not taken here"))
                .hint("send messages; calls are made by the agent, and their results are not the client's"));
        }
        let content = self.content.map(|content| match content {
            ItemContent::Text(text) => Content::Text(text),
            ItemContent::Parts(parts) => Content::Parts(parts.into_iter().map(ItemPart::part).collect()),
        });
        Ok(Said { role: self.role.unwrap_or_else(|| "user".to_owned()), content })
    }
}

impl ItemPart {
    fn part(self) -> ContentPart {
        let kind = match self.kind.as_str() {
            "input_text" | "output_text" => "text".to_owned(),
            "input_image" => "image_url".to_owned(),
            _ => self.kind,
        };
        ContentPart { kind, text: self.text, image_url: self.image_url.map(|url| ImageUrl { url }) }
    }
}

/// A response.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ResponseView {
    id: String,
    object: &'static str,
    created_at: u64,
    /// `queued`, `in_progress`, `completed`, `incomplete`, `cancelled` or `failed`.
    status: &'static str,
    model: String,
    /// The agent's messages and calls.
    output: Vec<OutputItem>,
    previous_response_id: Option<String>,
    instructions: Option<String>,
    metadata: Map<String, Value>,
    error: Option<ResponseFault>,
    incomplete_details: Option<Incomplete>,
    usage: Option<ResponseUsage>,
    parallel_tool_calls: bool,
    tool_choice: &'static str,
    tools: Vec<Value>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    store: bool,
}

impl ResponseView {
    /// A response that has just begun.
    fn new(id: String, created_at: u64, model: String) -> Self {
        Self {
            id,
            object: "response",
            created_at,
            status: "in_progress",
            model,
            output: Vec::new(),
            previous_response_id: None,
            instructions: None,
            metadata: Map::new(),
            error: None,
            incomplete_details: None,
            usage: None,
            parallel_tool_calls: true,
            tool_choice: "auto",
            tools: Vec::new(),
            temperature: None,
            top_p: None,
            store: true,
        }
    }
}

/// A failed response's error.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ResponseFault {
    code: &'static str,
    message: String,
}

/// The limit that ended a response.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Incomplete {
    reason: &'static str,
}

/// A message or a call of the agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OutputItem {
    /// A message.
    Message { id: String, role: &'static str, status: &'static str, content: Vec<OutputText> },
    /// A call that the agent made.
    McpCall {
        id: String,
        server_label: &'static str,
        name: String,
        /// The arguments, as JSON text.
        arguments: String,
        output: Option<String>,
        error: Option<String>,
        status: &'static str,
    },
}

/// The text of a message.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct OutputText {
    /// Always `output_text`.
    r#type: &'static str,
    text: String,
    annotations: Vec<Value>,
    logprobs: Vec<Value>,
}

impl OutputText {
    fn new(text: &str) -> Self {
        Self { r#type: "output_text", text: text.to_owned(), annotations: Vec::new(), logprobs: Vec::new() }
    }
}

/// Tokens, in the form of responses.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ResponseUsage {
    input_tokens: u64,
    input_tokens_details: Cached,
    output_tokens: u64,
    output_tokens_details: Reasoning,
    total_tokens: u64,
}

/// Tokens from a cache.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Cached {
    cached_tokens: u64,
}

/// Tokens of reasoning, which are not counted separately.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Reasoning {
    reasoning_tokens: u64,
}

impl From<Tokens> for ResponseUsage {
    fn from(used: Tokens) -> Self {
        let input_tokens = used.input + used.cache_read + used.cache_write;
        Self {
            input_tokens,
            input_tokens_details: Cached { cached_tokens: used.cache_read },
            output_tokens: used.output,
            output_tokens_details: Reasoning { reasoning_tokens: 0 },
            total_tokens: input_tokens + used.output,
        }
    }
}

/// The answers to a request.
pub(crate) struct Responded;

impl Output for Responded {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation
            .header("x-clawsmith-session", "A session of your own that goes on; a fresh one where left out.");
        operation.reply(StatusCode::OK, "The response.", Some(schemas.shown::<ResponseView>()));
        operation.also(StatusCode::OK, "text/event-stream", json!({ "type": "string" }));
    }
}

pub(crate) async fn create(
    visit: Visit,
    headers: HeaderMap,
    Body(create): Body<Create>,
) -> Result<Replied<Responded>, ApiError> {
    refuse_tools(&create.tools)?;
    if create.background {
        return Err(ApiError::invalid("`background` is not taken here")
            .hint("leave it out, or send the message by `/v1/ws` and follow the session"));
    }
    let session = match &create.previous_response_id {
        Some(id) => Some(session_after(&visit, id).await?),
        None => session_in(&headers)?,
    };
    let mut messages = match create.input {
        Given::Text(text) => vec![Said { role: "user".to_owned(), content: Some(Content::Text(text)) }],
        Given::Items(items) => items.into_iter().map(Item::said).collect::<Result<Vec<Said>, ApiError>>()?,
    };
    if let Some(instructions) = &create.instructions {
        let content = Some(Content::Text(instructions.clone()));
        messages.insert(0, Said { role: "developer".to_owned(), content });
    }
    let allowed_tools = create.allowed_tools.as_deref();
    let question = Question { model: &create.model, session, allowed_tools, messages: &messages };
    let answering = ask(&visit, question).await?;
    let head = answering.head();
    let id = format!("{PREFIX}{}", answering.run);
    let view = ResponseView {
        previous_response_id: create.previous_response_id,
        instructions: create.instructions,
        metadata: create.metadata,
        ..ResponseView::new(id, answering.created, answering.model.clone())
    };
    let responding =
        Responding { answering, view, said: None, number: 0, waiting: VecDeque::new(), is_over: false };
    let response = match create.stream {
        true => responding.streamed(),
        false => responding.whole().await?,
    };
    Ok((head, response).into_response().into())
}

/// Returns the session of a response, which must be the last of it.
async fn session_after(visit: &Visit, id: &str) -> Result<String, ApiError> {
    let shown: String = id.chars().take(100).collect();
    let run: JobId = id.strip_prefix(PREFIX).and_then(|run| run.parse().ok()).ok_or_else(|| unknown(id))?;
    let job = crate::sessions::own_run(visit, run).await.map_err(|_| unknown(id))?;
    let session = job.new.session.clone().ok_or_else(|| unknown(id))?;
    let latest = JobFilter { session: Some(session.clone()), limit: 1, ..JobFilter::default() };
    let latest = visit.app().runs(&latest).await?;
    if latest.first().is_some_and(|latest| latest.new.id != run) {
        let what = format!("the session went on after `{shown}`, and a session has one end");
        return Err(ApiError::new(StatusCode::CONFLICT, "session_went_on", what)
            .hint("go on from its last response, or begin a fresh session with the whole conversation"));
    }
    Ok(session.to_string())
}

/// A response in progress.
struct Responding {
    answering: Answering,
    view: ResponseView,
    /// The streaming message: its index in the output, and its text.
    said: Option<(usize, String)>,
    /// The number of the next event.
    number: u64,
    /// Events that wait to be sent.
    waiting: VecDeque<Value>,
    is_over: bool,
}

impl Responding {
    /// Returns the complete response.
    async fn whole(mut self) -> Result<Response, ApiError> {
        while !self.is_over {
            self.advance().await;
            self.waiting.clear();
        }
        match self.view.error {
            Some(fault) => Err(ApiError::new(StatusCode::BAD_GATEWAY, "run_failed", fault.message)),
            None => Ok(Json(self.view).into_response()),
        }
    }

    /// Streams the response.
    fn streamed(mut self) -> Response {
        self.tell("response.created", json!({ "response": self.view }));
        self.tell("response.in_progress", json!({ "response": self.view }));
        let events = unfold(self, |mut responding| async move {
            loop {
                if let Some(value) = responding.waiting.pop_front() {
                    let kind = value["type"].as_str().unwrap_or_default().to_owned();
                    let event = Event::default().event(kind).data(value.to_string());
                    return Some((Ok::<Event, Infallible>(event), responding));
                }
                if responding.is_over {
                    return None;
                }
                responding.advance().await;
            }
        });
        Sse::new(events).keep_alive(KeepAlive::default()).into_response()
    }

    fn tell(&mut self, kind: &str, mut event: Value) {
        event["type"] = kind.into();
        event["sequence_number"] = self.number.into();
        self.number += 1;
        self.waiting.push_back(event);
    }

    /// Takes the next item of the run.
    async fn advance(&mut self) {
        match self.answering.next().await {
            Told::Words(words) => self.words(&words),
            Told::Call { id, tool, args } => self.call(id, tool, args),
            Told::Result { id, text, failed } => self.result(id, text, failed),
            Told::End(ended) => {
                self.message_done();
                self.view.usage = Some(self.answering.usage().await.into());
                let kind = match ended {
                    Ended::Stop => ("completed", "response.completed"),
                    Ended::Limit => {
                        self.view.incomplete_details = Some(Incomplete { reason: "max_output_tokens" });
                        ("incomplete", "response.incomplete")
                    }
                };
                self.end(kind);
            }
            Told::Failed(message) => {
                self.message_done();
                self.view.error = Some(ResponseFault { code: "server_error", message });
                self.end(("failed", "response.failed"));
            }
        }
    }

    fn end(&mut self, (status, kind): (&'static str, &str)) {
        self.view.status = status;
        self.is_over = true;
        self.tell(kind, json!({ "response": self.view }));
    }

    fn words(&mut self, words: &str) {
        // A message that is an item of its own needs no gap to the one before.
        let (at, words) = match self.said {
            Some((at, _)) => (at, words),
            None => (self.message_begins(), words.strip_prefix("\n\n").unwrap_or(words)),
        };
        let id = self.item_id(at);
        if let Some((_, said)) = &mut self.said {
            said.push_str(words);
        }
        let delta = json!({
            "item_id": id, "output_index": at, "content_index": 0, "delta": words, "logprobs": [],
        });
        self.tell("response.output_text.delta", delta);
    }

    fn item_id(&self, at: usize) -> String {
        message_item(self.answering.run, at)
    }

    fn message_begins(&mut self) -> usize {
        let at = self.view.output.len();
        let id = self.item_id(at);
        let item = OutputItem::Message {
            id: id.clone(),
            role: "assistant",
            status: "in_progress",
            content: Vec::new(),
        };
        self.tell("response.output_item.added", json!({ "output_index": at, "item": item }));
        self.view.output.push(item);
        self.said = Some((at, String::new()));
        let part = json!({
            "item_id": id, "output_index": at, "content_index": 0, "part": OutputText::new(""),
        });
        self.tell("response.content_part.added", part);
        at
    }

    /// Ends the streaming message, if there is one.
    fn message_done(&mut self) {
        let Some((at, text)) = self.said.take() else { return };
        let (id, part) = (self.item_id(at), OutputText::new(&text));
        let done = json!({
            "item_id": id, "output_index": at, "content_index": 0, "text": text, "logprobs": [],
        });
        self.tell("response.output_text.done", done);
        let ended = json!({ "item_id": id, "output_index": at, "content_index": 0, "part": part });
        self.tell("response.content_part.done", ended);
        let item = OutputItem::Message { id, role: "assistant", status: "completed", content: vec![part] };
        self.item_done(at, item);
    }

    fn item_done(&mut self, at: usize, item: OutputItem) {
        self.tell("response.output_item.done", json!({ "output_index": at, "item": item }));
        if let Some(place) = self.view.output.get_mut(at) {
            *place = item;
        }
    }

    fn call(&mut self, id: CallId, name: String, arguments: String) {
        self.message_done();
        let (at, id) = (self.view.output.len(), call_item(id));
        let item = OutputItem::McpCall {
            id: id.clone(),
            server_label: LABEL,
            name,
            arguments: arguments.clone(),
            output: None,
            error: None,
            status: "in_progress",
        };
        self.tell("response.output_item.added", json!({ "output_index": at, "item": item }));
        self.view.output.push(item);
        self.tell("response.mcp_call.in_progress", json!({ "item_id": id, "output_index": at }));
        let arguments = json!({ "item_id": id, "output_index": at, "arguments": arguments });
        self.tell("response.mcp_call_arguments.done", arguments);
    }

    fn result(&mut self, call: CallId, text: String, failed: bool) {
        let id = call_item(call);
        let is_it = |item: &OutputItem| matches!(item, OutputItem::McpCall { id: of, .. } if *of == id);
        let Some(at) = self.view.output.iter().position(is_it) else { return };
        let OutputItem::McpCall { name, arguments, .. } = self.view.output[at].clone() else { return };
        let (output, error) = if failed { (None, Some(text)) } else { (Some(text), None) };
        let status = if failed { "failed" } else { "completed" };
        let item = OutputItem::McpCall {
            id: id.clone(),
            server_label: LABEL,
            name,
            arguments,
            output,
            error,
            status,
        };
        self.tell(&format!("response.mcp_call.{status}"), json!({ "item_id": id, "output_index": at }));
        self.item_done(at, item);
    }
}

fn unknown(id: &str) -> ApiError {
    let shown: String = id.chars().take(100).collect();
    ApiError::not_found(format!("there is no response `{shown}` of yours"))
}

fn message_item(run: JobId, at: usize) -> String {
    format!("msg_{run}_{at}")
}

fn call_item(call: CallId) -> String {
    format!("mcp_{call}")
}
