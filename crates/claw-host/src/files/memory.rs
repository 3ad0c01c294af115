//! Files in memory, confined as the real ones are, by the text of their paths: for embedders and for tests.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use claw_core::port::{
    Access, Confinement, Entry, EntryKind, Expect, FsBridge, Place, Quota, Search, Searched, Stat,
    UnixMillis, Version, Walk, Walked,
};
use claw_core::redact::Redactor;
use claw_core::tool::{Digest, ErrorKind, Sight, Target, ToolError};

use super::listing::{Tree, search_tree, walk_tree};

/// How long a name may be, in bytes, as on a disk.
const LONGEST_NAME: usize = 255;

/// A file system in memory. It has no links, so a path's text says where it leads.
#[derive(Debug, Default)]
pub struct MemoryFiles(Mutex<Nodes>);

#[derive(Debug, Default)]
struct Nodes {
    nodes: BTreeMap<PathBuf, Node>,
    /// Each change is a millisecond later than the one before.
    time: i64,
}

#[derive(Debug, Clone)]
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

    fn lock(&self) -> MutexGuard<'_, Nodes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a file at an absolute path, whatever any scope says. Where that cannot be, nothing is added.
    #[must_use]
    pub fn with(self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) -> Self {
        self.put(path, bytes);
        self
    }

    /// Writes a file at an absolute path, whatever any scope says. Where that cannot be, nothing is written.
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        let path = path.as_ref();
        let _ = self.lock().write(path, bytes.into(), &path.display().to_string());
    }

    /// The text of the file at an absolute path; `None` where there is none.
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

    async fn stat(&self, place: &Place<'_>, path: &str) -> Result<Option<Stat>, ToolError> {
        match resolve(place, path, Access::Read) {
            Ok(full) => Ok(self.lock().nodes.get(&full).map(Node::stat)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, place: &Place<'_>, path: &str) -> Result<(Vec<u8>, Stat), ToolError> {
        let full = resolve(place, path, Access::Read)?;
        let tree = self.lock();
        let node = tree.nodes.get(&full).ok_or_else(|| absent(path))?;
        let bytes = node.bytes.clone().ok_or_else(|| is_directory(path))?;
        Ok((bytes, node.stat()))
    }

    async fn mkdirp(&self, place: &Place<'_>, path: &str) -> Result<(), ToolError> {
        let full = resolve(place, path, Access::Write)?;
        let mut tree = self.lock();
        tree.admit(place, path, &full, None)?;
        tree.mkdirp(&full, path)
    }

    async fn write(&self, place: &Place<'_>, path: &str, bytes: &[u8]) -> Result<Stat, ToolError> {
        let full = resolve(place, path, Access::Write)?;
        let mut tree = self.lock();
        tree.compare(place.expect, &full, path)?;
        tree.admit(place, path, &full, Some(bytes.len() as u64))?;
        tree.write(&full, bytes.to_vec(), path)
    }

    async fn remove(&self, place: &Place<'_>, path: &str) -> Result<(), ToolError> {
        let full = resolve(place, path, Access::Write)?;
        let mut tree = self.lock();
        match tree.nodes.get(&full) {
            None => return Err(absent(path)),
            Some(node) if node.bytes.is_none() => return Err(is_directory(path)),
            Some(_) => tree.compare(place.expect, &full, path)?,
        }
        tree.nodes.remove(&full);
        Ok(())
    }

    async fn look(&self, place: &Place<'_>, path: &str) -> Result<Sight, ToolError> {
        let full = resolve(place, path, Access::Read)?;
        let tree = self.lock();
        Ok(Sight {
            target: Target::File { path: path.to_owned() },
            path: Some(full.display().to_string()),
            identity: tree.nodes.get(&full).map(|node| node.stat().version.0.to_string()),
            credential: None,
        })
    }

    async fn walk(&self, place: &Place<'_>, walk: &Walk) -> Result<Walked, ToolError> {
        let full = resolve(place, &walk.path, Access::Read)?;
        let (seen, start) = Seen::of(&self.lock(), place, &full);
        walk_tree(&seen, &start, walk)
    }

    async fn search(
        &self,
        place: &Place<'_>,
        search: &Search,
        redactor: &Arc<dyn Redactor>,
    ) -> Result<Searched, ToolError> {
        let full = resolve(place, &search.within.path, Access::Read)?;
        let (seen, start) = Seen::of(&self.lock(), place, &full);
        search_tree(&seen, &start, search, &**redactor)
    }
}

/// What a caller sees of one root, at one moment.
struct Seen(BTreeMap<PathBuf, Node>);

impl Seen {
    /// The root that a path is in, and the path from there on.
    fn of(nodes: &Nodes, place: &Place<'_>, full: &Path) -> (Self, String) {
        let roots = place.scope.roots.iter().filter(|root| full.starts_with(&root.path));
        let root = roots.min_by_key(|root| root.path.components().count()).map_or(full, |root| &root.path);
        let denied = |at: &Path| place.scope.denied.iter().any(|denied| at.starts_with(denied));
        let below = |(at, node): (&PathBuf, &Node)| {
            let path = at.strip_prefix(root).ok().filter(|_| !denied(at))?;
            Some((path.to_owned(), node.clone()))
        };
        let start = full.strip_prefix(root).unwrap_or(Path::new(""));
        (Self(nodes.nodes.iter().filter_map(below).collect()), start.to_string_lossy().into_owned())
    }
}

impl Tree for Seen {
    fn entry(&self, path: &str) -> Option<Entry> {
        self.0.get(Path::new(path)).map(|node| node.entry(path.to_owned()))
    }

    fn entries(&self, directory: &str) -> Vec<Entry> {
        let directory = Path::new(directory);
        let inside = self.0.iter().filter(|(at, _)| at.parent() == Some(directory));
        let named = inside.filter_map(|(at, node)| Some((at.file_name()?, node)));
        named.map(|(name, node)| node.entry(name.to_string_lossy().into_owned())).collect()
    }

    fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.0.get(Path::new(path))?.bytes.clone()
    }
}

impl Node {
    fn entry(&self, path: String) -> Entry {
        let Stat { directory, size, modified, .. } = self.stat();
        let kind = if directory { EntryKind::Directory } else { EntryKind::File };
        Entry { path, kind, size, modified }
    }

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
    /// Whether what is there is what is expected.
    fn compare(&self, expect: Expect<'_>, full: &Path, path: &str) -> Result<(), ToolError> {
        let there = self.nodes.get(full).map(Node::stat);
        match (expect, there) {
            (Expect::Anything, _) | (Expect::Absent, None) => Ok(()),
            (Expect::Version(version), Some(stat)) if stat.version == *version => Ok(()),
            (Expect::Absent, Some(_)) => Err(conflict(format!("`{path}` exists already"))),
            (Expect::Version(_), _) => Err(conflict(format!("`{path}` has changed since it was looked at"))),
        }
    }

    /// Whether the first root may hold a file of this size, or a directory, there.
    fn admit(&self, place: &Place<'_>, path: &str, full: &Path, file: Option<u64>) -> Result<(), ToolError> {
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
        let message = format!(
            "with `{path}` the workspace would hold {bytes} bytes in {files} files and directories; \
             its quota is {most_bytes} bytes and {most_files}"
        );
        Err(ToolError::new(ErrorKind::Forbidden, message).try_instead("remove what is not needed"))
    }

    fn mkdirp(&mut self, full: &Path, path: &str) -> Result<(), ToolError> {
        if full.ancestors().any(|at| self.nodes.get(at).is_some_and(|node| node.bytes.is_some())) {
            return Err(not_directory(path));
        }
        for directory in full.ancestors() {
            let modified = UnixMillis(self.time);
            self.nodes.entry(directory.to_owned()).or_insert(Node { bytes: None, modified });
        }
        Ok(())
    }

    fn write(&mut self, full: &Path, bytes: Vec<u8>, path: &str) -> Result<Stat, ToolError> {
        if self.nodes.get(full).is_some_and(|node| node.bytes.is_none()) {
            return Err(is_directory(path));
        }
        if let Some(parent) = full.parent() {
            self.mkdirp(parent, path)?;
        }
        self.time += 1;
        let node = Node { bytes: Some(bytes), modified: UnixMillis(self.time) };
        let stat = node.stat();
        self.nodes.insert(full.to_owned(), node);
        Ok(stat)
    }
}

/// Where `path` leads, or why it does not exist for this caller. The innermost root decides what may be done.
fn resolve(place: &Place<'_>, path: &str, access: Access) -> Result<PathBuf, ToolError> {
    if path.is_empty() || path.contains('\0') {
        return Err(ToolError::invalid(format!("`{}` is not a path", path.escape_debug())));
    }
    if path.split('/').any(|name| name.len() > LONGEST_NAME) {
        let shown: String = path.chars().take(80).collect();
        return Err(ToolError::invalid(format!("`{shown}...` is too long for a path")));
    }
    let full = normal(&place.directory.join(path)).ok_or_else(|| outside(path))?;
    let within = |path: &Path| place.scope.roots.iter().any(|root| path.starts_with(&root.path));
    if !path.starts_with('/') && !normal(place.directory).is_some_and(|directory| within(&directory)) {
        return Err(outside(path));
    }
    let roots = place.scope.roots.iter().filter(|root| full.starts_with(&root.path));
    let root = roots.rev().max_by_key(|root| root.path.components().count()).ok_or_else(|| outside(path))?;
    if place.scope.denied.iter().any(|denied| full.starts_with(denied)) {
        return Err(absent(path));
    }
    if access == Access::Write && root.access == Access::Read {
        return Err(ToolError::new(ErrorKind::Forbidden, format!("`{path}` is read-only")));
    }
    Ok(full)
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
    ToolError::new(ErrorKind::Forbidden, format!("`{path}` is outside the workspace"))
        .try_instead("use a path relative to the workspace")
}

fn absent(path: &str) -> ToolError {
    ToolError::not_found(format!("`{path}` does not exist"))
}

fn is_directory(path: &str) -> ToolError {
    ToolError::invalid(format!("`{path}` is a directory"))
}

fn not_directory(path: &str) -> ToolError {
    ToolError::invalid(format!("`{path}` leads through a file, which is no directory"))
}

fn conflict(message: String) -> ToolError {
    ToolError::new(ErrorKind::Conflict, message).try_instead("read it again")
}
