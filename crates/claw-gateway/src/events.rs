//! The events of one session or of many, and requests for access, as they come: server-sent events that a client can resume.
//!
//! Each event has its number as `id`. A client that reconnects with `Last-Event-ID`, or `?after=`, gets the
//! events it missed, from any node. Pieces of streaming messages have no number: missed ones are in the
//! stored message.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use clawsmith::app::access::Visitor;
use clawsmith::app::mcp::AccessFollower;
use clawsmith::app::{Followed, Follower, Kind};
use clawsmith::port::Owner;
use clawsmith::store::{FeedEvent, McpRequestEvent, SessionEvent, SessionEventBody};
use clawsmith::{AgentId, SessionKey, UnixMillis};
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use crate::Gateway;
use crate::admit::bearer;
use crate::api::{Output, Path, Query, Replied, Visit};
use crate::error::ApiError;
use crate::feed::{Feed, FeedTopic};
use crate::openapi::{Operation, Schemas};
use crate::sessions::there;

/// The interval at which a stream checks that its key is still valid.
const LOOK: Duration = Duration::from_secs(2);

/// The advice to a client that missed pieces.
const LAGGED: &str =
    "pieces were skipped because the client read too slowly; the stored message has the whole text";

/// The event to start from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct From {
    /// The number of the last event seen: 0 for all events; if left out, only new ones.
    after: Option<u64>,
}

/// The sessions whose events are wanted: give exactly one of `agentId` and `tenant`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FeedQuery {
    /// All your own sessions with this agent.
    agent_id: Option<AgentId>,
    /// `true` for all sessions of the tenant; for administrators.
    tenant: Option<bool>,
    /// The `feed` of the last event seen: 0 for all events; if left out, only new ones.
    after: Option<u64>,
}

/// The time to start from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FromTime {
    /// The time of the last event seen, in milliseconds since 1970: 0 for all events; if left out, only new ones. An event of
    /// that very time comes again.
    after: Option<i64>,
}

/// A stream of requests for access.
pub(crate) struct RequestStream;

impl Output for RequestStream {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.header("Last-Event-ID", "The time of the last event that was seen, instead of `after`.");
        let event = schemas.shown::<McpRequestEvent>();
        operation.also(StatusCode::OK, "text/event-stream", json!({ "type": "string" }));
        operation.extra("x-event", event);
    }
}

/// A stream of events.
pub(crate) struct EventStream;

impl Output for EventStream {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.header("Last-Event-ID", "The number of the last event that was seen, instead of `after`.");
        let event = schemas.shown::<SessionEvent>();
        operation.also(StatusCode::OK, "text/event-stream", json!({ "type": "string" }));
        operation.extra("x-event", event);
    }
}

pub(crate) async fn follow(
    visit: Visit,
    Path(session): Path<String>,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Result<Replied<EventStream>, ApiError> {
    let session = there(&visit, &session).await?;
    let owner = Owner { tenant: visit.visitor().tenant.clone(), session };
    let follower = visit.sessions().follow(owner, last_seen(&headers).or(from.after)).await?;
    Ok(stream(visit, &headers, follower).into())
}

/// An event of one of many sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FedEvent {
    /// The number of the event in its tenant.
    feed: u64,
    session: SessionKey,
    /// The number of the event in its session.
    seq: u64,
    at: UnixMillis,
    #[serde(flatten)]
    what: SessionEventBody,
}

impl FedEvent {
    fn new(FeedEvent { feed, session, event: SessionEvent { seq, at, what } }: FeedEvent) -> Self {
        Self { feed, session, seq, at, what }
    }
}

/// A stream of the events of many sessions.
pub(crate) struct FeedStream;

impl Output for FeedStream {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.header("Last-Event-ID", "The `feed` of the last event that was seen, instead of `after`.");
        let event = schemas.shown::<FedEvent>();
        operation.also(StatusCode::OK, "text/event-stream", json!({ "type": "string" }));
        operation.extra("x-event", event);
    }
}

/// Follows many sessions: the visitor's own with an agent, or for administrators all of the tenant.
pub(crate) async fn follow_many(
    visit: Visit,
    Query(wanted): Query<FeedQuery>,
    headers: HeaderMap,
) -> Result<Replied<FeedStream>, ApiError> {
    let topic = match (wanted.agent_id, wanted.tenant.unwrap_or(false)) {
        (Some(agent), false) => FeedTopic::Agent(agent),
        (None, true) => FeedTopic::Tenant,
        _ => return Err(ApiError::invalid("give either `agentId` or `tenant=true`")),
    };
    let feed = Feed::begin(&visit, topic, last_seen(&headers).or(wanted.after)).await?;
    Ok(stream(visit, &headers, feed).into())
}

/// The number of the last event that a client saw before it reconnected.
fn last_seen<T: std::str::FromStr>(headers: &HeaderMap) -> Option<T> {
    headers.get("last-event-id")?.to_str().ok()?.parse().ok()
}

/// Follows requests for access to MCP servers: the visitor's own, or for administrators all of the tenant.
pub(crate) async fn follow_requests(
    visit: Visit,
    Query(from): Query<FromTime>,
    headers: HeaderMap,
) -> Result<Replied<RequestStream>, ApiError> {
    let after = last_seen(&headers).or(from.after).map(UnixMillis);
    let follower = visit.gateway.app().follow_mcp_requests(visit.visitor(), after).await?;
    Ok(stream(visit, &headers, follower).into())
}

/// Something whose events are sent as they come.
trait Source: Send + 'static {
    /// Waits for the next event; the error says why there are no more.
    fn next_event(&mut self) -> impl Future<Output = Result<Event, String>> + Send;
}

impl Source for Follower {
    async fn next_event(&mut self) -> Result<Event, String> {
        self.next().await.map(|followed| shown(&followed)).map_err(|error| error.message().to_owned())
    }
}

impl Source for Feed {
    async fn next_event(&mut self) -> Result<Event, String> {
        let next = self.next().await.map_err(|error| error.message().to_owned())?;
        let (event, kind) = (Event::default().id(next.feed.to_string()), next.event.what.kind());
        Ok(event.event(kind).data(json!(FedEvent::new(next)).to_string()))
    }
}

impl Source for AccessFollower {
    async fn next_event(&mut self) -> Result<Event, String> {
        let event = self.next().await.map_err(|error| error.message().to_owned())?;
        let data = json!(event).to_string();
        Ok(Event::default().id(event.at.0.to_string()).event("access_request").data(data))
    }
}

/// Sends events until the gateway ends, or the key is no longer valid or no longer has the rights that it had.
fn stream(visit: Visit, headers: &HeaderMap, source: impl Source) -> Response {
    let Visit { gateway, who } = visit;
    let ending = gateway.ending().clone();
    let key = bearer(headers).unwrap_or_default().to_owned();
    let following = Following { gateway, key, visitor: who.0, source, looked: Instant::now() };
    let events = unfold(Some(following), |following| async move {
        let mut following = following?;
        match following.next().await {
            Ok(event) => Some((Ok::<Event, Infallible>(event), Some(following))),
            Err(why) => {
                let gone = Event::default().event("error").data(json!({ "detail": why }).to_string());
                Some((Ok(gone), None))
            }
        }
    });
    let events = events.take_until(ending.cancelled_owned());
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// A stream, and the key that it was opened with.
struct Following<S> {
    gateway: Gateway,
    key: String,
    /// The visitor as the stream was opened.
    visitor: Arc<Visitor>,
    source: S,
    /// The time of the last check of the key.
    looked: Instant,
}

impl<S: Source> Following<S> {
    /// Returns the next event; the error says why the stream ends.
    async fn next(&mut self) -> Result<Event, String> {
        loop {
            if self.looked.elapsed() >= LOOK {
                self.looked = Instant::now();
                match self.gateway.0.door.admit_for(&self.key, self.visitor.acts_for()).await {
                    Ok(None) => {
                        let why = "the API key of this stream is no longer valid; open the stream again with a valid key";
                        return Err(why.to_owned());
                    }
                    Ok(Some(now)) if now == self.visitor => {}
                    Err(error) if error.kind() == Kind::Failed => {}
                    Ok(Some(_)) | Err(_) => {
                        return Err(
                            "the rights of this stream's API key changed; open the stream again".to_owned()
                        );
                    }
                }
            }
            if let Ok(event) = timeout(LOOK, self.source.next_event()).await {
                return event;
            }
        }
    }
}

fn shown(followed: &Followed) -> Event {
    match followed {
        Followed::Event(event) => {
            let mut data = serde_json::to_value(&event.what).unwrap_or_default();
            data["seq"] = event.seq.into();
            data["at"] = json!(event.at);
            Event::default().id(event.seq.to_string()).event(event.what.kind()).data(data.to_string())
        }
        Followed::Piece(piece) => Event::default().event("piece").data(json!(piece).to_string()),
        Followed::Lagged => Event::default().event("lagged").data(json!({ "detail": LAGGED }).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;

    #[tokio::test]
    async fn a_client_that_did_not_read_is_told_that_pieces_are_missing() {
        let stage = Stage::new().await;
        let mut follower = stage.lagging().await;
        let event = follower.next_event().await.unwrap();
        let sent = Sse::new(futures_util::stream::iter([Ok::<Event, Infallible>(event)])).into_response();
        let sent = axum::body::to_bytes(sent.into_body(), 1_000).await.unwrap();
        let sent = String::from_utf8_lossy(&sent);
        assert!(sent.starts_with("event: lagged\ndata: {"), "{sent}");
        let next = format!("{:?}", follower.next().await.unwrap());
        assert!(next.contains("Piece"), "{next}");
    }
}
