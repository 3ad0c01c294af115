//! Whole files and directories, of any bytes, for workspaces that are on no disk.
//!
//! A path is absolute and means exactly what it spells: there are no links. Each tenant has its own tree. A
//! change states the expected file and the quota of the workspace; both are checked and the change made in
//! one transaction, even if many nodes write at once.

use async_trait::async_trait;

use super::StoreError;
use crate::id::TenantId;
use crate::port::{Expect, Quota, Stat, UnixMillis};

/// The most bytes that a file may have.
pub const LARGEST_FILE: usize = 64 << 20;
/// The most bytes that a path may have.
pub const LONGEST_PATH: usize = 16 << 10;
/// The most directories in a path: each has a row with its own path.
pub const DEEPEST_PATH: usize = 1_000;

/// A change of a tree: its path, the expected state and the quota.
#[derive(Debug, Clone, Copy)]
pub struct FileChange<'a> {
    /// The tenant that owns the tree.
    pub tenant: &'a TenantId,
    /// The path: absolute, without `.`, `..` or empty names.
    pub path: &'a str,
    /// The state that must be found there.
    pub expect: Expect<'a>,
    /// A directory and its quota. A path outside the directory is not counted. `None` for no quota.
    pub room: Option<(&'a str, Quota)>,
    /// The time.
    pub at: UnixMillis,
}

/// The reason why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The path does not exist.
    #[error("it is not there")]
    Missing,
    /// The path is a directory.
    #[error("it is a directory")]
    IsDirectory,
    /// The path leads through a file.
    #[error("it leads through a file that is not a directory")]
    NotDirectory,
    /// The path exists, and must not.
    #[error("it exists already")]
    Exists,
    /// The file is not as expected.
    #[error("it has changed since it was last checked")]
    Changed,
    /// The quota would be exceeded.
    #[error("there would be {bytes} bytes in {files} files and directories, more than there may be")]
    Quota {
        /// The number of bytes there would be.
        bytes: u64,
        /// The number of files and directories there would be.
        files: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Stores files. The version of a file is the digest of its bytes.
///
/// [`StoreError::Refused`] for a path that is not absolute, has names that are empty, `.` or `..`, holds a
/// NUL, is longer than [`LONGEST_PATH`] or leads through more than [`DEEPEST_PATH`] directories.
#[async_trait]
pub trait WorkspaceFiles: Send + Sync {
    /// Returns the state of a path; `None` if nothing is there.
    async fn file_stat(&self, tenant: &TenantId, path: &str) -> Result<Option<Stat>, StoreError>;
    /// Returns the state of a path and the bytes of the file; a directory has none.
    async fn file(&self, tenant: &TenantId, path: &str) -> Result<Option<(Stat, Vec<u8>)>, StoreError>;
    /// Returns the bytes of several files by their paths, in any order; paths that are not files are left
    /// out. All of them are in memory at once, so the caller must bound them.
    async fn file_contents(
        &self,
        tenant: &TenantId,
        paths: &[String],
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError>;
    /// Returns the entries below a directory, at any depth, sorted by the bytes of the path, at most `limit`.
    async fn files_below(
        &self,
        tenant: &TenantId,
        directory: &str,
        limit: usize,
    ) -> Result<Vec<(String, Stat)>, StoreError>;
    /// Writes a whole file, creating missing directories. Checked in this order: the expected state, that the
    /// path is no directory, that only directories lead there, the quota. A change that adds nothing always
    /// fits the quota.
    async fn put_file(&self, change: &FileChange<'_>, bytes: &[u8]) -> Result<Stat, FileError>;
    /// Creates a directory and its missing parents; the expected state is ignored. A file at the path is
    /// [`FileError::NotDirectory`].
    async fn put_directory(&self, change: &FileChange<'_>) -> Result<(), FileError>;
    /// Removes a file; directories stay.
    async fn remove_file(&self, change: &FileChange<'_>) -> Result<(), FileError>;
}
