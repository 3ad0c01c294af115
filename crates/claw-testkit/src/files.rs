//! Files in memory, confined as the real ones are, by the text of their paths.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use async_trait::async_trait;
use claw_core::port::{Access, FsBridge, Place, Stat, UnixMillis};
use claw_core::tool::{Digest, ErrorKind, Sight, Target, ToolError};

/// A file system in memory. It has no links, so a path's text says where it leads.
#[derive(Debug, Default)]
pub struct MemoryFiles(Mutex<Tree>);

#[derive(Debug, Default)]
struct Tree {
    nodes: BTreeMap<PathBuf, Node>,
    /// Each change is a millisecond later than the one before.
    time: i64,
}

#[derive(Debug)]
struct Node {
    /// The bytes of a file; `None` for a directory.
    bytes: Option<Vec<u8>>,
    modified: UnixMillis,
}

impl MemoryFiles {
    /// No files at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file at an absolute path, whatever any scope says.
    #[must_use]
    pub fn with(self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) -> Self {
        self.put(path, bytes);
        self
    }

    /// Writes a file at an absolute path, whatever any scope says.
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        self.0.lock().unwrap().write(path.as_ref(), bytes.into()).unwrap();
    }

    /// The text of the file at an absolute path; `None` where there is none.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let tree = self.0.lock().unwrap();
        let bytes = tree.nodes.get(path.as_ref())?.bytes.as_ref()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[async_trait]
impl FsBridge for MemoryFiles {
    async fn stat(&self, place: &Place<'_>, path: &str) -> Result<Option<Stat>, ToolError> {
        let Some(full) = resolve(place, path, Access::Read)? else { return Ok(None) };
        Ok(self.0.lock().unwrap().nodes.get(&full).map(|node| Stat {
            directory: node.bytes.is_none(),
            size: node.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            modified: node.modified,
        }))
    }

    async fn read(&self, place: &Place<'_>, path: &str) -> Result<Vec<u8>, ToolError> {
        let full = resolve(place, path, Access::Read)?.ok_or_else(|| absent(path))?;
        let tree = self.0.lock().unwrap();
        let node = tree.nodes.get(&full).ok_or_else(|| absent(path))?;
        node.bytes.clone().ok_or_else(|| ToolError::invalid(format!("`{path}` is a directory")))
    }

    async fn mkdirp(&self, place: &Place<'_>, path: &str) -> Result<(), ToolError> {
        let full = resolve(place, path, Access::Write)?.ok_or_else(|| outside(path))?;
        self.0.lock().unwrap().mkdirp(&full)
    }

    async fn write(&self, place: &Place<'_>, path: &str, bytes: &[u8]) -> Result<(), ToolError> {
        let full = resolve(place, path, Access::Write)?.ok_or_else(|| outside(path))?;
        let mut tree = self.0.lock().unwrap();
        if let Some(seen) = place.seen
            && tree.identity(&full) != seen.identity
        {
            return Err(ToolError::new(
                ErrorKind::Conflict,
                format!("`{path}` has changed since it was looked at"),
            ));
        }
        tree.write(&full, bytes.to_vec())
    }

    async fn look(&self, place: &Place<'_>, path: &str) -> Result<Sight, ToolError> {
        let full = resolve(place, path, Access::Read)?.ok_or_else(|| absent(path))?;
        let tree = self.0.lock().unwrap();
        Ok(Sight {
            target: Target::File { path: path.to_owned() },
            path: Some(full.display().to_string()),
            identity: tree.identity(&full),
            credential: None,
        })
    }
}

impl Tree {
    fn identity(&self, path: &Path) -> Option<String> {
        let bytes = self.nodes.get(path)?.bytes.as_deref()?;
        Some(Digest::of_bytes(bytes).to_string())
    }

    fn mkdirp(&mut self, path: &Path) -> Result<(), ToolError> {
        for directory in path.ancestors() {
            let modified = UnixMillis(self.time);
            let node = self.nodes.entry(directory.to_owned()).or_insert(Node { bytes: None, modified });
            if node.bytes.is_some() {
                return Err(ToolError::invalid(format!("`{}` is a file", directory.display())));
            }
        }
        Ok(())
    }

    fn write(&mut self, path: &Path, bytes: Vec<u8>) -> Result<(), ToolError> {
        if let Some(parent) = path.parent() {
            self.mkdirp(parent)?;
        }
        if self.nodes.get(path).is_some_and(|node| node.bytes.is_none()) {
            return Err(ToolError::invalid(format!("`{}` is a directory", path.display())));
        }
        self.time += 1;
        self.nodes.insert(path.to_owned(), Node { bytes: Some(bytes), modified: UnixMillis(self.time) });
        Ok(())
    }
}

/// Where `path` leads; `None` where it does not exist for this caller. The innermost root decides.
fn resolve(place: &Place<'_>, path: &str, access: Access) -> Result<Option<PathBuf>, ToolError> {
    let full = normal(&place.directory.join(path)).ok_or_else(|| outside(path))?;
    let roots = place.scope.roots.iter().filter(|root| full.starts_with(&root.path));
    let root = roots.max_by_key(|root| root.path.components().count()).ok_or_else(|| outside(path))?;
    if place.scope.denied.iter().any(|denied| full.starts_with(denied)) {
        return Ok(None);
    }
    if access == Access::Write && root.access == Access::Read {
        let message = format!("`{path}` is in a directory that may only be read");
        return Err(ToolError::new(ErrorKind::Forbidden, message));
    }
    Ok(Some(full))
}

/// The path without `.` and `..`; `None` where `..` climbs past the top or the path is not absolute.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if !normal.pop() => return None,
            Component::ParentDir => {}
            other => normal.push(other),
        }
    }
    normal.is_absolute().then_some(normal)
}

fn outside(path: &str) -> ToolError {
    ToolError::new(ErrorKind::Forbidden, format!("`{path}` is outside what this call may reach"))
        .try_instead("use a path inside the workspace")
}

fn absent(path: &str) -> ToolError {
    ToolError::not_found(format!("`{path}` does not exist"))
}

#[cfg(test)]
mod tests;
