//! Reading a layer: which entries of the workspace a command created, replaced and deleted.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use super::conflict;
use super::entry::{self, Entry, Kind, Relative, Stamp};
use super::judged_programs::Pinned;
use super::manifest::{Directory, Operation};

/// Reads the upper directory of a layer against the workspace below it.
pub(super) struct Scan<'a> {
    /// Top of the layer.
    pub(super) layer: BorrowedFd<'a>,
    /// The creation time of the layer; later changes by others are conflicts.
    pub(super) started: Stamp,
    /// Paths that the command was not shown: it neither replaces nor deletes them.
    pub(super) hidden: &'a [PathBuf],
    /// Copies that were there before the command; one that it left alone is no change.
    pub(super) pinned: &'a [Pinned],
    pub(super) found: ScannedChanges,
}

#[derive(Debug, Default)]
pub(super) struct ScannedChanges {
    pub(super) operations: Vec<Operation>,
    pub(super) directories: Vec<Directory>,
    /// Changes that are not applied: of hidden paths, sockets, and directories that cannot be read.
    pub(super) refused: Vec<PathBuf>,
}

/// The two sides of a directory.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a> {
    /// The side that the command wrote.
    pub(super) upper: BorrowedFd<'a>,
    /// The workspace.
    pub(super) lower: BorrowedFd<'a>,
}

/// The directory that is being read.
#[derive(Clone, Copy, Default)]
pub(super) struct Within {
    /// Entries that only the workspace has were deleted.
    opaque: bool,
    /// Somebody else may have put it, or a directory above it, in the place of the one that the command saw.
    moved: bool,
    depth: usize,
}

impl Scan<'_> {
    /// Reads a directory that both sides have.
    pub(super) fn directory(&mut self, sides: Sides<'_>, path: &Path, within: Within) -> io::Result<()> {
        let Sides { upper, lower } = sides;
        entry::within_depth(within.depth)?;
        let names = entry::names(upper)?;
        for name in &names {
            self.entry(sides, name, &path.join(name), within)?;
        }
        if within.opaque {
            for name in entry::names(lower)?.iter().filter(|name| names.binary_search(name).is_err()) {
                self.deleted(lower, name, &path.join(name), within.moved)?;
            }
        }
        let (old, new) = (Entry::of(&rustix::fs::fstat(lower)?), Entry::of(&rustix::fs::fstat(upper)?));
        // Even one that the command left alone is touched by exchanging its entries.
        self.found.directories.push(Directory {
            path: Relative(path.to_owned()),
            old: (old.mode, old.modified),
            new: (new.mode, new.modified),
        });
        Ok(())
    }

    fn entry(&mut self, sides: Sides<'_>, name: &OsStr, path: &Path, within: Within) -> io::Result<()> {
        let Sides { upper, lower } = sides;
        let Some(raw) = entry::find(upper, name)? else { return Ok(()) };
        let below = entry::find(lower, name)?;
        if self.pinned.iter().any(|pinned| pinned.is(path, &raw)) {
            return Ok(());
        }
        if is_whiteout(&raw) {
            return if below.is_some() { self.deleted(lower, name, path, within.moved) } else { Ok(()) };
        }
        if self.hidden.iter().any(|hidden| hidden == path) {
            self.found.refused.push(path.to_owned());
            return Ok(());
        }
        let (kind, old) = (Entry::of(&raw).kind, below.as_ref().map(Entry::of));
        match (kind, old) {
            (Kind::Other, _) if !is_fifo(&raw) => {
                self.found.refused.push(path.to_owned());
                Ok(())
            }
            (Kind::Directory, Some(old)) if old.kind == Kind::Directory => {
                let moved = within.moved || conflict::may_be_moved(&old, lower, self.started)?;
                let upper = entry::open_directory(upper, name)?;
                let lower = entry::open_directory(lower, name)?;
                let opaque = within.opaque || is_opaque(upper.as_fd());
                let within = Within { opaque, moved, depth: within.depth + 1 };
                let sides = Sides { upper: upper.as_fd(), lower: lower.as_fd() };
                self.directory(sides, path, within)
            }
            (kind, Some(old)) if kind == old.kind && kind != Kind::Directory => {
                let new = Entry::of(&raw);
                // A copy that has another name now is that file too.
                let alike = raw.st_nlink == 1
                    && (new.bytes, new.mode, new.modified) == (old.bytes, old.mode, old.modified);
                // One too large to be compared counts as changed.
                let alike = alike && new.bytes <= entry::MOST_HASHED;
                if alike && kind != Kind::Other && entry::same_bytes(upper, lower, name, kind)? {
                    return Ok(());
                }
                self.written(sides, name, path, within.moved)
            }
            _ => self.written(sides, name, path, within.moved),
        }
    }

    /// The command created or replaced an entry.
    fn written(
        &mut self,
        Sides { upper, lower }: Sides<'_>,
        name: &OsStr,
        path: &Path,
        moved: bool,
    ) -> io::Result<()> {
        let holds_hidden = self.hidden.iter().any(|hidden| hidden.starts_with(path));
        let old = match entry::find(lower, name)? {
            Some(_) if holds_hidden => {
                self.found.refused.push(path.to_owned());
                return Ok(());
            }
            Some(_) => Some(Entry::read(lower, name, false)?),
            None => None,
        };
        if Entry::of(&entry::find(upper, name)?.ok_or(io::ErrorKind::NotFound)?).kind == Kind::Directory
            && !self.discard_refused(upper, name, path, 0)?
        {
            return Ok(());
        }
        let new = Entry::read(upper, name, true)?;
        // A file that somebody else deleted meanwhile looks like one that was never there: it is created again.
        let conflict = old.as_ref().is_some_and(|old| moved || old.changed_after(self.started));
        let path = Relative(path.to_owned());
        self.found.operations.push(Operation { path, old, new: Some(new), conflict });
        Ok(())
    }

    /// Removes what a new directory must not bring with it: hidden paths, sockets, and directories that cannot be
    /// read and so not be checked. Returns false if the directory itself is one of these, and so stays out as a whole.
    fn discard_refused(
        &mut self,
        upper: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        depth: usize,
    ) -> io::Result<bool> {
        entry::within_depth(depth)?;
        let inside = match entry::open_directory(upper, name) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.found.refused.push(path.to_owned());
                return Ok(false);
            }
            inside => inside?,
        };
        for name in entry::names(inside.as_fd())? {
            let path = path.join(&name);
            let Some(raw) = entry::find(inside.as_fd(), &name)? else { continue };
            let stays = match Entry::of(&raw).kind {
                _ if self.hidden.contains(&path) => false,
                Kind::Other => is_fifo(&raw),
                Kind::Directory if self.discard_refused(inside.as_fd(), &name, &path, depth + 1)? => continue,
                // It is among the refused ones already.
                Kind::Directory => {
                    super::tree::remove(inside.as_fd(), &name)?;
                    continue;
                }
                Kind::File | Kind::Link => true,
            };
            if !stays {
                super::tree::remove(inside.as_fd(), &name)?;
                self.found.refused.push(path);
            }
        }
        Ok(true)
    }

    /// Replaces a directory's whiteout by the directory itself, so that deletions within it can be recorded.
    fn keep_directory(&self, path: &Path, original: BorrowedFd<'_>) -> io::Result<()> {
        let (parent, name) = entry::open_parent(self.layer, path)?;
        if entry::find(parent.as_fd(), name)?.is_some_and(|raw| is_whiteout(&raw)) {
            rustix::fs::unlinkat(&parent, name, rustix::fs::AtFlags::empty())?;
        }
        match rustix::fs::mkdirat(&parent, name, rustix::fs::Mode::RWXU) {
            Ok(()) => super::tree::mirror(entry::open_directory(parent.as_fd(), name)?.as_fd(), original),
            Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Records a deleted entry. A directory that holds a hidden path stays, with that path.
    fn deleted(&mut self, lower: BorrowedFd<'_>, name: &OsStr, path: &Path, moved: bool) -> io::Result<()> {
        if self.hidden.iter().any(|hidden| hidden == path) {
            return Ok(());
        }
        if self.hidden.iter().any(|hidden| hidden.starts_with(path)) {
            let inside = entry::open_directory(lower, name)?;
            self.keep_directory(path, inside.as_fd())?;
            for name in entry::names(inside.as_fd())? {
                self.deleted(inside.as_fd(), &name, &path.join(&name), moved)?;
            }
            return Ok(());
        }
        let old = Entry::read(lower, name, false)?;
        let conflict = moved || old.changed_after(self.started);
        let path = Relative(path.to_owned());
        self.found.operations.push(Operation { path, old: Some(old), new: None, conflict });
        Ok(())
    }
}

/// Overlay's mark of a deleted entry: a character device with number 0:0.
pub(super) fn is_whiteout(raw: &Stat) -> bool {
    FileType::from_raw_mode(raw.st_mode) == FileType::CharacterDevice && raw.st_rdev == 0
}

fn is_fifo(raw: &Stat) -> bool {
    FileType::from_raw_mode(raw.st_mode) == FileType::Fifo
}

/// Returns whether a directory has overlayfs's mark of replacing another one.
pub(super) fn is_opaque(directory: BorrowedFd<'_>) -> bool {
    let mut value = [0_u8; 8];
    rustix::fs::fgetxattr(directory, "user.overlay.opaque", &mut value).is_ok_and(|_| value[0] == b'y')
}
