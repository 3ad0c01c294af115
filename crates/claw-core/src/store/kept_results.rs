//! The index of stored results: their owners and sizes. The text of a result is stored apart, by its id.

use async_trait::async_trait;

use super::StoreError;
use crate::id::ArtifactId;
use crate::port::{Artifact, Owner, UnixMillis};

/// An index entry of a stored result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptArtifact {
    /// The owner; for anyone else the result does not exist.
    pub owner: Owner,
    /// The result's id, call and size.
    pub artifact: Artifact,
    /// The time it was stored.
    pub at: UnixMillis,
}

/// Stores the index of results.
#[async_trait]
pub trait ArtifactIndex: Send + Sync {
    /// Adds an entry. The same id again changes nothing.
    async fn put_artifact(&self, kept: KeptArtifact) -> Result<(), StoreError>;
    /// Returns one entry; `None` if this owner has none with that id.
    async fn artifact(&self, owner: &Owner, id: ArtifactId) -> Result<Option<KeptArtifact>, StoreError>;
    /// Returns an owner's entries, newest first, at most `limit`.
    async fn artifacts(&self, owner: &Owner, limit: usize) -> Result<Vec<KeptArtifact>, StoreError>;
    /// Removes the entries older than `before`, and each tenant's oldest until at most `bytes` are left.
    /// Returns the removed entries, oldest first, so that their texts can be deleted.
    async fn prune_artifacts(&self, before: UnixMillis, bytes: u64) -> Result<Vec<KeptArtifact>, StoreError>;
}
