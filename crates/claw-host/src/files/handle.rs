//! Handles of directories and files, with their identities. Nothing here takes a path of several names: a
//! step goes from a directory to the entry of one name, and follows no link.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use claw_core::port::{Stat, UnixMillis, Version};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat as Raw};
use rustix::io::{Errno, Result};

use super::failure::Failure;

/// The device and inode number of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id {
    /// The number of the device or of its mounted part.
    pub(super) device: u64,
    /// The inode number on that device.
    pub(super) inode: u64,
}

impl Id {
    pub(super) fn of(raw: &Raw) -> Self {
        Self { device: raw.st_dev, inode: raw.st_ino }
    }
}

/// A handle of a directory, valid wherever the directory is moved. Names can be looked up in it, but it
/// cannot be listed: see [`readable`](Directory::readable).
#[derive(Debug, Clone)]
pub(super) struct Directory {
    handle: Arc<OwnedFd>,
    /// The directory's identity.
    pub(super) id: Id,
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Directory {
    /// Opens the directory at a path that only the operator chose; links in it are followed.
    pub(super) fn trusted(path: &std::path::Path) -> Result<Self> {
        Self::new(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
    }

    pub(super) fn new(handle: OwnedFd) -> Result<Self> {
        let id = Id::of(&rustix::fs::fstat(&handle)?);
        Ok(Self { handle: Arc::new(handle), id })
    }

    /// The directory of this name; a link is none.
    pub(super) fn step(&self, name: &OsStr) -> Result<Self> {
        Self::new(rustix::fs::openat(self, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?)
    }

    /// Opens the parent directory; at the file system's root, the root itself.
    pub(super) fn parent(&self) -> Result<Self> {
        Self::new(rustix::fs::openat(self, "..", DIRECTORY, Mode::empty())?)
    }

    /// Returns the metadata of the directory itself.
    pub(super) fn itself(&self) -> Result<Raw> {
        rustix::fs::fstat(self)
    }

    /// Returns the metadata of the entry of this name; for a link, of the link itself.
    pub(super) fn stat(&self, name: &OsStr) -> Result<Raw> {
        rustix::fs::statat(self, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens the file of this name for reading, without blocking and without following a link. The returned
    /// metadata is that of the opened file; callers must judge by it.
    pub(super) fn open(&self, name: &OsStr) -> Result<(File, Raw)> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self, name, flags, Mode::empty())?;
        let raw = rustix::fs::fstat(&file)?;
        Ok((file.into(), raw))
    }

    /// Opens the same directory so that it can be listed, synced and locked.
    pub(super) fn readable(&self) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(self, ".", flags, Mode::empty())
    }

    /// Refuses file systems that show the system and not files.
    pub(super) fn check_kind(&self) -> std::result::Result<(), Failure> {
        check_file_system(self)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// The magic numbers of file systems that expose the system: procfs, sysfs, debugfs, tracefs, securityfs,
/// devpts, and those of control groups, of mounted namespaces and of kernel modules' settings.
const SYSTEM: [u64; 10] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x1cd1,
    0x0027_e0eb,
    0x6367_7270,
    0x6e73_6673,
    0x6265_6570,
];

/// Refuses files of a file system that exposes the system.
pub(super) fn check_file_system(handle: impl AsFd) -> std::result::Result<(), Failure> {
    let kind = rustix::fs::fstatfs(handle)?.f_type as u64;
    if SYSTEM.contains(&kind) { Err(Failure::Special("part of the system")) } else { Ok(()) }
}

/// Accepts a regular file; for anything else, the failure names its type.
pub(super) fn check_regular(raw: &Raw) -> std::result::Result<(), Failure> {
    match FileType::from_raw_mode(raw.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Failure::IsDirectory),
        FileType::Symlink => Err(Failure::Moved),
        FileType::Fifo => Err(Failure::Special("a pipe")),
        FileType::Socket => Err(Failure::Special("a socket")),
        _ => Err(Failure::Special("a device")),
    }
}

/// Refuses another user's file that has several names: it may belong to a place out of reach.
pub(super) fn check_links(raw: &Raw) -> std::result::Result<(), Failure> {
    let foreign = || raw.st_uid != rustix::process::geteuid().as_raw();
    if raw.st_nlink > 1 && foreign() { Err(Failure::Links) } else { Ok(()) }
}

pub(super) fn is_link(raw: &Raw) -> bool {
    FileType::from_raw_mode(raw.st_mode) == FileType::Symlink
}

pub(super) fn is_directory(raw: &Raw) -> bool {
    FileType::from_raw_mode(raw.st_mode) == FileType::Directory
}

pub(super) fn size(raw: &Raw) -> u64 {
    u64::try_from(raw.st_size).unwrap_or(0)
}

/// Converts metadata to the form that tools get.
pub(super) fn stat(raw: &Raw) -> Stat {
    let directory = is_directory(raw);
    Stat {
        directory,
        size: if directory { 0 } else { size(raw) },
        modified: UnixMillis(raw.st_mtime.saturating_mul(1000).saturating_add(millis(raw))),
        version: version(raw),
        mode: Some(raw.st_mode & 0o7777),
    }
}

fn millis(raw: &Raw) -> i64 {
    i64::try_from(raw.st_mtime_nsec / 1_000_000).unwrap_or(0)
}

/// Device, inode, size, and when content and inode last changed.
pub(super) fn version(raw: &Raw) -> Version {
    let Raw { st_dev, st_ino, st_size, st_mtime, st_mtime_nsec, st_ctime, st_ctime_nsec, .. } = raw;
    let text = format!(
        "{st_dev:x}-{st_ino:x}-{st_size:x}-{st_mtime:x}.{st_mtime_nsec:x}-{st_ctime:x}.{st_ctime_nsec:x}"
    );
    Version(text.into())
}

/// Returns whether both are the same file with the same content. Renaming the file changes neither.
pub(super) fn same_content(one: &Raw, other: &Raw) -> bool {
    let content = |raw: &Raw| (Id::of(raw), raw.st_size, raw.st_mtime, raw.st_mtime_nsec);
    content(one) == content(other)
}

/// Returns the target of a link; `None` if the entry is not a link.
pub(super) fn link_target(directory: &Directory, name: &OsStr) -> Result<Option<std::path::PathBuf>> {
    use std::os::unix::ffi::OsStringExt as _;
    match rustix::fs::readlinkat(directory, name, Vec::new()) {
        Ok(target) => Ok(Some(std::ffi::OsString::from_vec(target.into_bytes()).into())),
        Err(Errno::INVAL) => Ok(None),
        Err(error) => Err(error),
    }
}
