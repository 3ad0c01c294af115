//! The part of the file system that a caller may reach.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::tool::{ErrorKind, ToolError};

/// The part of the file system that a caller may reach. The bridge enforces it while it resolves a path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scope {
    /// The directories it may reach.
    pub roots: Vec<Root>,
    /// Paths that do not exist for the caller, together with everything below them.
    pub denied: Vec<PathBuf>,
    /// Those of the denied paths that the caller is told are denied: files that configure its permissions.
    pub configuration: Vec<PathBuf>,
    /// Those of the roots in which files with secret-bearing names do not exist.
    pub covered: Vec<PathBuf>,
    /// The quota of its first root; `None` for no limit.
    pub quota: Option<Quota>,
}

/// The most that a workspace may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Bytes.
    pub bytes: u64,
    /// Files and directories.
    pub files: u64,
}

impl Scope {
    /// Returns a scope of the workspace alone, read and write.
    pub fn workspace(path: impl Into<PathBuf>) -> Self {
        Self { roots: vec![Root { path: path.into(), access: Access::Write }], ..Self::default() }
    }

    /// Returns the absolute path that `path` spells, or an error if it is out of reach.
    ///
    /// This judges plans and confines bridges that know nothing of the file system. It follows no link, so a
    /// bridge that has links must still resolve beneath the roots itself.
    pub fn resolve_text(&self, directory: &Path, path: &str, access: Access) -> Result<PathBuf, ToolError> {
        if path.is_empty() || path.contains('\0') {
            return Err(ToolError::invalid(format!("`{}` is not a path", path.escape_debug())));
        }
        let outside = || {
            let message = format!("`{path}` is outside the workspace");
            let key = if access == Access::Write { "files.write" } else { "files.read" };
            ToolError::new(ErrorKind::Forbidden, message)
                .try_instead("use a path relative to the workspace")
                .allowed_by(format!("`{key}` grants a directory outside the workspace"))
        };
        let target = normalise(&directory.join(path)).ok_or_else(outside)?;
        let root = self.root_around(&target).ok_or_else(outside)?;
        if self.configuration.iter().any(|file| target.starts_with(file)) {
            let message = format!("`{path}` is a configuration file of Clawsmith: it says what tools may do");
            return Err(ToolError::new(
                ErrorKind::Forbidden,
                format!("{message}, so no tool reads or writes it"),
            )
            .try_instead("ask the person who runs Clawsmith to change it"));
        }
        if self.denied.iter().any(|denied| target.starts_with(denied)) {
            return Err(ToolError::not_found(format!("`{path}` does not exist")));
        }
        if access == Access::Write && root.access == Access::Read {
            let error = ToolError::new(ErrorKind::Forbidden, format!("`{path}` is read-only"));
            return Err(error.allowed_by("`files.write` lists the directories that may be changed"));
        }
        Ok(target)
    }

    /// The root that an absolute path without `..` is in: the innermost one; of two at one place, the first.
    pub fn root_around(&self, target: &Path) -> Option<&Root> {
        let around = self.roots.iter().filter(|root| target.starts_with(&root.path));
        around.rev().max_by_key(|root| root.path.components().count())
    }
}

/// Resolves `.` and `..` as text; `None` if `..` climbs above the top.
pub fn normalise(path: &Path) -> Option<PathBuf> {
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// Its path.
    pub path: PathBuf,
    /// The permitted operations.
    pub access: Access,
}

/// The permitted operations in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}
