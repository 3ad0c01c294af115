//! Files being written, under hidden temporary names, and those that killed programs left.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, Gid, Mode, OFlags, Stat as Raw, Uid};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use super::denied::UNFINISHED;
use super::failure::Failure;
use super::handle::{Directory, Id};

/// The age at which an unfinished file has no writer any more.
const OLD: Duration = Duration::from_secs(600);
/// The most entries of a directory scanned for old unfinished files.
const LOOKED_AT: usize = 10_000;
/// The number of directories remembered as scanned.
const KEPT: usize = 4096;

/// A file under a temporary name, in its final directory. Removed unless it was put in place.
#[derive(Debug)]
pub(super) struct Unfinished<'a> {
    directory: &'a Directory,
    /// The temporary name.
    pub(super) name: OsString,
    pub(super) file: File,
}

impl<'a> Unfinished<'a> {
    /// Writes a file with these bytes to the disk, with the owner of the file it replaces, and with the
    /// permissions `mode` or else those of that file.
    pub(super) fn write(
        directory: &'a Directory,
        old: Option<&Raw>,
        bytes: &[u8],
        mode: Option<u32>,
    ) -> Result<Self, Failure> {
        let first = if old.is_some() || mode.is_some() { 0o600 } else { 0o644 };
        let mut unfinished = Self::create(directory, Mode::from_raw_mode(first))?;
        unfinished.file.write_all(bytes)?;
        if let Some(old) = old {
            unfinished.take_after(old)?;
        }
        if let Some(mode) = mode {
            // No bits that let a program run as somebody else.
            rustix::fs::fchmod(&unfinished.file, Mode::from_raw_mode(mode & 0o777))?;
        }
        unfinished.file.sync_all()?;
        Ok(unfinished)
    }

    fn create(directory: &'a Directory, mode: Mode) -> Result<Self, Failure> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let name = random_name()?;
            match rustix::fs::openat(directory, &name, flags, mode) {
                Ok(file) => return Ok(Self { directory, name, file: file.into() }),
                Err(Errno::EXIST) => {}
                // The directory itself is gone.
                Err(Errno::NOENT) => return Err(Failure::Moved),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Copies owner and permissions, without set-id bits.
    fn take_after(&self, old: &Raw) -> Result<(), Failure> {
        let own = rustix::fs::fstat(&self.file)?;
        if (own.st_uid, own.st_gid) != (old.st_uid, old.st_gid) {
            let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
            // Only the administrator may give a file away; then it stays ours.
            let _ = rustix::fs::fchown(&self.file, Some(uid), Some(gid));
        }
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(old.st_mode & 0o777))?;
        Ok(())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // Where it was put in place there is nothing of this name, or what it replaced.
        let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
    }
}

/// Returns an unguessable name for an unfinished file.
pub(super) fn random_name() -> Result<OsString, Failure> {
    let mut bytes = [0_u8; 16];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty())?;
    let mut name = OsString::from(UNFINISHED);
    for byte in &bytes[..filled] {
        name.push(format!("{byte:02x}"));
    }
    Ok(name)
}

/// The directories already scanned for files that killed programs left behind.
#[derive(Debug, Default)]
pub(super) struct Swept(Mutex<HashSet<Id>>);

impl Swept {
    /// Removes old unfinished files of a directory, once.
    pub(super) fn sweep(&self, directory: &Directory, readable: BorrowedFd<'_>, now: SystemTime) {
        let mut swept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.len() >= KEPT {
            swept.clear();
        }
        if !swept.insert(directory.id) {
            return;
        }
        drop(swept);
        let Ok(entries) = Dir::read_from(readable) else { return };
        for entry in entries.map_while(Result::ok).take(LOOKED_AT) {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if is_unfinished(name) && directory.stat(name).is_ok_and(|raw| is_old(&raw, now)) {
                let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
            }
        }
    }
}

fn is_unfinished(name: &OsStr) -> bool {
    name.as_bytes().starts_with(UNFINISHED.as_bytes())
}

/// Judges by the time it got its name: a replaced file may be old, but got its unfinished name a moment ago.
fn is_old(raw: &Raw, now: SystemTime) -> bool {
    let since = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(raw.st_ctime).unwrap_or(0));
    now.duration_since(since).is_ok_and(|age| age > OLD)
}

#[cfg(test)]
mod tests;
