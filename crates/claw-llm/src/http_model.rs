//! A model behind HTTP: retries transient failures, when [`retry`](crate::retry) says so, and rotates its keys as
//! [`key_rotation`](crate::key_rotation) says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{Answer, Ear, Fault, Model, ModelCard, ModelError, Piece, Question};
use claw_core::redact::PLACEHOLDER;
use claw_net::{Bytes, Client, HeaderName, HeaderValue, Method, Request, Response, Times, Url, header};
use secrecy::{ExposeSecret as _, SecretString};

use crate::collect_answer::Gather;
use crate::key_rotation::KeyRotation;
use crate::provider_error::{self, Trouble};
use crate::retry::Retry;
use crate::sse::Events;
use crate::wire::Wire;

/// Longest response, in bytes.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// Time to wait after a complete answer for more, such as usage.
const TAIL: Duration = Duration::from_secs(1);
/// Longest part of an error response that is read.
const MOST_REFUSAL: usize = 64 * 1024;

/// A model behind a wire format.
pub(crate) struct Remote {
    pub(crate) card: ModelCard,
    pub(crate) wire: Box<dyn Wire>,
    pub(crate) client: Client,
    pub(crate) base: Url,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Empty if the server needs no key.
    pub(crate) keys: Vec<SecretString>,
    /// Index of the key that worked last. Shared by all models of a provider.
    pub(crate) turn: Arc<AtomicUsize>,
    pub(crate) retry: Retry,
    pub(crate) times: Times,
}

#[async_trait]
impl Model for Remote {
    fn card(&self) -> &ModelCard {
        &self.card
    }

    async fn ask(&self, question: &Question, ear: &dyn Ear) -> Result<Answer, ModelError> {
        let body = self.wire.body(question, &self.card).to_string();
        let mut keys = KeyRotation::new(self.keys.len(), &self.turn);
        let mut again = 0;
        loop {
            let listening = Listening::new(ear);
            let trouble = match self.once(&body, keys.current(), &listening).await {
                Ok(answer) => {
                    keys.worked();
                    return Ok(answer);
                }
                Err(trouble) => self.without_keys(trouble),
            };
            if keys.switch_after(&trouble) {
                listening.again(&trouble.message);
                continue;
            }
            let trouble = keys.decisive(trouble);
            let Some(wait) = self.retry.wait(trouble.fault, again) else {
                return Err(self.error(trouble));
            };
            listening.again(&trouble.message);
            tokio::time::sleep(wait).await;
            again += 1;
            keys.restart();
        }
    }
}

impl Remote {
    /// Sends one request with one key.
    async fn once(&self, body: &str, key: usize, ear: &dyn Ear) -> Result<Answer, Trouble> {
        let request = self.request(body, self.keys.get(key))?;
        let mut response = self.client.send(request).await?;
        if response.status() != 200 {
            return Err(refusal(&mut response).await);
        }
        let mut gather = Gather::new(ear);
        let mut reader = self.wire.reader();
        if is_page(&response) {
            let url = self.wire.url(&self.base, &self.card.model);
            let message = format!(
                "`{url}` answers with a web page, not with a model's answer; check the URL of the provider"
            );
            return Err(Trouble::garbled(message));
        }
        if is_json(&response) {
            let body = response.bytes().await?;
            let text = std::str::from_utf8(&body).map_err(|_| Trouble::garbled("the answer is not UTF-8"))?;
            reader.event(text, &mut gather)?;
        } else {
            let (mut events, mut ready) = (Events::default(), Vec::new());
            let garbled = |error: crate::sse::NoEvents| Trouble::garbled(error.to_string());
            while let Some(chunk) = next(&mut response, reader.is_whole()).await? {
                events.take(&chunk, &mut ready).map_err(garbled)?;
                for data in ready.drain(..) {
                    reader.event(&data, &mut gather)?;
                }
            }
            if !reader.is_whole()
                && let Some(data) = events.rest().map_err(garbled)?
            {
                reader.event(&data, &mut gather)?;
            }
        }
        if !reader.is_whole() {
            return Err(Trouble::new(Fault::Connection, "the stream ended before the answer was complete"));
        }
        let (parts, stop, tokens) = gather.finish();
        Ok(Answer {
            parts,
            stop,
            tokens,
            provider: self.card.provider.clone(),
            model: self.card.model.clone(),
            cost: self.card.prices.cost(&tokens),
        })
    }

    fn request(&self, body: &str, key: Option<&SecretString>) -> Result<Request, Trouble> {
        let url = self.wire.url(&self.base, &self.card.model);
        let mut request = Request::new(Method::POST, url)
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(header::ACCEPT, HeaderValue::from_static("text/event-stream"))
            .body(body.to_owned())
            .most_bytes(MOST_BYTES)
            .times(self.times);
        for (name, value) in self.wire.headers() {
            request = request.header(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        for (name, value) in &self.headers {
            request = request.header(name.clone(), value.clone());
        }
        if let Some(key) = key {
            let (name, value) = self.wire.key(key.expose_secret().trim());
            let mut value = HeaderValue::try_from(value).map_err(|_| {
                let advice = "the API key has invalid characters; set it again";
                Trouble::new(Fault::Unauthorised, advice)
            })?;
            value.set_sensitive(true);
            request = request.header(HeaderName::from_static(name), value);
        }
        Ok(request)
    }

    /// Removes keys from an error: some servers repeat a refused key.
    fn without_keys(&self, mut trouble: Trouble) -> Trouble {
        for key in &self.keys {
            let key = key.expose_secret().trim();
            if !key.is_empty() {
                trouble.message = trouble.message.replace(key, PLACEHOLDER);
            }
        }
        trouble
    }

    fn error(&self, trouble: Trouble) -> ModelError {
        let Trouble { fault, message } = trouble;
        ModelError { provider: self.card.provider.clone(), model: self.card.model.clone(), fault, message }
    }
}

async fn refusal(response: &mut Response) -> Trouble {
    let status = response.status();
    let named = |name: &'static str| response.header(name).map(str::to_owned);
    let after = provider_error::retry_after(named, jiff::Timestamp::now());
    let mut body = Vec::new();
    // An unreadable body is not needed: the status says enough.
    while body.len() < MOST_REFUSAL {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) | Err(_) => break,
        }
    }
    body.truncate(MOST_REFUSAL);
    provider_error::of_status(status, after, &body)
}

/// The next bytes of an answer. If it is complete already, a broken or open connection is no error.
async fn next(response: &mut Response, is_whole: bool) -> Result<Option<Bytes>, Trouble> {
    if is_whole {
        let next = tokio::time::timeout(TAIL, response.chunk()).await;
        return Ok(next.ok().and_then(Result::ok).flatten());
    }
    Ok(response.chunk().await?)
}

/// Returns whether the response is HTML, as from proxies and wrong paths.
fn is_page(response: &Response) -> bool {
    response.header("content-type").is_some_and(|kind| kind.trim_start().starts_with("text/html"))
}

/// Returns whether the response is JSON: some servers do not stream.
fn is_json(response: &Response) -> bool {
    response.header("content-type").is_some_and(|kind| kind.trim_start().starts_with("application/json"))
}

/// A listener that knows whether it heard anything.
pub(crate) struct Listening<'a> {
    ear: &'a dyn Ear,
    heard: AtomicBool,
}

impl<'a> Listening<'a> {
    pub(crate) fn new(ear: &'a dyn Ear) -> Self {
        Self { ear, heard: AtomicBool::new(false) }
    }

    /// Tells the listener to discard the pieces heard so far.
    pub(crate) fn again(&self, reason: &str) {
        if self.heard.swap(false, Ordering::Relaxed) {
            self.ear.hear(Piece::Again { reason });
        }
    }
}

impl Ear for Listening<'_> {
    fn hear(&self, piece: Piece<'_>) {
        self.heard.store(!matches!(piece, Piece::Again { .. }), Ordering::Relaxed);
        self.ear.hear(piece);
    }
}
