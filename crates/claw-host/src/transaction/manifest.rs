//! The manifest of a layer: every operation that brings its changes into the workspace, with both sides.
//!
//! It is on the disk before the first operation. Each operation swaps inodes between the stage and the
//! workspace, so the inodes show which operations were done, and a manifest can be continued after a kill in
//! either direction.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::entry::{Entry, Relative, Stamp};

const NAME: &str = "manifest.json";

/// Progress of a layer's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// The changes are being applied to the workspace.
    Applying,
    /// The changes are in the workspace; the stage holds the previous files.
    Applied,
    /// The changes are being reverted.
    Reverting,
    /// The changes were reverted; the stage holds them again.
    Reverted,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) state: State,
    /// Workspace that the changes belong to.
    pub(super) workspace: PathBuf,
    /// Directory with the other side of every operation, on the workspace's file system.
    pub(super) stage: PathBuf,
    pub(super) operations: Vec<Operation>,
    /// Directories that stay and get their mode and time at the end, the deepest first.
    pub(super) directories: Vec<Directory>,
}

/// Creates (`old` is `None`), replaces or deletes (`new` is `None`) one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Operation {
    pub(super) path: Relative,
    pub(super) old: Option<Entry>,
    pub(super) new: Option<Entry>,
    /// Somebody else changed the entry while the command ran.
    #[serde(default)]
    pub(super) conflict: bool,
}

/// Mode and time of a directory that stays, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Directory {
    pub(super) path: Relative,
    pub(super) old: (u32, Stamp),
    pub(super) new: (u32, Stamp),
}

impl Manifest {
    pub(super) fn read(layer: &Path) -> io::Result<Self> {
        serde_json::from_slice(&fs::read(layer.join(NAME))?).map_err(io::Error::other)
    }

    /// Writes it whole or not at all. If `sync` is set, it is on the disk when this returns.
    pub(super) fn write(&self, layer: &Path, sync: bool) -> io::Result<()> {
        let (unfinished, path) = (layer.join("manifest.new"), layer.join(NAME));
        let mut file = File::create(&unfinished)?;
        file.write_all(&serde_json::to_vec(self).map_err(io::Error::other)?)?;
        if sync {
            file.sync_all()?;
        }
        fs::rename(&unfinished, &path)?;
        if sync {
            File::open(layer)?.sync_all()?;
        }
        Ok(())
    }
}

/// Returns the bytes of the files that the stage holds once the operations are done.
pub(super) fn kept_bytes(operations: &[Operation]) -> u64 {
    let old = operations.iter().filter_map(|operation| operation.old.as_ref());
    old.fold(0, |sum, entry| sum.saturating_add(entry.total_bytes()))
}
