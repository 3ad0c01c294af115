//! Skills: the deployment's directories, and their share of a prompt.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Skills: instructions that agents load for one kind of task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillsConfig {
    /// Directories whose skills every agent may use; earlier ones win. A relative path starts from the
    /// directory of this file. They are trusted: agents must not be able to write there.
    pub directories: Vec<PathBuf>,
    /// The most tokens for the list of skills in a prompt; the rest is found with `skill_search`.
    #[schemars(range(max = 20_000))]
    pub prompt_tokens: u32,
}

impl Default for SkillsConfig {
    fn default() -> Self {
        Self { directories: Vec::new(), prompt_tokens: 1_500 }
    }
}
