//! The ways to a server: a child on its standard streams, streamable HTTP, and the older event stream.

mod child;
mod http;
mod sse;
mod unread;

use std::sync::Arc;
use std::time::Duration;

use claw_core::store::McpEndpoint;
use claw_net::{Client, HeaderMap, HeaderValue, NetError, Options, Origin, Request, Response, Url, header};
use rmcp::transport::auth::WWWAuthenticateParams;

use crate::oauth::Login;

pub(crate) use self::child::{StdioChild, start};
pub(crate) use self::http::GuardedHttp;
pub(crate) use self::sse::{SseFailure, SseWorker};
pub(crate) use self::unread::WatchedOutput;

/// Bytes of the largest message that is read.
pub(crate) const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;
/// The longest a server may take to begin its answer to one request.
pub(crate) const FIRST_BYTE: Duration = Duration::from_secs(120);
/// The longest silence of an event stream.
pub(crate) const SILENCE: Duration = Duration::from_secs(24 * 3600);

/// An address with its headers, and a client that reaches it.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// The login whose token every request carries.
    pub(crate) login: Option<Arc<Login>>,
}

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("{0}")]
    Net(#[from] NetError),
    /// The server wants a login, another one, or more scopes.
    #[error("{0}")]
    Login(String),
}

impl SendError {
    /// Returns whether the server surely did not get the request.
    pub(crate) fn is_unsent(&self) -> bool {
        match self {
            Self::Login(_)
            | Self::Net(
                NetError::BadUrl { .. }
                | NetError::NotPublic { .. }
                | NetError::OwnAddress { .. }
                | NetError::Gated { .. }
                | NetError::NoAddress { .. }
                | NetError::NoClient { .. }
                | NetError::TimedOut { what: "connect", .. },
            ) => true,
            // The client below tells by these words at which step it failed.
            Self::Net(NetError::Connection { reason, .. }) => reason.starts_with("client error (Connect)"),
            Self::Net(_) => false,
        }
    }
}

impl Remote {
    /// Creates a client for this endpoint alone. A private address is reached only if the endpoint allows it.
    pub(crate) fn new(endpoint: &McpEndpoint, headers: HeaderMap) -> Result<Self, String> {
        let url =
            Url::parse(&endpoint.url).map_err(|error| format!("`{}` is not a URL: {error}", endpoint.url))?;
        let origin =
            Origin::of(&url).ok_or_else(|| format!("`{}` is neither http nor https", endpoint.url))?;
        let mut options = Options::default();
        if endpoint.private {
            options.named.insert(origin);
        }
        Ok(Self { client: Client::new(options), url, headers, login: None })
    }

    /// Sends a request with the server's headers and the login's token. A token that the server refuses is renewed once.
    pub(crate) async fn send(&self, mut request: Request) -> Result<Response, SendError> {
        for (name, value) in &self.headers {
            request = request.header(name.clone(), value.clone());
        }
        let Some(login) = &self.login else {
            let response = self.client.send(request).await?;
            if response.status() == 401 {
                let hint = "it requires a login (HTTP 401): add the server with `--oauth`, or with a header \
                            that has a key";
                return Err(SendError::Login(hint.to_owned()));
            }
            return Ok(response);
        };
        let token = login.token().await.map_err(SendError::Login)?;
        let mut response = self.client.send(bearing(request.clone(), &token)?).await?;
        if response.status() == 401 {
            let token = login.renewed(&token).await.map_err(SendError::Login)?;
            response = self.client.send(bearing(request, &token)?).await?;
        }
        match response.status() {
            401 => Err(SendError::Login(login.wants(""))),
            403 => match scope_wanted(response.header("www-authenticate").unwrap_or_default(), &self.url) {
                Some(scope) => Err(SendError::Login(login.wants(&scope))),
                None => Ok(response),
            },
            _ => Ok(response),
        }
    }
}

fn bearing(request: Request, token: &str) -> Result<Request, SendError> {
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value =
        value.map_err(|_| SendError::Login("the token of the login cannot be sent".to_owned()))?;
    value.set_sensitive(true);
    Ok(request.header(header::AUTHORIZATION, value))
}

/// Returns the scopes that a server wants, if it refused for lack of them.
fn scope_wanted(challenge: &str, url: &Url) -> Option<String> {
    let wanted = WWWAuthenticateParams::parse(challenge, url);
    wanted.is_insufficient_scope().then(|| wanted.scope.unwrap_or_default())
}
