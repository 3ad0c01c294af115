//! The events of a session as they come: server-sent events that a client can resume.
//!
//! Each event has its number as `id`. A client that comes back with `Last-Event-ID`, or `?after=`, gets what it missed,
//! from whichever node. Pieces of what is being said have no number: what is missed of them is in the stored message.

use std::convert::Infallible;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use clawsmith::app::Followed;
use clawsmith::app::access::Permission;
use clawsmith::port::Owner;
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt as _};
use serde::Deserialize;
use serde_json::json;

use crate::Gateway;
use crate::error::ApiError;
use crate::guard::Who;
use crate::sessions::own;

/// Where to begin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct From {
    /// The number of the last event that was seen; all events from the first on where it is 0, those from now on where it
    /// is left out.
    after: Option<u64>,
}

pub(crate) async fn follow(
    State(gateway): State<Gateway>,
    who: Who,
    Path(session): Path<String>,
    headers: HeaderMap,
    from: Result<Query<From>, QueryRejection>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    who.may(Permission::ReadSessions)?;
    let Query(from) = from?;
    let (session, _) = own(&who.0, &session)?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let owner = Owner { tenant: who.0.tenant.clone(), session };
    let follower = gateway.sessions().follow(owner, last.or(from.after)).await?;
    let events = unfold(Some(follower), |follower| async move {
        let mut follower = follower?;
        match follower.next().await {
            Ok(followed) => Some((Ok(shown(&followed)), Some(follower))),
            Err(error) => {
                let gone =
                    Event::default().event("error").data(json!({ "detail": error.message() }).to_string());
                Some((Ok(gone), None))
            }
        }
    });
    let events = events.take_until(gateway.ending().clone().cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
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
    }
}
