//! Transactions: a command writes to a layer over the workspace, and its changes are applied as one when it
//! has ended.
//!
//! A layer is a directory below the data directory. While the command runs, overlayfs collects its changes in
//! `upper`. Applying them exchanges each changed entry with the workspace's, so that `upper` holds the
//! previous entries: reverting the changes exchanges them again. `manifest` lists the operations, `scan`
//! finds them, `apply` does them, by `swap`, and takes them back; `conflict` says which entries somebody else changed
//! meanwhile. A layer whose process was killed is finished or discarded by
//! [`Transactions::recover`].

mod apply;
mod changes;
mod conflict;
mod entry;
mod judged_programs;
mod layer;
mod manifest;
mod scan;
mod swap;
mod tree;
mod undo;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use claw_core::UndoId;
use claw_core::store::CommandUndo;
use claw_core::tool::Digest;
use rustix::fs::FlockOperation;

pub use self::conflict::Conflict;
pub use self::judged_programs::{JudgedProgram, identity};
pub use self::layer::Transaction;
use self::manifest::{Manifest, State};
pub use self::undo::{AppliedTransaction, TransactionState};

/// The directory of all layers, below the data directory.
#[derive(Debug, Clone)]
pub struct Transactions {
    directory: PathBuf,
}

impl Transactions {
    /// Creates transactions below a data directory. Nothing is written before the first command.
    pub fn new(data: &Path) -> Self {
        Self { directory: data.join("undo").join("layers") }
    }

    /// Makes a layer over the workspace, in which the hidden paths do not exist. Fails if the data directory and the
    /// workspace are on different file systems.
    pub fn create(&self, workspace: &Path, hidden: &[PathBuf]) -> io::Result<Transaction> {
        let id = UndoId::new();
        let path = self.path(id);
        let mut private = DirBuilder::new();
        private.mode(0o700).recursive(true).create(&path)?;
        let lock = lock(&path)?.ok_or(ErrorKind::WouldBlock)?;
        Transaction::create(id, path, workspace, hidden, lock)
    }

    /// Opens changes that were applied. `NotFound` if they are no longer kept.
    pub fn open(&self, id: UndoId) -> io::Result<AppliedTransaction> {
        let path = self.path(id);
        let manifest = Manifest::read(&path)?;
        let lock = lock(&path)?;
        let lock =
            lock.ok_or_else(|| io::Error::other("another process is applying or undoing these changes"))?;
        Ok(AppliedTransaction { path, manifest, _lock: lock })
    }

    /// Finishes the layers of killed processes, and discards layers whose command never ended. Returns how
    /// many were finished.
    pub fn recover(&self) -> io::Result<usize> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            entries => entries?,
        };
        let mut finished = 0;
        for entry in entries {
            let path = entry?.path();
            let Ok(Some(held)) = lock(&path) else { continue };
            match recover_one(&path) {
                Ok(was_unfinished) => finished += usize::from(was_unfinished),
                // One that cannot be finished does not stand in the way of the others.
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "a layer's manifest cannot be read");
                }
            }
            drop(held);
        }
        Ok(finished)
    }

    /// Removes the layer of this name, unless it is in use.
    pub(crate) fn remove(&self, name: &Digest) -> io::Result<()> {
        let path = self.directory.join(hex(name));
        match lock(&path) {
            // One that is unfinished is needed to finish it.
            Ok(Some(_held)) => match Manifest::read(&path).map(|manifest| manifest.state) {
                Ok(State::Applying | State::Reverting) => Ok(()),
                _ => remove_whole(&path),
            },
            Ok(None) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Names of the layers that no command uses any more.
    pub(crate) fn finished(&self) -> io::Result<Vec<Digest>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let named = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            lock(&entry.path()).ok()??;
            let name = format!("sha256:{}", entry.file_name().to_str()?);
            serde_json::from_value(name.into()).ok()
        };
        Ok(entries.filter_map(named).collect())
    }

    fn path(&self, id: UndoId) -> PathBuf {
        self.directory.join(hex(&CommandUndo::blob(id)))
    }
}

fn hex(digest: &Digest) -> String {
    digest.to_string().trim_start_matches("sha256:").to_owned()
}

/// Finishes one layer; returns whether it was unfinished.
fn recover_one(path: &Path) -> io::Result<bool> {
    let mut manifest = match Manifest::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return remove_whole(path).map(|()| false),
        manifest => manifest?,
    };
    match manifest.state {
        State::Applied | State::Reverted => return Ok(false),
        _ if !manifest.workspace.is_dir() => return remove_whole(path).map(|()| true),
        State::Applying => drop(manifest.apply(path)?),
        State::Reverting => drop(manifest.revert(path, false)?),
    }
    Ok(true)
}

/// Locks a layer; `None` if another process holds it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path.join("lock"))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        locked => Ok(locked.map(|()| Some(file))?),
    }
}

/// Removes a directory with everything in it, regardless of its modes.
pub fn remove_whole(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    match entry::open_root(parent) {
        Ok(parent) => tree::remove(parent.as_fd(), name),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
