//! A WebSocket: requests and their answers, and the events that the client subscribed to.
//!
//! Events are numbered and stored: a client resumes from the last number it saw, and one that reads slowly gets every event
//! later. Pieces of what is being said are not stored; a client that misses some is told so (`lagged`).

pub(crate) mod connect;
pub(crate) mod frames;
mod subscription;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseCode, CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use clawsmith::UserId;
use clawsmith::app::Kind;
use clawsmith::app::access::{CallerWish, Permission, Visitor};
use clawsmith::message::Part;
use clawsmith::store::{JobFilter, JobState, UsageFilter};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use self::connect::{Connected, Newcomer};
use self::frames::{
    Answer, Approvals, Command, Connect, Frame, Inject, LONGEST_FRAME, METHODS, Nothing, OfSession, Open,
    OpenedSession, Res, Send, Subscribe, Told, Topic, UsageOf,
};
use crate::admit::{Who, bad_key};
use crate::api::{Output, Replied, Visit};
use crate::error::ApiError;
use crate::openapi::{Operation, Schemas};
use crate::sessions::{own, there};
use crate::{approvals, sessions};

/// The most subscriptions of one connection.
const MOST_SUBSCRIPTIONS: usize = 64;
/// The most events that wait for a slow client.
const WAITING: usize = 256;
/// The interval at which the key is checked again and the client is pinged.
const BEAT: Duration = Duration::from_secs(5);
/// The longest a client may take to read one frame.
const SLOWEST: Duration = Duration::from_secs(10);
/// The longest a client may take to answer the end of its connection.
const LONGEST_CLOSE: Duration = Duration::from_secs(1);

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
    newcomer: Newcomer,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Replied<Upgraded>, ApiError> {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(_) if !newcomer.has_key() => return Err(Newcomer::without_key()),
        Err(error) => return Err(ApiError::new(error.status(), "no_websocket", error.body_text())),
    };
    let entry = newcomer.enter()?;
    let upgrade = upgrade.max_message_size(LONGEST_FRAME).max_frame_size(LONGEST_FRAME);
    // The gateway ends once its clients were told so.
    let open = entry.gateway().0.websockets.clone();
    let response = upgrade.on_upgrade(move |mut socket| {
        open.track_future(async move {
            let Some(Connected { visit, key, place }) = entry.connected(&mut socket).await else { return };
            let _place = place;
            let (events, waiting) = mpsc::channel(WAITING);
            let opened = Arc::clone(&visit.who.0);
            let connection = Connection { visit, opened, key, events, subscriptions: HashMap::new() };
            connection.serve(socket, waiting).await;
        })
    });
    Ok(response.into())
}

/// An item that a subscription forwards.
enum Passed {
    Event(Box<Told>),
    /// The subscription cannot go on.
    Ended(Topic),
}

/// The reason why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client closed it or is gone.
    ClientGone,
    /// The client did not read in time.
    SlowReader,
    /// The gateway ends.
    GatewayEnds,
    /// The key was revoked or has expired, or its user or tenant is disabled.
    KeyInvalid,
    /// The key has other rights than those that the connection was opened with.
    RightsChanged,
}

impl End {
    /// The code and the reason that the client is told; `None` if nobody is there to be told.
    fn told(self) -> Option<(CloseCode, &'static str)> {
        match self {
            Self::ClientGone => None,
            Self::SlowReader => Some((close_code::AGAIN, "the client reads too slowly; connect again")),
            Self::GatewayEnds => Some((close_code::AWAY, "the gateway is shutting down; connect again")),
            Self::KeyInvalid => Some((close_code::POLICY, "the key is no longer valid")),
            Self::RightsChanged => {
                Some((close_code::POLICY, "the rights of the key have changed; connect again"))
            }
        }
    }
}

struct Connection {
    visit: Visit,
    /// The visitor as the connection was opened: subscriptions were checked with these rights.
    opened: Arc<Visitor>,
    key: String,
    events: mpsc::Sender<Passed>,
    subscriptions: HashMap<Topic, AbortHandle>,
}

impl Connection {
    async fn serve(mut self, mut socket: WebSocket, mut waiting: mpsc::Receiver<Passed>) {
        let ending = self.visit.gateway.ending().clone();
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = loop {
            let sent = tokio::select! {
                () = ending.cancelled() => Err(End::GatewayEnds),
                frame = socket.recv() => match frame {
                    Some(Ok(Message::Text(text))) => {
                        let answer = self.answer(text.as_str()).await;
                        send(&mut socket, &answer).await
                    }
                    Some(Ok(Message::Binary(_))) => {
                        let error = ApiError::invalid("frames are JSON text");
                        send(&mut socket, &answered(None, Err(error))).await
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                    Some(Ok(Message::Close(_)) | Err(_)) | None => Err(End::ClientGone),
                },
                Some(passed) = waiting.recv() => match passed {
                    Passed::Event(event) => send(&mut socket, &*event).await,
                    Passed::Ended(topic) => {
                        self.subscriptions.remove(&topic);
                        send(&mut socket, &subscription::ended(&topic)).await
                    }
                },
                _ = beat.tick() => match self.check_key().await {
                    Ok(()) => send_message(&mut socket, Message::Ping(Default::default())).await,
                    Err(end) => Err(end),
                }
            };
            if let Err(end) = sent {
                break end;
            }
        };
        for (_, following) in self.subscriptions.drain() {
            following.abort();
        }
        if let Some((code, reason)) = end.told() {
            close(&mut socket, code, reason).await;
        }
    }

    /// Checks that the key is valid and has the rights that the connection was opened with.
    async fn check_key(&self) -> Result<(), End> {
        match self.visit.gateway.0.door.admit_for(&self.key, self.opened.acts_for()).await {
            Ok(Some(now)) if now == self.opened => Ok(()),
            Ok(Some(_)) => Err(End::RightsChanged),
            Ok(None) => Err(End::KeyInvalid),
            Err(error) if error.kind() == Kind::Failed => Ok(()),
            // It may no longer act for this user.
            Err(_) => Err(End::RightsChanged),
        }
    }

    /// Answers a frame of any content.
    async fn answer(&mut self, text: &str) -> Res {
        let frame = match Frame::read(text) {
            Ok(frame) => frame,
            Err(error) => return answered(None, Err(error)),
        };
        let id = frame.id.clone();
        answered(Some(id), self.done(frame).await)
    }

    async fn done(&mut self, frame: Frame) -> Result<Value, ApiError> {
        if frame.kind != "req" {
            return Err(ApiError::invalid(format!(
                "clients cannot send frames of the type `{}`; use `req`",
                shown(&frame.kind)
            )));
        }
        // The key may have been revoked since.
        match self.visit.gateway.0.door.admit_for(&self.key, self.opened.acts_for()).await? {
            Some(visitor) => self.visit.who = Who(visitor),
            None => return Err(bad_key()),
        }
        if let Err(wait) = self.visit.gateway.0.door.count(self.visit.visitor()) {
            return Err(crate::admit::too_many(wait));
        }
        if !METHODS.contains(&frame.method.as_str()) {
            return Err(ApiError::not_found(format!("there is no method `{}`", shown(&frame.method))));
        }
        let params = Value::Object(frame.params()?);
        let command = serde_json::from_value(json!({ "method": frame.method, "params": params }));
        let command = command.map_err(|error| ApiError::invalid(format!("`params`: {error}")))?;
        let visit = &self.visit;
        match command {
            Command::Connect(Connect { token, user }) => {
                let shown = self.visit.gateway.0.door.admit(&token).await?;
                let is_same_key = shown.is_some_and(|shown| shown.key == visit.visitor().key);
                let acts_for = visit.visitor().acts_for().map(UserId::as_str);
                match is_same_key && user.as_deref() == acts_for {
                    true => Ok(connect::welcome(visit)),
                    false => {
                        let what = "this connection has another key, or acts for another user";
                        Err(ApiError::new(StatusCode::CONFLICT, "conflict", what)
                            .hint("open a new connection"))
                    }
                }
            }
            Command::ChatOpen(wanted) => Ok(json!(self.open(wanted).await?)),
            Command::ChatSend(wanted) => self.send(wanted).await,
            Command::ChatInject(wanted) => self.inject(wanted).await,
            Command::ChatAbort(of) => self.abort(of).await,
            Command::ChatHistory(of) => {
                let said = sessions::said(visit, &of.session_key, of.cursor.as_deref(), of.limit).await?;
                Ok(json!(said))
            }
            Command::ChatUsage(of) => self.usage(of).await,
            Command::ApprovalsList(Nothing {}) => Ok(json!(approvals::pending(visit).await?)),
            Command::ApprovalsAnswer(answer) => {
                let id = answer.approval_id.parse().map_err(|_| {
                    ApiError::not_found(format!("there is no approval `{}`", shown(&answer.approval_id)))
                        .hint("`approvals.list` lists the pending ones")
                })?;
                let Answer { approve, reason, always, values, allow_secrets, dismiss, .. } = answer;
                let given = approvals::Given { approve, reason, always, values, allow_secrets, dismiss };
                Ok(json!(approvals::give(visit, id, given).await?))
            }
            Command::Subscribe(of) => self.subscribe(of).await,
            Command::Unsubscribe(topic) => Ok(json!({ "unsubscribed": self.unsubscribe(&topic) })),
        }
    }

    async fn open(&self, wanted: Open) -> Result<OpenedSession, ApiError> {
        let visit = &self.visit;
        visit.may(Permission::ReadSessions)?;
        let wish = CallerWish { agent: wanted.agent_id.as_deref(), session: wanted.session_key.as_deref() };
        let caller = visit.gateway.app().caller_of(visit.visitor(), &wish).await?;
        let model = visit.sessions().model(&caller).await?;
        let card = model.card();
        let last = visit.sessions().last_event(&caller).await?;
        Ok(OpenedSession {
            session_key: caller.session,
            agent_id: caller.agent,
            tenant: caller.tenant,
            provider: card.provider.to_string(),
            model: card.model.to_string(),
            demo: card.demo,
            last,
        })
    }

    async fn send(&self, wanted: Send) -> Result<Value, ApiError> {
        let visit = &self.visit;
        visit.may(Permission::WriteSessions)?;
        not_empty(&wanted.message)?;
        let _starting = visit.gateway.check_open_runs(visit.visitor()).await?;
        let wish = CallerWish { agent: wanted.agent_id.as_deref(), session: wanted.session_key.as_deref() };
        let mut caller = visit.gateway.app().caller_of(visit.visitor(), &wish).await?;
        caller.request_allow = wanted.allowed_tools.map(Into::into);
        let parts = vec![Part::text(wanted.message)];
        let asking = wanted.approvals.unwrap_or(Approvals::Wait).asking();
        let run = visit.sessions().send(&caller, parts, asking).await?;
        Ok(json!({ "sessionKey": caller.session, "runId": run }))
    }

    async fn inject(&self, wanted: Inject) -> Result<Value, ApiError> {
        let visit = &self.visit;
        visit.may(Permission::WriteSessions)?;
        not_empty(&wanted.message)?;
        let session = there(visit, &wanted.session_key).await?;
        let agent = sessions::agent_in(session.as_str())?;
        let wish = CallerWish { agent: Some(agent.as_str()), session: Some(session.as_str()) };
        let caller = visit.gateway.app().caller_of(visit.visitor(), &wish).await?;
        let _starting = visit.gateway.check_open_runs(visit.visitor()).await?;
        let run = visit.sessions().inject(&caller, vec![Part::text(wanted.message)]).await?;
        Ok(json!({ "runId": run }))
    }

    async fn usage(&self, of: UsageOf) -> Result<Value, ApiError> {
        let visit = &self.visit;
        visit.may(Permission::ReadSessions)?;
        let (session, _) = own(visit.visitor(), &of.session_key)?;
        let filter = match of.run_id {
            Some(run) => {
                sessions::own_run(visit, run).await?;
                UsageFilter { root: Some(run), ..UsageFilter::default() }
            }
            None => UsageFilter { session: Some(session), ..UsageFilter::default() },
        };
        let usage = visit.app().store().usage(&visit.visitor().tenant, &filter).await;
        Ok(json!(usage.map_err(clawsmith::app::Error::from)?))
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
            app.cancel_run(job.new.id, &visitor.signature()).await?;
            stopped.push(job.new.id);
        }
        Ok(json!({ "stopped": stopped }))
    }

    async fn subscribe(&mut self, of: Subscribe) -> Result<Value, ApiError> {
        let topic = of.topic();
        if self.subscriptions.len() >= MOST_SUBSCRIPTIONS && !self.subscriptions.contains_key(&topic) {
            return Err(ApiError::invalid(format!(
                "a connection can have at most {MOST_SUBSCRIPTIONS} subscriptions"
            )));
        }
        let (following, payload) = subscription::begin(&self.visit, &of, self.events.clone()).await?;
        if let Some(before) = self.subscriptions.insert(topic, following) {
            before.abort();
        }
        Ok(payload)
    }

    fn unsubscribe(&mut self, topic: &Topic) -> bool {
        let following = self.subscriptions.remove(topic);
        following.inspect(AbortHandle::abort).is_some()
    }
}

fn not_empty(message: &str) -> Result<(), ApiError> {
    match message.trim().is_empty() {
        true => Err(ApiError::invalid("the message is empty")),
        false => Ok(()),
    }
}

fn answered(id: Option<String>, done: Result<Value, ApiError>) -> Res {
    let (payload, error) = match done {
        Ok(payload) => (Some(payload), None),
        Err(error) => (None, Some(error.frame())),
    };
    Res { r#type: "res", id, ok: error.is_none(), payload, error }
}

/// Sends a frame; fails if the client is gone or does not read.
async fn send(socket: &mut WebSocket, frame: &impl Serialize) -> Result<(), End> {
    let frame = serde_json::to_string(frame).unwrap_or_default();
    send_message(socket, Message::Text(frame.into())).await
}

async fn send_message(socket: &mut WebSocket, message: Message) -> Result<(), End> {
    match timeout(SLOWEST, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End::ClientGone),
        Err(_) => Err(End::SlowReader),
    }
}

/// Tells the client why the connection ends, and waits a moment until it has read that.
async fn close(socket: &mut WebSocket, code: CloseCode, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let told = async {
        if socket.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    let _ = timeout(LONGEST_CLOSE, told).await;
}

fn shown(text: &str) -> String {
    text.chars().take(50).collect()
}
