//! Which models there are, as configuration says it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Models and who provides them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelsConfig {
    /// The provider that answers where an agent names none. Left out: the first that has a key, and the demo where
    /// none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that answers where an agent names none. Left out: the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who is asked where a model fails, in order, each as `provider/model`.
    pub fallback: Vec<String>,
    /// Providers, by name. Those that are known by name (`anthropic`, `openai`, `gemini`, `openrouter`, `ollama` and
    /// others) need no entry: setting their variable is enough.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// How many times a request that failed is made again.
    #[schemars(range(max = 20))]
    pub retries: u32,
    /// About how long the first wait before that is, in milliseconds; each is twice the one before.
    #[schemars(range(min = 1))]
    pub retry_wait_ms: u32,
    /// The longest wait, in seconds. A provider that asks for more time is not waited for.
    pub longest_wait_secs: u32,
    /// How long connecting may take, in seconds.
    #[schemars(range(min = 1))]
    pub connect_secs: u32,
    /// How long it may take until an answer begins, in seconds.
    #[schemars(range(min = 1))]
    pub first_byte_secs: u32,
    /// How long it may take until an answer goes on, in seconds.
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

/// One provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// How it is spoken to. May be left out for a provider that is known by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ProviderKind>,
    /// Where it is, such as `http://localhost:11434/v1`. May be left out for a provider that is known by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Environment variables that hold its keys; one after the other is used where one is refused or used up.
    pub key_env: Vec<String>,
    /// Sealed secrets that hold its keys, used after those of the environment.
    pub key_secret: Vec<String>,
    /// Whether it may be at an address that is not public. An address or `localhost` in `base_url` says so already.
    pub private: bool,
    /// The model that answers where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What is known of its models, by name. Models that are not listed can be used too.
    pub models: BTreeMap<String, ModelConfig>,
    /// Headers to send with every request. No keys: they would be shown with the configuration.
    pub headers: BTreeMap<String, String>,
    /// The script that is played, for the kind `scripted`. Left out: the demo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<PathBuf>,
}

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// Chat completions, as OpenAI has them and many others do.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// A script that is played, without any network.
    Scripted,
}

/// What is known of a model. What is left out is taken from a table of common models.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// How many tokens it can read and write together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub context: Option<u64>,
    /// How many it can write in one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub output: Option<u64>,
    /// Whether it sees pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// What it costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<PricesConfig>,
    /// Whether it thinks as much as it sees fit, instead of within a number of tokens. Newer models of Anthropic do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_thinking: Option<bool>,
    /// Who is asked where this model fails, in place of `models.fallback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Vec<String>>,
}

/// What a million tokens cost, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PricesConfig {
    /// Read anew.
    #[schemars(range(min = 0.0))]
    pub input: f64,
    /// Written.
    #[schemars(range(min = 0.0))]
    pub output: f64,
    /// Read from the provider's cache.
    #[schemars(range(min = 0.0))]
    pub cache_read: f64,
    /// Put into it.
    #[schemars(range(min = 0.0))]
    pub cache_write: f64,
}
