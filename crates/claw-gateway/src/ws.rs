//! A WebSocket: requests and their answers, and the events of sessions that the client subscribed to.
//!
//! Events of a session are numbered and stored, so that a client resumes from the last number it saw. One that reads too
//! slowly is told so and disconnected: nothing is left out in silence.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::response::Response;
use clawsmith::app::Followed;
use clawsmith::app::access::{CallerWish, Permission};
use clawsmith::message::Part;
use clawsmith::port::Owner;
use clawsmith::store::{JobFilter, JobState};
use clawsmith::{Asking, SessionKey};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::error::ApiError;
use crate::guard::{Who, bearer};
use crate::sessions::{own, there};
use crate::{Gateway, approvals, sessions};

/// The longest frame, in bytes.
const LONGEST_FRAME: usize = 1024 * 1024;
/// The most sessions that one connection follows.
const MOST_SUBSCRIPTIONS: usize = 64;
/// The most events that wait for a slow client.
const WAITING: usize = 256;
/// How often the key is looked at again and the client is pinged.
const BEAT: Duration = Duration::from_secs(5);
/// How long a client may take to read one frame.
const SLOWEST: Duration = Duration::from_secs(10);

/// A request of a client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    #[serde(rename = "type")]
    kind: String,
    id: String,
    method: String,
    #[serde(default)]
    params: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Send {
    message: String,
    agent_id: Option<String>,
    session_key: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OfSession {
    session_key: String,
    after: Option<u64>,
    cursor: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Answer {
    approval_id: String,
    approve: bool,
    reason: Option<String>,
}

pub(crate) async fn open(
    State(gateway): State<Gateway>,
    who: Who,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let key = bearer(&headers).unwrap_or_default().to_owned();
    let upgrade = upgrade.max_message_size(LONGEST_FRAME).max_frame_size(LONGEST_FRAME);
    upgrade.on_upgrade(move |socket| async move {
        let (events, waiting) = mpsc::channel(WAITING);
        let connection = Connection { gateway, who, key, events, subscriptions: HashMap::new() };
        connection.serve(socket, waiting).await;
    })
}

/// Something that a subscription passes on.
enum Passed {
    Event(Value),
    /// The client read too slowly, or the session cannot be followed any more.
    Ended {
        session: SessionKey,
        why: &'static str,
    },
}

struct Connection {
    gateway: Gateway,
    who: Who,
    key: String,
    events: mpsc::Sender<Passed>,
    subscriptions: HashMap<SessionKey, AbortHandle>,
}

impl Connection {
    async fn serve(mut self, mut socket: WebSocket, mut waiting: mpsc::Receiver<Passed>) {
        let ending = self.gateway.ending().clone();
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
                        send(&mut socket, &json!({ "type": "res", "id": null, "ok": false, "error": error.frame() })).await
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => true,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => false,
                },
                Some(passed) = waiting.recv() => match passed {
                    Passed::Event(event) => send(&mut socket, &event).await,
                    Passed::Ended { session, why } => {
                        self.unsubscribe(&session);
                        let _ = send(&mut socket, &json!({ "type": "event", "event": why, "session": session })).await;
                        why != "lagged"
                    }
                },
                _ = beat.tick() => {
                    let is_good = matches!(self.gateway.0.door.admit(&self.key).await, Ok(Some(_)) | Err(_));
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

    /// The answer to a frame, whatever it holds.
    async fn answer(&mut self, text: &str) -> Value {
        let frame: Frame = match serde_json::from_str(text) {
            Ok(frame) => frame,
            Err(error) => {
                let error = ApiError::invalid(format!("the frame does not read: {error}"));
                return json!({ "type": "res", "id": null, "ok": false, "error": error.frame() });
            }
        };
        let id = frame.id.clone();
        match self.done(frame).await {
            Ok(payload) => json!({ "type": "res", "id": id, "ok": true, "payload": payload }),
            Err(error) => json!({ "type": "res", "id": id, "ok": false, "error": error.frame() }),
        }
    }

    async fn done(&mut self, frame: Frame) -> Result<Value, ApiError> {
        if frame.kind != "req" {
            return Err(ApiError::invalid(format!(
                "`{}` is no type of frame that a client sends; use `req`",
                shown(&frame.kind)
            )));
        }
        // The key may have been revoked since.
        match self.gateway.0.door.admit(&self.key).await? {
            Some(visitor) => self.who = Who(visitor),
            None => {
                return Err(ApiError::new(
                    axum::http::StatusCode::UNAUTHORIZED,
                    "bad_key",
                    "this key is worth nothing any more",
                ));
            }
        }
        let (gateway, who) = (&self.gateway, &self.who);
        match frame.method.as_str() {
            "chat.send" => self.send(read(frame.params)?).await,
            "chat.abort" => self.abort(read(frame.params)?).await,
            "chat.history" => {
                let of: OfSession = read(frame.params)?;
                sessions::said(gateway, who, &of.session_key, of.cursor.as_deref(), of.limit).await
            }
            "approvals.list" => approvals::pending(gateway, who).await,
            "approvals.answer" => {
                let answer: Answer = read(frame.params)?;
                approvals::give(gateway, who, &answer.approval_id, (answer.approve, answer.reason.clone()))
                    .await
            }
            "subscribe" => self.subscribe(read(frame.params)?).await,
            "unsubscribe" => {
                let of: OfSession = read(frame.params)?;
                let (session, _) = own(&self.who.0, &of.session_key)?;
                Ok(json!({ "unsubscribed": self.unsubscribe(&session) }))
            }
            method => Err(ApiError::not_found(format!("there is no method `{}`", shown(method)))),
        }
    }

    async fn send(&self, wanted: Send) -> Result<Value, ApiError> {
        self.who.may(Permission::WriteSessions)?;
        if wanted.message.trim().is_empty() {
            return Err(ApiError::invalid("the message is empty"));
        }
        self.gateway.check_open_runs(&self.who.0).await?;
        let wish = CallerWish { agent: wanted.agent_id.as_deref(), session: wanted.session_key.as_deref() };
        let caller = self.gateway.app().caller_of(&self.who.0, &wish).await?;
        let parts = vec![Part::text(wanted.message)];
        let run = self.gateway.sessions().send(&caller, parts, Asking::Unwatched).await?;
        Ok(json!({ "sessionKey": caller.session, "runId": run }))
    }

    async fn abort(&self, of: OfSession) -> Result<Value, ApiError> {
        self.who.may(Permission::WriteSessions)?;
        let (session, _) = own(&self.who.0, &of.session_key)?;
        let app = self.gateway.app().of_tenant(&self.who.0.tenant);
        let states = vec![JobState::Pending, JobState::Leased, JobState::Parked];
        let open = app.runs(&JobFilter { session: Some(session), states, ..JobFilter::default() }).await?;
        let mut stopped = Vec::with_capacity(open.len());
        for job in open {
            app.cancel_run(job.new.id, &self.who.0.name()).await?;
            stopped.push(job.new.id);
        }
        Ok(json!({ "stopped": stopped }))
    }

    async fn subscribe(&mut self, of: OfSession) -> Result<Value, ApiError> {
        self.who.may(Permission::ReadSessions)?;
        let session = there(&self.gateway, &self.who, &of.session_key).await?;
        if self.subscriptions.len() >= MOST_SUBSCRIPTIONS && !self.subscriptions.contains_key(&session) {
            return Err(ApiError::invalid(format!(
                "one connection follows at most {MOST_SUBSCRIPTIONS} sessions"
            )));
        }
        let owner = Owner { tenant: self.who.0.tenant.clone(), session: session.clone() };
        let mut follower = self.gateway.sessions().follow(owner, of.after).await?;
        let (events, of) = (self.events.clone(), session.clone());
        let following = tokio::spawn(async move {
            let why = loop {
                let Ok(followed) = follower.next().await else { break "ended" };
                if events.try_send(Passed::Event(event(&of, &followed))).is_err() {
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

fn event(session: &SessionKey, followed: &Followed) -> Value {
    match followed {
        Followed::Event(event) => json!({
            "type": "event", "event": event.what.kind(), "session": session, "seq": event.seq, "at": event.at,
            "payload": event.what,
        }),
        Followed::Piece(piece) => {
            json!({ "type": "event", "event": "piece", "session": session, "payload": piece })
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(params: Value) -> Result<T, ApiError> {
    serde_json::from_value(params).map_err(|error| ApiError::invalid(format!("`params`: {error}")))
}

/// Sends a frame; `false` where the client is gone or does not read.
async fn send(socket: &mut WebSocket, frame: &Value) -> bool {
    let sent = socket.send(Message::Text(frame.to_string().into()));
    tokio::time::timeout(SLOWEST, sent).await.is_ok_and(|sent| sent.is_ok())
}

fn shown(text: &str) -> String {
    text.chars().take(50).collect()
}
