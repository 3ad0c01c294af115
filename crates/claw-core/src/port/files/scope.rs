//! What a caller may reach of the file system.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::tool::{ErrorKind, ToolError};

/// What a caller may reach of the file system. Enforced by the bridge while it resolves a path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scope {
    /// The directories it may reach.
    pub roots: Vec<Root>,
    /// Paths that do not exist for it, wherever they are; what is below a denied directory neither.
    pub denied: Vec<PathBuf>,
    /// Those of the denied paths of which it is told that they are denied: files that say what it may do.
    pub configuration: Vec<PathBuf>,
    /// Those of the roots in which files that hold secrets by their names do not exist.
    pub covered: Vec<PathBuf>,
    /// How much its first root may hold.
    pub quota: Option<Quota>,
}

/// How much a workspace may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// In bytes.
    pub bytes: u64,
    /// In files and directories.
    pub files: u64,
}

impl Scope {
    /// The workspace, read and write, and nothing else.
    pub fn workspace(path: impl Into<PathBuf>) -> Self {
        Self { roots: vec![Root { path: path.into(), access: Access::Write }], ..Self::default() }
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
            return Err(error.allowed_by("`files.write` grants a directory to be changed"));
        }
        Ok(target)
    }

    /// The root that an absolute path without `..` is in: the innermost one; of two at one place, the first.
    pub fn root_around(&self, target: &Path) -> Option<&Root> {
        let around = self.roots.iter().filter(|root| target.starts_with(&root.path));
        around.rev().max_by_key(|root| root.path.components().count())
    }
}

/// Resolves `.` and `..` as text; `None` where `..` climbs above the top.
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
    /// Where it is.
    pub path: PathBuf,
    /// What may be done in it.
    pub access: Access,
}

/// What may be done in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}
