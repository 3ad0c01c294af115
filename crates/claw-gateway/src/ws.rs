//! A WebSocket: requests and their answers, and the events of sessions that the client subscribed to.
//!
//! Events of a session are numbered and stored, so that a client resumes from the last number it saw. A
//! client that reads too slowly is told so and disconnected: nothing is dropped silently.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use clawsmith::app::Followed;
use clawsmith::app::access::{CallerWish, Permission};
use clawsmith::message::Part;
use clawsmith::port::Owner;
use clawsmith::store::{Delta, JobFilter, JobState, SessionEventBody};
use clawsmith::{ApprovalId, Asking, SessionKey, UnixMillis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::api::{Output, Replied, Visit};
use crate::error::ApiError;
use crate::guard::{Who, bearer};
use crate::openapi::{Operation, Schemas};
use crate::sessions::{own, there};
use crate::{approvals, sessions};

/// The longest frame, in bytes.
const LONGEST_FRAME: usize = 1024 * 1024;
/// The most sessions that one connection follows.
const MOST_SUBSCRIPTIONS: usize = 64;
/// The most events that wait for a slow client.
const WAITING: usize = 256;
/// The interval at which the key is checked again and the client is pinged.
const BEAT: Duration = Duration::from_secs(5);
/// The longest a client may take to read one frame.
const SLOWEST: Duration = Duration::from_secs(10);

/// A frame that a client sends, before its method is known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    #[serde(rename = "type")]
    kind: String,
    id: String,
    method: String,
    #[serde(default)]
    params: Option<Value>,
}

/// The methods, each with its parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "method", content = "params")]
enum Command {
    /// Sends a message to an agent. The payload has `sessionKey` and `runId`.
    #[serde(rename = "chat.send")]
    ChatSend(Send),
    /// Stops the runs of a session. The payload names them in `stopped`.
    #[serde(rename = "chat.abort")]
    ChatAbort(OfSession),
    /// A page of the messages of a session, the latest first.
    #[serde(rename = "chat.history")]
    ChatHistory(History),
    /// The pending approvals.
    #[serde(rename = "approvals.list")]
    ApprovalsList(Nothing),
    /// Approves or denies.
    #[serde(rename = "approvals.answer")]
    ApprovalsAnswer(Answer),
    /// Sends the events of a session from now on, or from the one after `after`.
    #[serde(rename = "subscribe")]
    Subscribe(Subscribe),
    /// Sends no more of them.
    #[serde(rename = "unsubscribe")]
    Unsubscribe(OfSession),
}

/// The names of the methods.
const METHODS: [&str; 7] = [
    "chat.send",
    "chat.abort",
    "chat.history",
    "approvals.list",
    "approvals.answer",
    "subscribe",
    "unsubscribe",
];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Send {
    message: String,
    /// The agent; by default `default`.
    agent_id: Option<String>,
    /// A session of your own to continue; by default a new one.
    session_key: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OfSession {
    session_key: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct History {
    session_key: String,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// The most messages; 100 at most.
    limit: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Subscribe {
    session_key: String,
    /// The number of the last event seen; 0 for all.
    after: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Answer {
    #[schemars(with = "ApprovalId")]
    approval_id: String,
    approve: bool,
    reason: Option<String>,
    always: Option<approvals::AlwaysGiven>,
    /// The values for a request for input.
    values: Option<serde_json::Map<String, Value>>,
    /// Sends values that look like secrets all the same.
    #[serde(default)]
    allow_secrets: bool,
    /// Dismisses a request for input.
    #[serde(default)]
    dismiss: bool,
}

/// The answer to a request of a client.
#[derive(Debug, Serialize, JsonSchema)]
struct Res {
    /// Always `res`.
    r#type: &'static str,
    /// The request's id; `null` if it could not be read.
    id: Option<String>,
    ok: bool,
    /// The result of a request that worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Value>,
    /// The error, if the request failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

/// An event of a session that the client subscribed to.
#[derive(Debug, Serialize, JsonSchema)]
struct Told {
    /// Always `event`.
    r#type: &'static str,
    /// The kind of event; `piece` for a part of a streaming message, `lagged` and `ended` if no more follow.
    event: &'static str,
    session: SessionKey,
    /// The number of the event; none for a piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<UnixMillis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Payload>,
}

/// An event, or a part of a streaming message.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Payload {
    Event(SessionEventBody),
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

/// The upgrade to a WebSocket.
pub(crate) struct Upgraded;

impl Output for Upgraded {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.reply(StatusCode::SWITCHING_PROTOCOLS, "Frames of JSON text follow.", None);
        operation.fault(schemas);
        let named = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        let server = json!({ "anyOf": [named("WebSocketResponse"), named("WebSocketEvent")] });
        operation.extra("x-websocket", json!({ "client": named("WebSocketRequest"), "gateway": server }));
    }
}

pub(crate) async fn open(
    visit: Visit,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Replied<Upgraded>, ApiError> {
    let upgrade =
        upgrade.map_err(|error| ApiError::new(error.status(), "no_websocket", error.body_text()))?;
    let key = bearer(&headers).unwrap_or_default().to_owned();
    let upgrade = upgrade.max_message_size(LONGEST_FRAME).max_frame_size(LONGEST_FRAME);
    let response = upgrade.on_upgrade(move |socket| async move {
        let (events, waiting) = mpsc::channel(WAITING);
        let connection = Connection { visit, key, events, subscriptions: HashMap::new() };
        connection.serve(socket, waiting).await;
    });
    Ok(response.into())
}

/// An item that a subscription forwards.
enum Passed {
    Event(Box<Told>),
    /// The client read too slowly, or the session cannot be followed any more.
    Ended {
        session: SessionKey,
        why: &'static str,
    },
}

struct Connection {
    visit: Visit,
    key: String,
    events: mpsc::Sender<Passed>,
    subscriptions: HashMap<SessionKey, AbortHandle>,
}

impl Connection {
    async fn serve(mut self, mut socket: WebSocket, mut waiting: mpsc::Receiver<Passed>) {
        let ending = self.visit.gateway.ending().clone();
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let sent = tokio::select! {
                () = ending.cancelled() => false,
                frame = socket.recv() => match frame {
                    Some(Ok(Message::Text(text))) => {
                        let answer = self.answer(text.as_str()).await;
                        send(&mut socket, &answer).await
                    }
                    Some(Ok(Message::Binary(_))) => {
                        let error = ApiError::invalid("frames are JSON text");
                        send(&mut socket, &answered(None, Err(error))).await
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => true,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => false,
                },
                Some(passed) = waiting.recv() => match passed {
                    Passed::Event(event) => send(&mut socket, &*event).await,
                    Passed::Ended { session, why } => {
                        self.unsubscribe(&session);
                        let told = Told { r#type: "event", event: why, session, seq: None, at: None, payload: None };
                        let _ = send(&mut socket, &told).await;
                        why != "lagged"
                    }
                },
                _ = beat.tick() => {
                    let is_good = matches!(self.visit.gateway.0.door.admit(&self.key).await, Ok(Some(_)) | Err(_));
                    is_good && tokio::time::timeout(SLOWEST, socket.send(Message::Ping(Default::default()))).await.is_ok_and(|sent| sent.is_ok())
                }
            };
            if !sent {
                break;
            }
        }
        for (_, following) in self.subscriptions.drain() {
            following.abort();
        }
    }

    /// Answers a frame of any content.
    async fn answer(&mut self, text: &str) -> Res {
        let frame: Frame = match serde_json::from_str(text) {
            Ok(frame) => frame,
            Err(error) => {
                return answered(None, Err(ApiError::invalid(format!("the frame is wrong: {error}"))));
            }
        };
        let id = frame.id.clone();
        answered(Some(id), self.done(frame).await)
    }

    async fn done(&mut self, frame: Frame) -> Result<Value, ApiError> {
        if frame.kind != "req" {
            return Err(ApiError::invalid(format!(
                "`{}` is no type of frame that a client sends; use `req`",
                shown(&frame.kind)
            )));
        }
        // The key may have been revoked since.
        match self.visit.gateway.0.door.admit(&self.key).await? {
            Some(visitor) => self.visit.who = Who(visitor),
            None => {
                let what = "this key is revoked or expired, or its user is disabled";
                return Err(ApiError::new(StatusCode::UNAUTHORIZED, "bad_key", what));
            }
        }
        if let Err(wait) = self.visit.gateway.0.door.count(self.visit.visitor()) {
            return Err(crate::guard::too_many(wait));
        }
        if !METHODS.contains(&frame.method.as_str()) {
            return Err(ApiError::not_found(format!("there is no method `{}`", shown(&frame.method))));
        }
        let params = frame.params.filter(|params| !params.is_null()).unwrap_or_else(|| json!({}));
        let command = serde_json::from_value(json!({ "method": frame.method, "params": params }));
        let command = command.map_err(|error| ApiError::invalid(format!("`params`: {error}")))?;
        let visit = &self.visit;
        match command {
            Command::ChatSend(wanted) => self.send(wanted).await,
            Command::ChatAbort(of) => self.abort(of).await,
            Command::ChatHistory(of) => {
                let said = sessions::said(visit, &of.session_key, of.cursor.as_deref(), of.limit).await?;
                Ok(json!(said))
            }
            Command::ApprovalsList(Nothing {}) => Ok(json!(approvals::pending(visit).await?)),
            Command::ApprovalsAnswer(answer) => {
                let id = answer.approval_id.parse().map_err(|_| {
                    ApiError::not_found(format!("there is no approval `{}`", shown(&answer.approval_id)))
                })?;
                let Answer { approve, reason, always, values, allow_secrets, dismiss, .. } = answer;
                let given = approvals::Given { approve, reason, always, values, allow_secrets, dismiss };
                Ok(json!(approvals::give(visit, id, given).await?))
            }
            Command::Subscribe(of) => self.subscribe(of).await,
            Command::Unsubscribe(of) => {
                let (session, _) = own(visit.visitor(), &of.session_key)?;
                Ok(json!({ "unsubscribed": self.unsubscribe(&session) }))
            }
        }
    }

    async fn send(&self, wanted: Send) -> Result<Value, ApiError> {
        let visit = &self.visit;
        visit.may(Permission::WriteSessions)?;
        if wanted.message.trim().is_empty() {
            return Err(ApiError::invalid("the message is empty"));
        }
        visit.gateway.check_open_runs(visit.visitor()).await?;
        let wish = CallerWish { agent: wanted.agent_id.as_deref(), session: wanted.session_key.as_deref() };
        let caller = visit.gateway.app().caller_of(visit.visitor(), &wish).await?;
        let parts = vec![Part::text(wanted.message)];
        let run = visit.sessions().send(&caller, parts, Asking::Unwatched).await?;
        Ok(json!({ "sessionKey": caller.session, "runId": run }))
    }

    async fn abort(&self, of: OfSession) -> Result<Value, ApiError> {
        let visitor = self.visit.visitor();
        visitor.may(Permission::WriteSessions)?;
        let (session, _) = own(visitor, &of.session_key)?;
        let app = self.visit.app();
        let states = vec![JobState::Pending, JobState::Leased, JobState::Parked];
        let open = app.runs(&JobFilter { session: Some(session), states, ..JobFilter::default() }).await?;
        let mut stopped = Vec::with_capacity(open.len());
        for job in open {
            app.cancel_run(job.new.id, &visitor.name()).await?;
            stopped.push(job.new.id);
        }
        Ok(json!({ "stopped": stopped }))
    }

    async fn subscribe(&mut self, of: Subscribe) -> Result<Value, ApiError> {
        self.visit.may(Permission::ReadSessions)?;
        let session = there(&self.visit, &of.session_key).await?;
        if self.subscriptions.len() >= MOST_SUBSCRIPTIONS && !self.subscriptions.contains_key(&session) {
            return Err(ApiError::invalid(format!(
                "one connection follows at most {MOST_SUBSCRIPTIONS} sessions"
            )));
        }
        let owner = Owner { tenant: self.visit.visitor().tenant.clone(), session: session.clone() };
        let mut follower = self.visit.sessions().follow(owner, of.after).await?;
        let (events, of) = (self.events.clone(), session.clone());
        let following = tokio::spawn(async move {
            let why = loop {
                let Ok(followed) = follower.next().await else { break "ended" };
                if events.try_send(Passed::Event(Box::new(event(&of, followed)))).is_err() {
                    break "lagged";
                }
            };
            let _ = events.send(Passed::Ended { session: of, why }).await;
        });
        if let Some(before) = self.subscriptions.insert(session.clone(), following.abort_handle()) {
            before.abort();
        }
        Ok(json!({ "sessionKey": session }))
    }

    fn unsubscribe(&mut self, session: &SessionKey) -> bool {
        let following = self.subscriptions.remove(session);
        following.inspect(AbortHandle::abort).is_some()
    }
}

fn answered(id: Option<String>, done: Result<Value, ApiError>) -> Res {
    let (payload, error) = match done {
        Ok(payload) => (Some(payload), None),
        Err(error) => (None, Some(error.frame())),
    };
    Res { r#type: "res", id, ok: error.is_none(), payload, error }
}

fn event(session: &SessionKey, followed: Followed) -> Told {
    let (event, seq, at, payload) = match followed {
        Followed::Event(event) => {
            (event.what.kind(), Some(event.seq), Some(event.at), Payload::Event(event.what))
        }
        Followed::Piece(piece) => ("piece", None, None, Payload::Piece(piece)),
    };
    Told { r#type: "event", event, session: session.clone(), seq, at, payload: Some(payload) }
}

/// Sends a frame; returns `false` if the client is gone or does not read.
async fn send(socket: &mut WebSocket, frame: &impl Serialize) -> bool {
    let frame = serde_json::to_string(frame).unwrap_or_default();
    let sent = socket.send(Message::Text(frame.into()));
    tokio::time::timeout(SLOWEST, sent).await.is_ok_and(|sent| sent.is_ok())
}

fn shown(text: &str) -> String {
    text.chars().take(50).collect()
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
