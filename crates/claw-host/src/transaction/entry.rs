//! Files, directories and links as they are found on a disk, and the operations that swap them.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use claw_core::tool::Digest;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Largest file whose digest is kept: larger ones cannot be changed by file tools either.
pub(super) const MOST_HASHED: u64 = 16 << 20;

/// Deepest nesting of directories.
const MOST_DEPTH: usize = 200;

/// A time of a file: seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Stamp(pub(super) i64, pub(super) i64);

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    Other,
}

/// An entry of a directory, with everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) inode: u64,
    pub(super) bytes: u64,
    pub(super) mode: u32,
    pub(super) modified: Stamp,
    /// The last change of its metadata or its place (ctime), which nobody can set.
    pub(super) changed: Stamp,
    /// Digest of the bytes of a file that is not too large, or of a link's target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<Digest>,
    /// Entries of a directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) below: Vec<(Relative, Entry)>,
}

/// A path below the workspace. Names that are not UTF-8 are kept byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Spelling", into = "Spelling")]
pub(super) struct Relative(pub(super) PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Spelling {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Spelling> for Relative {
    fn from(spelling: Spelling) -> Self {
        Self(match spelling {
            Spelling::Text(text) => text.into(),
            Spelling::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

impl From<Relative> for Spelling {
    fn from(Relative(path): Relative) -> Self {
        match path.into_os_string().into_string() {
            Ok(text) => Self::Text(text),
            Err(name) => Self::Bytes(name.into_vec()),
        }
    }
}

impl Entry {
    /// Reads the entry of this name with everything below it. Files are hashed if `hash` is set.
    pub(super) fn read(directory: BorrowedFd<'_>, name: &OsStr, hash: bool) -> io::Result<Self> {
        Self::read_at(directory, name, hash, 0)
    }

    fn read_at(directory: BorrowedFd<'_>, name: &OsStr, hash: bool, depth: usize) -> io::Result<Self> {
        let mut entry = Self::of(&stat(directory, name)?);
        match entry.kind {
            Kind::File if hash && entry.bytes <= MOST_HASHED => {
                entry.digest = digest(directory, name).ok();
            }
            Kind::Link => {
                let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
                entry.digest = Some(Digest::of_bytes(target.as_bytes()));
            }
            Kind::Directory => {
                within_depth(depth)?;
                let inside = open_directory(directory, name)?;
                for name in names(inside.as_fd())? {
                    let below = Self::read_at(inside.as_fd(), &name, hash, depth + 1)?;
                    entry.below.push((Relative(name.into()), below));
                }
            }
            _ => {}
        }
        Ok(entry)
    }

    /// Converts the entry itself, without its children.
    #[expect(clippy::unnecessary_cast, reason = "the types of these fields differ between machines")]
    pub(super) fn of(raw: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(raw.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            _ => Kind::Other,
        };
        Self {
            kind,
            inode: raw.st_ino,
            bytes: if kind == Kind::Directory { 0 } else { raw.st_size as u64 },
            mode: raw.st_mode & 0o7777,
            modified: Stamp(raw.st_mtime as i64, raw.st_mtime_nsec as i64),
            changed: Stamp(raw.st_ctime as i64, raw.st_ctime_nsec as i64),
            digest: None,
            below: Vec::new(),
        }
    }

    /// Returns whether it, or anything below it, changed after `time`.
    pub(super) fn changed_after(&self, time: Stamp) -> bool {
        self.changed > time || self.below.iter().any(|(_, entry)| entry.changed_after(time))
    }

    /// Returns whether another entry has the same content, with whatever inode.
    pub(super) fn holds_same(&self, other: &Self) -> bool {
        let bytes = match self.kind {
            Kind::File => match (self.digest, other.digest) {
                (Some(one), Some(two)) => one == two,
                _ => {
                    self.inode == other.inode && self.modified == other.modified && self.bytes == other.bytes
                }
            },
            Kind::Link => self.digest == other.digest,
            Kind::Directory => {
                self.below.len() == other.below.len()
                    && self
                        .below
                        .iter()
                        .zip(&other.below)
                        .all(|((one, a), (two, b))| one == two && a.holds_same(b))
            }
            Kind::Other => self.inode == other.inode,
        };
        self.kind == other.kind && bytes && (self.kind == Kind::Link || self.mode == other.mode)
    }

    /// Returns whether it is the same entry as `before`, with the same entries below it, and nobody wrote to any of
    /// them.
    pub(super) fn is_untouched(&self, before: &Self) -> bool {
        (self.kind, self.inode, self.bytes, self.modified)
            == (before.kind, before.inode, before.bytes, before.modified)
            && self.below.len() == before.below.len()
            && self
                .below
                .iter()
                .zip(&before.below)
                .all(|((one, a), (two, b))| one == two && a.is_untouched(b))
    }

    /// Bytes of it and all below it.
    pub(super) fn total_bytes(&self) -> u64 {
        self.below.iter().fold(self.bytes, |sum, (_, entry)| sum.saturating_add(entry.total_bytes()))
    }

    /// Calls `visit` for it and all its descendants, directories before their content.
    pub(super) fn each<'a>(&'a self, path: &Path, visit: &mut impl FnMut(PathBuf, &'a Self)) {
        visit(path.to_owned(), self);
        for (name, entry) in &self.below {
            entry.each(&path.join(&name.0), visit);
        }
    }
}

/// Refuses directories nested deeper than any real tree: each level holds a descriptor.
pub(super) fn within_depth(depth: usize) -> io::Result<()> {
    if depth < MOST_DEPTH {
        return Ok(());
    }
    Err(io::Error::other(format!("directories are nested deeper than {MOST_DEPTH} levels")))
}

/// Opens a directory from a trusted source.
pub(super) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
}

/// Opens the directory of this name; a link is none.
pub(super) fn open_directory(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?)
}

/// Opens the directory that holds `path`, below `root` and through no link; returns it with the last name.
pub(super) fn open_parent<'a>(root: BorrowedFd<'_>, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((open_below(root, parent)?, name))
}

/// Opens the directory at `path`, below `root` and through no link.
pub(super) fn open_below(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    Ok(rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)?)
}

/// Returns the entry of this name; `None` if there is none.
pub(super) fn find(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(raw) => Ok(Some(raw)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn stat(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<Stat> {
    Ok(rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Names in a directory, sorted.
pub(super) fn names(directory: BorrowedFd<'_>) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Opens a file for reading, without waiting and following no link.
pub(super) fn open_file(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<std::fs::File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?.into())
}

fn digest(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<Digest> {
    let mut file = open_file(directory, name)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 128 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Digest::from_bytes(hasher.finalize().into())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// Returns whether two files or links hold the same bytes.
pub(super) fn same_bytes(
    one: BorrowedFd<'_>,
    other: BorrowedFd<'_>,
    name: &OsStr,
    kind: Kind,
) -> io::Result<bool> {
    if kind == Kind::Link {
        let read = |directory| rustix::fs::readlinkat(directory, name, Vec::new());
        return Ok(read(one)? == read(other)?);
    }
    let (mut one, mut other) = (open_file(one, name)?, open_file(other, name)?);
    let (mut a, mut b) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let (read, also) = (fill(&mut one, &mut a)?, fill(&mut other, &mut b)?);
        if a[..read] != b[..also] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

fn fill(file: &mut std::fs::File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Reads at most `most` bytes of a file below a root; `None` if there is no file or it is longer.
pub(super) fn read_file(root: &Path, path: &Path, most: u64) -> Option<Vec<u8>> {
    let root = open_root(root).ok()?;
    let (parent, name) = open_parent(root.as_fd(), path).ok()?;
    let found = Entry::of(&find(parent.as_fd(), name).ok()??);
    if found.kind != Kind::File || found.bytes > most {
        return None;
    }
    let mut bytes = Vec::new();
    open_file(parent.as_fd(), name).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
