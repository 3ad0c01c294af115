//! Reading a layer: which entries of the workspace a command created, replaced and deleted.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use super::entry::{self, Entry, Kind, Relative, Stamp};
use super::manifest::{Directory, Operation};

/// Reads the upper directory of a layer against the workspace below it.
pub(super) struct Scan<'a> {
    /// Top of the layer.
    pub(super) layer: BorrowedFd<'a>,
    /// The creation time of the layer; later changes by others are conflicts.
    pub(super) started: Stamp,
    /// Paths that the command was not shown: it neither replaces nor deletes them.
    pub(super) hidden: &'a [PathBuf],
    pub(super) found: Found,
}

#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) operations: Vec<Operation>,
    pub(super) directories: Vec<Directory>,
    /// Changes that are not applied: of hidden paths, and sockets.
    pub(super) refused: Vec<PathBuf>,
}

/// The two sides of a directory.
type Sides<'a> = (BorrowedFd<'a>, BorrowedFd<'a>);

impl Scan<'_> {
    /// Reads a directory that both sides have. If it is `opaque`, entries that only the workspace has were deleted.
    pub(super) fn directory(
        &mut self,
        (upper, lower): Sides<'_>,
        path: &Path,
        (opaque, depth): (bool, usize),
    ) -> io::Result<()> {
        entry::within_depth(depth)?;
        let names = entry::names(upper)?;
        for name in &names {
            self.entry((upper, lower), name, &path.join(name), (opaque, depth))?;
        }
        if opaque {
            for name in entry::names(lower)?.iter().filter(|name| names.binary_search(name).is_err()) {
                self.deleted(lower, name, &path.join(name))?;
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

    fn entry(
        &mut self,
        (upper, lower): Sides<'_>,
        name: &OsStr,
        path: &Path,
        (opaque, depth): (bool, usize),
    ) -> io::Result<()> {
        let Some(raw) = entry::find(upper, name)? else { return Ok(()) };
        let below = entry::find(lower, name)?;
        if is_whiteout(&raw) {
            return if below.is_some() { self.deleted(lower, name, path) } else { Ok(()) };
        }
        if self.hidden.iter().any(|hidden| hidden == path) {
            self.found.refused.push(path.to_owned());
            return Ok(());
        }
        let (kind, old) = (Entry::of(&raw).kind, below.as_ref().map(Entry::of));
        match (kind, old) {
            (Kind::Other, _) if FileType::from_raw_mode(raw.st_mode) != FileType::Fifo => {
                self.found.refused.push(path.to_owned());
                Ok(())
            }
            (Kind::Directory, Some(old)) if old.kind == Kind::Directory => {
                let upper = entry::open_directory(upper, name)?;
                let lower = entry::open_directory(lower, name)?;
                let opaque = opaque || is_opaque(upper.as_fd());
                self.directory((upper.as_fd(), lower.as_fd()), path, (opaque, depth + 1))
            }
            (kind, Some(old)) if kind == old.kind && kind != Kind::Directory => {
                let new = Entry::of(&raw);
                // A copy that has another name now is that file too.
                let alike = raw.st_nlink == 1
                    && (new.bytes, new.mode, new.modified) == (old.bytes, old.mode, old.modified);
                // One too large to be compared counts as changed.
                let alike = alike && new.bytes <= entry::MOST_HASHED;
                if alike && kind != Kind::Other && entry::same_bytes((upper, lower), name, kind)? {
                    return Ok(());
                }
                self.written((upper, lower), name, path)
            }
            _ => self.written((upper, lower), name, path),
        }
    }

    /// The command created or replaced an entry.
    fn written(&mut self, (upper, lower): Sides<'_>, name: &OsStr, path: &Path) -> io::Result<()> {
        let holds_hidden = self.hidden.iter().any(|hidden| hidden.starts_with(path));
        let old = match entry::find(lower, name)? {
            Some(_) if holds_hidden => {
                self.found.refused.push(path.to_owned());
                return Ok(());
            }
            Some(_) => Some(Entry::read(lower, name, false)?),
            None => None,
        };
        if holds_hidden {
            self.discard_hidden(upper, name, path)?;
        }
        let new = match Entry::read(upper, name, true) {
            // An unreadable entry cannot be checked; the rest is applied.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.found.refused.push(path.to_owned());
                return Ok(());
            }
            new => new?,
        };
        // A file that somebody else deleted meanwhile looks like one that was never there: it is created again.
        let conflict = old.as_ref().is_some_and(|old| old.changed_after(self.started));
        let path = Relative(path.to_owned());
        self.found.operations.push(Operation { path, old, new: Some(new), conflict });
        Ok(())
    }

    /// A new directory must not bring a hidden path with it.
    fn discard_hidden(&mut self, upper: BorrowedFd<'_>, name: &OsStr, path: &Path) -> io::Result<()> {
        let inside = entry::open_directory(upper, name)?;
        for hidden in self.hidden.iter().filter_map(|hidden| hidden.strip_prefix(path).ok()) {
            let Ok((parent, name)) = entry::open_parent(inside.as_fd(), hidden) else { continue };
            if entry::find(parent.as_fd(), name)?.is_some() {
                super::tree::remove(parent.as_fd(), name)?;
                self.found.refused.push(path.join(hidden));
            }
        }
        Ok(())
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
    fn deleted(&mut self, lower: BorrowedFd<'_>, name: &OsStr, path: &Path) -> io::Result<()> {
        if self.hidden.iter().any(|hidden| hidden == path) {
            return Ok(());
        }
        if self.hidden.iter().any(|hidden| hidden.starts_with(path)) {
            let inside = entry::open_directory(lower, name)?;
            self.keep_directory(path, inside.as_fd())?;
            for name in entry::names(inside.as_fd())? {
                self.deleted(inside.as_fd(), &name, &path.join(&name))?;
            }
            return Ok(());
        }
        let old = Entry::read(lower, name, false)?;
        let conflict = old.changed_after(self.started);
        let path = Relative(path.to_owned());
        self.found.operations.push(Operation { path, old: Some(old), new: None, conflict });
        Ok(())
    }
}

/// Overlay's mark of a deleted entry: a character device with number 0:0.
pub(super) fn is_whiteout(raw: &Stat) -> bool {
    FileType::from_raw_mode(raw.st_mode) == FileType::CharacterDevice && raw.st_rdev == 0
}

/// Returns whether a directory has overlayfs's mark of replacing another one.
pub(super) fn is_opaque(directory: BorrowedFd<'_>) -> bool {
    let mut value = [0_u8; 8];
    rustix::fs::fgetxattr(directory, "user.overlay.opaque", &mut value).is_ok_and(|_| value[0] == b'y')
}
