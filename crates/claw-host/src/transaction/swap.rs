//! Carrying out the operations of a manifest, forwards and backwards.
//!
//! An operation moves inodes between the stage and the workspace by one rename, or by one exchange of two
//! names. Nothing is missing or half written at any moment, and an operation already done is recognised by
//! its inodes.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::conflict::{is_at, is_untouched};
use super::entry::{self, Entry, Stamp};
use super::manifest::{Directory, Operation};
use super::{scan, tree};

/// Roots of the two sides.
#[derive(Clone, Copy)]
pub(super) struct Roots<'a> {
    pub(super) workspace: BorrowedFd<'a>,
    pub(super) stage: BorrowedFd<'a>,
}

/// Outcome of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swapped {
    Done,
    /// The workspace's entry is not the expected one; it was left alone.
    Conflict,
}

/// A name on both sides.
struct Names<'a> {
    workspace: BorrowedFd<'a>,
    stage: BorrowedFd<'a>,
    name: &'a OsStr,
}

impl Roots<'_> {
    /// Applies one change to the workspace.
    pub(super) fn apply(self, operation: &Operation) -> io::Result<Swapped> {
        if operation.new.is_some() {
            let (parent, name) = entry::open_parent(self.stage, &operation.path.0)?;
            tree::clear_marks(parent.as_fd(), name)?;
        }
        self.with_names(&operation.path.0, |names| match (&operation.old, &operation.new) {
            (None, Some(new)) => names.push(new.inode),
            (Some(old), Some(new)) => names.exchange(new.inode, Some(old)),
            (Some(old), None) => names.pull(Some(old)),
            (None, None) => Ok(Swapped::Done),
        })
    }

    /// Reverts one change. With `force`, the workspace's entry may differ from the expected one; it goes to
    /// the stage.
    pub(super) fn revert(self, operation: &Operation, force: bool) -> io::Result<Swapped> {
        self.with_names(&operation.path.0, |names| match (&operation.old, &operation.new) {
            (None, Some(new)) => names.pull((!force).then_some(new)),
            (Some(old), Some(_)) if force => match names.push(old.inode)? {
                Swapped::Done => Ok(Swapped::Done),
                Swapped::Conflict => names.exchange(old.inode, None),
            },
            (Some(old), Some(new)) => names.exchange(old.inode, Some(new)),
            (Some(old), None) => match names.push(old.inode)? {
                Swapped::Conflict if force => names.exchange(old.inode, None),
                swapped => Ok(swapped),
            },
            (None, None) => Ok(Swapped::Done),
        })
    }

    fn with_names(
        self,
        path: &Path,
        swap: impl FnOnce(&Names<'_>) -> io::Result<Swapped>,
    ) -> io::Result<Swapped> {
        let (stage, name) = entry::open_parent(self.stage, path)?;
        let workspace = match entry::open_parent(self.workspace, path) {
            Ok((workspace, _)) => workspace,
            // Somebody removed or replaced the directory that it was in.
            Err(error) if is_gone(&error) => return Ok(Swapped::Conflict),
            Err(error) => return Err(error),
        };
        swap(&Names { workspace: workspace.as_fd(), stage: stage.as_fd(), name })
    }

    /// Sets the intended mode and time of a directory.
    pub(super) fn set(self, directory: &Directory, forwards: bool) -> io::Result<()> {
        let (mode, Stamp(seconds, nanoseconds)) = if forwards { directory.new } else { directory.old };
        let opened = match entry::open_below(self.workspace, &directory.path.0) {
            Err(error) if is_gone(&error) => return Ok(()),
            opened => opened?,
        };
        // A mode that the command left alone, or that somebody else changed, stays.
        let (from, to) = if forwards { (directory.old.0, mode) } else { (directory.new.0, mode) };
        if from != to && Entry::of(&rustix::fs::fstat(&opened)?).mode == from {
            rustix::fs::fchmod(&opened, Mode::from_raw_mode(to))?;
        }
        let modified = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let untouched = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let times = Timestamps { last_access: untouched, last_modification: modified };
        Ok(rustix::fs::futimens(&opened, &times)?)
    }
}

impl Names<'_> {
    /// Renames from one side to the other. A directory that its owner may not write is made writable for that
    /// moment.
    fn rename(&self, from: BorrowedFd<'_>, to: BorrowedFd<'_>, flags: RenameFlags) -> rustix::io::Result<()> {
        let rename = || rustix::fs::renameat_with(from, self.name, to, self.name, flags);
        match rename() {
            Err(Errno::ACCESS) => {}
            renamed => return renamed,
        }
        let opened: Vec<Opened> = [(from, None), (to, None), (from, Some(self.name)), (to, Some(self.name))]
            .into_iter()
            .filter_map(|(directory, name)| Opened::up(directory, name))
            .collect();
        let renamed = rename();
        opened.iter().for_each(Opened::close);
        renamed
    }

    /// Moves an entry from the stage to the workspace, which must have none of that name.
    fn push(&self, inode: u64) -> io::Result<Swapped> {
        if inode_of(self.stage, self.name)? != Some(inode) {
            let arrived = inode_of(self.workspace, self.name)? == Some(inode);
            return Ok(if arrived { Swapped::Done } else { Swapped::Conflict });
        }
        let flags = RenameFlags::NOREPLACE;
        match self.rename(self.stage, self.workspace, flags) {
            Ok(()) => Ok(Swapped::Done),
            Err(Errno::EXIST) => Ok(Swapped::Conflict),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves an entry from the workspace to the stage: the expected one, or any.
    fn pull(&self, expected: Option<&Entry>) -> io::Result<Swapped> {
        if expected.is_some_and(|expected| is_at(self.stage, self.name, expected)) {
            return Ok(Swapped::Done);
        }
        match entry::find(self.workspace, self.name)? {
            None => return Ok(Swapped::Done),
            Some(_)
                if expected.is_some_and(|expected| !is_untouched(self.workspace, self.name, expected)) =>
            {
                return Ok(Swapped::Conflict);
            }
            Some(_) => {}
        }
        if entry::find(self.stage, self.name)?.is_some_and(|raw| scan::is_whiteout(&raw)) {
            rustix::fs::unlinkat(self.stage, self.name, AtFlags::empty())?;
        }
        let flags = RenameFlags::NOREPLACE;
        match self.rename(self.workspace, self.stage, flags) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Swapped::Done),
            Err(error) => return Err(error.into()),
        }
        if expected.is_some_and(|expected| !is_at(self.stage, self.name, expected)) {
            // Somebody replaced it at the same moment: theirs goes back.
            self.rename(self.stage, self.workspace, flags)?;
            return Ok(Swapped::Conflict);
        }
        Ok(Swapped::Done)
    }

    /// Exchanges the entry of the stage that has inode `ours` for the workspace's, which must be the expected one if one
    /// is given.
    fn exchange(&self, ours: u64, expected: Option<&Entry>) -> io::Result<Swapped> {
        if inode_of(self.stage, self.name)? != Some(ours) {
            let arrived = inode_of(self.workspace, self.name)? == Some(ours);
            return Ok(if arrived { Swapped::Done } else { Swapped::Conflict });
        }
        if expected.is_some_and(|expected| !is_untouched(self.workspace, self.name, expected)) {
            return Ok(Swapped::Conflict);
        }
        let swap = || {
            let flags = RenameFlags::EXCHANGE;
            self.rename(self.stage, self.workspace, flags)
        };
        match swap() {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Swapped::Conflict),
            Err(error) => return Err(error.into()),
        }
        if expected.is_some_and(|expected| !is_at(self.stage, self.name, expected)) {
            // Somebody replaced it at the same moment: theirs goes back.
            swap()?;
            return Ok(Swapped::Conflict);
        }
        Ok(Swapped::Done)
    }
}

/// A directory that its owner may write for a moment.
struct Opened {
    handle: OwnedFd,
    mode: Mode,
}

impl Opened {
    /// Makes a directory writable, or the one of this name in it; `None` if that is not necessary.
    fn up(directory: BorrowedFd<'_>, name: Option<&OsStr>) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle =
            rustix::fs::openat(directory, name.unwrap_or(OsStr::new(".")), flags, Mode::empty()).ok()?;
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&handle).ok()?.st_mode & 0o7777);
        if mode.contains(Mode::RWXU) {
            return None;
        }
        let opened = Self { handle, mode };
        rustix::fs::chmod(opened.path(), mode | Mode::RWXU).ok()?;
        Some(opened)
    }

    fn close(&self) {
        let _ = rustix::fs::chmod(self.path(), self.mode);
    }

    /// The directory by its handle, wherever it was moved to.
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.handle.as_raw_fd())
    }
}

fn inode_of(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<u64>> {
    Ok(entry::find(directory, name)?.filter(|raw| !scan::is_whiteout(raw)).map(|raw| raw.st_ino))
}

/// Returns whether a directory on the way is missing, or is a link or file by now.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::EXDEV))
}
