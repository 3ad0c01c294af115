//! What can go wrong. No message holds a query, a header or a body: keys travel in all of them.

use std::time::Duration;

use crate::origin::Origin;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// The URL is none that this client takes.
    #[error("the URL is refused: {reason}")]
    BadUrl {
        /// The problem with it.
        reason: String,
    },
    /// It leads to an address that is not public.
    #[error(
        "`{host}` is at {address}, which is {why}; name its origin in the configuration if it should be reached"
    )]
    NotPublic {
        /// The host of the URL.
        host: String,
        /// The address.
        address: std::net::IpAddr,
        /// What kind of address that is.
        why: &'static str,
    },
    /// It leads to the address on which this process listens.
    #[error("`{host}` leads to this gateway itself, which agents never reach")]
    OwnAddress {
        /// The host of the URL.
        host: String,
    },
    /// The caller's own rules refuse an address on the way.
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
    /// The server sends elsewhere, where this request may not go.
    #[error("{from} redirects: {reason}")]
    Redirect {
        /// Who does.
        from: Origin,
        /// Why it is not followed.
        reason: String,
    },
    /// There is no such name, or nobody answers for it.
    #[error("`{host}` has no address: {reason}")]
    NoAddress {
        /// The host of the URL.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// No connection came about, or it broke.
    #[error("the connection to {origin} failed: {reason}")]
    Connection {
        /// With whom.
        origin: Origin,
        /// What happened.
        reason: String,
    },
    /// A limit of time was reached.
    #[error("{origin} took longer than {limit:?} to {what}")]
    TimedOut {
        /// Who.
        origin: Origin,
        /// What it took too long for.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// What came was not HTTP.
    #[error("{origin} did not answer in HTTP: {reason}")]
    Garbled {
        /// Who.
        origin: Origin,
        /// What happened.
        reason: String,
    },
    /// The answer is longer than it may be.
    #[error("the answer of {origin} is longer than {most} bytes")]
    TooLarge {
        /// Whose.
        origin: Origin,
        /// The limit.
        most: u64,
    },
    /// The client could not be made.
    #[error("no HTTP client could be made: {reason}")]
    NoClient {
        /// What happened.
        reason: String,
    },
}
