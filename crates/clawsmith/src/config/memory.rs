//! `[memory]`: search of memory documents, and extraction of facts from them.

use claw_core::provenance::UntrustedMemory;
use claw_llm::EmbeddingsConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Search of memory documents, and extraction of facts from them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// How memory documents are used that a run wrote after it had read untrusted text: `show` them to agents, fenced as
    /// data; `search_only`, which keeps them out of prompts; or `hide` them from agents.
    pub untrusted: UntrustedMemory,
    /// The model that computes vectors. Left out: only words are searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<EmbeddingsConfig>,
    /// Extraction of facts from documents for the knowledge graph. Left out: none are extracted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphConfig>,
}

/// Extraction of facts from documents for the knowledge graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GraphConfig {
    /// The provider of the model, a name in `models.providers`. Left out: the deployment's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model. Left out: the provider's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The lowest confidence of a stored fact, from 0 to 1. Facts of which the model is less sure are dropped.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_confidence: f64,
    /// Seconds without a write after which facts are extracted from a document.
    pub quiet_seconds: u64,
}

impl Default for GraphConfig {
    fn default() -> Self {
        Self { provider: None, model: None, min_confidence: 0.75, quiet_seconds: 20 }
    }
}
