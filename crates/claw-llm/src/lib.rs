//! Models behind one interface, [`claw_core::port::Model`].
//!
//! Differences between providers end here: callers see turns, pieces, an answer and the kinds of failure, and
//! nothing of a wire format. [`Providers`] holds all models of a deployment; a model that plays a [`Script`]
//! is one like the others.

mod anthropic;
mod api_keys;
mod collect_answer;
mod config;
mod embeddings;
mod endpoints;
mod fallback;
mod gemini;
mod http_model;
mod key_rotation;
mod known_models;
mod known_providers;
mod message_order;
mod openai;
mod provider_error;
mod providers;
mod retry;
mod script;
mod scripted;
mod sse;
mod wire;

pub use api_keys::{EnvKeys, KeyPlace, Keys};
pub use config::{ModelConfig, ModelsConfig, PricesConfig, ProviderConfig, ProviderKind};
pub use embeddings::{EmbeddingsConfig, EmbeddingsKind, LocalEmbedder, RemoteEmbedder, embedder};
pub use endpoints::{ConfiguredEndpoints, EndpointConfig};
pub use known_providers::{PROVIDERS as KNOWN_PROVIDERS, Provider as KnownProvider};
pub use providers::{ConfigError, ProviderCard, Providers};
pub use script::{NoTurn, Pace, Scene, Script, ScriptError, Step};
pub use scripted::Scripted;
