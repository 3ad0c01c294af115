//! Subscriptions: one session with the pieces of what is said in it, the events of many sessions, or requests for access.

use clawsmith::AgentId;
use clawsmith::app::access::Permission;
use clawsmith::app::mcp::AccessFollower;
use clawsmith::app::{Followed, Follower};
use clawsmith::port::Owner;
use clawsmith::store::{FeedEvent, SessionEvent};
use clawsmith::{SessionKey, UnixMillis};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::AbortHandle;

use super::Passed;
use super::frames::{Payload, Subscribe, Told, Topic};
use crate::api::Visit;
use crate::error::ApiError;
use crate::feed::{Feed, FeedTopic};
use crate::sessions::there;

const GIVE_ONE: &str = "give one of `sessionKey`, `agentId`, `tenant` and `accessRequests`";

/// Begins to pass events on; returns the task that does, and what the client is answered.
pub(super) async fn begin(
    visit: &Visit,
    wanted: &Subscribe,
    events: mpsc::Sender<Passed>,
) -> Result<(AbortHandle, Value), ApiError> {
    let topic = wanted.topic();
    if topic == (Topic { access_requests: true, ..Topic::default() }) {
        let after = wanted.after.map(|after| UnixMillis(i64::try_from(after).unwrap_or(i64::MAX)));
        let follower = visit.gateway.app().follow_mcp_requests(visit.visitor(), after).await?;
        let payload = json!({ "accessRequests": true });
        return Ok((tokio::spawn(follow_requests(follower, topic, events)).abort_handle(), payload));
    }
    visit.may(Permission::ReadSessions)?;
    let tenant = visit.visitor().tenant.clone();
    match (&wanted.session_key, &wanted.agent_id, wanted.tenant) {
        _ if wanted.access_requests => Err(ApiError::invalid(GIVE_ONE)),
        (Some(session), None, false) => {
            let session = there(visit, session).await?;
            let owner = Owner { tenant, session: session.clone() };
            let follower = visit.sessions().follow(owner, wanted.after).await?;
            let payload = json!({ "sessionKey": session });
            Ok((tokio::spawn(follow(follower, session, topic, events)).abort_handle(), payload))
        }
        (None, Some(agent), false) => {
            let agent =
                AgentId::new(agent).map_err(|error| ApiError::invalid(format!("`agentId`: {error}")))?;
            let feed = Feed::begin(visit, FeedTopic::Agent(agent.clone()), wanted.after).await?;
            let payload = json!({ "agentId": agent, "feed": feed.seen() });
            Ok((tokio::spawn(follow_feed(feed, topic, events)).abort_handle(), payload))
        }
        (None, None, true) => {
            let feed = Feed::begin(visit, FeedTopic::Tenant, wanted.after).await?;
            let payload = json!({ "tenant": tenant, "feed": feed.seen() });
            Ok((tokio::spawn(follow_feed(feed, topic, events)).abort_handle(), payload))
        }
        _ => Err(ApiError::invalid(GIVE_ONE)),
    }
}

/// The last frame of a subscription that cannot go on.
pub(super) fn ended(topic: &Topic) -> Told {
    let session = topic.session_key.as_ref().and_then(|session| SessionKey::new(session).ok());
    Told { event: "ended", session, ..told("ended", None) }
}

fn told(event: &'static str, payload: Option<Payload>) -> Told {
    Told { r#type: "event", event, session: None, seq: None, feed: None, at: None, payload }
}

fn of_event(session: SessionKey, event: SessionEvent, feed: Option<u64>) -> Told {
    let SessionEvent { seq, at, what } = event;
    let (kind, at): (_, Option<UnixMillis>) = (what.kind(), Some(at));
    Told { session: Some(session), seq: Some(seq), feed, at, ..told(kind, Some(Payload::Event(what))) }
}

/// Passes one session on. Events wait for the client; pieces that it does not read in time are left out, and it is told.
async fn follow(mut follower: Follower, session: SessionKey, topic: Topic, events: mpsc::Sender<Passed>) {
    let (mut last, mut lags) = (None, false);
    let lagged = |seq| {
        let lagged = Told { session: Some(session.clone()), seq, ..told("lagged", None) };
        Passed::Event(Box::new(lagged))
    };
    while let Ok(followed) = follower.next().await {
        let passed = match followed {
            Followed::Piece(piece) => {
                let piece =
                    Told { session: Some(session.clone()), ..told("piece", Some(Payload::Piece(piece))) };
                let notice = lags.then(|| lagged(last));
                // No piece comes before the client knows that others are missing.
                let mut passed = notice.into_iter().chain([Passed::Event(Box::new(piece))]);
                match passed.try_for_each(|passed| events.try_send(passed)) {
                    Ok(()) => lags = false,
                    Err(TrySendError::Full(_)) => lags = true,
                    Err(TrySendError::Closed(_)) => return,
                }
                continue;
            }
            Followed::Lagged => {
                lags = true;
                continue;
            }
            Followed::Event(event) => event,
        };
        if std::mem::take(&mut lags) && events.send(lagged(last)).await.is_err() {
            return;
        }
        last = Some(passed.seq);
        let event = of_event(session.clone(), passed, None);
        if events.send(Passed::Event(Box::new(event))).await.is_err() {
            return;
        }
    }
    let _ = events.send(Passed::Ended(topic)).await;
}

/// Passes the events of many sessions on, as fast as the client reads.
async fn follow_feed(mut followed: Feed, topic: Topic, events: mpsc::Sender<Passed>) {
    while let Ok(FeedEvent { feed, session, event }) = followed.next().await {
        let event = of_event(session, event, Some(feed));
        if events.send(Passed::Event(Box::new(event))).await.is_err() {
            return;
        }
    }
    let _ = events.send(Passed::Ended(topic)).await;
}

/// Passes requests for access on, as fast as the client reads.
async fn follow_requests(mut follower: AccessFollower, topic: Topic, events: mpsc::Sender<Passed>) {
    while let Ok(event) = follower.next().await {
        let at = Some(event.at);
        let event = Told { at, ..told("access_request", Some(Payload::AccessRequest(event))) };
        if events.send(Passed::Event(Box::new(event))).await.is_err() {
            return;
        }
    }
    let _ = events.send(Passed::Ended(topic)).await;
}

#[cfg(test)]
mod tests;
