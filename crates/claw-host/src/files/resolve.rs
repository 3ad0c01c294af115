//! Resolves a path to a handle, beneath the roots.
//!
//! Plain names are walked one by one, each from the handle of the directory before, following no link. At a
//! link or at `..` the kernel takes over (`openat2`, beneath the root, through no magic link). Where it
//! cannot, or where something is denied below a root and every step must be checked, this module reads the
//! link itself and walks on. A program that swaps directories meanwhile can only change *which* file inside
//! the root is found.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use claw_core::port::Access;
use rustix::fs::{Mode, OFlags, ResolveFlags, Stat as Raw};
use rustix::io::Errno;

use super::failure::Failure;
use super::handle::{Directory, Id, is_directory, is_link, link_target};
use super::roots::{Part, Reach, parts};

/// The most links a path may go through, as in the kernel.
const MOST_LINKS: usize = 40;
/// The most steps a path may take.
const MOST_STEPS: usize = 100_000;
/// The number of directory handles kept open on the way, to go back up.
const KEPT: usize = 32;
/// The number of attempts when directories move meanwhile.
const TRIES: usize = 64;
/// The longest path the kernel accepts, in bytes.
const PATH_MAX: usize = 4096;

/// The treatment of missing directories on the way.
#[derive(Clone, Copy)]
pub(super) enum Missing<'a> {
    /// Missing directories are left missing.
    Leave,
    /// Missing directories are made, if the function accepts each.
    Make(&'a dyn Fn(usize) -> Result<(), Failure>),
}

/// A resolved path.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    /// The directory that contains the file; if `name` is `None`, the file itself.
    pub(super) directory: Directory,
    /// The name in `directory`, not a link when it was resolved; `None` if the path is `directory` itself.
    pub(super) name: Option<OsString>,
    /// The file's metadata; `None` if it does not exist.
    pub(super) raw: Option<Raw>,
    /// The innermost root, which decides the access.
    pub(super) root: usize,
    /// The root that was walked from.
    top: usize,
    /// The names from that root to `directory`; `None` if only the kernel knows.
    way: Option<Vec<OsString>>,
}

impl ResolvedPath {
    /// Returns the real path; `None` if the kernel resolved part of it and only it knows.
    pub(super) fn real(&self, reach: &Reach) -> Option<PathBuf> {
        let mut real = reach.roots()[self.top].handle.as_ref()?.real.clone();
        real.extend(self.way.as_ref()?);
        real.extend(&self.name);
        Some(real)
    }

    /// Opens the file itself as a directory, for a walk to begin in.
    pub(super) fn enter(&self, reach: &Reach) -> Result<Directory, Failure> {
        let Some(name) = &self.name else { return Ok(self.directory.clone()) };
        let directory = self.directory.step(name)?;
        check_directory(reach, &self.directory, &directory)?;
        Ok(directory)
    }
}

/// Resolves a path. With `kernel`, links and `..` are left to the kernel.
pub(super) fn find(
    reach: &Reach,
    directory: &Path,
    path: &str,
    kernel: bool,
    missing: Missing<'_>,
) -> Result<ResolvedPath, Failure> {
    if path.is_empty() || path.contains('\0') {
        return Err(Failure::NotAPath);
    }
    let relative = Path::new(path);
    again(|| {
        let (top, parts) = if relative.is_absolute() {
            reach.locate(relative)?
        } else {
            let (top, mut rest) = reach.locate(directory)?;
            parts(relative.components(), &mut rest);
            (top, rest)
        };
        Walker::start(reach, top, kernel, missing)?.walk(parts)
    })
}

/// Tries again as long as something moves meanwhile, but not for ever.
pub(super) fn again<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    for _ in 1..TRIES {
        match attempt() {
            Err(Failure::Moved) => {}
            done => return done,
        }
    }
    attempt()
}

struct Walker<'a> {
    reach: &'a Reach,
    /// The root that the walk began in, or that a link led to.
    top: usize,
    /// The directories from the root to the current one.
    levels: Vec<Level>,
    /// The parts still to walk, in reverse: the next one is last.
    rest: Vec<Part>,
    links: usize,
    steps: usize,
    kernel: bool,
    missing: Missing<'a>,
}

struct Level {
    name: OsString,
    id: Id,
    root: usize,
    directory: Option<Directory>,
}

/// A directory that was reached, and the root that decides the access there.
struct Reached {
    directory: Directory,
    root: usize,
}

impl<'a> Walker<'a> {
    fn start(reach: &'a Reach, top: usize, kernel: bool, missing: Missing<'a>) -> Result<Self, Failure> {
        let kernel = kernel && !reach.hides();
        let mut walker =
            Self { reach, top, levels: Vec::new(), rest: Vec::new(), links: 0, steps: 0, kernel, missing };
        walker.begin_at(top)?;
        Ok(walker)
    }

    fn begin_at(&mut self, top: usize) -> Result<(), Failure> {
        let handle = self.reach.roots()[top].handle.as_ref().ok_or(Failure::Missing)?;
        let directory = handle.directory.clone();
        let id = directory.id;
        self.top = top;
        self.levels.clear();
        self.levels.push(Level { name: OsString::new(), id, root: top, directory: Some(directory) });
        Ok(())
    }

    fn walk(mut self, mut parts: Vec<Part>) -> Result<ResolvedPath, Failure> {
        parts.reverse();
        self.rest = parts;
        let climbs = self.rest.contains(&Part::Up);
        if self.kernel && (climbs || !self.reach.must_check()) && self.rest.len() > 1 {
            match self.jump()? {
                Some(found) => return Ok(found),
                None => self.kernel = false,
            }
        }
        while let Some(part) = self.rest.pop() {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err(Failure::TooLong);
            }
            match part {
                Part::Up => self.climb()?,
                Part::Name(name) if self.rest.is_empty() => {
                    if let Some(found) = self.last(name)? {
                        return Ok(found);
                    }
                }
                Part::Name(name) => {
                    if let Some(found) = self.step(name)? {
                        return Ok(found);
                    }
                }
            }
        }
        let Reached { directory, root } = self.here()?;
        let raw = Some(directory.itself()?);
        Ok(ResolvedPath { top: self.top, way: self.way(), directory, name: None, raw, root })
    }

    /// Returns the directory that the walk has reached.
    fn here(&mut self) -> Result<Reached, Failure> {
        if let Some(level) = self.levels.last()
            && let Some(directory) = &level.directory
        {
            return Ok(Reached { directory: directory.clone(), root: level.root });
        }
        // Too deep to have kept the handle: down again from the root, through the same directories.
        let mut at = self.reach.roots()[self.top].handle.as_ref().ok_or(Failure::Missing)?.directory.clone();
        for level in self.levels.iter().skip(1) {
            self.steps += 1;
            at = at.step(&level.name).map_err(|_| Failure::Moved)?;
            if at.id != level.id {
                return Err(Failure::Moved);
            }
        }
        let level = self.levels.last_mut().ok_or(Failure::Outside)?;
        level.directory = Some(at.clone());
        Ok(Reached { directory: at, root: level.root })
    }

    fn climb(&mut self) -> Result<(), Failure> {
        self.levels.pop();
        if self.levels.is_empty() { Err(Failure::Outside) } else { Ok(()) }
    }

    /// Enters a directory, through a link if it is one.
    fn step(&mut self, name: OsString) -> Result<Option<ResolvedPath>, Failure> {
        let Reached { directory, root } = self.here()?;
        if self.reach.denied.is_hidden(directory.id, &name) {
            return Err(Failure::Denied);
        }
        let next = match self.reach.step(&directory, &name) {
            Err(Errno::NOTDIR | Errno::LOOP) => return self.turn(&directory, name),
            Err(Errno::NOENT) => self.make(&directory, root, &name)?,
            next => next?,
        };
        check_directory(self.reach, &directory, &next)?;
        let root = self.reach.root_of(next.id).unwrap_or(root);
        self.levels.push(Level { name, id: next.id, root, directory: Some(next) });
        if let Some(old) = self.levels.len().checked_sub(KEPT) {
            self.levels[old].directory = None;
        }
        Ok(None)
    }

    /// Handles a name that is not a directory: a link is followed, a file is an error.
    fn turn(&mut self, directory: &Directory, name: OsString) -> Result<Option<ResolvedPath>, Failure> {
        let target = match link_target(directory, &name) {
            Err(Errno::NOENT) => return Err(Failure::Moved),
            target => target?.ok_or(Failure::NotDirectory)?,
        };
        if self.kernel && !self.rest.is_empty() {
            self.rest.push(Part::Name(name));
            let names = self.levels.iter().skip(1).rev();
            self.rest.extend(names.map(|level| Part::Name(level.name.clone())));
            let found = self.jump()?;
            if found.is_some() {
                return Ok(found);
            }
            self.kernel = false;
            self.begin_at(self.top)?;
            return Ok(None);
        }
        self.follow(&target)?;
        Ok(None)
    }

    /// Continues at the target of a link.
    fn follow(&mut self, target: &Path) -> Result<(), Failure> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Failure::LinkLoop);
        }
        let mut way = Vec::new();
        if target.is_absolute() {
            let (top, rest) = self.reach.locate(target)?;
            self.begin_at(top)?;
            way = rest;
        } else {
            parts(target.components(), &mut way);
        }
        self.rest.extend(way.into_iter().rev());
        Ok(())
    }

    /// Looks up the last name; `None` if it is a link, to be followed.
    fn last(&mut self, name: OsString) -> Result<Option<ResolvedPath>, Failure> {
        let Reached { directory, root } = self.here()?;
        match look(self.reach, &directory, &name)? {
            Some(raw) if is_link(&raw) => {
                let target = link_target(&directory, &name)?.ok_or(Failure::Moved)?;
                self.follow(&target)?;
                Ok(None)
            }
            raw => {
                let root = governing(self.reach, raw.as_ref(), root);
                let (top, way) = (self.top, self.way());
                Ok(Some(ResolvedPath { directory, name: Some(name), raw, root, top, way }))
            }
        }
    }

    fn make(&self, within: &Directory, root: usize, name: &OsStr) -> Result<Directory, Failure> {
        let Missing::Make(pass) = self.missing else { return Err(Failure::Missing) };
        // A directory that is only made to be left again would be litter.
        if self.rest.contains(&Part::Up) {
            return Err(Failure::Missing);
        }
        if self.reach.roots()[root].root.access == Access::Read {
            return Err(Failure::ReadOnly);
        }
        pass(root)?;
        match rustix::fs::mkdirat(within, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        if self.reach.denied.leads(within.id, name) {
            // The denied paths must be looked up again.
            return Err(Failure::Stale);
        }
        within.step(name).map_err(|_| Failure::Moved)
    }

    /// Lets the kernel resolve the remaining parts, from the root; `None` if this module must do it itself.
    fn jump(&mut self) -> Result<Option<ResolvedPath>, Failure> {
        if matches!(self.missing, Missing::Make(_)) {
            return Ok(None);
        }
        let (name, way) = match self.rest.split_first() {
            Some((Part::Name(name), way)) => (Some(name.clone()), way),
            _ => (None, &self.rest[..]),
        };
        let Some(path) = joined(way) else { return Ok(None) };
        let handle = self.reach.roots()[self.top].handle.as_ref().ok_or(Failure::Missing)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(&handle.directory, &path, flags, Mode::empty(), beneath);
        let directory = match opened {
            Ok(opened) => Directory::new(opened)?,
            Err(Errno::NOENT) => return Err(Failure::Missing),
            // It leads through a file, leaves, goes round in circles, was raced, or is no call here: we find out step by step.
            Err(_) => return Ok(None),
        };
        let Some(root) = self.vet(&directory)? else { return Ok(None) };
        let Some(name) = name else {
            let raw = Some(directory.itself()?);
            return Ok(Some(ResolvedPath { directory, name: None, raw, root, top: self.top, way: None }));
        };
        let raw = look(self.reach, &directory, &name)?;
        if raw.as_ref().is_some_and(is_link) {
            return Ok(None);
        }
        let root = governing(self.reach, raw.as_ref(), root);
        Ok(Some(ResolvedPath { directory, name: Some(name), raw, root, top: self.top, way: None }))
    }

    /// Checks the directories above this one, up to the root: which root decides, and whether one is denied.
    /// `None` if it has been moved out.
    fn vet(&self, directory: &Directory) -> Result<Option<usize>, Failure> {
        let top = &self.reach.roots()[self.top].handle.as_ref().ok_or(Failure::Missing)?.directory;
        if directory.id.device != top.id.device {
            directory.check_kind()?;
        }
        if !self.reach.must_check() {
            return Ok(Some(self.top));
        }
        let mut innermost = None;
        let mut at = directory.clone();
        loop {
            if self.reach.denied.is_denied(at.id) {
                return Err(Failure::Denied);
            }
            innermost = innermost.or_else(|| self.reach.root_of(at.id));
            if at.id == top.id {
                return Ok(Some(innermost.unwrap_or(self.top)));
            }
            let parent = at.parent()?;
            if parent.id == at.id {
                return Ok(None);
            }
            at = parent;
        }
    }

    /// The names that were walked. The walk is over.
    fn way(&mut self) -> Option<Vec<OsString>> {
        Some(self.levels.drain(..).skip(1).map(|level| level.name).collect())
    }
}

/// Checks that the walk may enter the directory `to` from `from`.
pub(super) fn check_directory(reach: &Reach, from: &Directory, to: &Directory) -> Result<(), Failure> {
    if reach.denied.is_denied(to.id) {
        return Err(Failure::Denied);
    }
    if to.id.device != from.id.device { to.check_kind() } else { Ok(()) }
}

/// Returns the metadata of a name in a directory, unless it is denied; `None` if it does not exist.
fn look(reach: &Reach, directory: &Directory, name: &OsStr) -> Result<Option<Raw>, Failure> {
    if reach.denied.is_hidden(directory.id, name) {
        return Err(Failure::Denied);
    }
    match directory.stat(name) {
        Ok(raw) if reach.denied.is_denied(Id::of(&raw)) => Err(Failure::Denied),
        Ok(raw) => Ok(Some(raw)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn governing(reach: &Reach, raw: Option<&Raw>, root: usize) -> usize {
    let inner = raw.filter(|raw| is_directory(raw)).and_then(|raw| reach.root_of(Id::of(raw)));
    inner.unwrap_or(root)
}

/// Joins the parts, which are in reverse, to one path; `None` if it is too long for the kernel.
fn joined(parts: &[Part]) -> Option<PathBuf> {
    let mut path = PathBuf::from(".");
    for part in parts.iter().rev() {
        match part {
            Part::Up => path.push(".."),
            Part::Name(name) => path.push(name),
        }
    }
    (path.as_os_str().len() < PATH_MAX).then_some(path)
}
