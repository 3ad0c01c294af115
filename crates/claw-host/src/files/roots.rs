//! The directories that a caller may reach, as handles.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use claw_core::port::{Access, Root, Scope};
use rustix::io::Errno;

use super::denied::Denied;
use super::failure::Failure;
use super::handle::{Directory, Id};
use crate::secret_files::secret_files;

/// The number of root handles kept open.
const KEPT: usize = 256;
/// The number of scopes cached.
const SCOPES: usize = 64;
/// The number of directories below its roots that each cached scope keeps open.
const ENTERED: usize = 16;
/// The time for which a cached scope is used without being resolved again.
const FRESH: Duration = Duration::from_millis(50);

/// Handles of roots that were used before, by their paths.
#[derive(Debug, Default)]
pub(super) struct Handles(RwLock<HashMap<PathBuf, Arc<Handle>>>);

/// A short-lived cache of resolved scopes.
///
/// While an entry is fresh, a denied name stays denied, whatever file gets it; and a denied file stays
/// denied, wherever it is moved.
#[derive(Debug, Default)]
pub(super) struct Recent(RwLock<Vec<(Scope, Instant, Arc<Reach>)>>);

impl Recent {
    /// Returns the resolved scope if it is fresh and its roots are still the same directories.
    pub(super) fn get(&self, scope: &Scope) -> Option<Arc<Reach>> {
        let recent = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (_, at, reach) = recent.iter().find(|(known, ..)| known == scope)?;
        (at.elapsed() < FRESH && reach.roots.iter().all(Reached::is_there)).then(|| Arc::clone(reach))
    }

    pub(super) fn keep(&self, scope: &Scope, reach: &Arc<Reach>) {
        if reach.open {
            return;
        }
        let mut recent = self.0.write().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|(known, at, _)| known != scope && at.elapsed() < FRESH);
        if recent.len() < SCOPES {
            recent.push((scope.clone(), Instant::now(), Arc::clone(reach)));
        }
    }
}

/// An existing root.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) directory: Directory,
    /// The real path, without links.
    pub(super) real: PathBuf,
    /// The directories that it is in.
    above: Vec<Id>,
}

impl Handles {
    /// Returns the handle of the root at this path; `None` if it does not exist.
    fn get(&self, path: &Path) -> Result<Option<Arc<Handle>>, Failure> {
        let now = match rustix::fs::stat(path) {
            Ok(raw) => Id::of(&raw),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some(kept) = kept
            && kept.directory.id == now
        {
            return Ok(Some(kept));
        }
        let handle = Arc::new(Handle::open(path)?);
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(path.to_owned(), Arc::clone(&handle));
        Ok(Some(handle))
    }

    /// Returns the handle of the root at this path, making the directory if it is missing: for its owner
    /// alone.
    fn get_or_make(&self, path: &Path) -> Result<Option<Arc<Handle>>, Failure> {
        if let Some(handle) = self.get(path)? {
            return Ok(Some(handle));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        self.get(path)
    }
}

impl Handle {
    fn open(path: &Path) -> Result<Self, Failure> {
        let directory = Directory::trusted(path)?;
        directory.check_kind()?;
        let mut above = Vec::new();
        let mut at = directory.clone();
        loop {
            let parent = at.parent()?;
            if parent.id == at.id {
                break;
            }
            above.push(parent.id);
            at = parent;
        }
        let real = path.canonicalize()?;
        Ok(Self { directory, real, above })
    }
}

/// A scope with its paths resolved at one moment.
#[derive(Debug)]
pub(super) struct Reach {
    roots: Vec<Reached>,
    pub(super) denied: Denied,
    /// True if something is denied below a root.
    hides: bool,
    /// True if a path is denied below a root and its directory does not exist yet.
    open: bool,
    /// The directories entered, by their parent and name.
    entered: RwLock<Vec<(Id, OsString, Directory)>>,
}

/// A root of a scope.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) root: Root,
    /// The root's handle; `None` if it does not exist yet.
    pub(super) handle: Option<Arc<Handle>>,
    /// True if the whole root is denied.
    denied: bool,
}

impl Reached {
    /// Returns whether the root's path still leads to the same directory.
    fn is_there(&self) -> bool {
        let now = rustix::fs::stat(&self.root.path).map(|raw| Id::of(&raw));
        self.handle.as_ref().is_some_and(|handle| now == Ok(handle.directory.id))
    }

    fn holds(&self, path: &Path) -> bool {
        let real = self.handle.as_ref().map(|handle| handle.real.as_path());
        path.is_relative()
            || path.starts_with(&self.root.path)
            || real.is_some_and(|real| path.starts_with(real))
    }
}

/// A part of a path below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Up,
    Name(OsString),
}

impl Reach {
    /// Resolves a scope. With `make`, missing roots that may be written are made.
    pub(super) fn new(handles: &Handles, scope: &Scope, make: bool) -> Result<Self, Failure> {
        let hidden = hidden(scope)?;
        let denied = Denied::new(&hidden, scope.roots.iter().map(|root| root.path.as_path()));
        let mut roots = Vec::with_capacity(scope.roots.len());
        for root in &scope.roots {
            if !root.path.is_absolute() {
                return Err(Failure::Outside);
            }
            let covered = hidden.iter().any(|path| root.path.starts_with(path));
            let handle = match root.access {
                Access::Write if make && !covered => handles.get_or_make(&root.path)?,
                _ => handles.get(&root.path)?,
            };
            let within = handle.as_ref().is_some_and(|handle| {
                denied.is_denied(handle.directory.id) || handle.above.iter().any(|id| denied.is_denied(*id))
            });
            roots.push(Reached { root: root.clone(), handle, denied: covered || within });
        }
        let below = |path: &PathBuf| roots.iter().any(|root: &Reached| root.holds(path));
        let (hides, open) = (hidden.iter().any(below), denied.open().iter().any(below));
        Ok(Self { roots, denied, hides, open, entered: RwLock::default() })
    }

    /// The directory of this name; a link is none.
    ///
    /// A directory that was entered a moment ago is not opened again if the name still leads to it. While its
    /// handle is open no other directory gets its inode number, so the comparison is reliable.
    pub(super) fn step(&self, from: &Directory, name: &OsStr) -> rustix::io::Result<Directory> {
        let is_it = |(within, known, _): &&(Id, OsString, Directory)| *within == from.id && known == name;
        let entered = self.entered.read().unwrap_or_else(PoisonError::into_inner).iter().find(is_it).cloned();
        if let Some((_, _, directory)) = entered {
            if Id::of(&from.stat(name)?) == directory.id {
                return Ok(directory);
            }
            let mut entered = self.entered.write().unwrap_or_else(PoisonError::into_inner);
            entered.retain(|one| !is_it(&one));
        }
        let directory = from.step(name)?;
        let mut entered = self.entered.write().unwrap_or_else(PoisonError::into_inner);
        // Handles on other mounts are not kept: they would prevent unmounting.
        if entered.len() < ENTERED
            && directory.id.device == from.id.device
            && !entered.iter().any(|one| is_it(&one))
        {
            entered.push((from.id, name.to_owned(), directory.clone()));
        }
        Ok(directory)
    }

    /// The roots, in the order of the scope.
    pub(super) fn roots(&self) -> &[Reached] {
        &self.roots
    }

    /// Returns whether something is denied below a root. If so, every directory on the way must be checked:
    /// passing through a denied one would reveal that it exists.
    pub(super) fn hides(&self) -> bool {
        self.hides
    }

    /// Returns whether the directories on the way must be known, because there are several roots or denied
    /// paths.
    pub(super) fn must_check(&self) -> bool {
        self.roots.len() > 1 || !self.denied.is_empty()
    }

    /// Returns the index of the root that is this directory.
    pub(super) fn root_of(&self, id: Id) -> Option<usize> {
        self.roots
            .iter()
            .position(|root| root.handle.as_ref().is_some_and(|handle| handle.directory.id == id))
    }

    /// Returns the root that contains an absolute path, and the rest of the path below that root.
    ///
    /// If the path's text begins with the root's, name by name, that decides; else the root is the directory
    /// on the way that has its identity. Either way only the rest counts, from the root's handle.
    pub(super) fn locate(&self, path: &Path) -> Result<(usize, Vec<Part>), Failure> {
        let by_text = self.roots.iter().enumerate().filter(|(_, root)| path.starts_with(&root.root.path));
        let by_text = by_text.min_by_key(|(_, root)| root.root.path.components().count());
        let (index, skip) = match by_text {
            Some((index, root)) => (index, root.root.path.components().count()),
            None => self.locate_by_identity(path)?,
        };
        if self.roots[index].denied {
            return Err(Failure::Denied);
        }
        let mut rest = Vec::new();
        parts(path.components().skip(skip), &mut rest);
        Ok((index, rest))
    }

    fn locate_by_identity(&self, path: &Path) -> Result<(usize, usize), Failure> {
        let mut prefix = PathBuf::new();
        for (index, component) in path.components().enumerate() {
            prefix.push(component);
            let raw = rustix::fs::stat(&prefix).map_err(|_| Failure::Outside)?;
            if let Some(root) = self.root_of(Id::of(&raw)) {
                return Ok((root, index + 1));
            }
        }
        Err(Failure::Outside)
    }
}

/// Returns the denied paths of a scope, and the files with secrets in its covered roots. Secrets in the
/// workspace, which is the first root, are the agent's own.
fn hidden(scope: &Scope) -> Result<Vec<PathBuf>, Failure> {
    let mut hidden = scope.denied.clone();
    let workspace = scope.roots.first().map(|root| root.path.as_path());
    let is_own = |path: &Path| workspace.is_some_and(|workspace| path.starts_with(workspace));
    for root in &scope.covered {
        let files = secret_files(root).map_err(|_| Failure::Denied)?;
        hidden.extend(files.iter().filter(|path| !is_own(path)).cloned());
    }
    Ok(hidden)
}

/// Adds the parts of a path, without `.` and the root.
pub(super) fn parts<'a>(components: impl Iterator<Item = Component<'a>>, into: &mut Vec<Part>) {
    into.extend(components.filter_map(|component| match component {
        Component::ParentDir => Some(Part::Up),
        Component::Normal(name) => Some(Part::Name(name.to_owned())),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    }));
}
