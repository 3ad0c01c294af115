//! Files: what tools see of them, and what a place that holds them implements.

use std::path::{Component, Path, PathBuf};

use async_trait::async_trait;

use super::UnixMillis;
use crate::tool::{ErrorKind, Sight, ToolError};

/// The files of a workspace, as a tool sees them: confined to the caller's scope, writing only what the
/// plan names.
#[async_trait]
pub trait Files: Send + Sync {
    /// What is at `path`; `None` where nothing is.
    async fn stat(&self, path: &str) -> Result<Option<Stat>, ToolError>;
    /// The bytes of a file.
    async fn read(&self, path: &str) -> Result<Vec<u8>, ToolError>;
    /// Writes a file whole. Refused unless the plan asked to write this path.
    async fn write(&self, path: &str, bytes: &[u8]) -> Result<(), ToolError>;
}

/// A place where files are: a disk, a store, memory, a container.
#[async_trait]
pub trait FsBridge: Send + Sync {
    /// What is at `path`; `None` where nothing is.
    async fn stat(&self, place: &Place<'_>, path: &str) -> Result<Option<Stat>, ToolError>;
    /// The bytes of a file.
    async fn read(&self, place: &Place<'_>, path: &str) -> Result<Vec<u8>, ToolError>;
    /// Makes a directory and its parents.
    async fn mkdirp(&self, place: &Place<'_>, path: &str) -> Result<(), ToolError>;
    /// Writes a file whole, making its parents. Refused where it is not what [`Place::seen`] says.
    async fn write(&self, place: &Place<'_>, path: &str, bytes: &[u8]) -> Result<(), ToolError>;
    /// Looks at a file that a plan names, without changing anything.
    async fn look(&self, place: &Place<'_>, path: &str) -> Result<Sight, ToolError>;
}

/// Where an operation happens: the directory relative paths start from, and what may be reached.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The directory that relative paths start from.
    pub directory: &'a Path,
    /// What may be reached.
    pub scope: &'a Scope,
    /// What was seen of the file when the call was judged. A write finds that, or it is refused as a
    /// conflict; compared while the file is held, so that nothing comes between.
    pub seen: Option<&'a Sight>,
}

/// What a caller may reach of the file system. Enforced by the bridge while it resolves a path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// The directories it may reach.
    pub roots: Vec<Root>,
    /// Directories inside them that do not exist for it.
    pub denied: Vec<PathBuf>,
}

impl Scope {
    /// The workspace, read and write, and nothing else.
    pub fn workspace(path: impl Into<PathBuf>) -> Self {
        Self { roots: vec![Root { path: path.into(), access: Access::Write }], denied: Vec::new() }
    }

    /// Where `path` leads as text, or why it is out of reach.
    ///
    /// This judges plans and confines bridges that know nothing of the file system. It follows no link, so
    /// a bridge that has links must still resolve beneath the roots itself.
    pub fn resolve_text(&self, directory: &Path, path: &str, access: Access) -> Result<PathBuf, ToolError> {
        if path.is_empty() || path.contains('\0') {
            return Err(ToolError::invalid(format!("`{}` is not a path", path.escape_debug())));
        }
        let outside = || {
            let message = format!("`{path}` is outside the workspace");
            ToolError::new(ErrorKind::Forbidden, message).try_instead("use a path relative to the workspace")
        };
        let target = normalise(&directory.join(path)).ok_or_else(outside)?;
        let root = self.roots.iter().find(|root| target.starts_with(&root.path)).ok_or_else(outside)?;
        if self.denied.iter().any(|denied| target.starts_with(denied)) {
            return Err(ToolError::not_found(format!("`{path}` does not exist")));
        }
        if access == Access::Write && root.access == Access::Read {
            return Err(ToolError::new(ErrorKind::Forbidden, format!("`{path}` is read-only")));
        }
        Ok(target)
    }
}

/// Resolves `.` and `..` as text; `None` where `..` climbs above the top.
fn normalise(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            other => clean.push(other),
        }
    }
    Some(clean)
}

/// One directory of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Where it is.
    pub path: PathBuf,
    /// What may be done in it.
    pub access: Access,
}

/// What may be done in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Whether it is a directory.
    pub directory: bool,
    /// Its size in bytes.
    pub size: u64,
    /// When it last changed.
    pub modified: UnixMillis,
}

#[cfg(test)]
mod tests;
