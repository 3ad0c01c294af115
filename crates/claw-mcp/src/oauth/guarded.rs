//! The requests of logins, through the guarded client.

use std::net::IpAddr;
use std::time::Duration;

use claw_net::{Client, Method, Options, Origin, Request, Times, Url};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};

/// The most bytes of an answer of an authorization server.
const MOST_BYTES: u64 = 1024 * 1024;
/// The most redirects followed in search of metadata.
const MOST_REDIRECTS: usize = 3;

/// The guarded client behind the login library's interface.
pub(super) struct GuardedOAuth {
    /// The kind of private addresses at which an authorization server may be; `None` for public ones only.
    pub(super) private: Option<Reach>,
}

/// A kind of address that is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Loopback,
    Private,
}

/// Returns the kind of a URL's address; `None` for public ones and for names.
pub(super) fn reach(url: &str) -> Option<Reach> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    if host.eq_ignore_ascii_case("localhost") {
        return Some(Reach::Loopback);
    }
    match host.parse().ok()? {
        IpAddr::V4(address) if address.is_loopback() => Some(Reach::Loopback),
        IpAddr::V6(address) if address.is_loopback() => Some(Reach::Loopback),
        IpAddr::V4(address) if address.is_private() => Some(Reach::Private),
        IpAddr::V6(address) if address.is_unique_local() => Some(Reach::Private),
        _ => None,
    }
}

impl OAuthHttpClient for GuardedOAuth {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let (parts, body) = request.request.into_parts();
            let url = Url::parse(&parts.uri.to_string())?;
            let mut options = Options::default();
            // A server on a private address may have its authorization server there too, and no other may.
            if self.private.is_some() && reach(url.as_str()) == self.private {
                options.named.extend(Origin::of(&url));
            }
            let redirects = match request.redirect_policy {
                OAuthHttpRedirectPolicy::Follow => MOST_REDIRECTS,
                _ => 0,
            };
            let method = Method::from_bytes(parts.method.as_str().as_bytes())?;
            let whole = request.timeout.unwrap_or(Duration::from_secs(30));
            let mut sent = Request::new(method, url)
                .body(body)
                .redirects(redirects)
                .most_bytes(MOST_BYTES)
                .times(Times { whole: Some(whole), ..Times::default() });
            for (name, value) in &parts.headers {
                sent = sent.header(name.clone(), value.clone());
            }
            let mut answer = Client::new(options).send(sent).await?;
            let body = answer.bytes().await?;
            let mut response = http::Response::builder().status(answer.status());
            for (name, value) in answer.headers() {
                response = response.header(name, value);
            }
            Ok(response.body(body.to_vec())?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_same_kind_are_reached_besides_public_ones() {
        assert_eq!(reach("http://127.0.0.1:8080/mcp"), Some(Reach::Loopback));
        assert_eq!(reach("http://localhost/mcp"), Some(Reach::Loopback));
        assert_eq!(reach("http://[::1]:3/"), Some(Reach::Loopback));
        assert_eq!(reach("http://10.1.2.3/"), Some(Reach::Private));
        for other in ["http://169.254.169.254/", "https://example.com/", "http://0.0.0.0/", "nonsense"] {
            assert_eq!(reach(other), None, "{other}");
        }
    }
}
