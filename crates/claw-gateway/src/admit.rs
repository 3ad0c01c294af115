//! Checks before every handler: the names that a request may use, and the key that it must show.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use clawsmith::UserId;
use clawsmith::app::access::{Full, Permission, Place, PlaceKind, Visitor};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::Gateway;
use crate::client_address::{Peer, address};
use crate::error::ApiError;

/// The visitor of a request, set by [`admit`].
#[derive(Clone)]
pub(crate) struct Who(pub(crate) Arc<Visitor>);

impl Who {
    /// Checks that the visitor may do this.
    pub(crate) fn may(&self, permission: Permission) -> Result<(), ApiError> {
        self.0.may(permission).map_err(ApiError::from)
    }
}

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(no_key)
    }
}

/// The error for a request without a key.
pub(crate) fn no_key() -> ApiError {
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        "no_key",
        "this request needs an API key: send `Authorization: Bearer claw_...`",
    )
    .hint("create one with `clawsmith api-keys create`")
}

/// Refuses a request whose `Host` or `Origin` is not this gateway's: another site's page may have led a
/// browser here.
pub(crate) fn check_origin(gateway: &Gateway, request: &Request) -> Result<(), ApiError> {
    match origin_fault(&gateway.0.hosts, request.headers(), request.uri().host()) {
        None => Ok(()),
        Some(what) => Err(ApiError::new(StatusCode::FORBIDDEN, "foreign_host", what)
            .hint("add the host to `gateway.hosts`, or use the gateway's own address")),
    }
}

fn origin_fault(hosts: &[String], headers: &HeaderMap, in_uri: Option<&str>) -> Option<String> {
    for name in [header::HOST, header::ORIGIN, header::AUTHORIZATION] {
        if headers.get_all(&name).iter().nth(1).is_some() {
            return Some(format!("there is more than one `{name}`"));
        }
    }
    let host = match headers.get(header::HOST) {
        Some(host) => host.to_str().unwrap_or(""),
        None => in_uri.unwrap_or(""),
    };
    let is_own = |name: &str| {
        without_port(name).is_some_and(|name| hosts.iter().any(|own| own.eq_ignore_ascii_case(name)))
    };
    if !is_own(host) {
        return Some(format!("this gateway does not accept the host `{}`", shown(host)));
    }
    let origin = headers.get(header::ORIGIN)?.to_str().unwrap_or("");
    let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let is_same =
        name.is_some_and(|name| is_own(name) && (name.eq_ignore_ascii_case(host) || !is_loopback(name)));
    (!is_same).then(|| format!("this gateway does not accept the origin `{}`", shown(origin)))
}

/// Returns whether a name is of this machine, where another port is another program.
fn is_loopback(name: &str) -> bool {
    without_port(name).is_some_and(|name| matches!(name, "localhost" | "127.0.0.1" | "[::1]"))
}

/// Returns the name of `name:port`; an IPv6 address keeps its brackets. `None` if the port is not a number.
fn without_port(host: &str) -> Option<&str> {
    match host.rfind(':') {
        Some(at) if !host[at..].contains(']') => {
            let port = &host[at + 1..];
            (!port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit())).then(|| &host[..at])
        }
        _ => Some(host),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Returns the error for a key that exceeded its rate limit.
pub(crate) fn too_many(wait: Duration) -> ApiError {
    let what = "this key has reached its limit of requests per minute";
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", what)
        .retry_after(wait)
        .hint(format!("try again in {} s, or use another key", wait.as_secs().max(1)))
}

/// Takes a place of the visitor's key for a request or a WebSocket connection.
pub(crate) fn enter(gateway: &Gateway, visitor: &Visitor, kind: PlaceKind) -> Result<Place, ApiError> {
    gateway.0.door.enter(visitor, kind).map_err(|Full { most, setting }| {
        let (code, open) = match kind {
            PlaceKind::Request => ("too_many_requests_open", "requests"),
            PlaceKind::WebSocket => ("too_many_websockets", "WebSocket connections"),
        };
        let what = format!("this key has {most} {open} open, which is the limit");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, code, what)
            .retry_after(Duration::from_secs(1))
            .hint(format!("wait until one has ended, or use another key; `{setting}` sets the limit"))
            .setting(setting)
    })
}

/// A body that keeps its request's place until it has ended or its client is gone.
struct Held {
    body: Body,
    _place: Place,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Keeps the place of a request whose answer is a stream; that of any other is free with its answer.
pub(crate) fn held(response: Response, place: Option<Place>) -> Response {
    match (response.body().size_hint().exact(), place) {
        (None, Some(place)) => response.map(|body| Body::new(Held { body, _place: place })),
        _ => response,
    }
}

/// Lets a request in that shows a good key: returns its visitor, and the place that it takes.
pub(crate) async fn admit(
    gateway: &Gateway,
    headers: &HeaderMap,
    peer: Option<Peer>,
) -> Result<(Who, Place), ApiError> {
    let key = bearer(headers).ok_or_else(no_key)?;
    let Some(visitor) = gateway.0.door.admit(key).await? else {
        if let Some(peer) = peer {
            refused_key(&address(peer, &gateway.0.proxies, headers));
        }
        return Err(bad_key());
    };
    gateway.0.door.count(&visitor).map_err(too_many)?;
    let place = enter(gateway, &visitor, PlaceKind::Request)?;
    let who = match acted_for(headers)? {
        Some(user) => act_for(gateway, &visitor, user).await?,
        None => visitor,
    };
    Ok((Who(who), place))
}

/// The header that names the user to act for, where that is not the key's own.
pub(crate) const ACT_FOR: &str = "x-clawsmith-user";

/// The user that a request names to act for.
pub(crate) fn acted_for(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut named = headers.get_all(ACT_FOR).iter();
    match (named.next(), named.next()) {
        (None, _) => Ok(None),
        (Some(user), None) => Ok(Some(user.to_str().unwrap_or(""))),
        (Some(_), Some(_)) => Err(ApiError::invalid(format!("there is more than one `{ACT_FOR}`"))
            .hint("name one user in each request")),
    }
}

/// Returns the visitor that acts for this user with the same key.
pub(crate) async fn act_for(
    gateway: &Gateway,
    own: &Arc<Visitor>,
    user: &str,
) -> Result<Arc<Visitor>, ApiError> {
    own.may(Permission::ActForUsers)?;
    let no_user = |_| {
        ApiError::not_found(format!("there is no user `{}`", shown(user)))
            .hint("`GET /v1/users` lists the users")
    };
    let id = UserId::new(user).map_err(no_user)?;
    Ok(gateway.0.door.acting(own, &id).await?)
}

/// Returns whether a request shows no key at all, good or bad.
pub(crate) fn has_no_key(headers: &HeaderMap) -> bool {
    !headers.contains_key(header::AUTHORIZATION)
}

/// The error for a key that is not valid.
pub(crate) fn bad_key() -> ApiError {
    let what = "this key is unknown, revoked or expired, or its user is disabled";
    ApiError::new(StatusCode::UNAUTHORIZED, "bad_key", what).hint("`clawsmith api-keys list` lists the keys")
}

/// Logs the client of a key that is not valid.
pub(crate) fn refused_key(client: &impl std::fmt::Display) {
    tracing::warn!(%client, "a request with an invalid key was refused");
}

/// The key of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(host: &str, origin: Option<&'static str>, refused: bool) {
        let hosts = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        }
        assert_eq!(origin_fault(&hosts, &headers, None).is_some(), refused, "{host} {origin:?}");
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        check("127.0.0.1:7373", None, false);
        check("LOCALHOST:7373", Some("http://localhost:7373"), false);
        check("[::1]:7373", Some("http://[::1]:7373"), false);
        check("evil.example:7373", None, true);
        check("127.0.0.1.evil.example", None, true);
        check("", None, true);
        check("localhost:7373", Some("https://evil.example"), true);
        check("localhost:7373", Some("null"), true);
        check("localhost:7373", Some("http://localhost.evil.example"), true);
        check("localhost:7373", Some("http://localhost:31337"), true);
        check("localhost:7373", Some("http://localhost:80@evil.example"), true);
        check("localhost:7373", Some("chrome-extension://localhost:7373"), true);
        check("localhost:evil.example", None, true);
    }
}
