//! Which state of a file a conversation has seen last, so that it overwrites nothing it does not know.

use async_trait::async_trait;

use super::StoreError;
use crate::port::{Owner, UnixMillis, Version};
use crate::tool::Digest;

/// How many files of one conversation are kept in mind.
pub const SEEN_FILES: usize = 2000;

/// Keeps what conversations have seen of files. A file is known by the digest of its place: a path can be long and
/// hold any byte, and nobody needs it back.
#[async_trait]
pub trait SeenIndex: Send + Sync {
    /// The state of a file that this conversation saw last; `None` where it saw none, or it is forgotten.
    async fn seen_file(&self, owner: &Owner, place: &Digest) -> Result<Option<Version>, StoreError>;
    /// Keeps in mind that it saw this state, in place of any other of that file. Beyond [`SEEN_FILES`] of a
    /// conversation, those that were seen longest ago are forgotten.
    async fn saw_file(
        &self,
        owner: &Owner,
        place: &Digest,
        version: &Version,
        at: UnixMillis,
    ) -> Result<(), StoreError>;
}
