//! Redirects: the headers and the body that the next server gets, and the redirects that are refused.

use reqwest::Method;
use reqwest::header::{self, HeaderMap, HeaderName};
use url::Url;

use crate::error::NetError;
use crate::origin::Origin;
use crate::request::Request;

/// The headers that a redirect to another origin keeps.
const HARMLESS: [HeaderName; 4] =
    [header::ACCEPT, header::ACCEPT_LANGUAGE, header::CONTENT_TYPE, header::USER_AGENT];

/// Returns the redirected request.
pub(crate) fn redirected(
    request: Request,
    next: Url,
    status: u16,
    from: &Origin,
) -> Result<Request, NetError> {
    let mut request = request;
    let refuse = |reason: String| Err(NetError::Redirect { from: from.clone(), reason });
    if request.url.scheme() == "https" && next.scheme() != "https" {
        return refuse("it leads from https to http".into());
    }
    let becomes_get = match status {
        303 => request.method != Method::HEAD,
        301 | 302 => request.method == Method::POST,
        _ => false,
    };
    if becomes_get {
        request.method = Method::GET;
        request.body = bytes::Bytes::new();
        request.headers.remove(header::CONTENT_TYPE);
    }
    if Origin::of(&next).as_ref() != Some(from) {
        if !request.body.is_empty() {
            return refuse("the request's body would be sent to another origin".into());
        }
        let mut kept = HeaderMap::new();
        for name in HARMLESS {
            if let Some(value) = request.headers.get(&name) {
                kept.insert(name, value.clone());
            }
        }
        request.headers = kept;
    }
    request.url = next;
    Ok(request)
}
