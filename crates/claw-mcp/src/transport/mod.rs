//! The ways to a server: a child on its standard streams, streamable HTTP, and the older event stream.

mod http;
mod sse;
mod stdio;

use std::time::Duration;

use claw_core::store::McpEndpoint;
use claw_net::{Client, HeaderMap, Options, Origin, Url};

pub(crate) use self::http::GuardedHttp;
pub(crate) use self::sse::SseWorker;
pub(crate) use self::stdio::{StdioChild, start};

/// Bytes of the largest message that is read.
pub(crate) const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;
/// How long a server may take to begin its answer to one request.
pub(crate) const FIRST_BYTE: Duration = Duration::from_secs(120);
/// How long a stream of events may be silent.
pub(crate) const SILENCE: Duration = Duration::from_secs(24 * 3600);

/// An address with the headers that go there, and a client that reaches it.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

impl Remote {
    /// A way to this endpoint alone. An address that is not public is reached only if the endpoint says so.
    pub(crate) fn new(endpoint: &McpEndpoint, headers: HeaderMap) -> Result<Self, String> {
        let url =
            Url::parse(&endpoint.url).map_err(|error| format!("`{}` is no URL: {error}", endpoint.url))?;
        let origin =
            Origin::of(&url).ok_or_else(|| format!("`{}` is neither http nor https", endpoint.url))?;
        let mut options = Options::default();
        if endpoint.private {
            options.named.insert(origin);
        }
        Ok(Self { client: Client::new(options), url, headers })
    }
}
