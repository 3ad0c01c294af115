//! Which programs on this machine may have commands in the background: each has a file that it keeps locked.
//!
//! A lock goes with its program, however that ends. So a file that can be locked is that of a program which is gone,
//! and what it ran is lost.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::port::Clock as _;
use claw_core::store::{Process, Worker};
use claw_core::{BootId, NodeId};
use claw_host::SystemClock;
use claw_registry::{Keeping, ProcessLimits};
use claw_store::Backend;
use rustix::fs::{FlockOperation, flock};

use super::Error;

/// Where the files are, in the data directory.
const DIRECTORY: &str = "owners";
/// What a file is called until it is locked.
const UNLOCKED: &str = "unlocked-";

/// This program, as long as it may have commands in the background.
#[derive(Debug)]
pub(crate) struct Owning {
    path: PathBuf,
    _locked: File,
}

impl Owning {
    /// Says that this worker runs.
    pub(crate) fn begin(data: &Path, worker: &Worker) -> Result<Self, Error> {
        let directory = data.join(DIRECTORY);
        lock(&directory, &worker.node).map_err(|error| {
            let shown = directory.display();
            Error::failed(format!("what runs in the background cannot be written down in `{shown}`"))
                .because(error)
        })
    }

    /// What keeps commands running for this worker.
    pub(crate) fn keeping(store: &Arc<dyn Backend>, worker: Worker, limits: ProcessLimits) -> Keeping {
        Keeping { store: Arc::clone(store) as _, worker, limits }
    }

    /// Nothing runs any more.
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

/// Commands of programs that are gone, each told once: how they ended is not known.
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
            tracing::error!(%error, "runs of a program that is gone could not be taken over yet");
            continue;
        }
        match store.lose_processes(&later, now).await {
            Ok(lost) => {
                all.extend(lost);
                let _ = fs::remove_file(entry.path());
            }
            Err(error) => tracing::error!(%error, "commands that were lost could not be found"),
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
