//! Files in memory, confined as the real ones are, by the text of their paths: for embedders and for tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use claw_core::port::{
    Access, Confinement, Expect, FilePlace, FsBridge, Quota, Search, Searched, Stat, UnixMillis, Version,
    Walk, Walked,
};
use claw_core::redact::Redactor;
use claw_core::tool::{Digest, Sight, Target, ToolError};

use super::failure::{Excess, Failure};
use super::listing::{search_tree, walk_tree};
use super::resolve_by_text::{is_denied, outermost, resolve};
use super::tree_snapshot::Cards;

/// A file system in memory. It has no links, so a path means exactly what it spells.
#[derive(Debug, Default)]
pub struct MemoryFiles(Mutex<Nodes>);

#[derive(Debug, Default)]
struct Nodes {
    nodes: BTreeMap<PathBuf, Node>,
    /// The time of the last change, one millisecond after the one before.
    time: i64,
}

#[derive(Debug, Clone)]
struct Node {
    /// The bytes of a file; `None` for a directory.
    bytes: Option<Vec<u8>>,
    modified: UnixMillis,
}

impl MemoryFiles {
    /// Creates an empty file system.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Nodes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a file at an absolute path, regardless of any scope. If that is impossible, nothing is added.
    #[must_use]
    pub fn with(self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) -> Self {
        self.put(path, bytes);
        self
    }

    /// Writes a file at an absolute path, regardless of any scope. If that is impossible, nothing is written.
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        let _ = self.lock().write(path.as_ref(), bytes.into());
    }

    /// Returns the text of the file at an absolute path; `None` if there is none.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let tree = self.lock();
        let bytes = tree.nodes.get(path.as_ref())?.bytes.as_ref()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[async_trait]
impl FsBridge for MemoryFiles {
    fn confinement(&self) -> Confinement {
        Confinement::Enforced
    }

    async fn stat(&self, place: &FilePlace<'_>, path: &str) -> Result<Option<Stat>, ToolError> {
        match resolve(place, path, Access::Read) {
            Ok(full) => Ok(self.lock().nodes.get(&full).map(Node::stat)),
            Err(Failure::Denied) => Ok(None),
            Err(failure) => Err(failure.about(path)),
        }
    }

    async fn read(&self, place: &FilePlace<'_>, path: &str) -> Result<(Vec<u8>, Stat), ToolError> {
        let read = || {
            let full = resolve(place, path, Access::Read)?;
            let tree = self.lock();
            let node = tree.nodes.get(&full).ok_or(Failure::Missing)?;
            let bytes = node.bytes.clone().ok_or(Failure::IsDirectory)?;
            Ok((bytes, node.stat()))
        };
        read().map_err(|failure: Failure| failure.about(path))
    }

    async fn mkdirp(&self, place: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        let make = || {
            let full = resolve(place, path, Access::Write)?;
            let mut tree = self.lock();
            tree.admit(place, &full, None)?;
            tree.mkdirp(&full)
        };
        make().map_err(|failure| failure.about(path))
    }

    async fn write(&self, place: &FilePlace<'_>, path: &str, bytes: &[u8]) -> Result<Stat, ToolError> {
        let write = || {
            let full = resolve(place, path, Access::Write)?;
            let mut tree = self.lock();
            tree.compare(place.expect, &full)?;
            tree.admit(place, &full, Some(bytes.len() as u64))?;
            tree.write(&full, bytes.to_vec())
        };
        write().map_err(|failure| failure.about(path))
    }

    async fn remove(&self, place: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        let remove = || {
            let full = resolve(place, path, Access::Write)?;
            let mut tree = self.lock();
            match tree.nodes.get(&full) {
                None => return Err(Failure::Missing),
                Some(node) if node.bytes.is_none() => return Err(Failure::IsDirectory),
                Some(_) => tree.compare(place.expect, &full)?,
            }
            tree.nodes.remove(&full);
            Ok(())
        };
        remove().map_err(|failure| failure.about(path))
    }

    async fn look(&self, place: &FilePlace<'_>, path: &str) -> Result<Sight, ToolError> {
        let full = resolve(place, path, Access::Read).map_err(|failure| failure.about(path))?;
        let tree = self.lock();
        Ok(Sight {
            target: Target::File { path: path.to_owned() },
            path: Some(full.display().to_string()),
            identity: tree.nodes.get(&full).map(|node| node.stat().version.0.to_string()),
            credential: None,
            writable: false,
        })
    }

    async fn walk(&self, place: &FilePlace<'_>, walk: &Walk) -> Result<Walked, ToolError> {
        let full = resolve(place, &walk.path, Access::Read).map_err(|failure| failure.about(&walk.path))?;
        let (seen, start) = self.lock().seen(place, &full);
        walk_tree(&seen, &start, walk)
    }

    async fn search(
        &self,
        place: &FilePlace<'_>,
        search: &Search,
        redactor: &Arc<dyn Redactor>,
    ) -> Result<Searched, ToolError> {
        let path = &search.within.path;
        let full = resolve(place, path, Access::Read).map_err(|failure| failure.about(path))?;
        let (seen, start) = self.lock().seen(place, &full);
        search_tree(&seen, &start, search, &**redactor)
    }
}

impl Node {
    fn stat(&self) -> Stat {
        let version = match &self.bytes {
            Some(bytes) => Digest::of_bytes(bytes).to_string(),
            None => "directory".to_owned(),
        };
        Stat {
            directory: self.bytes.is_none(),
            size: self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            modified: self.modified,
            version: Version(version.into()),
            mode: None,
        }
    }
}

impl Nodes {
    /// Returns the files that a caller sees in the root of a path, and the path relative to that root.
    fn seen(&self, place: &FilePlace<'_>, full: &Path) -> (Cards, String) {
        let root = outermost(place, full);
        let mut seen = Cards::default();
        for (at, node) in self.nodes.iter().filter(|(at, _)| !is_denied(place, at)) {
            if let Ok(path) = at.strip_prefix(&root) {
                seen.add(&path.to_string_lossy(), &node.stat(), node.bytes.clone());
            }
        }
        let start = full.strip_prefix(&root).unwrap_or(Path::new(""));
        (seen, start.to_string_lossy().into_owned())
    }

    /// Checks that the file at the path meets the expectation.
    fn compare(&self, expect: Expect<'_>, full: &Path) -> Result<(), Failure> {
        let there = self.nodes.get(full).map(Node::stat);
        match (expect, there) {
            (Expect::Anything, _) | (Expect::Absent, None) => Ok(()),
            (Expect::Version(version), Some(stat)) if stat.version == *version => Ok(()),
            (Expect::Absent, Some(_)) => Err(Failure::Exists),
            (Expect::Version(_), _) => Err(Failure::Changed),
        }
    }

    /// Checks that the quota of the first root admits a file of this size, or a directory, at the path.
    fn admit(&self, place: &FilePlace<'_>, full: &Path, file: Option<u64>) -> Result<(), Failure> {
        let (Some(quota), Some(root)) = (place.scope.quota, place.scope.roots.first()) else { return Ok(()) };
        if !full.starts_with(&root.path) {
            return Ok(());
        }
        let held = self.nodes.iter().filter(|(at, _)| at.starts_with(&root.path) && **at != root.path);
        let (mut bytes, mut files) = (0, 0);
        for (at, node) in held {
            files += 1;
            bytes += if at == full { 0 } else { node.stat().size };
        }
        let missing = full.ancestors().take_while(|at| **at != root.path);
        files += missing.filter(|at| !self.nodes.contains_key(*at)).count() as u64;
        bytes += file.unwrap_or(0);
        let Quota { bytes: most_bytes, files: most_files } = quota;
        if bytes <= most_bytes && files <= most_files {
            return Ok(());
        }
        Err(Failure::Quota(Excess { bytes, files, most_bytes, most_files }))
    }

    fn mkdirp(&mut self, full: &Path) -> Result<(), Failure> {
        if full.ancestors().any(|at| self.nodes.get(at).is_some_and(|node| node.bytes.is_some())) {
            return Err(Failure::NotDirectory);
        }
        for directory in full.ancestors() {
            let modified = UnixMillis(self.time);
            self.nodes.entry(directory.to_owned()).or_insert(Node { bytes: None, modified });
        }
        Ok(())
    }

    fn write(&mut self, full: &Path, bytes: Vec<u8>) -> Result<Stat, Failure> {
        if self.nodes.get(full).is_some_and(|node| node.bytes.is_none()) {
            return Err(Failure::IsDirectory);
        }
        if let Some(parent) = full.parent() {
            self.mkdirp(parent)?;
        }
        self.time += 1;
        let node = Node { bytes: Some(bytes), modified: UnixMillis(self.time) };
        let stat = node.stat();
        self.nodes.insert(full.to_owned(), node);
        Ok(stat)
    }
}
