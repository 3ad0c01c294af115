//! Programs as files list them: the rows that other systems keep can be loaded as they are.

use std::collections::BTreeMap;
use std::path::Path;

use secrecy::SecretString;
use serde::Deserialize;

use crate::failure::Failure;

/// A program in a file. Its `encrypted_env` is plain text: it is sealed when it is loaded.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) binary_name: String,
    #[serde(default)]
    pub(super) binary_path: Option<String>,
    pub(super) encrypted_env: BTreeMap<String, SecretString>,
    #[serde(default)]
    pub(super) deny_args: Vec<String>,
    #[serde(default)]
    pub(super) deny_verbose: Vec<String>,
    #[serde(default)]
    pub(super) helpers: Vec<String>,
    #[serde(default)]
    pub(super) timeout_seconds: Option<u32>,
    #[serde(default)]
    pub(super) tips: String,
    #[serde(default)]
    pub(super) agent_id: Option<String>,
    #[serde(default = "enabled")]
    pub(super) enabled: bool,
}

const fn enabled() -> bool {
    true
}

/// Reads the rows of a file: one, or a list of them.
pub(super) fn read(path: &Path) -> Result<Vec<Row>, Failure> {
    let unread = || format!("`{}` cannot be read", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| Failure::usage(unread()).because(error))?;
    let rows = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(&text),
        false => serde_json::from_str(&text).map(|row| vec![row]),
    };
    // The error may quote the text, and the text holds credentials: only where it stands is told.
    rows.map_err(|error| {
        let at = format!("{}: line {}, column {}", unread(), error.line(), error.column());
        Failure::usage(at).hint(
            "a row has `binary_name`, `encrypted_env`, `deny_args`, `deny_verbose`, `timeout_seconds`, `tips`, and may \
             have `binary_path`, `helpers`, `agent_id`, `enabled`",
        )
    })
}
