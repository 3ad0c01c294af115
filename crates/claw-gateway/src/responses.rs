//! Responses, as OpenAI's clients speak them: one answer of an agent, with the calls that it made.
//!
//! A response is a run: its id is `resp_` and the run's. `previous_response_id` continues the session of that
//! run. The agent makes the calls here, not the client, so they are shown as `mcp_call` items, which clients
//! know as calls made by the server.

mod input;
mod stored;
mod view;

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use clawsmith::store::JobFilter;
use clawsmith::{CallId, JobId};
use futures_util::stream::unfold;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::input::Given;
use self::view::{Incomplete, OutputItem, OutputText, ResponseFault, ResponseView, call_item, message_item};
use crate::answering::{AnswerItem, Answering, Ended};
use crate::api::{Body, Json, Output, Replied, Visit};
use crate::client_tools::{self, ResponseTool, ToolCall};
use crate::error::ApiError;
use crate::openapi::{Operation, Schemas};
use crate::question::{Content, Question, Said, ask, session_in};

pub(crate) use self::stored::get;

/// The start of a response's id, before that of its run.
const PREFIX: &str = "resp_";

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
    /// Tools that the client makes itself, beside the agent's own: functions, under names that are none of the agent's.
    #[serde(default)]
    tools: Vec<ResponseTool>,
    /// `auto`, `none`, `required`, or a function of `tools`.
    tool_choice: Option<Value>,
    /// The only tools to offer, of those that the agent has.
    allowed_tools: Option<Vec<String>>,
    /// Return before the answer is complete; not supported.
    #[serde(default)]
    background: bool,
    /// Metadata of the client, returned unchanged.
    #[serde(default)]
    metadata: Map<String, Value>,
}

/// The answers to a request.
pub(crate) struct Responded;

impl Output for Responded {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.header(
            "x-clawsmith-session",
            "Key of your session to continue; if left out, a new session is started.",
        );
        operation.reply(StatusCode::OK, "The response.", Some(schemas.shown::<ResponseView>()));
        operation.also(StatusCode::OK, "text/event-stream", json!({ "type": "string" }));
    }
}

pub(crate) async fn create(
    visit: Visit,
    headers: HeaderMap,
    Body(create): Body<Create>,
) -> Result<Replied<Responded>, ApiError> {
    if create.background {
        return Err(ApiError::invalid("`background` is not supported")
            .hint("leave it out, or send the message by `/v1/ws` and follow the session"));
    }
    let session = match &create.previous_response_id {
        Some(id) => Some(session_after(&visit, id).await?),
        None => session_in(&headers)?,
    };
    let mut messages = create.input.said()?;
    if let Some(instructions) = &create.instructions {
        let content = Some(Content::Text(instructions.clone()));
        messages.insert(0, Said { role: "developer".to_owned(), content, ..Said::default() });
    }
    let allowed_tools = create.allowed_tools.as_deref();
    let tools = client_tools::of_responses(&create.tools, create.tool_choice.as_ref())?;
    let question = Question { model: &create.model, session, allowed_tools, messages: &messages, tools };
    let answering = ask(&visit, question).await?;
    let head = answering.head();
    let id = format!("{PREFIX}{}", answering.run);
    let view = ResponseView {
        previous_response_id: create.previous_response_id,
        instructions: create.instructions,
        metadata: create.metadata,
        tools: create.tools,
        tool_choice: create.tool_choice.unwrap_or_else(|| "auto".into()),
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
        let what = format!("the session has continued since `{shown}`, and a session cannot branch");
        return Err(ApiError::new(StatusCode::CONFLICT, "session_went_on", what)
            .hint("continue from its last response, or start a new session with all messages"));
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
            AnswerItem::Words(words) => self.words(&words),
            AnswerItem::Call { id, tool, args } => self.call(id, tool, args),
            AnswerItem::Result { id, text, failed } => self.result(id, &text, failed),
            AnswerItem::Handed(call) => self.hand_over(call),
            AnswerItem::End(ended) => {
                self.message_done();
                self.view.usage = Some(self.answering.usage().await.into());
                let (status, kind) = match ended {
                    Ended::Stop | Ended::Called => ("completed", "response.completed"),
                    Ended::Limit => {
                        self.view.incomplete_details = Some(Incomplete { reason: "max_output_tokens" });
                        ("incomplete", "response.incomplete")
                    }
                };
                self.end(status, kind);
            }
            AnswerItem::Failed(message) => {
                self.message_done();
                self.view.error = Some(ResponseFault { code: "server_error", message });
                self.end("failed", "response.failed");
            }
        }
    }

    fn end(&mut self, status: &'static str, kind: &str) {
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
        let at = self.view.output.len();
        let item = OutputItem::begun(id, name, arguments.clone());
        self.tell("response.output_item.added", json!({ "output_index": at, "item": item }));
        self.view.output.push(item);
        let id = call_item(id);
        self.tell("response.mcp_call.in_progress", json!({ "item_id": id, "output_index": at }));
        let arguments = json!({ "item_id": id, "output_index": at, "arguments": arguments });
        self.tell("response.mcp_call_arguments.done", arguments);
    }

    fn result(&mut self, call: CallId, text: &str, failed: bool) {
        let Some(at) = self.view.output.iter_mut().position(|item| item.end(call, text, failed)) else {
            return;
        };
        let Some(item) = self.view.output.get(at).cloned() else { return };
        let (id, status) = (call_item(call), if failed { "failed" } else { "completed" });
        self.tell(&format!("response.mcp_call.{status}"), json!({ "item_id": id, "output_index": at }));
        self.item_done(at, item);
    }

    /// Hands a call to the client.
    fn hand_over(&mut self, call: ToolCall) {
        self.message_done();
        let (at, name, arguments) =
            (self.view.output.len(), call.function.name.clone(), call.function.arguments.clone());
        let item = OutputItem::handed(call);
        let mut begun = json!(item);
        (begun["arguments"], begun["status"]) = ("".into(), "in_progress".into());
        let id = begun["id"].clone();
        self.tell("response.output_item.added", json!({ "output_index": at, "item": begun }));
        self.view.output.push(item.clone());
        let delta = json!({ "item_id": id, "output_index": at, "delta": arguments });
        self.tell("response.function_call_arguments.delta", delta);
        let done = json!({ "item_id": id, "output_index": at, "name": name, "arguments": arguments });
        self.tell("response.function_call_arguments.done", done);
        self.item_done(at, item);
    }
}

fn unknown(id: &str) -> ApiError {
    let shown: String = id.chars().take(100).collect();
    ApiError::not_found(format!("there is no response `{shown}` of yours"))
}
