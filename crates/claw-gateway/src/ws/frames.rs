//! The frames of a WebSocket: requests with their parameters, answers and events. The gateway and its client share them.

use clawsmith::store::{Delta, McpRequestEvent, SessionEventBody};
use clawsmith::{ApprovalId, Asking, JobId, SessionKey, TenantId, UnixMillis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::approvals::AlwaysGiven;
use crate::error::ApiError;
use crate::openapi::Schemas;

/// The longest frame, in bytes.
pub(crate) const LONGEST_FRAME: usize = 1024 * 1024;

/// A frame that a client sends, before its method is known.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Frame {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) params: Option<Value>,
}

impl Frame {
    /// Reads a frame of any content.
    pub(crate) fn read(text: &str) -> Result<Self, ApiError> {
        // Fields are named: a list of their values would be taken for them.
        if !text.trim_start().starts_with('{') {
            return Err(ApiError::invalid("the frame is invalid: it is not a JSON object"));
        }
        serde_json::from_str(text)
            .map_err(|error| ApiError::invalid(format!("the frame is invalid: {error}")))
    }

    /// The parameters; none if they are left out.
    pub(crate) fn params(&self) -> Result<Map<String, Value>, ApiError> {
        match &self.params {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(params)) => Ok(params.clone()),
            Some(_) => Err(ApiError::invalid("`params` is not an object")),
        }
    }
}

/// The methods, each with its parameters.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", content = "params")]
pub(crate) enum Command {
    /// Shows the API key: the first frame of a connection whose upgrade had none. The payload has `tenant`, `user` and `role`.
    #[serde(rename = "connect")]
    Connect(Connect),
    /// Returns one of your sessions, or a new one if none is given, and the model that answers there.
    #[serde(rename = "chat.open")]
    ChatOpen(Open),
    /// Sends a message to an agent. The payload has `sessionKey` and `runId`.
    #[serde(rename = "chat.send")]
    ChatSend(Send),
    /// Adds a message to a session's active run: the agent reads it before it asks its model again. The payload
    /// has `runId`.
    #[serde(rename = "chat.inject")]
    ChatInject(Inject),
    /// Stops the runs of a session. The payload names them in `stopped`.
    #[serde(rename = "chat.abort")]
    ChatAbort(OfSession),
    /// A page of the messages of a session, the latest first.
    #[serde(rename = "chat.history")]
    ChatHistory(History),
    /// Tokens and cost of a session, or of one run in it with all runs below it.
    #[serde(rename = "chat.usage")]
    ChatUsage(UsageOf),
    /// The pending approvals.
    #[serde(rename = "approvals.list")]
    ApprovalsList(Nothing),
    /// Approves or denies.
    #[serde(rename = "approvals.answer")]
    ApprovalsAnswer(Answer),
    /// Sends events from now on, or from the one after `after`: of a session, of all your sessions with an agent, of the
    /// whole tenant, or of requests for access.
    #[serde(rename = "subscribe")]
    Subscribe(Subscribe),
    /// Sends no more of them.
    #[serde(rename = "unsubscribe")]
    Unsubscribe(Topic),
}

/// The names of the methods.
pub(crate) const METHODS: [&str; 11] = [
    "connect",
    "chat.open",
    "chat.send",
    "chat.inject",
    "chat.abort",
    "chat.history",
    "chat.usage",
    "approvals.list",
    "approvals.answer",
    "subscribe",
    "unsubscribe",
];

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Connect {
    /// The API key.
    pub(crate) token: String,
    /// The user to act for, of the key's tenant; takes the scope `users:act`. The key's own user if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
}

impl std::fmt::Debug for Connect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connect").finish_non_exhaustive()
    }
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Open {
    /// The agent; `default` if left out.
    pub(crate) agent_id: Option<String>,
    /// Key of your session to continue; if left out, a new session is started.
    pub(crate) session_key: Option<String>,
}

/// A session, and the model that answers in it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenedSession {
    /// The session. A new session starts with its first message.
    pub session_key: SessionKey,
    /// The agent.
    pub agent_id: clawsmith::AgentId,
    /// The tenant of the key.
    pub tenant: TenantId,
    /// The provider of the model.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The model only plays a script.
    pub demo: bool,
    /// The number of the session's last event; 0 for a new session.
    pub last: u64,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Send {
    pub(crate) message: String,
    /// The agent; `default` if left out.
    pub(crate) agent_id: Option<String>,
    /// Key of your session to continue; if left out, a new session is started.
    pub(crate) session_key: Option<String>,
    /// Handling of a call that needs an approval; `wait` if left out.
    pub(crate) approvals: Option<Approvals>,
    /// The only tools that the agent may use for this message, of those that it has; all of them if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_tools: Option<Vec<String>>,
}

/// Handling of a call that needs an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approvals {
    /// The run waits for the answer.
    Wait,
    /// Somebody watches: the run waits for `approvals.wait_secs` at most.
    Watch,
    /// The call is refused.
    Refuse,
}

impl Approvals {
    /// How the calls of the run get their approvals.
    pub(crate) fn asking(self) -> Asking {
        match self {
            Self::Wait => Asking::Unwatched,
            Self::Watch => Asking::Watched,
            Self::Refuse => Asking::Impossible,
        }
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Inject {
    pub(crate) session_key: String,
    pub(crate) message: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OfSession {
    pub(crate) session_key: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct History {
    pub(crate) session_key: String,
    /// The `next` of the page before.
    pub(crate) cursor: Option<String>,
    /// The most messages; 100 at most.
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UsageOf {
    pub(crate) session_key: String,
    /// Only this run, and those below it.
    pub(crate) run_id: Option<JobId>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Answer {
    #[schemars(with = "ApprovalId")]
    pub(crate) approval_id: String,
    pub(crate) approve: bool,
    pub(crate) reason: Option<String>,
    pub(crate) always: Option<AlwaysGiven>,
    /// The values for a request for input.
    pub(crate) values: Option<Map<String, Value>>,
    /// Sends values that look like secrets all the same.
    #[serde(default)]
    pub(crate) allow_secrets: bool,
    /// Dismisses a request for input.
    #[serde(default)]
    pub(crate) dismiss: bool,
}

/// The answer to a request of a client.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Res {
    /// Always `res`.
    pub(crate) r#type: &'static str,
    /// The request's id; `null` if it could not be read.
    pub(crate) id: Option<String>,
    pub(crate) ok: bool,
    /// The result of a request that worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Value>,
    /// The error, if the request failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Value>,
}

/// Events to follow: give exactly one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Topic {
    /// One of your sessions, with the pieces of the answer that is being written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_key: Option<String>,
    /// All sessions of your own with this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<String>,
    /// `true` for all sessions of the tenant; for administrators.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tenant: bool,
    /// `true` for requests for access to MCP servers: your own, or for administrators all of the tenant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) access_requests: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Subscribe {
    /// One of your sessions, with the pieces of the answer that is being written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_key: Option<String>,
    /// All sessions of your own with this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<String>,
    /// `true` for all sessions of the tenant; for administrators.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tenant: bool,
    /// `true` for requests for access to MCP servers: your own, or for administrators all of the tenant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) access_requests: bool,
    /// The number of the last event that was seen, 0 for all: its `seq` if one session is followed, its `at` for requests
    /// for access, its `feed` else.
    pub(crate) after: Option<u64>,
}

impl Subscribe {
    pub(crate) fn topic(&self) -> Topic {
        Topic {
            session_key: self.session_key.clone(),
            agent_id: self.agent_id.clone(),
            tenant: self.tenant,
            access_requests: self.access_requests,
        }
    }
}

/// An event that the client subscribed to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Told {
    /// Always `event`.
    pub(crate) r#type: &'static str,
    /// The kind of event; `piece` for a part of the answer that is being written, `lagged` and `ended` if no more of this
    /// subscription follow.
    pub(crate) event: &'static str,
    /// The session; none if the subscription covers many sessions and no more events follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<SessionKey>,
    /// The number of the event in its session; none for a piece. With `lagged`, that of the last event that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seq: Option<u64>,
    /// The number of the event in its tenant, if many sessions are followed. With `lagged`, as above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) feed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<UnixMillis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Payload>,
}

/// An event, or a part of what is being said.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Payload {
    Event(SessionEventBody),
    AccessRequest(McpRequestEvent),
    Piece(Delta),
}

/// The schemas of frames, by their names.
pub(crate) fn schemas(schemas: &mut Schemas) -> Map<String, Value> {
    let mut request = json!({
        "type": "object",
        "description": "A request of a client.",
        "required": ["type", "id"],
        "properties": { "type": { "const": "req" }, "id": { "type": "string" } },
    });
    request["allOf"] = json!([schemas.taken::<Command>()]);
    let (answer, event) = (schemas.shown::<Res>(), schemas.shown::<Told>());
    let frames = [("WebSocketRequest", request), ("WebSocketResponse", answer), ("WebSocketEvent", event)];
    frames.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methods_are_those_of_the_schema() {
        let schema = schemars::schema_for!(Command).to_value();
        let named = schema["oneOf"].as_array().unwrap().iter();
        let named: Vec<&str> =
            named.map(|one| one["properties"]["method"]["const"].as_str().unwrap()).collect();
        assert_eq!(named, METHODS);
    }
}
