//! The key of a WebSocket: in the header of the upgrade or, for browsers, which cannot set it, in the first frame.
//!
//! A connection without a key can do one thing: show one, soon. There are only so many of them at a time.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::extract::ws::{Message, WebSocket, close_code};
use axum::http::StatusCode;
use axum::http::request::Parts;
use clawsmith::app::access::{Place, PlaceKind};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::frames::{Connect, Frame};
use super::{End, answered, close, send};
use crate::Gateway;
use crate::admit::{Who, act_for, bad_key, bearer, enter, no_key, refused_key, too_many};
use crate::api::{Input, Visit};
use crate::client_address::{Peer, address};
use crate::error::ApiError;

/// The most connections at a time that have not shown a key.
pub(crate) const MOST_WITHOUT_KEY: usize = 64;
/// The time in which a key must be shown.
const LONGEST_SILENCE: Duration = Duration::from_secs(5);

/// A client that opens a WebSocket, with a key or still without one.
pub(crate) struct Newcomer {
    gateway: Gateway,
    /// The visitor and the key, where the upgrade has one.
    known: Option<(Who, String)>,
    /// The address of the client, for the log.
    client: String,
}

impl FromRequestParts<Gateway> for Newcomer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, ApiError> {
        let who = parts.extensions.get::<Who>().cloned();
        let known = who.map(|who| (who, bearer(&parts.headers).unwrap_or_default().to_owned()));
        let peer = parts.extensions.get::<Peer>().copied();
        let client = peer.map(|peer| address(peer, &gateway.0.proxies, &parts.headers).to_string());
        Ok(Self { gateway: gateway.clone(), known, client: client.unwrap_or_default() })
    }
}

impl Input for Newcomer {}

/// A place of the connection: one of its key, or one of those that have none yet.
pub(super) enum Entry {
    Known { visit: Visit, key: String, place: Place },
    Unknown { newcomer: Newcomer, place: OwnedSemaphorePermit },
}

/// A client whose key is good.
pub(super) struct Connected {
    pub(super) visit: Visit,
    pub(super) key: String,
    pub(super) place: Place,
}

impl Newcomer {
    /// Takes a place, before the connection is upgraded.
    pub(super) fn enter(self) -> Result<Entry, ApiError> {
        let Self { gateway, known, client } = self;
        if let Some((who, key)) = known {
            let place = enter(&gateway, &who.0, PlaceKind::WebSocket)?;
            return Ok(Entry::Known { visit: Visit { gateway, who }, key, place });
        }
        match Arc::clone(&gateway.0.without_key).try_acquire_owned() {
            Ok(place) => Ok(Entry::Unknown { newcomer: Self { gateway, known: None, client }, place }),
            Err(_) => {
                let what =
                    format!("{MOST_WITHOUT_KEY} connections are open that have not sent their key yet");
                Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_without_key", what)
                    .retry_after(LONGEST_SILENCE)
                    .hint("send the key in the header `Authorization`, or try again"))
            }
        }
    }

    /// Returns whether the upgrade itself shows a good key.
    pub(super) fn has_key(&self) -> bool {
        self.known.is_some()
    }

    /// The error for a request that is no upgrade and has no key.
    pub(super) fn without_key() -> ApiError {
        no_key()
    }

    /// Reads the first frame and answers it. `None` if it shows no good key: the connection is closed then.
    async fn connect(self, socket: &mut WebSocket) -> Option<Connected> {
        let ending = self.gateway.ending().clone();
        let first = tokio::select! {
            () = ending.cancelled() => {
                if let Some((code, reason)) = End::GatewayEnds.told() {
                    close(socket, code, reason).await;
                }
                return None;
            }
            first = timeout(LONGEST_SILENCE, first(socket)) => first,
        };
        let (id, done) = match first {
            Ok(Some(text)) => match Frame::read(&text) {
                Ok(frame) => (Some(frame.id.clone()), self.admit(frame).await),
                Err(error) => (None, Err(error)),
            },
            Ok(None) => return None,
            Err(_) => {
                close(socket, close_code::POLICY, "no API key was sent in time").await;
                return None;
            }
        };
        match done {
            Ok(connected) => {
                let payload = welcome(&connected.visit);
                send(socket, &answered(id, Ok(payload))).await.is_ok().then_some(connected)
            }
            Err(error) => {
                if send(socket, &answered(id, Err(error))).await.is_ok() {
                    close(socket, close_code::POLICY, "invalid API key").await;
                }
                None
            }
        }
    }

    async fn admit(self, frame: Frame) -> Result<Connected, ApiError> {
        if frame.kind != "req" || frame.method != "connect" {
            let what = "the first frame of a connection without a key must be the request `connect`";
            return Err(ApiError::new(StatusCode::UNAUTHORIZED, "no_key", what).hint(
                "send `{\"type\": \"req\", \"id\": \"1\", \"method\": \"connect\", \"params\": {\"token\": \"claw_...\"}}`",
            ));
        }
        let given: Connect = serde_json::from_value(Value::Object(frame.params()?))
            .map_err(|error| ApiError::invalid(format!("`params`: {error}")))?;
        let door = &self.gateway.0.door;
        let Some(visitor) = door.admit(&given.token).await? else {
            refused_key(&self.client);
            return Err(bad_key());
        };
        door.count(&visitor).map_err(too_many)?;
        let place = enter(&self.gateway, &visitor, PlaceKind::WebSocket)?;
        let who = match &given.user {
            Some(user) => act_for(&self.gateway, &visitor, user).await?,
            None => visitor,
        };
        let visit = Visit { gateway: self.gateway, who: Who(who) };
        Ok(Connected { visit, key: given.token, place })
    }
}

impl Entry {
    pub(super) fn gateway(&self) -> &Gateway {
        match self {
            Self::Known { visit, .. } => &visit.gateway,
            Self::Unknown { newcomer, .. } => &newcomer.gateway,
        }
    }

    /// Returns the client once its key is known and good.
    pub(super) async fn connected(self, socket: &mut WebSocket) -> Option<Connected> {
        match self {
            Self::Known { visit, key, place } => Some(Connected { visit, key, place }),
            Self::Unknown { newcomer, place } => {
                let connected = newcomer.connect(socket).await;
                drop(place);
                connected
            }
        }
    }
}

/// The answer to a good key: as whom the connection acts.
pub(super) fn welcome(visit: &Visit) -> Value {
    let visitor = visit.visitor();
    json!({ "tenant": visitor.tenant, "user": visitor.user, "role": visitor.role })
}

/// The first frame with content; `None` if the client is gone. One of bytes counts as a frame that cannot be read.
async fn first(socket: &mut WebSocket) -> Option<String> {
    loop {
        match socket.recv().await? {
            Ok(Message::Text(text)) => return Some(text.to_string()),
            Ok(Message::Binary(_)) => return Some(String::new()),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Ok(Message::Close(_)) | Err(_) => return None,
        }
    }
}
