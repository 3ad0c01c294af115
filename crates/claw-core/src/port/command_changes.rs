//! Changes that a command made on a layer over the workspace, before and after they are applied.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::id::UndoId;
use crate::tool::ToolError;

/// A command's access to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceAccess {
    /// The workspace can be read but not changed.
    ReadOnly,
    /// Changes go to a layer, and to the workspace when the command has ended. Without a layer, and in
    /// directories with generated files, they go to the workspace at once.
    #[default]
    Layer,
    /// All changes go to a layer. Without one, the command is refused.
    OnlyLayer,
    /// Changes go to the workspace at once.
    Direct,
}

/// The moment at which the changes of a command are brought into the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApplyMode {
    /// When the command has ended, whatever its exit code.
    #[default]
    Auto,
    /// When a person has seen the diff and approved it.
    Review,
    /// Only if the exit code is 0.
    OnSuccess,
}

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The entry is new.
    Created,
    /// Its bytes, its mode or its times changed, or it was replaced.
    Changed,
    /// The entry is gone.
    Deleted,
}

/// Kind of a changed entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangedEntry {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
}

/// One entry that a command created, changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Its path, relative to the workspace.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Kind of the entry; for a deleted one, its kind before.
    pub entry: ChangedEntry,
    /// Its size before; `None` if it did not exist.
    pub bytes_before: Option<u64>,
    /// Its size after; `None` if it is gone.
    pub bytes_after: Option<u64>,
    /// Its new permissions; `None` if they did not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// Changes of a command that has ended, not yet in the workspace. Dropping them discards them.
#[async_trait]
pub trait PendingChanges: Send + Sync {
    /// Id by which the changes can be undone once they are applied.
    fn id(&self) -> UndoId;
    /// The changes, sorted by path.
    fn list(&self) -> &[FileChange];
    /// Changes that are never applied: of paths that the command was not shown, sockets, and directories that cannot be read.
    fn refused(&self) -> &[PathBuf];
    /// Returns whether the list has everything that the command could change: it wrote to no directory directly.
    fn is_complete(&self) -> bool;
    /// Bytes that are kept for undoing the changes.
    fn kept_bytes(&self) -> u64;
    /// Returns a file's bytes before and after; `None` if there is no file, or it has more than `most` bytes.
    async fn contents(&self, path: &Path, most: u64) -> [Option<Vec<u8>>; 2];
    /// Returns whether there is an entry at this path after the changes.
    async fn exists(&self, path: &Path) -> bool;
    /// Returns whether [`apply`](Self::apply) has brought changes into the workspace.
    fn is_applied(&self) -> bool;
    /// Brings the changes into the workspace, all but those `held`: all of them or, if that fails, none.
    async fn apply(&mut self, held: &[PathBuf]) -> Result<Vec<ChangeConflict>, ToolError>;
}

/// A change of an entry that somebody else also changed while the command ran. The other change stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeConflict {
    /// The entry that somebody else changed.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// The command's version, stored beside it; `None` if the command deleted it.
    #[serde(serialize_with = "lossy_if_any")]
    pub kept: Option<PathBuf>,
}

/// The outcome of a command's changes: applied, held back or in conflict.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandChanges {
    /// Id by which the changes can be undone; `None` if there is nothing to undo.
    pub undo: Option<UndoId>,
    /// Changes that are in the workspace now.
    pub applied: Vec<FileChange>,
    /// Lines added and removed in all text files together.
    pub lines: (u64, u64),
    /// Unified diffs of text files, as far as they fit.
    pub diff: String,
    /// Changes that were held back, and why.
    pub held: Vec<HeldChange>,
    /// Changes of entries that somebody else changed meanwhile.
    pub conflicts: Vec<ChangeConflict>,
    /// Changed files whose paths lead file tools to documents of the agent: the file tools do not read these
    /// changes.
    #[serde(serialize_with = "all_lossy", skip_serializing_if = "Vec::is_empty", default)]
    pub beside_documents: Vec<PathBuf>,
}

/// A change that is not in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldChange {
    /// Its path, relative to the workspace.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// The reason for holding it back.
    pub reason: String,
}

impl CommandChanges {
    /// Returns whether nothing changed and nothing was held back.
    pub fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.held.is_empty() && self.conflicts.is_empty()
    }

    /// Summarises the changes in a few words: `3 files changed, +120 -4`.
    pub fn summary(&self) -> String {
        let files = self.applied.iter().filter(|change| change.entry != ChangedEntry::Directory).count();
        let count = match (files, self.applied.len()) {
            (0, 1) => return "1 directory changed".to_owned(),
            (0, directories) => return format!("{directories} directories changed"),
            (1, _) => "1 file changed".to_owned(),
            (files, _) => format!("{files} files changed"),
        };
        format!("{count}, +{} -{}", self.lines.0, self.lines.1)
    }
}

/// Formats a path for people and models on one line: escapes control characters, replaces bytes that are not
/// UTF-8.
pub fn shown_path(path: &Path) -> String {
    let mut shown = String::new();
    for c in path.to_string_lossy().chars() {
        match c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
        {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// Writes a path for people: bytes that are not UTF-8 are replaced.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

fn all_lossy<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

#[expect(clippy::ref_option, reason = "the signature is that of `serialize_with`")]
fn lossy_if_any<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}
