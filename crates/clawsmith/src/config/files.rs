//! `[files]`: the files that tools may reach, quotas, and the history kept for undo.

use std::path::PathBuf;

use claw_host::files::UndoLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{days, in_days, in_mib, mib};

/// The files that tools may reach, workspace quotas, and the history kept for undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// Paths hidden from every tool; a relative one is denied in every workspace. The data directory and
    /// `.clawsmith` are always denied.
    pub deny: Vec<PathBuf>,
    /// Directories beside the workspace that tools and commands of every agent may read, such as those of
    /// toolchains: `~/.cargo/bin`, `~/.rustup`. Commands find the programs in them. Files in them whose names
    /// mark secrets (`.npmrc`, `credentials.toml`, keys) are hidden from agents.
    pub read: Vec<PathBuf>,
    /// Directories beside the workspace that tools and commands of every agent may read and change.
    pub write: Vec<PathBuf>,
    /// The most bytes a workspace may hold. Left out: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// The most files and directories a workspace may hold. Left out: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_files: Option<u64>,
    /// Workspaces whose context files (`AGENTS.md`, `USER.md`, ...) and memory are in the store.
    pub context: ContextFiles,
    /// The most bytes of a project's own `AGENTS.md` and `CLAUDE.md` files in a prompt. They are read from the
    /// workspace up to the repository's root. 0 leaves them out.
    #[schemars(range(max = 1_048_576))]
    pub project_bytes: u32,
    /// Days for which changes of files can be undone.
    #[schemars(range(min = 1, max = 36500))]
    pub undo_days: u32,
    /// The most MiB of files kept for undo; beyond that the oldest are deleted.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub undo_mib: u32,
}

/// Workspaces whose context files and memory are in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContextFiles {
    /// Workspaces that Clawsmith created, below `workspaces` in the data directory. In others they are files.
    Managed,
    /// All workspaces; tools cannot reach files of those names.
    Store,
}

impl Default for FilesConfig {
    fn default() -> Self {
        let undo = UndoLimits::default();
        Self {
            deny: Vec::new(),
            read: Vec::new(),
            write: Vec::new(),
            quota_bytes: None,
            quota_files: None,
            context: ContextFiles::Managed,
            project_bytes: 32 * 1024,
            undo_days: in_days(undo.age),
            undo_mib: in_mib(undo.bytes),
        }
    }
}

impl FilesConfig {
    /// Returns the limits on changes kept for undo.
    pub fn undo_limits(&self) -> UndoLimits {
        UndoLimits { age: days(self.undo_days), bytes: mib(self.undo_mib) }
    }
}
