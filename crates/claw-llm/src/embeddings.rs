//! Embedding models: OpenAI's `/embeddings` (which Ollama, LM Studio, vLLM and others speak too), Gemini,
//! Voyage, and a static model in this process.
//!
//! A batch is complete and its vectors have the same length, or it fails: missing or short vectors, and those
//! of another length than configured, are errors.

mod local;
mod wire;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{EmbedError, EmbedPurpose, Embedder, Fault, unit_vector};
use claw_net::{Client, HeaderValue, Method, Options, Request, Times, Url, header};
use jiff::Timestamp;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::local::LocalEmbedder;
use self::wire::Format;
use crate::api_keys::{KeyPlace, Keys};
use crate::provider_error::{self, Trouble};
use crate::providers::{ConfigError, resolve};
use crate::retry::Retry;

/// Longest response, in bytes.
const MOST_BYTES: u64 = 128 * 1024 * 1024;
/// Retries for passages; past them, the indexer tries again later.
const RETRY: Retry = Retry { retries: 3, wait: Duration::from_millis(500), longest: Duration::from_secs(20) };
/// A query is sent once: its caller does not wait.
const NO_RETRY: Retry = Retry { retries: 0, ..RETRY };

/// The embedding model for memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EmbeddingsConfig {
    /// The API format of the server.
    pub kind: EmbeddingsKind,
    /// The model's name, such as `text-embedding-3-small` or `nomic-embed-text`.
    pub model: String,
    /// The directory of a `local` model, from that of the configuration file: `model.safetensors` and `tokenizer.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Base URL, such as `http://localhost:11434/v1`. Left out: the public address of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Environment variables that may hold its key; the first that is set is used.
    pub key_env: Vec<String>,
    /// Secrets that may hold its key, read after the environment variables.
    pub key_secret: Vec<String>,
    /// Allows an address that is not public. An IP address or `localhost` in `base_url` implies it.
    pub private: bool,
    /// Length of the vectors, for models that support several. Left out: the model's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    pub dimensions: Option<u32>,
    /// Largest number of texts in one request.
    #[schemars(range(min = 1, max = 2048))]
    pub batch: u32,
    /// Timeout of one request, in seconds.
    #[schemars(range(min = 1, max = 600))]
    pub seconds: u32,
}

/// The format of an embeddings server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingsKind {
    /// OpenAI's `/embeddings`: OpenAI, Ollama, LM Studio, vLLM and others.
    #[default]
    OpenAi,
    /// Google's `batchEmbedContents`.
    Gemini,
    /// Voyage's `/embeddings`.
    Voyage,
    /// A static model in this process, read from `path`.
    Local,
}

impl EmbeddingsKind {
    const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Voyage => "voyage",
            Self::Local => "local",
        }
    }

    const fn public(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Voyage => "https://api.voyageai.com/v1",
            Self::Local => "",
        }
    }

    const fn variable(self) -> &'static str {
        match self {
            Self::OpenAi => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
            Self::Voyage => "VOYAGE_API_KEY",
            Self::Local => "",
        }
    }
}

impl Default for EmbeddingsConfig {
    fn default() -> Self {
        Self {
            kind: EmbeddingsKind::OpenAi,
            model: String::new(),
            path: None,
            base_url: None,
            key_env: Vec::new(),
            key_secret: Vec::new(),
            private: false,
            dimensions: None,
            batch: 64,
            seconds: 60,
        }
    }
}

/// The address of an embedding model, the places of its key, and its origin if it is a private one.
type Remote = (Url, Vec<KeyPlace>, Option<claw_net::Origin>);

impl EmbeddingsConfig {
    /// Checks the settings without loading a model or sending anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self.kind {
            EmbeddingsKind::Local => self.directory().map(drop),
            _ => self.remote().map(drop),
        }
    }

    fn directory(&self) -> Result<&PathBuf, ConfigError> {
        let path = self.path.as_ref().filter(|path| !path.as_os_str().is_empty());
        path.ok_or_else(|| refused("path", "names no directory of a local model"))
    }

    fn remote(&self) -> Result<Remote, ConfigError> {
        if self.model.trim().is_empty() {
            return Err(refused("model", "names no model; set it, such as `text-embedding-3-small`"));
        }
        let written = self.base_url.as_deref().unwrap_or(self.kind.public());
        let base = resolve::base_url(written).map_err(|reason| refused("base_url", &reason))?;
        let near = resolve::near(&base, self.private);
        let mut places: Vec<KeyPlace> = self.key_env.iter().cloned().map(KeyPlace::Env).collect();
        places.extend(self.key_secret.iter().cloned().map(KeyPlace::Secret));
        if places.is_empty() && self.base_url.is_none() {
            places.push(KeyPlace::Env(self.kind.variable().to_owned()));
        }
        if !places.is_empty() && near.is_none() && base.scheme() == "http" {
            let reason =
                "would send the key to a public address without encryption; use https, or set `private`";
            return Err(refused("base_url", reason));
        }
        Ok((base, places, near))
    }
}

fn refused(key: &str, reason: &str) -> ConfigError {
    ConfigError { key: key.to_owned(), reason: reason.to_owned() }
}

/// The embedding model of a configuration; `path` is relative to `directory`. A local model is loaded here.
pub fn embedder(
    config: &EmbeddingsConfig,
    directory: &Path,
    keys: Arc<dyn Keys>,
) -> Result<Arc<dyn Embedder>, ConfigError> {
    if config.kind != EmbeddingsKind::Local {
        return Ok(Arc::new(RemoteEmbedder::new(config, keys)?));
    }
    let path = directory.join(config.directory()?);
    Ok(Arc::new(LocalEmbedder::open(&path).map_err(|reason| refused("path", &reason))?))
}

/// An embedding model behind HTTP.
pub struct RemoteEmbedder {
    /// The name under which vectors are stored: format, address, model, and a configured length.
    model: String,
    /// The model's name in requests.
    sent: String,
    format: Format,
    base: Url,
    places: Vec<KeyPlace>,
    dimensions: Option<usize>,
    batch: usize,
    times: Times,
    keys: Arc<dyn Keys>,
    client: Client,
}

impl RemoteEmbedder {
    /// Takes a configuration; keys are read when texts are sent.
    pub fn new(config: &EmbeddingsConfig, keys: Arc<dyn Keys>) -> Result<Self, ConfigError> {
        let (base, places, near) = config.remote()?;
        let host = base.host_str().unwrap_or_default();
        let chosen = config.dimensions.map(|length| format!("/{length}")).unwrap_or_default();
        let wait = Duration::from_secs(u64::from(config.seconds.max(1)));
        Ok(Self {
            model: format!("{}:{host}/{}{chosen}", config.kind.name(), config.model),
            sent: config.model.clone(),
            format: Format(config.kind),
            base,
            places,
            dimensions: config.dimensions.and_then(|length| usize::try_from(length).ok()),
            batch: usize::try_from(config.batch.max(1)).unwrap_or(1),
            times: Times { first_byte: wait, idle: wait, whole: Some(wait) },
            keys,
            client: Client::new(Options {
                named: near.into_iter().collect::<BTreeSet<_>>(),
                ..Options::default()
            }),
        })
    }

    async fn key(&self, tenant: &TenantId) -> Result<Option<SecretString>, Trouble> {
        let unusable = |why: String| Trouble::new(Fault::NotSetUp, why);
        for place in &self.places {
            let key = self.keys.key(tenant, place).await.map_err(unusable)?;
            if let Some(key) = key.filter(|key| !key.expose_secret().trim().is_empty()) {
                return Ok(Some(key));
            }
        }
        resolve::no_key(&self.places).map_or(Ok(None), |told| Err(unusable(told)))
    }

    async fn once(
        &self,
        tenant: &TenantId,
        texts: &[String],
        purpose: EmbedPurpose,
    ) -> Result<Vec<Vec<f32>>, Trouble> {
        let key = self.key(tenant).await?;
        let body = self.format.body(&self.sent, texts, purpose, self.dimensions).to_string();
        let json = HeaderValue::from_static("application/json");
        let mut request = Request::new(Method::POST, self.format.url(&self.base, &self.sent))
            .header(header::CONTENT_TYPE, json.clone())
            .header(header::ACCEPT, json)
            .body(body)
            .most_bytes(MOST_BYTES)
            .times(self.times);
        if let Some(key) = &key {
            let (name, text) = self.format.key(key.expose_secret().trim());
            let mut value = HeaderValue::try_from(text)
                .map_err(|_| Trouble::new(Fault::NotSetUp, "its key cannot be sent in a header"))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let mut response = self.client.send(request).await?;
        let status = response.status();
        let wait =
            provider_error::retry_after(|name| response.header(name).map(str::to_owned), Timestamp::now());
        let bytes = response.bytes().await?;
        if status != 200 {
            return Err(provider_error::of_status(status, wait, &bytes));
        }
        let answer: Value = serde_json::from_slice(&bytes)
            .map_err(|_| Trouble::garbled("its answer is not JSON, or was cut off"))?;
        self.checked(self.format.vectors(&answer)?, texts.len())
    }

    /// Checks that there are as many vectors as texts, all of the right length, and normalises them.
    fn checked(&self, vectors: Vec<Vec<f32>>, texts: usize) -> Result<Vec<Vec<f32>>, Trouble> {
        if vectors.len() != texts {
            let message = format!("it returned {} vectors for {texts} texts", vectors.len());
            return Err(Trouble::garbled(message));
        }
        let length = self.dimensions.or_else(|| vectors.first().map(Vec::len)).unwrap_or_default();
        let mut checked = Vec::with_capacity(vectors.len());
        for vector in vectors {
            if vector.len() != length || length == 0 {
                let message = format!(
                    "it returned a vector of {} numbers where {length} are expected; check `memory.embeddings.dimensions`",
                    vector.len()
                );
                return Err(Trouble::new(Fault::BadRequest, message));
            }
            let unit = unit_vector(&vector);
            checked.push(unit.ok_or_else(|| Trouble::garbled("it returned a vector of zeros"))?);
        }
        Ok(checked)
    }

    fn error(&self, trouble: Trouble) -> EmbedError {
        let retry_after = match trouble.fault {
            Fault::RateLimited { retry_after } => retry_after,
            _ => None,
        };
        EmbedError {
            message: format!("the embedding model `{}`: {}", self.sent, trouble.message),
            transient: trouble.fault.is_transient(),
            retry_after,
        }
    }
}

#[async_trait]
impl Embedder for RemoteEmbedder {
    fn model(&self) -> &str {
        &self.model
    }

    fn batch(&self) -> usize {
        self.batch
    }

    async fn embed(
        &self,
        tenant: &TenantId,
        texts: &[String],
        purpose: EmbedPurpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let retry = if purpose == EmbedPurpose::Passage { RETRY } else { NO_RETRY };
        let mut again = 0;
        loop {
            let trouble = match self.once(tenant, texts, purpose).await {
                Ok(vectors) => return Ok(vectors),
                Err(trouble) => trouble,
            };
            let Some(wait) = retry.wait(trouble.fault, again) else {
                return Err(self.error(trouble));
            };
            tokio::time::sleep(wait).await;
            again += 1;
        }
    }
}

impl std::fmt::Debug for RemoteEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteEmbedder").field("model", &self.model).finish_non_exhaustive()
    }
}
