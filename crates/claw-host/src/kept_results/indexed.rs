//! Kept results in files, with an index over all sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{Artifact, ArtifactStore, Clock, Owner, Part, UnixMillis};
use claw_core::store::{ArtifactIndex, KeptArtifact};
use claw_core::tool::ToolError;
use claw_core::{ArtifactId, CallId};

use super::FileArtifacts;

/// The number of texts after which old ones are pruned again.
const LOOK_EVERY: u32 = 32;

/// The limits on kept results over all sessions.
#[derive(Debug, Clone, Copy)]
pub struct ArtifactKeeping {
    /// The age at which a text is removed.
    pub age: Duration,
    /// The most bytes of all texts of one tenant together.
    pub bytes: u64,
}

impl Default for ArtifactKeeping {
    fn default() -> Self {
        Self { age: Duration::from_secs(30 * 24 * 60 * 60), bytes: 1024 * 1024 * 1024 }
    }
}

/// Kept results in files by session, as in [`FileArtifacts`], with an index that finds the old and the excess
/// ones: files of abandoned sessions do not stay for ever.
pub struct IndexedArtifacts {
    files: FileArtifacts,
    index: Arc<dyn ArtifactIndex>,
    clock: Arc<dyn Clock>,
    keeping: ArtifactKeeping,
    kept: AtomicU32,
}

impl IndexedArtifacts {
    /// Keeps texts in `files` and their metadata in `index`.
    pub fn new(
        files: FileArtifacts,
        index: Arc<dyn ArtifactIndex>,
        clock: Arc<dyn Clock>,
        keeping: ArtifactKeeping,
    ) -> Self {
        Self { files, index, clock, keeping, kept: AtomicU32::new(0) }
    }

    /// Removes results that are too old or exceed the limit. A failure to remove is only logged: new results
    /// are still kept.
    async fn prune(&self, now: UnixMillis) {
        let age = i64::try_from(self.keeping.age.as_millis()).unwrap_or(i64::MAX);
        let before = UnixMillis(now.0.saturating_sub(age));
        let forgotten = match self.index.prune_artifacts(before, self.keeping.bytes).await {
            Ok(forgotten) => forgotten,
            Err(error) => {
                tracing::warn!(%error, "old kept results could not be deleted; they stay for now");
                return;
            }
        };
        for kept in forgotten {
            if let Err(error) = self.files.remove(&kept.owner, kept.artifact.clone()).await {
                tracing::warn!(id = %kept.artifact.id, %error, "an old result could not be removed");
            }
        }
    }
}

#[async_trait]
impl ArtifactStore for IndexedArtifacts {
    async fn put(&self, owner: &Owner, call: CallId, text: &str) -> Result<Artifact, ToolError> {
        let artifact = self.files.put(owner, call, text).await?;
        let at = self.clock.now();
        let kept = KeptArtifact { owner: owner.clone(), artifact: artifact.clone(), at };
        if let Err(error) = self.index.put_artifact(kept).await {
            // Nobody would ever remove a file that the index does not know.
            let _ = self.files.remove(owner, artifact).await;
            return Err(ToolError::internal(error));
        }
        if self.kept.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOK_EVERY) {
            self.prune(at).await;
        }
        Ok(artifact)
    }

    async fn list(&self, owner: &Owner) -> Result<Vec<Artifact>, ToolError> {
        self.files.list(owner).await
    }

    async fn lines(
        &self,
        owner: &Owner,
        id: ArtifactId,
        first: usize,
        count: usize,
    ) -> Result<Part, ToolError> {
        self.files.lines(owner, id, first, count).await
    }
}
