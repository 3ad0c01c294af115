//! A request, with its limits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

/// A check that rejects an address, with the reason: called before the first request and before each
/// redirect.
pub type Gate = Arc<dyn Fn(&Url) -> Result<(), String> + Send + Sync>;

/// A request to a server.
#[derive(Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) redirects: usize,
    pub(crate) most_bytes: u64,
    pub(crate) times: Times,
    pub(crate) gate: Option<Gate>,
}

/// The timeouts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Until the head of the answer arrives, connecting included; restarts with each redirect.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
    /// For everything; `None` for no limit.
    pub whole: Option<Duration>,
}

impl Default for Times {
    fn default() -> Self {
        Self { first_byte: Duration::from_secs(60), idle: Duration::from_secs(30), whole: None }
    }
}

impl Request {
    /// Makes a request without headers and body that follows no redirects and accepts up to 10 MiB.
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            redirects: 0,
            most_bytes: 10 * 1024 * 1024,
            times: Times::default(),
            gate: None,
        }
    }

    /// Sets a header, replacing one of the same name.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Follows at most this many redirects.
    #[must_use]
    pub fn redirects(mut self, most: usize) -> Self {
        self.redirects = most;
        self
    }

    /// Accepts at most this many bytes of an answer.
    #[must_use]
    pub fn most_bytes(mut self, most: u64) -> Self {
        self.most_bytes = most;
        self
    }

    /// Checks every address on the way with `gate`.
    #[must_use]
    pub fn gate(mut self, gate: Gate) -> Self {
        self.gate = Some(gate);
        self
    }

    /// Sets the timeouts.
    #[must_use]
    pub fn times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }
}

// Queries, headers and bodies may hold keys.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.keys().collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("origin", &crate::Origin::of(&self.url).map(|origin| origin.to_string()))
            .field("path", &self.url.path())
            .field("headers", &names)
            .field("body", &self.body.len())
            .finish_non_exhaustive()
    }
}
