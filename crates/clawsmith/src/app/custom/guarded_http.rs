//! Requests of custom tools, through the guarded HTTP client.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{HttpAnswer, HttpHost, HttpRequest};
use claw_core::tool::{ErrorKind, Secrets, ToolError};
use claw_net::{Client, HeaderName, HeaderValue, Method, NetError, Options, Origin, Request, Times, Url};

use crate::app::{Error, Setup};

/// An answer longer than this is cut off with an error.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// The longest wait for an answer; the tool's own time limit ends a call sooner.
const LONGEST: Duration = Duration::from_secs(3600);

struct GuardedHttp(Client);

/// The way to other servers: public addresses, and the origins that `custom_tools.private_origins` names.
pub(crate) fn guarded_http(setup: &Setup) -> Result<Arc<dyn HttpHost>, Error> {
    let mut options = Options::default();
    for text in &setup.config().custom_tools.private_origins {
        let origin: Origin = text.parse().map_err(|error| {
            Error::invalid(format!("`custom_tools.private_origins` has `{text}`: {error}"))
        })?;
        options.named.insert(origin);
    }
    Ok(Arc::new(GuardedHttp(Client::new(options))))
}

#[async_trait]
impl HttpHost for GuardedHttp {
    async fn send(
        &self,
        _: &TenantId,
        request: &HttpRequest,
        secrets: &Secrets,
    ) -> Result<HttpAnswer, ToolError> {
        let bad =
            |error: &dyn std::fmt::Display| ToolError::invalid(format!("the address is invalid: {error}"));
        let url = Url::parse(&request.url).map_err(|error| bad(&error))?;
        let leads_to = (url.scheme(), url.host_str().unwrap_or_default(), url.port_or_known_default());
        let origin = &request.origin;
        // The plan was judged by the origin: an address that is read otherwise goes nowhere.
        if leads_to != (origin.scheme.as_str(), origin.host.as_str(), Some(origin.port)) {
            return Err(ToolError::new(ErrorKind::Forbidden, "the address is not on the tool's server"));
        }
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|error| bad(&error))?;
        let mut sent = Request::new(method, url);
        for (name, value) in request.headers.reveal() {
            secrets.add(value.clone());
            let name = HeaderName::try_from(name.as_str()).map_err(|error| bad(&error))?;
            let mut value = HeaderValue::try_from(value.as_str()).map_err(|error| bad(&error))?;
            value.set_sensitive(true);
            sent = sent.header(name, value);
        }
        if let Some(body) = &request.body {
            sent = sent.header(claw_net::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            sent = sent.body(body.to_string());
        }
        let times = Times { first_byte: LONGEST, idle: LONGEST, whole: Some(LONGEST) };
        let sent = sent.redirects(0).most_bytes(MOST_BYTES).times(times);
        let mut response = self.0.send(sent).await.map_err(unreached)?;
        let status = response.status();
        let body = response.bytes().await.map_err(unreached)?;
        Ok(HttpAnswer { status, body: String::from_utf8_lossy(&body).into_owned() })
    }
}

fn unreached(error: NetError) -> ToolError {
    let kind = match error {
        NetError::TimedOut { .. } => ErrorKind::TimedOut,
        NetError::NotPublic { .. }
        | NetError::OwnAddress { .. }
        | NetError::BadUrl { .. }
        | NetError::Redirect { .. } => ErrorKind::Forbidden,
        _ => ErrorKind::Unavailable,
    };
    ToolError::new(kind, error.to_string())
        .try_instead("try again later; if the error persists, a person has to fix it")
}
