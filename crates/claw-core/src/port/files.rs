//! Files: the view that tools get of them, and the bridge that a file storage implements.
//!
//! A tool never sees a secret that is in a file. The guard passes a [`Redactor`] to the bridge, which applies
//! it to everything it returns or counts. A tool gets a [`View`] and changes ranges of that view. The guard
//! maps them back to the file, so that a secret stays unchanged.

mod scope;
mod view;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

pub use self::scope::{Access, Quota, Root, Scope, normalise};
pub use self::view::{Binary, From, Reading, Splice, Stat, Version, View, Window, WriteMode, Written};
pub use self::walk::{Entry, EntryKind, Hits, Order, Search, SearchLine, Searched, Walk, Walked};
use super::UnixMillis;
use crate::redact::Redactor;
use crate::text;
use crate::tool::{Caller, ErrorKind, Sight, ToolError};

/// The files of a workspace, as a tool sees them: confined to the caller's scope and without their secrets;
/// only the files that the plan names can be written. Every change can be undone.
#[async_trait]
pub trait Files: Send + Sync {
    /// Returns the state of `path`; `None` if nothing is there.
    async fn stat(&self, path: &str) -> Result<Option<Stat>, ToolError>;
    /// Returns a part of a file. The session has seen this version of it from now on.
    async fn read(&self, path: &str, window: Window) -> Result<Reading, ToolError>;
    /// Returns the whole text of a file, to be changed. Refused if it is not text or too long. The session
    /// does not count as having seen it.
    async fn view(&self, path: &str) -> Result<View, ToolError>;
    /// Writes a text. Refused unless the plan asks to write this path; a conflict, with a short diff, if the
    /// file is not as this session last saw it. A placeholder in the text means the secret at the matching
    /// position of the present file; if none can be matched, nothing is written.
    async fn write(&self, path: &str, text: &str, mode: WriteMode) -> Result<Written, ToolError>;
    /// Changes ranges of the file's whole [`view`](Files::view), all or none. Refused unless the plan asks to
    /// write this path; a conflict if the file's version is not `version`.
    async fn splice(&self, path: &str, version: &Version, splices: &[Splice]) -> Result<Written, ToolError>;
    /// Lists a directory.
    async fn walk(&self, walk: &Walk) -> Result<Walked, ToolError>;
    /// Searches files. A hit that touches a secret is dropped and not counted.
    async fn search(&self, search: &Search) -> Result<Searched, ToolError>;
}

/// A storage of files: a disk, a store, memory, a container.
///
/// An operation that a bridge lacks returns an error with the reason, and the tools that need it fail with
/// that.
#[async_trait]
pub trait FsBridge: Send + Sync {
    /// Returns how strictly it enforces a scope.
    fn confinement(&self) -> Confinement {
        Confinement::Text
    }
    /// Returns the use of the document that file tools reach at this path of the caller's workspace instead
    /// of a file; `None` if they reach a file.
    fn document(&self, _caller: &Caller, _path: &Path) -> Option<DocumentUse> {
        None
    }
    /// Returns the key of the sandbox that holds the file at this path; `None` if the machine or the store holds it.
    fn sandbox(&self, _caller: &Caller, _path: &Path) -> Option<String> {
        None
    }
    /// Returns the state of `path`; `None` if nothing is there.
    async fn stat(&self, place: &FilePlace<'_>, path: &str) -> Result<Option<Stat>, ToolError>;
    /// Returns the bytes of a file, and its state at the moment of reading.
    async fn read(&self, place: &FilePlace<'_>, path: &str) -> Result<(Vec<u8>, Stat), ToolError>;
    /// Makes a directory and its parents.
    async fn mkdirp(&self, place: &FilePlace<'_>, path: &str) -> Result<(), ToolError>;
    /// Writes a whole file atomically, creating its parents. A conflict if the present file is not what
    /// `place` expects. Returns the new state.
    async fn write(&self, place: &FilePlace<'_>, path: &str, bytes: &[u8]) -> Result<Stat, ToolError>;
    /// Removes a file. A conflict if it is not what `place` expects.
    async fn remove(&self, _place: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        Err(unsupported(format!("removing `{path}`")))
    }
    /// Reserves room for changes of the workspace that are made without this bridge; refuses if they exceed the scope's
    /// quota.
    async fn reserve(&self, _place: &FilePlace<'_>, _growth: WorkspaceGrowth) -> Result<(), ToolError> {
        Ok(())
    }
    /// Writes a file as it was before, with its former permissions if the storage has any.
    async fn restore(
        &self,
        place: &FilePlace<'_>,
        path: &str,
        bytes: &[u8],
        _mode: Option<u32>,
    ) -> Result<Stat, ToolError> {
        self.write(place, path, bytes).await
    }
    /// Looks at a file that a plan names, without changing anything. The returned identity is the file's
    /// [`Version`].
    async fn look(&self, place: &FilePlace<'_>, path: &str) -> Result<Sight, ToolError>;
    /// Looks at a path outside the scope, so that a person can be asked about it. Returns the real path of the directory
    /// that it is, or is in; `None` where there is none, where the path leads elsewhere by a link, and where its name
    /// says that it holds secrets. A place that cannot show more than the scope returns `None`.
    async fn outside(&self, _directory: &Path, _path: &str) -> Result<Option<PathBuf>, ToolError> {
        Ok(None)
    }
    /// Returns a part of a file, without its secrets.
    async fn window(
        &self,
        place: &FilePlace<'_>,
        path: &str,
        window: &Window,
        redactor: &Arc<dyn Redactor>,
    ) -> Result<Reading, ToolError> {
        let (bytes, stat) = self.read(place, path).await?;
        Ok(text::window(bytes, stat.version, window, &**redactor))
    }
    /// Lists a directory.
    async fn walk(&self, _place: &FilePlace<'_>, walk: &Walk) -> Result<Walked, ToolError> {
        Err(unsupported(format!("listing `{}`", walk.path)))
    }
    /// Searches files. A hit that touches a secret is dropped and not counted.
    async fn search(
        &self,
        _place: &FilePlace<'_>,
        search: &Search,
        _redactor: &Arc<dyn Redactor>,
    ) -> Result<Searched, ToolError> {
        Err(unsupported(format!("searching `{}`", search.within.path)))
    }
}

/// The growth of a workspace by a change; negative if it shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkspaceGrowth {
    /// Bytes of files.
    pub bytes: i64,
    /// Files, directories and links.
    pub entries: i64,
}

/// The way an agent gets to know a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentUse {
    /// Each prompt shows it.
    InPrompt,
    /// The agent reads it on demand.
    OnRequest,
}

/// The strictness with which a bridge enforces a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// It resolves each path beneath the roots itself, links included.
    Enforced,
    /// It opens every path it is given; the guard confines it by the text of the path.
    Text,
}

/// The caller and limits of one file operation.
#[derive(Debug, Clone, Copy)]
pub struct FilePlace<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The directory that relative paths start from.
    pub directory: &'a Path,
    /// The paths that may be reached.
    pub scope: &'a Scope,
    /// The state that a write must find; compared while the file is locked, so that nothing comes between.
    pub expect: Expect<'a>,
}

/// The state that a write must find at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expect<'a> {
    /// Any state.
    #[default]
    Anything,
    /// No file.
    Absent,
    /// A file of this version.
    Version(&'a Version),
}

fn unsupported(what: String) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, format!("{what}: the place that holds these files cannot do that"))
}

#[cfg(test)]
mod tests;
