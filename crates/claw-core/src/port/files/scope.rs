//! What a caller may reach of the file system.

use std::path::{Component, Path, PathBuf};

use crate::tool::{ErrorKind, ToolError};

/// What a caller may reach of the file system. Enforced by the bridge while it resolves a path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// The directories it may reach.
    pub roots: Vec<Root>,
    /// Paths that do not exist for it, wherever they are; what is below a denied directory neither.
    pub denied: Vec<PathBuf>,
    /// How much its first root may hold.
    pub quota: Option<Quota>,
}

/// How much a workspace may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
