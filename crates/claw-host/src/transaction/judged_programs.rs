//! Copies of judged programs in a layer.
//!
//! Between the last look at a program and the moment in which the shell opens it, somebody can replace it in the
//! workspace; the kernel cannot be told to run a file only if it is the one that was seen. So the layer gets a copy of
//! the file that was seen, and overlayfs shows that one.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat, Timespec, Timestamps};

use super::entry::{self, Entry, Stamp};
use super::tree;

/// The most links that lead to one program.
const MOST_LINKS: usize = 40;

/// A program of the workspace, as it was judged.
#[derive(Debug)]
pub struct JudgedProgram {
    /// The absolute path by which the command calls it, perhaps through links.
    pub named: PathBuf,
    /// The file's own absolute path.
    pub path: PathBuf,
    /// The file's identity; `None` if it was not there.
    pub identity: Option<String>,
}

/// The identity of a file: another file, or the same one with other content, has another.
pub fn identity(found: &Metadata) -> String {
    let (device, inode, size) = (found.dev(), found.ino(), found.size());
    // The second time is the kernel's own: nobody who changes a file can set it back.
    let times = [(found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec())];
    let [changed, touched] = times.map(|(seconds, nanos)| format!("{seconds}.{nanos:09}"));
    format!("{device}:{inode}:{size}:{changed}:{touched}")
}

/// An entry that was put into a layer.
#[derive(Debug)]
pub(super) struct Pinned {
    path: PathBuf,
    /// The entry's inode, and when it was last changed.
    state: (u64, Stamp),
}

impl Pinned {
    /// Returns whether this entry of the layer is the one that was put there, unchanged.
    pub(super) fn is(&self, path: &Path, raw: &Stat) -> bool {
        self.path == path && self.state == state(raw)
    }
}

fn state(raw: &Stat) -> (u64, Stamp) {
    (raw.st_ino, Entry::of(raw).changed)
}

/// Puts a program and the links that lead to it into the layer; `root` is the directory at `workspace`.
pub(super) fn program(
    layer: BorrowedFd<'_>,
    root: BorrowedFd<'_>,
    workspace: &Path,
    program: &JudgedProgram,
) -> io::Result<Vec<Pinned>> {
    let mut pinned = Vec::new();
    let (links, real) = follow(&program.named)?;
    for (link, target) in links {
        let Ok(path) = link.strip_prefix(workspace) else { continue };
        pinned
            .extend(put(layer, root, path, |layer, name| Ok(rustix::fs::symlinkat(&target, layer, name)?))?);
    }
    let Some(expected) = program.identity.as_deref() else {
        // What was not there has to be missing still; then the command finds none, or makes it itself.
        return if real.exists() { Err(ErrorKind::Interrupted.into()) } else { Ok(pinned) };
    };
    if real != program.path {
        return Err(ErrorKind::Interrupted.into());
    }
    // Links of the workspace may lead out of it; nobody writes through the layer there.
    let Ok(path) = real.strip_prefix(workspace).map(Path::to_owned) else { return Ok(pinned) };
    let mut source = File::open(&real)?;
    pinned.extend(put(layer, root, &path, |layer, name| copy(&mut source, layer, name))?);
    // Whoever wrote to it meanwhile has changed its time.
    match identity(&source.metadata()?) == expected {
        true => Ok(pinned),
        false => Err(ErrorKind::Interrupted.into()),
    }
}

/// Puts one entry into the layer, unless one is there already.
fn put(
    layer: BorrowedFd<'_>,
    root: BorrowedFd<'_>,
    path: &Path,
    mut make: impl FnMut(BorrowedFd<'_>, &OsStr) -> io::Result<()>,
) -> io::Result<Option<Pinned>> {
    let mut made = None;
    tree::place(layer, root, path, &mut |layer, name| {
        if entry::find(layer, name)?.is_none() {
            make(layer, name)?;
            made = entry::find(layer, name)?.map(|raw| Pinned { path: path.to_owned(), state: state(&raw) });
        }
        Ok(())
    })?;
    Ok(made)
}

fn copy(source: &mut File, layer: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let found = source.metadata()?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut target: File = rustix::fs::openat(layer, name, flags, Mode::RUSR | Mode::WUSR)?.into();
    io::copy(source, &mut target)?;
    rustix::fs::fchmod(&target, Mode::from_raw_mode(found.permissions().mode() & 0o777))?;
    let time = Timespec { tv_sec: found.mtime(), tv_nsec: found.mtime_nsec() };
    Ok(rustix::fs::futimens(&target, &Timestamps { last_access: time, last_modification: time })?)
}

/// The links on the way to a path, each with its target, and the path that they lead to.
fn follow(path: &Path) -> io::Result<(Vec<(PathBuf, PathBuf)>, PathBuf)> {
    let own = |component: Component<'_>| component.as_os_str().to_owned();
    let mut left: VecDeque<_> = path.components().map(own).collect();
    let (mut links, mut real) = (Vec::new(), PathBuf::new());
    while let Some(name) = left.pop_front() {
        match Path::new(&name).components().next() {
            Some(Component::RootDir) => real = PathBuf::from("/"),
            Some(Component::ParentDir) => {
                real.pop();
            }
            Some(Component::Normal(_)) => {
                real.push(&name);
                let Ok(target) = std::fs::read_link(&real) else { continue };
                if links.len() == MOST_LINKS {
                    return Err(ErrorKind::Interrupted.into());
                }
                target.components().rev().for_each(|component| left.push_front(own(component)));
                links.push((real.clone(), target));
                real.pop();
            }
            _ => {}
        }
    }
    Ok((links, real))
}
