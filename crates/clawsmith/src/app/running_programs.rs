//! Finds the programs on this machine that may have commands in the background: each keeps a file locked.
//!
//! A lock ends with its program, in whatever way. So a file that can be locked belongs to a dead program,
//! whose commands are lost.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::port::Clock as _;
use claw_core::store::{Process, Worker};
use claw_core::{BootId, NodeId};
use claw_host::{ProcessKeeping, ProcessLimits, SystemClock};
use claw_store::Backend;
use rustix::fs::{FlockOperation, flock};

use super::Error;

/// The directory of the files, in the data directory.
const DIRECTORY: &str = "owners";
/// The prefix of a file's name until it is locked.
const UNLOCKED: &str = "unlocked-";

/// The lock of this program, held while it may have background commands.
#[derive(Debug)]
pub(crate) struct Owning {
    path: PathBuf,
    _locked: File,
}

impl Owning {
    /// Announces that this worker runs.
    pub(crate) fn begin(data: &Path, worker: &Worker) -> Result<Self, Error> {
        let directory = data.join(DIRECTORY);
        lock(&directory, &worker.node).map_err(|error| {
            let shown = directory.display();
            Error::failed(format!("background commands cannot be recorded in `{shown}`")).because(error)
        })
    }

    /// Returns the [`ProcessKeeping`] of this worker: the store and the limits of its background commands.
    pub(crate) fn keeping(store: &Arc<dyn Backend>, worker: Worker, limits: ProcessLimits) -> ProcessKeeping {
        ProcessKeeping { store: Arc::clone(store) as _, worker, limits }
    }

    /// Removes the file: nothing runs any more.
    pub(crate) fn end(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn lock(directory: &Path, node: &NodeId) -> io::Result<Owning> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let unlocked = directory.join(format!("{UNLOCKED}{node}"));
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unlocked)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // Under its name nobody ever finds it unlocked.
    let path = directory.join(node.as_str());
    fs::rename(&unlocked, &path)?;
    Ok(Owning { path, _locked: file })
}

/// Returns the commands of dead programs, each reported once: their end is unknown.
pub(crate) async fn lost(data: &Path, store: &Arc<dyn Backend>) -> Vec<Process> {
    let mut all = Vec::new();
    for entry in fs::read_dir(data.join(DIRECTORY)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(node) = name.to_str().and_then(|name| NodeId::new(name).ok()) else { continue };
        if node.as_str().starts_with(UNLOCKED) {
            continue;
        }
        let Ok(file) = File::open(entry.path()) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let (later, now) = (Worker { node, boot: BootId::new() }, SystemClock.now());
        // Its runs are taken up at once, not when their leases end.
        if let Err(error) = store.reclaim(&later, now).await {
            tracing::error!(%error, "runs of a process that has ended could not be taken over yet");
            continue;
        }
        match store.lose_processes(&later, now).await {
            Ok(lost) => {
                all.extend(lost);
                let _ = fs::remove_file(entry.path());
            }
            Err(error) => {
                tracing::error!(%error, "background commands of a process that has ended could not be marked as lost");
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_locked_as_long_as_its_owner_is_there() {
        let data = tempfile::tempdir().unwrap();
        let worker = Worker { node: NodeId::new("chat-1").unwrap(), boot: BootId::new() };
        let owning = Owning::begin(data.path(), &worker).unwrap();
        let path = data.path().join(DIRECTORY).join("chat-1");
        let other = File::open(&path).unwrap();
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
        drop(owning);
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_ok(), "and no longer");
        assert_eq!(fs::read_dir(data.path().join(DIRECTORY)).unwrap().count(), 1);
    }
}
