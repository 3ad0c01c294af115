//! Files: what tools see of them, and what a place that holds them implements.
//!
//! A tool never sees a secret that is in a file. The guard passes a [`Redactor`] to the bridge, which applies it
//! to whatever it returns or counts; what a tool gets is a [`View`], and what it changes are places of that view.
//! The guard maps them back, so that a secret stays as it was.

mod scope;
mod view;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

pub use self::scope::{Access, Quota, Root, Scope, normalise};
pub use self::view::{Binary, From, Reading, Splice, Stat, Version, View, Window, WriteMode, Written};
pub use self::walk::{Entry, EntryKind, Hits, Line, Order, Search, Searched, Walk, Walked};
use super::UnixMillis;
use crate::redact::Redactor;
use crate::text;
use crate::tool::{Caller, ErrorKind, Sight, ToolError};

/// The files of a workspace, as a tool sees them: confined to the caller's scope, without their secrets, writing
/// only what the plan names. Every change can be undone.
#[async_trait]
pub trait Files: Send + Sync {
    /// What is at `path`; `None` where nothing is.
    async fn stat(&self, path: &str) -> Result<Option<Stat>, ToolError>;
    /// A part of a file. The session has seen this state of it from now on.
    async fn read(&self, path: &str, window: Window) -> Result<Reading, ToolError>;
    /// The whole text of a file, to be changed. Refused where it is not text or too long. Looking at it this way
    /// does not count as the session having seen it.
    async fn view(&self, path: &str) -> Result<View, ToolError>;
    /// Writes a text. Refused unless the plan asked to write this path; a conflict, with a short diff, where the
    /// file is not as this session last saw it. A placeholder in the text stands for the secret that it lines up
    /// with in what is there; where that cannot be told, nothing is written.
    async fn write(&self, path: &str, text: &str, mode: WriteMode) -> Result<Written, ToolError>;
    /// Changes places of the file's whole [`view`](Files::view), all or none. Refused unless the plan asked to
    /// write this path; a conflict where the file is in another state than `version`.
    async fn splice(&self, path: &str, version: &Version, splices: &[Splice]) -> Result<Written, ToolError>;
    /// What is in a directory.
    async fn walk(&self, walk: &Walk) -> Result<Walked, ToolError>;
    /// Where something is said. A hit that touches a secret is none, and is not counted.
    async fn search(&self, search: &Search) -> Result<Searched, ToolError>;
}

/// A place where files are: a disk, a store, memory, a container.
///
/// What a bridge cannot do it says it cannot; the tools that need it then fail with that reason.
#[async_trait]
pub trait FsBridge: Send + Sync {
    /// How well it keeps to a scope.
    fn confinement(&self) -> Confinement {
        Confinement::Text
    }
    /// Returns the use of the document that file tools reach at this path of the caller's workspace instead of a file;
    /// `None` where they reach a file.
    fn document(&self, _caller: &Caller, _path: &Path) -> Option<DocumentUse> {
        None
    }
    /// What is at `path`; `None` where nothing is.
    async fn stat(&self, place: &Place<'_>, path: &str) -> Result<Option<Stat>, ToolError>;
    /// The bytes of a file, and what was at the path when they were read.
    async fn read(&self, place: &Place<'_>, path: &str) -> Result<(Vec<u8>, Stat), ToolError>;
    /// Makes a directory and its parents.
    async fn mkdirp(&self, place: &Place<'_>, path: &str) -> Result<(), ToolError>;
    /// Writes a file whole, making its parents: all of it or nothing. A conflict where what is there is not what
    /// `place` expects. Gives what is there now.
    async fn write(&self, place: &Place<'_>, path: &str, bytes: &[u8]) -> Result<Stat, ToolError>;
    /// Removes a file. A conflict where it is not what `place` expects.
    async fn remove(&self, _place: &Place<'_>, path: &str) -> Result<(), ToolError> {
        Err(unsupported(format!("removing `{path}`")))
    }
    /// Writes a file as it once was, with the permissions it had, where the place has any.
    async fn restore(
        &self,
        place: &Place<'_>,
        path: &str,
        bytes: &[u8],
        _mode: Option<u32>,
    ) -> Result<Stat, ToolError> {
        self.write(place, path, bytes).await
    }
    /// Looks at a file that a plan names, without changing anything. The identity that it gives is the file's
    /// [`Version`].
    async fn look(&self, place: &Place<'_>, path: &str) -> Result<Sight, ToolError>;
    /// Looks at a path outside the scope, so that a person can be asked about it. Returns the real path of the directory
    /// that it is, or is in; `None` where there is none, where the path leads elsewhere by a link, and where its name
    /// says that it holds secrets. A place that cannot show more than the scope returns `None`.
    async fn outside(&self, _directory: &Path, _path: &str) -> Result<Option<PathBuf>, ToolError> {
        Ok(None)
    }
    /// A part of a file, without its secrets.
    async fn window(
        &self,
        place: &Place<'_>,
        path: &str,
        window: &Window,
        redactor: &Arc<dyn Redactor>,
    ) -> Result<Reading, ToolError> {
        let (bytes, stat) = self.read(place, path).await?;
        Ok(text::window(bytes, stat.version, window, &**redactor))
    }
    /// What is in a directory.
    async fn walk(&self, _place: &Place<'_>, walk: &Walk) -> Result<Walked, ToolError> {
        Err(unsupported(format!("listing `{}`", walk.path)))
    }
    /// Where something is said. What touches a secret is not found, and not counted.
    async fn search(
        &self,
        _place: &Place<'_>,
        search: &Search,
        _redactor: &Arc<dyn Redactor>,
    ) -> Result<Searched, ToolError> {
        Err(unsupported(format!("searching `{}`", search.within.path)))
    }
}

/// How an agent knows a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentUse {
    /// Each prompt shows it.
    InPrompt,
    /// The agent reads it when it wants to.
    OnRequest,
}

/// How well a bridge keeps to a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// It resolves each path beneath the roots itself, links included.
    Enforced,
    /// It opens what it is given; the guard confines it by the text of the path.
    Text,
}

/// Where an operation happens, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// For whom.
    pub caller: &'a Caller,
    /// The directory that relative paths start from.
    pub directory: &'a Path,
    /// What may be reached.
    pub scope: &'a Scope,
    /// What a write must find; compared while the file is held, so that nothing comes between.
    pub expect: Expect<'a>,
}

/// What a write must find at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expect<'a> {
    /// Anything.
    #[default]
    Anything,
    /// Nothing.
    Absent,
    /// A file in this state.
    Version(&'a Version),
}

fn unsupported(what: String) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, format!("{what}: the place that holds these files cannot do that"))
}

#[cfg(test)]
mod tests;
