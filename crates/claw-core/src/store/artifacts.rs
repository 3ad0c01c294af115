//! The index of kept results: whose they are and how large. Their text is kept apart, by its id.

use async_trait::async_trait;

use super::StoreError;
use crate::id::ArtifactId;
use crate::port::{Artifact, Owner, UnixMillis};

/// A kept result, as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptArtifact {
    /// To whom it belongs; for anyone else it is not there.
    pub owner: Owner,
    /// What is kept.
    pub artifact: Artifact,
    /// Since when.
    pub at: UnixMillis,
}

/// Keeps the index of kept results.
#[async_trait]
pub trait ArtifactIndex: Send + Sync {
    /// Stores that a result is kept. The same id again changes nothing.
    async fn put_artifact(&self, kept: KeptArtifact) -> Result<(), StoreError>;
    /// One kept result; `None` where this owner has none of that id.
    async fn artifact(&self, owner: &Owner, id: ArtifactId) -> Result<Option<KeptArtifact>, StoreError>;
    /// What is kept for an owner, newest first, at most `limit`.
    async fn artifacts(&self, owner: &Owner, limit: usize) -> Result<Vec<KeptArtifact>, StoreError>;
    /// Forgets what is older than `before`, and of each tenant the oldest until what is left has at most
    /// `bytes`; gives what was forgotten, oldest first, so that its text can be removed.
    async fn prune_artifacts(&self, before: UnixMillis, bytes: u64) -> Result<Vec<KeptArtifact>, StoreError>;
}
