//! Changes of a command that are in the workspace: compared with it, reverted, and applied again.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use claw_core::port::FileChange;

use super::changes::changes;
use super::entry::Entry;
use super::manifest::{self, Manifest, State};
use super::swap::{Roots, Swapped};
use super::{Conflict, entry};

/// Changes that were applied, and can be reverted.
#[derive(Debug)]
pub struct AppliedTransaction {
    pub(super) path: PathBuf,
    pub(super) manifest: Manifest,
    pub(super) _lock: File,
}

/// State of applied changes in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionState {
    /// The workspace is as the changes left it.
    Applied,
    /// The workspace is as it was before them.
    Reverted,
    /// Somebody else changed some of the entries since.
    Changed,
}

impl AppliedTransaction {
    /// The changes, sorted by path.
    pub fn changes(&self) -> Vec<FileChange> {
        changes(&self.manifest.operations, &self.manifest.directories)
    }

    /// Returns the bytes kept for reverting them.
    pub fn kept_bytes(&self) -> u64 {
        manifest::kept_bytes(&self.manifest.operations)
    }

    /// Compares the workspace with the result of the changes.
    pub fn state(&self) -> io::Result<TransactionState> {
        let (workspace, _) = self.manifest.roots()?;
        if self.changed()?.is_empty() {
            return Ok(TransactionState::Applied);
        }
        for operation in &self.manifest.operations {
            let now = read_entry(&workspace, &operation.path.0)?;
            let same = match (&now, &operation.old) {
                (None, None) => true,
                (Some(now), Some(old)) => now.kind == old.kind && now.inode == old.inode,
                _ => false,
            };
            if !same {
                return Ok(TransactionState::Changed);
            }
        }
        Ok(TransactionState::Reverted)
    }

    /// Returns the paths that somebody changed since the changes were applied.
    pub fn changed(&self) -> io::Result<Vec<PathBuf>> {
        let (workspace, _) = self.manifest.roots()?;
        let mut changed = Vec::new();
        for operation in &self.manifest.operations {
            let now = read_entry(&workspace, &operation.path.0)?;
            let same = match (&now, &operation.new) {
                (None, None) => true,
                (Some(now), Some(new)) => now.holds_same(new),
                _ => false,
            };
            if !same {
                changed.push(operation.path.0.clone());
            }
        }
        Ok(changed)
    }

    /// Reverts the changes. Entries that somebody else changed since stay, and are returned; with `force`
    /// they go to the layer, and the previous entries come back.
    pub fn revert(&mut self, force: bool) -> io::Result<Vec<PathBuf>> {
        self.refresh()?;
        self.manifest.revert(&self.path, force)
    }

    /// Applies changes again that were reverted.
    pub fn apply(&mut self) -> io::Result<Vec<Conflict>> {
        self.manifest.state = State::Applying;
        self.manifest.write(&self.path, true)?;
        self.manifest.apply(&self.path)
    }

    /// Updates entries that have the same content under another inode: a file that was edited and restored
    /// since.
    fn refresh(&mut self) -> io::Result<()> {
        let (workspace, _) = self.manifest.roots()?;
        for operation in &mut self.manifest.operations {
            if let Some(new) = &mut operation.new
                && let Some(now) = read_entry(&workspace, &operation.path.0)?
                && now.holds_same(new)
            {
                *new = now;
            }
        }
        Ok(())
    }

    /// Reads at most `most` bytes of a file before and after; `None` if there is no file or it is longer.
    pub fn contents(&self, path: &Path, most: u64) -> [Option<Vec<u8>>; 2] {
        let roots = match self.manifest.state {
            State::Applied | State::Reverting => [&self.manifest.stage, &self.manifest.workspace],
            State::Applying | State::Reverted => [&self.manifest.workspace, &self.manifest.stage],
        };
        roots.map(|root| entry::read_file(root, path, most))
    }
}

impl Manifest {
    /// Reverts the operations, from any intermediate state. Returns the entries that somebody else changed
    /// since.
    pub(super) fn revert(&mut self, layer: &Path, force: bool) -> io::Result<Vec<PathBuf>> {
        let (workspace, stage) = self.roots()?;
        let roots = Roots { workspace: workspace.as_fd(), stage: stage.as_fd() };
        self.state = State::Reverting;
        self.write(layer, true)?;
        let mut left = Vec::new();
        for operation in self.operations.iter().rev() {
            if roots.revert(operation, force)? == Swapped::Conflict {
                left.push(operation.path.0.clone());
            }
        }
        self.set_directories(roots, false);
        self.state = State::Reverted;
        self.write(layer, false)?;
        Ok(left)
    }
}

fn read_entry(root: &OwnedFd, path: &Path) -> io::Result<Option<Entry>> {
    let (parent, name) = match entry::open_parent(root.as_fd(), path) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP)) => {
            return Ok(None);
        }
        opened => opened?,
    };
    match entry::find(parent.as_fd(), name)? {
        Some(_) => Entry::read(parent.as_fd(), name, true).map(Some),
        None => Ok(None),
    }
}
