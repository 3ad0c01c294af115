//! Whole files and directories, of any bytes, for workspaces that are on no disk.
//!
//! A path is absolute and says where it leads by its text alone: there are no links. Each tenant has a tree of its
//! own. Whoever changes a file says what must be there, and how much the workspace may hold; that is compared and
//! the change made in one transaction, however many nodes write at once.

use async_trait::async_trait;

use super::StoreError;
use crate::id::TenantId;
use crate::port::{Expect, Quota, Stat, UnixMillis};

/// The most bytes that a file may have.
pub const LARGEST_FILE: usize = 64 << 20;
/// The most bytes that a path may have.
pub const LONGEST_PATH: usize = 16 << 10;
/// How many directories a path may lead through: each has a row with its own path.
pub const DEEPEST_PATH: usize = 1_000;

/// A change of a tree: where, what it must find, and within what.
#[derive(Debug, Clone, Copy)]
pub struct FileChange<'a> {
    /// Whose tree.
    pub tenant: &'a TenantId,
    /// Where: absolute, without `.`, `..` or empty names.
    pub path: &'a str,
    /// What must be there.
    pub expect: Expect<'a>,
    /// A directory, and how much may be below it. Nothing is counted for a path that is not below it.
    pub room: Option<(&'a str, Quota)>,
    /// When.
    pub at: UnixMillis,
}

/// A change that was not made.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Nothing is there.
    #[error("it is not there")]
    Missing,
    /// A directory is there.
    #[error("it is a directory")]
    IsDirectory,
    /// A file is where a directory would have to be.
    #[error("it leads through a file, which is no directory")]
    NotDirectory,
    /// Something is there, and nothing was expected.
    #[error("it exists already")]
    Exists,
    /// Something else is there than was expected.
    #[error("it has changed since it was looked at")]
    Changed,
    /// There would be too much.
    #[error("there would be {bytes} bytes in {files} files and directories, more than there may be")]
    Quota {
        /// How many bytes there would be.
        bytes: u64,
        /// How many files and directories.
        files: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps files. The version that it gives a file is the digest of its bytes.
///
/// A path that is not absolute, has names that are empty, `.` or `..`, holds a NUL, is longer than
/// [`LONGEST_PATH`] or leads through more than [`DEEPEST_PATH`] directories is [`StoreError::Refused`].
#[async_trait]
pub trait WorkspaceFiles: Send + Sync {
    /// What is at a path.
    async fn file_stat(&self, tenant: &TenantId, path: &str) -> Result<Option<Stat>, StoreError>;
    /// What is at a path, with the bytes of a file; a directory has none.
    async fn file(&self, tenant: &TenantId, path: &str) -> Result<Option<(Stat, Vec<u8>)>, StoreError>;
    /// The bytes of several files by their paths, in any order; what is no file is left out. All of them are in
    /// memory at once, so whoever asks bounds them.
    async fn file_contents(
        &self,
        tenant: &TenantId,
        paths: &[String],
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError>;
    /// What is below a directory, at whatever depth, sorted by the bytes of the path, at most `limit`.
    async fn files_below(
        &self,
        tenant: &TenantId,
        directory: &str,
        limit: usize,
    ) -> Result<Vec<(String, Stat)>, StoreError>;
    /// Writes a file whole, making the directories that are missing. Compared in this order: what is expected,
    /// that no directory is there, that only directories lead there, that there is room. A change that adds
    /// nothing has room always.
    async fn put_file(&self, change: &FileChange<'_>, bytes: &[u8]) -> Result<Stat, FileError>;
    /// Makes a directory and those above it that are missing; what is expected does not count. A file at the path
    /// is [`FileError::NotDirectory`].
    async fn put_directory(&self, change: &FileChange<'_>) -> Result<(), FileError>;
    /// Removes a file; directories stay.
    async fn remove_file(&self, change: &FileChange<'_>) -> Result<(), FileError>;
}
