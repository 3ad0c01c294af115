//! Errors. No message holds a query, a header or a body: keys travel in all of them.

use std::time::Duration;

use crate::origin::Origin;

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// The client rejects the URL.
    #[error("the URL is refused: {reason}")]
    BadUrl {
        /// The problem with it.
        reason: String,
    },
    /// The URL leads to an address that is not public.
    #[error(
        "`{host}` is at {address}, which is {why}; name its origin in the configuration if it should be reached"
    )]
    NotPublic {
        /// The host of the URL.
        host: String,
        /// The address.
        address: std::net::IpAddr,
        /// The kind of address.
        why: &'static str,
    },
    /// It leads to the address on which this process listens.
    #[error("`{host}` leads to this gateway itself, which agents cannot reach")]
    OwnAddress {
        /// The host of the URL.
        host: String,
    },
    /// The caller's own rules reject an address on the way.
    #[error("{reason}")]
    Gated {
        /// The rule.
        reason: String,
    },
    /// The body cannot be decompressed.
    #[error("the answer of {origin} cannot be decompressed: {reason}")]
    Undecodable {
        /// The server.
        origin: Origin,
        /// The problem with it.
        reason: String,
    },
    /// The server redirects to a place where this request may not go.
    #[error("the redirect of {from} is not followed: {reason}")]
    Redirect {
        /// The redirecting server.
        from: Origin,
        /// The reason why it is not followed.
        reason: String,
    },
    /// The name does not exist, or its DNS server does not answer.
    #[error("`{host}` has no address: {reason}")]
    NoAddress {
        /// The host of the URL.
        host: String,
        /// The resolver's error.
        reason: String,
    },
    /// No connection was established, or it broke.
    #[error("the connection to {origin} failed: {reason}")]
    Connection {
        /// The server.
        origin: Origin,
        /// The error.
        reason: String,
    },
    /// A timeout was reached.
    #[error("{origin} took longer than {limit:?} to {what}")]
    TimedOut {
        /// The server.
        origin: Origin,
        /// The step that took too long.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// The answer was not HTTP.
    #[error("{origin} did not answer in HTTP: {reason}")]
    Garbled {
        /// The server.
        origin: Origin,
        /// The error.
        reason: String,
    },
    /// The answer exceeds the limit.
    #[error("the answer of {origin} is longer than {most} bytes")]
    TooLarge {
        /// The server.
        origin: Origin,
        /// The limit.
        most: u64,
    },
    /// The client could not be built.
    #[error("no HTTP client could be made: {reason}")]
    NoClient {
        /// The error.
        reason: String,
    },
}
