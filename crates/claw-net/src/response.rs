//! An answer, whose body is read piece by piece within the limits.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::client::failed;
use crate::decode::{Undecoded, decode};
use crate::error::NetError;
use crate::origin::Origin;

/// An answer. Dropping it ends the request.
pub struct Response {
    pub(crate) inner: reqwest::Response,
    pub(crate) origin: Origin,
    pub(crate) url: Url,
    pub(crate) most_bytes: u64,
    pub(crate) read: u64,
    pub(crate) idle: Duration,
    /// The deadline for the whole answer, and the limit that set it.
    pub(crate) deadline: Option<(Instant, Duration)>,
}

impl Response {
    /// Returns the HTTP status.
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Returns a header's text; `None` if it is missing or not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// Returns the final URL, after redirects.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the origin that answered, after redirects.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the next piece of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        let idle = (Instant::now() + self.idle, self.idle, "send more");
        let (until, limit, what) = match self.deadline {
            Some((at, limit)) if at < idle.0 => (at, limit, "send everything"),
            _ => idle,
        };
        let Ok(chunk) = timeout_at(until, self.inner.chunk()).await else {
            return Err(NetError::TimedOut { origin: self.origin.clone(), what, limit });
        };
        let Some(chunk) = chunk.map_err(|error| failed(&self.origin, &error))? else { return Ok(None) };
        self.read = self.read.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        if self.read > self.most_bytes {
            return Err(NetError::TooLarge { origin: self.origin.clone(), most: self.most_bytes });
        }
        Ok(Some(chunk))
    }

    /// Returns the rest of the body.
    pub async fn bytes(&mut self) -> Result<Bytes, NetError> {
        let mut all = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }
}

impl Response {
    /// Returns the rest of the body, decompressed as its head says. The request's limit applies before and
    /// after.
    pub async fn decoded(&mut self) -> Result<Bytes, NetError> {
        let body = self.bytes().await?;
        let layers = self.headers().get_all(reqwest::header::CONTENT_ENCODING).iter();
        let layers: Vec<&str> = layers.map(|value| value.to_str().unwrap_or("not text")).collect();
        if layers.is_empty() {
            return Ok(body);
        }
        let (encoding, most, origin) = (layers.join(","), self.most_bytes, self.origin.clone());
        let decoding = tokio::task::spawn_blocking(move || decode(body, &encoding, most));
        match decoding.await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(Undecoded::TooLarge)) => Err(NetError::TooLarge { origin, most }),
            Ok(Err(Undecoded::Broken(reason))) => Err(NetError::Undecodable { origin, reason }),
            Err(error) => Err(NetError::Undecodable { origin, reason: error.to_string() }),
        }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, origin) = (self.status(), self.origin.to_string());
        f.debug_struct("Response").field("status", &status).field("origin", &origin).finish_non_exhaustive()
    }
}
