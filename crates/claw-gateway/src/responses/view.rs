//! A response, as clients read it.

use clawsmith::store::Tokens;
use clawsmith::{CallId, JobId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::client_tools::{ResponseTool, ToolCall, read_id};

/// The server label of calls.
const LABEL: &str = "clawsmith";

/// A response.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ResponseView {
    pub(super) id: String,
    pub(super) object: &'static str,
    pub(super) created_at: u64,
    /// `queued`, `in_progress`, `completed`, `incomplete`, `cancelled` or `failed`.
    pub(super) status: &'static str,
    pub(super) model: String,
    /// The agent's messages and calls.
    pub(super) output: Vec<OutputItem>,
    pub(super) previous_response_id: Option<String>,
    pub(super) instructions: Option<String>,
    pub(super) metadata: Map<String, Value>,
    pub(super) error: Option<ResponseFault>,
    pub(super) incomplete_details: Option<Incomplete>,
    pub(super) usage: Option<ResponseUsage>,
    pub(super) parallel_tool_calls: bool,
    pub(super) tool_choice: Value,
    pub(super) tools: Vec<ResponseTool>,
    pub(super) temperature: Option<f64>,
    pub(super) top_p: Option<f64>,
    pub(super) store: bool,
}

impl ResponseView {
    /// A response that has just begun.
    pub(super) fn new(id: String, created_at: u64, model: String) -> Self {
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
            tool_choice: "auto".into(),
            tools: Vec::new(),
            temperature: None,
            top_p: None,
            store: true,
        }
    }
}

/// A failed response's error.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct ResponseFault {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// The limit that ended a response.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Incomplete {
    pub(super) reason: &'static str,
}

/// A message or a call of the agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputItem {
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
    /// A call of a tool of the client, which makes it and sends a `function_call_output`.
    FunctionCall {
        id: String,
        call_id: String,
        name: String,
        /// The arguments, as JSON text.
        arguments: String,
        status: &'static str,
    },
}

impl OutputItem {
    /// A call that the agent has begun.
    pub(super) fn begun(id: CallId, name: String, arguments: String) -> Self {
        let (id, server_label, status) = (call_item(id), LABEL, "in_progress");
        Self::McpCall { id, server_label, name, arguments, output: None, error: None, status }
    }

    /// Ends the call if it is this one; returns whether it is.
    pub(super) fn end(&mut self, call: CallId, text: &str, failed: bool) -> bool {
        let Self::McpCall { id, output, error, status, .. } = self else { return false };
        if *id != call_item(call) {
            return false;
        }
        *status = if failed { "failed" } else { "completed" };
        *(if failed { error } else { output }) = Some(text.to_owned());
        true
    }

    /// A call that is handed to the client.
    pub(super) fn handed(call: ToolCall) -> Self {
        let id = read_id(&call.id).map_or_else(|| call.id.clone(), |(_, call)| format!("fc_{call}"));
        let (call_id, name, arguments) = (call.id, call.function.name, call.function.arguments);
        Self::FunctionCall { id, call_id, name, arguments, status: "completed" }
    }
}

/// The text of a message.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct OutputText {
    /// Always `output_text`.
    pub(super) r#type: &'static str,
    pub(super) text: String,
    pub(super) annotations: Vec<Value>,
    pub(super) logprobs: Vec<Value>,
}

impl OutputText {
    pub(super) fn new(text: &str) -> Self {
        Self { r#type: "output_text", text: text.to_owned(), annotations: Vec::new(), logprobs: Vec::new() }
    }
}

/// Tokens, in the form of responses.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct ResponseUsage {
    pub(super) input_tokens: u64,
    pub(super) input_tokens_details: Cached,
    pub(super) output_tokens: u64,
    pub(super) output_tokens_details: Reasoning,
    pub(super) total_tokens: u64,
}

/// Tokens from a cache.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Cached {
    pub(super) cached_tokens: u64,
}

/// Tokens of reasoning, which are not counted separately.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Reasoning {
    pub(super) reasoning_tokens: u64,
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

pub(super) fn message_item(run: JobId, at: usize) -> String {
    format!("msg_{run}_{at}")
}

pub(super) fn call_item(call: CallId) -> String {
    format!("mcp_{call}")
}
