//! The earlier versions of changed files: the changes in the store's index, the bytes below the data
//! directory, named by their digests.
//!
//! - [`blobs`] keeps the bytes.
//! - [`prune`] deletes changes beyond the limits.
//! - [`restore`] restores a file, if nobody has changed it since.
//! - [`segments`] groups the changes that are judged together.

mod blobs;
mod prune;
mod restore;
mod segments;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{Change, Clock, CommandChange, Contents, UndoJournal};
use claw_core::store::{CommandUndo, FileState, NewUndo, StoreError, UndoIndex};
use claw_core::tool::{ErrorKind, ToolError};
use claw_core::{TenantId, UndoId};

use self::blobs::Blobs;
pub use self::restore::{Restored, Restoring, Step, Verdict};
use crate::transaction::Transactions;

/// The limits on changes kept for undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoLimits {
    /// Older changes are forgotten.
    pub age: Duration,
    /// The most bytes kept; beyond this the oldest changes are forgotten.
    pub bytes: u64,
}

impl Default for UndoLimits {
    fn default() -> Self {
        Self { age: Duration::from_secs(30 * 24 * 60 * 60), bytes: 1024 * 1024 * 1024 }
    }
}

/// The undo journal of a deployment.
pub struct StoredUndo {
    index: Arc<dyn UndoIndex>,
    blobs: Blobs,
    transactions: Transactions,
    clock: Arc<dyn Clock>,
    limits: UndoLimits,
    /// The bytes that may be recorded before the limits are checked again.
    room: AtomicU64,
    /// Bytes that the index does not reference are removed.
    sweeping: bool,
}

impl StoredUndo {
    /// Creates a journal over this index, with its bytes below `data` in `undo/`.
    pub fn new(
        index: Arc<dyn UndoIndex>,
        data: impl AsRef<Path>,
        clock: Arc<dyn Clock>,
        limits: UndoLimits,
    ) -> Self {
        let blobs = Blobs::new(data.as_ref().join("undo"));
        let transactions = Transactions::new(data.as_ref());
        Self { index, blobs, transactions, clock, limits, room: AtomicU64::new(0), sweeping: false }
    }

    /// Also removes bytes that this index does not reference, once a day. Only for a persistent index that is
    /// the only one of its directory: bytes of another index would be removed.
    #[must_use]
    pub fn sweeping(mut self) -> Self {
        self.sweeping = true;
        self
    }

    /// The transactions of commands, kept beside the bytes of files.
    pub fn transactions(&self) -> &Transactions {
        &self.transactions
    }

    /// Returns the bytes of a state, unredacted: they may hold secrets.
    pub async fn bytes(&self, state: &FileState) -> Result<Vec<u8>, ToolError> {
        let (blobs, digest) = (self.blobs.clone(), state.blob);
        blocking(move || blobs.get(&digest)).await.map_err(|error| {
            let gone = error.kind() == io::ErrorKind::NotFound;
            let message = if gone {
                "the file's earlier content is no longer kept".to_owned()
            } else {
                format!("the file's earlier content cannot be read: {error}")
            };
            ToolError::new(ErrorKind::Unavailable, message).because(error)
        })
    }
}

#[async_trait]
impl UndoJournal for StoredUndo {
    async fn record(&self, change: &Change<'_>) -> Result<UndoId, ToolError> {
        let owned = |contents: Option<Contents<'_>>| contents.map(|c| (c.bytes.to_vec(), c.mode));
        let (before, after) = (owned(change.before), owned(change.after));
        let recorded = [&before, &after].into_iter().flatten().map(|(bytes, _)| bytes.len() as u64).sum();
        let blobs = self.blobs.clone();
        let kept = blocking(move || {
            // From here until the change is recorded nobody removes what it names.
            let lock = blobs.lock_to_name()?;
            let keep = |(bytes, mode): (Vec<u8>, Option<u32>)| {
                Ok::<_, io::Error>(FileState { blob: blobs.put(&bytes)?, bytes: bytes.len() as u64, mode })
            };
            Ok((before.map(keep).transpose()?, after.map(keep).transpose()?, lock))
        });
        let (before, after, lock) = kept.await.map_err(|error| unkept(change.shown, error))?;
        let (id, caller) = (UndoId::new(), change.caller);
        let new = NewUndo {
            id,
            tenant: caller.tenant.clone(),
            session: caller.session.clone(),
            agent: caller.agent.clone(),
            user: caller.user.clone(),
            call: change.call,
            run: change.run,
            tool: change.tool.clone(),
            workspace: caller.workspace.to_string_lossy().into_owned(),
            place: change.place.to_owned(),
            sandbox: change.sandbox.map(str::to_owned),
            shown: change.shown.to_owned(),
            before,
            after,
            command: None,
            at: self.clock.now(),
        };
        self.index.record_undo(new).await.map_err(|error| unkept(change.shown, error))?;
        drop(lock);
        self.prune_when_due(recorded).await;
        Ok(id)
    }

    async fn record_command(&self, change: &CommandChange<'_>) -> Result<(), ToolError> {
        let caller = change.caller;
        let workspace = caller.workspace.to_string_lossy().into_owned();
        let new = NewUndo {
            id: change.id,
            tenant: caller.tenant.clone(),
            session: caller.session.clone(),
            agent: caller.agent.clone(),
            user: caller.user.clone(),
            call: change.call,
            run: change.run,
            tool: change.tool.clone(),
            place: workspace.clone(),
            sandbox: None,
            workspace,
            shown: change.shown.to_owned(),
            before: None,
            after: None,
            command: Some(CommandUndo {
                transaction: change.id,
                reverts: false,
                files: change.files,
                added: change.lines.0,
                removed: change.lines.1,
                bytes: change.bytes,
            }),
            at: self.clock.now(),
        };
        self.index.record_undo(new).await.map_err(|error| {
            let message = "the command's changes cannot be saved for undo, so none was applied";
            ToolError::new(ErrorKind::Unavailable, message).because(error.to_string())
        })?;
        self.prune_when_due(change.bytes).await;
        Ok(())
    }

    async fn withdraw(&self, tenant: &TenantId, id: UndoId) -> Result<(), ToolError> {
        self.index.withdraw_undo(tenant, id).await.map_err(|error: StoreError| ToolError::internal(error))
    }
}

/// Returns the error for a change that is not made, since it could not be undone.
fn unkept(shown: &str, error: impl std::fmt::Display) -> ToolError {
    let message = format!("the content of `{shown}` cannot be saved for undo, so nothing was changed");
    ToolError::new(ErrorKind::Unavailable, message).because(error.to_string())
}

/// Runs `work` on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|stopped| Err(io::Error::other(stopped)))
}
