//! The client: checks URLs, sends requests, follows redirects.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use claw_core::own_listen_addresses::is_own_port;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use crate::error::NetError;
use crate::origin::Origin;
use crate::own_address::leads_here;
use crate::public_address::why_not_public;
use crate::redirect::redirected;
use crate::request::Request;
use crate::resolve::{Lookup, Resolver, Unresolved, system_lookup};
use crate::response::Response;
use crate::tls;

/// The settings of a client.
#[derive(Clone)]
pub struct Options {
    /// Origins that may be reached at any address.
    pub named: BTreeSet<Origin>,
    /// The timeout for connecting, including DNS and TLS.
    pub connect: Duration,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The resolver of names.
    pub lookup: Lookup,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            named: BTreeSet::new(),
            connect: Duration::from_secs(10),
            user_agent: concat!("clawsmith/", env!("CARGO_PKG_VERSION")).to_owned(),
            lookup: system_lookup(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { named, connect, user_agent, lookup: _ } = self;
        f.debug_struct("Options")
            .field("named", named)
            .field("connect", connect)
            .field("user_agent", user_agent)
            .finish_non_exhaustive()
    }
}

/// An HTTP client that reaches public addresses and named origins. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: Options,
    /// Never connect to an address that is not public, names included. The second one is for the ports on which this
    /// process listens, and never connects to this machine.
    public: [OnceLock<reqwest::Client>; 2],
    /// For named origins only; again the second one for this process's own ports. Connections of one client are never met
    /// by another.
    named: [OnceLock<reqwest::Client>; 2],
}

impl Client {
    /// Makes a client. The clients under it are built with the first request.
    pub fn new(options: Options) -> Self {
        Self(Arc::new(Inner { options, public: Default::default(), named: Default::default() }))
    }

    /// Returns the client under this one, for a named origin or for all others.
    fn under(&self, origin: &Origin) -> Result<&reqwest::Client, NetError> {
        let Inner { options, public, named } = &*self.0;
        let is_named = options.named.contains(origin);
        let at_own_port = is_own_port(Some(origin.port()));
        let place = &(if is_named { named } else { public })[usize::from(at_own_port)];
        if let Some(made) = place.get() {
            return Ok(made);
        }
        let made = reqwest::Client::builder()
            .user_agent(&options.user_agent)
            .connect_timeout(options.connect)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .tls_backend_preconfigured(tls::config()?)
            .dns_resolver(Resolver { lookup: options.lookup.clone(), guarded: !is_named, at_own_port })
            .build()
            .map_err(|error| NetError::NoClient { reason: told(&error) })?;
        Ok(place.get_or_init(|| made))
    }

    /// Sends a request and waits for the head of the answer.
    pub async fn send(&self, request: Request) -> Result<Response, NetError> {
        let deadline = request.times.whole.map(|limit| (Instant::now() + limit, limit));
        let mut request = request;
        let mut left = request.redirects;
        let mut from: Option<Origin> = None;
        loop {
            let origin = self.check(&request.url, from.as_ref())?;
            if let Some(gate) = &request.gate {
                gate(&request.url).map_err(|reason| NetError::Gated { reason })?;
            }
            if request.redirects == 0 {
                return self.hop(request, origin, deadline).await;
            }
            let response = self.hop(request.clone(), origin.clone(), deadline).await?;
            let moved = matches!(response.status(), 301 | 302 | 303 | 307 | 308);
            let Some(place) = response.header("location").filter(|_| moved) else {
                return Ok(response);
            };
            let refuse = |reason: String| NetError::Redirect { from: origin.clone(), reason };
            left = left.checked_sub(1).ok_or_else(|| {
                refuse(format!("{} redirects were followed already, which is the limit", request.redirects))
            })?;
            let next = request
                .url
                .join(place)
                .map_err(|error| refuse(format!("the target is not a valid URL: {error}")))?;
            request = redirected(request, next, response.status(), &origin)?;
            from = Some(origin);
        }
    }

    /// Returns the origin of a URL, if it may be reached. Names are checked when they are resolved.
    fn check(&self, url: &Url, from: Option<&Origin>) -> Result<Origin, NetError> {
        let refuse = |reason: String| Err(NetError::BadUrl { reason });
        let Some(origin) = Origin::of(url) else {
            return refuse(format!("`{}` is neither http nor https", url.scheme()));
        };
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("it contains a user name or a password; send them in a header".into());
        }
        if leads_here(url) {
            return Err(NetError::OwnAddress { host: url.host_str().unwrap_or_default().to_owned() });
        }
        if self.0.options.named.contains(&origin) {
            // A server elsewhere must not be able to redirect a request to a machine that only we can reach.
            return match from {
                Some(from) if *from != origin => Err(NetError::Redirect {
                    from: from.clone(),
                    reason: format!(
                        "{origin} is named in the configuration, and redirects from other servers to it are refused"
                    ),
                }),
                _ => Ok(origin),
            };
        }
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) => return Ok(origin),
            None => return refuse("it has no host".into()),
        };
        match why_not_public(address) {
            Some(why) => Err(NetError::NotPublic { host: address.to_string(), address, why }),
            None => Ok(origin),
        }
    }

    async fn hop(
        &self,
        request: Request,
        origin: Origin,
        deadline: Option<(Instant, Duration)>,
    ) -> Result<Response, NetError> {
        let Request { method, url, headers, body, times, most_bytes, .. } = request;
        let sent = self.under(&origin)?.request(method, url.clone()).headers(headers).body(body).send();
        let first = (Instant::now() + times.first_byte, times.first_byte, "answer");
        let (until, limit, what) = match deadline {
            Some((at, limit)) if at < first.0 => (at, limit, "send everything"),
            _ => first,
        };
        let Ok(answered) = timeout_at(until, sent).await else {
            return Err(NetError::TimedOut { origin, what, limit });
        };
        let inner = answered.map_err(|error| {
            if error.is_connect() && error.is_timeout() {
                return NetError::TimedOut {
                    origin: origin.clone(),
                    what: "connect",
                    limit: self.0.options.connect,
                };
            }
            failed(&origin, &error)
        })?;
        Ok(Response { inner, origin, url, most_bytes, read: 0, idle: times.idle, deadline })
    }
}

/// Converts an error of the client under this one.
pub(crate) fn failed(origin: &Origin, error: &reqwest::Error) -> NetError {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = source {
        match cause.downcast_ref::<Unresolved>() {
            Some(Unresolved::NotPublic { host, address, why }) => {
                return NetError::NotPublic { host: host.clone(), address: *address, why };
            }
            Some(Unresolved::OwnAddress { host }) => {
                return NetError::OwnAddress { host: host.clone() };
            }
            Some(Unresolved::NoAddress { host, reason }) => {
                return NetError::NoAddress { host: host.clone(), reason: reason.clone() };
            }
            None => source = cause.source(),
        }
    }
    let (origin, reason) = (origin.clone(), told(error));
    if error.is_builder() {
        return NetError::BadUrl { reason };
    }
    if is_garbled(error) {
        return NetError::Garbled { origin, reason };
    }
    NetError::Connection { origin, reason }
}

/// Returns whether the answer was not HTTP, as opposed to cut off.
fn is_garbled(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(hyper) = cause.downcast_ref::<hyper::Error>() {
            return hyper.is_parse();
        }
        source = cause.source();
    }
    false
}

/// Returns the causes in one line. The URL is left out: it may hold a key.
fn told(error: &reqwest::Error) -> String {
    let mut words = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if words.last() != Some(&text) {
            words.push(text);
        }
        source = cause.source();
    }
    if words.is_empty() { "the cause is unknown".to_owned() } else { words.join(": ") }
}

#[cfg(test)]
mod tests;
