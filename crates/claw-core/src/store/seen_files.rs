//! The version of a file that a session has seen last, so that it overwrites nothing unseen.

use async_trait::async_trait;

use super::StoreError;
use crate::port::{Owner, UnixMillis, Version};
use crate::tool::Digest;

/// The most files that are remembered for one session.
pub const SEEN_FILES: usize = 2000;

/// Stores the versions of files that sessions have seen. A file is identified by the digest of its path: a
/// path can be long and hold any byte, and nobody needs it back.
#[async_trait]
pub trait SeenIndex: Send + Sync {
    /// Returns the last version of a file that this session saw; `None` if it saw none, or it is forgotten.
    async fn seen_file(&self, owner: &Owner, place: &Digest) -> Result<Option<Version>, StoreError>;
    /// Stores that the session saw this version, replacing any other of that file. Beyond [`SEEN_FILES`] of a
    /// session, the least recently seen are forgotten.
    async fn saw_file(
        &self,
        owner: &Owner,
        place: &Digest,
        version: &Version,
        at: UnixMillis,
    ) -> Result<(), StoreError>;
}
