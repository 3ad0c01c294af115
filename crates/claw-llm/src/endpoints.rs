//! Configured endpoints: services that speak JSON over HTTP and are no chat models, such as ranking,
//! moderation, embedding, or a model with a request format of its own. Configuration names each, with its
//! path, headers, body and the field to read.
//!
//! A request goes to the configured address and follows no redirect. Values of a call are put into the
//! placeholders of the configured body once, and are never read as a template again.

mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{EndpointAnswer, EndpointCard, EndpointHost, EndpointRequest};
use claw_core::tool::{ErrorKind, Origin, Secrets, ToolError};
use claw_net::{Client, HeaderName, HeaderValue, Method, NetError, Options, Request, Times, Url, header};
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use smol_str::SmolStr;

use crate::api_keys::{KeyPlace, Keys};
use crate::providers::{ConfigError, resolve};

/// Longest response, in bytes.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// Longest part of an error response that the model is shown.
const MOST_REFUSAL: usize = 2_000;

/// A configured endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointConfig {
    /// Purpose of the endpoint, as the model reads it.
    pub about: String,
    /// Base URL, such as `https://api.example.com/v1`.
    pub base_url: String,
    /// Path below the base URL.
    pub path: String,
    /// The request body. `{{name}}` stands for a value that the call passes. Left out: the call passes the
    /// whole body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Map<String, Value>>,
    /// The field of the answer to return, as a JSON pointer such as `/choices/0/message/content`. Left out:
    /// all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<String>,
    /// Headers to send with every request. No keys: they would be shown with the configuration.
    pub headers: BTreeMap<String, String>,
    /// Environment variables that may hold its key; the first that is set is used.
    pub key_env: Vec<String>,
    /// Secrets that may hold its key, read after the environment variables.
    pub key_secret: Vec<String>,
    /// The header that carries the key. Left out: `authorization`, after the word `Bearer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_header: Option<String>,
    /// Allows an address that is not public. An IP address or `localhost` in `base_url` implies it.
    pub private: bool,
    /// Timeout, in seconds.
    #[schemars(range(min = 1, max = 600))]
    pub seconds: u32,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            about: String::new(),
            base_url: String::new(),
            path: "/chat/completions".to_owned(),
            body: None,
            read: None,
            headers: BTreeMap::new(),
            key_env: Vec::new(),
            key_secret: Vec::new(),
            key_header: None,
            private: false,
            seconds: 60,
        }
    }
}

impl EndpointConfig {
    /// The endpoint's origin; `None` if `base_url` is invalid.
    pub fn origin(&self) -> Option<Origin> {
        resolve::base_url(&self.base_url).ok().map(|base| origin(&base))
    }
}

/// The endpoints of a configuration.
pub struct ConfiguredEndpoints {
    endpoints: BTreeMap<String, Endpoint>,
    keys: Arc<dyn Keys>,
    client: Client,
}

struct Endpoint {
    card: EndpointCard,
    url: Url,
    body: Option<Map<String, Value>>,
    read: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
    places: Vec<KeyPlace>,
    key_header: Option<HeaderName>,
    times: Times,
}

impl ConfiguredEndpoints {
    /// Takes a configuration; keys are read when a request is sent.
    pub fn new(config: &BTreeMap<String, EndpointConfig>, keys: Arc<dyn Keys>) -> Result<Self, ConfigError> {
        let (mut endpoints, mut named) = (BTreeMap::new(), BTreeSet::new());
        for (name, written) in config {
            let (endpoint, near) = endpoint(name, written)?;
            named.extend(near);
            endpoints.insert(name.clone(), endpoint);
        }
        let client = Client::new(Options { named, ..Options::default() });
        Ok(Self { endpoints, keys, client })
    }

    async fn key(&self, endpoint: &Endpoint, tenant: &TenantId) -> Result<Option<SecretString>, ToolError> {
        let name = &endpoint.card.name;
        let unusable =
            |why: String| ToolError::new(ErrorKind::Unavailable, format!("endpoint `{name}`: {why}"));
        for place in &endpoint.places {
            let key = self.keys.key(tenant, place).await.map_err(unusable)?;
            if let Some(key) = key.filter(|key| !key.expose_secret().trim().is_empty()) {
                return Ok(Some(key));
            }
        }
        match resolve::no_key(&endpoint.places) {
            Some(told) => Err(unusable(told)),
            None => Ok(None),
        }
    }

    fn request(
        &self,
        endpoint: &Endpoint,
        body: &Map<String, Value>,
        key: Option<&SecretString>,
    ) -> Result<Request, ToolError> {
        let body = serde_json::to_string(body).map_err(ToolError::internal)?;
        let json = HeaderValue::from_static("application/json");
        let mut request = Request::new(Method::POST, endpoint.url.clone())
            .header(header::CONTENT_TYPE, json.clone())
            .header(header::ACCEPT, json)
            .body(body)
            .most_bytes(MOST_BYTES)
            .times(endpoint.times);
        for (name, value) in &endpoint.headers {
            request = request.header(name.clone(), value.clone());
        }
        if let Some(key) = key {
            let key = key.expose_secret().trim();
            let (name, text) = match &endpoint.key_header {
                Some(name) => (name.clone(), key.to_owned()),
                None => (header::AUTHORIZATION, format!("Bearer {key}")),
            };
            let mut value = HeaderValue::try_from(text).map_err(|_| {
                let message =
                    format!("the key of endpoint `{}` cannot be sent in a header", endpoint.card.name);
                ToolError::new(ErrorKind::Unavailable, message)
            })?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        Ok(request)
    }
}

#[async_trait]
impl EndpointHost for ConfiguredEndpoints {
    fn list(&self) -> Vec<EndpointCard> {
        self.endpoints.values().map(|endpoint| endpoint.card.clone()).collect()
    }

    async fn send(
        &self,
        tenant: &TenantId,
        request: &EndpointRequest,
        secrets: &Secrets,
    ) -> Result<EndpointAnswer, ToolError> {
        let Some(endpoint) = self.endpoints.get(&request.endpoint) else {
            let names: Vec<String> = self.endpoints.keys().map(|name| format!("`{name}`")).collect();
            let shown: String = request.endpoint.chars().take(80).collect();
            return Err(ToolError::not_found(format!("there is no endpoint `{shown}`"))
                .try_instead(format!("there are {}", names.join(", "))));
        };
        let name = &endpoint.card.name;
        let body = body(endpoint, request)?;
        let read = request.read.as_ref().or(endpoint.read.as_ref());
        if let Some(read) = read.filter(|read| !read.is_empty() && !read.starts_with('/')) {
            return Err(ToolError::invalid(format!("`{read}` is not a JSON pointer"))
                .try_instead("write it like `/choices/0/message/content`"));
        }
        let key = self.key(endpoint, tenant).await?;
        if let Some(key) = &key {
            secrets.add(key.expose_secret().trim());
        }
        let request = self.request(endpoint, &body, key.as_ref())?;
        let mut response = self.client.send(request).await.map_err(unreached)?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(unreached)?;
        if !(200..300).contains(&status) {
            let text = String::from_utf8_lossy(&bytes);
            let end = text.floor_char_boundary(MOST_REFUSAL);
            let told = format!("endpoint `{name}` answered {status}: {}", text[..end].trim());
            return Err(ToolError::failed(told).try_instead(match status {
                401 | 403 => "the endpoint refused the key; a person has to correct it",
                429 => "try again later",
                500.. => "try again later; if the error persists, a person has to fix it",
                _ => "change what you send",
            }));
        }
        let whole: Value = serde_json::from_slice(&bytes).map_err(|error| {
            ToolError::failed(format!("the answer of endpoint `{name}` is not JSON")).because(error)
        })?;
        let Some(value) = whole.pointer(read.map_or("", String::as_str)) else {
            let read = read.map_or("", String::as_str);
            return Err(ToolError::failed(format!("the answer of endpoint `{name}` has no `{read}`"))
                .try_instead(format!(
                    "{}; pass `read` as a JSON pointer, or \"\" for all of it",
                    parts(&whole)
                )));
        };
        Ok(EndpointAnswer { status, value: value.clone() })
    }
}

/// Builds the request body.
fn body(endpoint: &Endpoint, request: &EndpointRequest) -> Result<Map<String, Value>, ToolError> {
    let name = &endpoint.card.name;
    match (&endpoint.body, &request.body) {
        (Some(template), None) => template::fill(template, &request.values)
            .map_err(|why| ToolError::invalid(format!("endpoint `{name}`: {why}"))),
        (Some(_), Some(_)) => Err(ToolError::invalid(format!("endpoint `{name}` has a body of its own"))
            .try_instead(match &endpoint.card.values {
                Some(values) if !values.is_empty() => {
                    format!("pass `values` with {}", template::listed(values))
                }
                _ => "leave `body` out".to_owned(),
            })),
        (None, Some(_)) if !request.values.is_empty() => {
            Err(ToolError::invalid(format!("endpoint `{name}` has no places for `values`"))
                .try_instead("put them into `body`"))
        }
        (None, Some(body)) => Ok(body.clone()),
        (None, None) => Err(ToolError::invalid(format!("endpoint `{name}` has no body of its own"))
            .try_instead("pass all that is to be sent as `body`")),
    }
}

/// Describes the root of an answer: its fields, or its length.
fn parts(whole: &Value) -> String {
    match whole {
        Value::Object(members) => {
            let names: Vec<String> = members.keys().take(20).map(|name| format!("`/{name}`")).collect();
            format!("it has {}", names.join(", "))
        }
        Value::Array(items) => format!("it is a list of {}", items.len()),
        _ => "it is a single value".to_owned(),
    }
}

fn unreached(error: NetError) -> ToolError {
    let kind = match error {
        NetError::TimedOut { .. } => ErrorKind::TimedOut,
        NetError::NotPublic { .. }
        | NetError::OwnAddress { .. }
        | NetError::BadUrl { .. }
        | NetError::Gated { .. }
        | NetError::Redirect { .. } => ErrorKind::Forbidden,
        _ => ErrorKind::Unavailable,
    };
    ToolError::new(kind, error.to_string())
        .try_instead("try again later; if the error persists, a person has to fix it")
}

fn endpoint(
    name: &str,
    written: &EndpointConfig,
) -> Result<(Endpoint, Option<claw_net::Origin>), ConfigError> {
    let refuse = |key: &str, reason: String| ConfigError { key: format!("{name}{key}"), reason };
    let base = resolve::base_url(&written.base_url).map_err(|reason| refuse(".base_url", reason))?;
    let mut places: Vec<KeyPlace> = written.key_env.iter().cloned().map(KeyPlace::Env).collect();
    places.extend(written.key_secret.iter().cloned().map(KeyPlace::Secret));
    let near = resolve::near(&base, written.private);
    if !places.is_empty() && near.is_none() && base.scheme() == "http" {
        let reason = "would send the key to a public address without encryption; use https, or set `private`";
        return Err(refuse(".base_url", reason.to_owned()));
    }
    let key_header = match &written.key_header {
        Some(header) => Some(
            HeaderName::try_from(header.to_ascii_lowercase())
                .map_err(|_| refuse(".key_header", format!("`{header}` is not the name of a header")))?,
        ),
        None => None,
    };
    if let Some(read) = written.read.as_ref().filter(|read| !read.is_empty() && !read.starts_with('/')) {
        let reason = format!("`{read}` is not a JSON pointer; write it like `/choices/0/message/content`");
        return Err(refuse(".read", reason));
    }
    let mut url = base.clone();
    url.set_path(&format!("{}/{}", base.path().trim_end_matches('/'), written.path.trim_start_matches('/')));
    let values = written.body.as_ref().map(template::places);
    let (about, origin) = (written.about.clone(), origin(&base));
    let wait = Duration::from_secs(u64::from(written.seconds.max(1)));
    Ok((
        Endpoint {
            card: EndpointCard { name: name.to_owned(), about, origin, values },
            url,
            body: written.body.clone(),
            read: written.read.clone(),
            headers: resolve::headers(&written.headers)
                .map_err(|(header, reason)| refuse(&format!(".headers.{header}"), reason))?,
            places,
            key_header,
            times: Times { first_byte: wait, idle: wait, whole: Some(wait) },
        },
        near,
    ))
}

/// The origin of a URL, as plans name it.
fn origin(url: &Url) -> Origin {
    Origin {
        scheme: url.scheme().into(),
        host: SmolStr::from(url.host_str().unwrap_or_default()),
        port: url.port_or_known_default().unwrap_or_default(),
    }
}

impl std::fmt::Debug for ConfiguredEndpoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfiguredEndpoints")
            .field("endpoints", &self.endpoints.keys())
            .finish_non_exhaustive()
    }
}
