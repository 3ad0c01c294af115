//! `[scrub]`: secrets beyond those recognised by their form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Secrets beyond those recognised by their form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScrubConfig {
    /// Remove secrets from what models and users see. Logs, ledger and events stay scrubbed.
    pub output: bool,
    /// Environment variables whose values are secret. An unset variable is skipped; a value shorter than 6
    /// bytes is refused, since it could not be distinguished from ordinary text.
    pub values_from_env: Vec<String>,
}

impl Default for ScrubConfig {
    fn default() -> Self {
        Self { output: true, values_from_env: Vec::new() }
    }
}
