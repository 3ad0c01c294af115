//! `[models]` of the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Models and their providers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelsConfig {
    /// The provider if an agent names none. Left out: the first that has a key, else the demo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model if an agent names none. Left out: the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Models to try when a model fails, in order, each as `provider/model`.
    pub fallback: Vec<String>,
    /// Providers, by name. Those that are known by name (`anthropic`, `openai`, `gemini`, `openrouter`,
    /// `ollama` and others) need no entry: setting their environment variable is enough.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Number of times a failed request is retried.
    #[schemars(range(max = 20))]
    pub retries: u32,
    /// Approximate wait before the first retry, in milliseconds; doubles each time.
    #[schemars(range(min = 1))]
    pub retry_wait_ms: u32,
    /// The longest wait, in seconds. If a provider asks for a longer one, the request is not retried.
    pub longest_wait_secs: u32,
    /// Timeout for connecting, in seconds.
    #[schemars(range(min = 1))]
    pub connect_secs: u32,
    /// Timeout until an answer begins, in seconds.
    #[schemars(range(min = 1))]
    pub first_byte_secs: u32,
    /// Timeout between two pieces of an answer, in seconds.
    #[schemars(range(min = 1))]
    pub idle_secs: u32,
}

impl Default for ModelsConfig {
    fn default() -> Self {
        Self {
            provider: None,
            model: None,
            fallback: Vec::new(),
            providers: BTreeMap::new(),
            retries: 3,
            retry_wait_ms: 500,
            longest_wait_secs: 60,
            connect_secs: 10,
            first_byte_secs: 120,
            idle_secs: 120,
        }
    }
}

/// A provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// Wire format. May be left out for a provider that is known by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ProviderKind>,
    /// Base URL, such as `http://localhost:11434/v1`. May be left out for a provider that is known by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Environment variables that hold its keys; the next is used if one is refused or exhausted.
    pub key_env: Vec<String>,
    /// Secrets that hold its keys, used after those in environment variables.
    pub key_secret: Vec<String>,
    /// Allows an address that is not public. An IP address or `localhost` in `base_url` implies it.
    pub private: bool,
    /// The default model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Properties of its models, by name. Models that are not listed can be used too.
    pub models: BTreeMap<String, ModelConfig>,
    /// Headers to send with every request. No keys: they would be shown with the configuration.
    pub headers: BTreeMap<String, String>,
    /// The script to play, for the kind `scripted`. Left out: the demo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<PathBuf>,
}

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// Chat completions of OpenAI and compatible servers.
    OpenAi,
    /// Anthropic's messages API.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// A script, played without any network.
    Scripted,
}

/// Properties of a model. Those left out come from a table of common models.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Size of the context window, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub context: Option<u64>,
    /// Largest answer, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub output: Option<u64>,
    /// The model reads images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<PricesConfig>,
    /// The model decides how much it thinks, instead of being given a number of tokens, as newer Anthropic
    /// models do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_thinking: Option<bool>,
    /// Models to try when this one fails, instead of `models.fallback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Vec<String>>,
}

/// Prices of a million tokens, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PricesConfig {
    /// Input that is not cached.
    #[schemars(range(min = 0.0))]
    pub input: f64,
    /// Output.
    #[schemars(range(min = 0.0))]
    pub output: f64,
    /// Input read from the provider's cache.
    #[schemars(range(min = 0.0))]
    pub cache_read: f64,
    /// Input written to the cache.
    #[schemars(range(min = 0.0))]
    pub cache_write: f64,
}
