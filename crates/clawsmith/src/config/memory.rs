//! `[memory]`: how memory documents are found.

use claw_llm::EmbeddingsConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How memory documents are found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// The model that makes vectors of what is remembered. Left out: words alone find.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<EmbeddingsConfig>,
}
