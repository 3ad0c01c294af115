//! Deletes saved changes that are too old or beyond the limit, and bytes that no change refers to.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use claw_core::port::UnixMillis;
use claw_core::tool::{Digest, ErrorKind, ToolError};

use super::{StoredUndo, blocking};

/// The interval between sweeps for unreferenced bytes. A program that is killed after keeping bytes and
/// before recording the change leaves such bytes.
const SWEEP_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

impl StoredUndo {
    /// Forgets changes beyond the limits, unless somebody is recording one.
    pub async fn prune(&self) -> Result<(), ToolError> {
        let failed = |error: io::Error| {
            ToolError::new(ErrorKind::Unavailable, "old changes cannot be deleted").because(error)
        };
        let blobs = self.blobs.clone();
        let Some(lock) = blocking(move || blobs.lock_to_remove()).await.map_err(failed)? else {
            return Ok(());
        };
        let age = i64::try_from(self.limits.age.as_millis()).unwrap_or(i64::MAX);
        let oldest = UnixMillis(self.clock.now().0.saturating_sub(age));
        let free = self.index.prune_undo(oldest, self.limits.bytes).await.map_err(ToolError::internal)?;
        self.remove(free).await.map_err(failed)?;
        if self.sweeping {
            self.sweep().await.map_err(failed)?;
        }
        drop(lock);
        Ok(())
    }

    /// Removes the bytes and transactions of these digests.
    async fn remove(&self, free: Vec<Digest>) -> io::Result<()> {
        let (blobs, transactions) = (self.blobs.clone(), self.transactions.clone());
        blocking(move || {
            free.iter().try_for_each(|blob| {
                blobs.remove(blob)?;
                transactions.remove(blob)
            })
        })
        .await
    }

    /// Removes unreferenced bytes, unless that was done lately. Nobody records a change meanwhile.
    async fn sweep(&self) -> io::Result<()> {
        let (blobs, transactions, now) = (self.blobs.clone(), self.transactions.clone(), self.clock.now());
        let every = i64::try_from(SWEEP_EVERY.as_millis()).unwrap_or(i64::MAX);
        let kept = blocking(move || match blobs.swept()? {
            // One that lies ahead is none: a clock was set back.
            Some(at) if (0..every).contains(&now.0.saturating_sub(at.0)) => Ok(None),
            _ => Ok(Some([blobs.all()?, transactions.finished()?].concat())),
        });
        let Some(kept) = kept.await? else { return Ok(()) };
        let free = self.index.unnamed_undo(&kept).await.map_err(io::Error::other)?;
        self.remove(free).await?;
        let blobs = self.blobs.clone();
        blocking(move || blobs.note_swept(now)).await
    }

    /// Prunes at first, and whenever enough was recorded since.
    pub(super) async fn prune_when_due(&self, recorded: u64) {
        let before = self.room.load(Ordering::Relaxed);
        if let Some(left) = before.checked_sub(recorded).filter(|left| *left > 0) {
            self.room.store(left, Ordering::Relaxed);
            return;
        }
        self.room.store(self.limits.bytes / 16 + 1, Ordering::Relaxed);
        if let Err(error) = self.prune().await {
            tracing::warn!(error = error.for_log(), "the undo journal was not pruned");
        }
    }
}
