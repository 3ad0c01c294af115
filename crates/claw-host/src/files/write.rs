//! Writes a new file beside the old one, which then replaces it. Nothing is ever written into a file that
//! another program may have open, or through a link.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use claw_core::port::{Access, Stat, WorkspaceGrowth};
use rustix::fs::{AtFlags, FlockOperation, Mode, RenameFlags, Stat as Raw};
use rustix::io::Errno;

use super::failure::Failure;
use super::handle::{
    self, Directory, Id, check_links, check_regular, is_directory, same_content, size, version,
};
use super::quota::{Change, Room};
use super::resolve::{Missing, ResolvedPath, again};
use super::roots::Reach;
use super::unfinished_writes::{Unfinished, random_name};
use super::{Expectation, Request};

/// The number of attempts to take a lock that another program holds, and the wait between them.
const LOCK_TRIES: usize = 200;
const LOCK_WAIT: Duration = Duration::from_millis(5);

/// Writes a whole file with the permissions `mode`, or else with those of the existing file.
pub(super) fn write(request: &Request, bytes: &[u8], mode: Option<u32>) -> Result<Stat, Failure> {
    retried(|| {
        let reach = request.reach(true)?;
        let rooms = Rooms::new(request, &reach, bytes.len());
        let found = match request.find(&reach, Missing::Leave) {
            Err(Failure::Missing) if matches!(request.expect, Expectation::Version(_)) => {
                return Err(Failure::Changed);
            }
            Err(Failure::Missing) => {
                let pass = |root| rooms.directory(root);
                let found = request.find(&reach, Missing::Make(&pass))?;
                rooms.keep();
                found
            }
            found => found?,
        };
        put(request, &reach, &found, bytes, mode)
    })
}

fn put(
    request: &Request,
    reach: &Reach,
    found: &ResolvedPath,
    bytes: &[u8],
    mode: Option<u32>,
) -> Result<Stat, Failure> {
    let name = found.name.as_deref().ok_or(Failure::IsDirectory)?;
    check_access(reach, found)?;
    let _held = hold(found.directory.id, name);
    let old = replaceable(reach, &found.directory, name)?;
    compare(&request.expect, old.as_ref())?;
    if old.is_some() {
        check_writable(&found.directory, name)?;
    }
    let change = Change {
        bytes: signed(bytes.len() as u64) - old.as_ref().map_or(0, |old| signed(size(old))),
        files: i64::from(old.is_none()),
    };
    let room = request.room(reach, found.root, change)?;
    let readable = found.directory.readable()?;
    request.bridge.swept.sweep(&found.directory, readable.as_fd(), SystemTime::now());
    let unfinished = Unfinished::write(&found.directory, old.as_ref(), bytes, mode)?;
    let place = EntryName { directory: &found.directory, name, renameat2: request.bridge.kernel.renameat2 };
    place.commit(&unfinished, &request.expect, old.as_ref())?;
    if let Some(room) = room {
        room.keep();
    }
    rustix::fs::fsync(&readable)?;
    Ok(handle::stat(&rustix::fs::fstat(&unfinished.file)?))
}

/// A file that could not be opened for writing is not replaced either, though its directory would allow it.
fn check_writable(directory: impl std::os::fd::AsFd, name: &OsStr) -> Result<(), Failure> {
    let may = rustix::fs::accessat(directory, name, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS);
    match may {
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Err(Failure::ReadOnly),
        // If the file cannot be checked or is gone, the next step reports it.
        _ => Ok(()),
    }
}

/// Makes a directory and its parents.
pub(super) fn mkdirp(request: &Request) -> Result<(), Failure> {
    retried(|| {
        let reach = request.reach(true)?;
        let rooms = Rooms::new(request, &reach, 0);
        let pass = |root| rooms.directory(root);
        let found = request.find(&reach, Missing::Make(&pass))?;
        let Some(name) = &found.name else { return check_access(&reach, &found) };
        if let Some(raw) = &found.raw {
            return if is_directory(raw) { check_access(&reach, &found) } else { Err(Failure::NotDirectory) };
        }
        check_access(&reach, &found)?;
        rooms.directory(found.root)?;
        match rustix::fs::mkdirat(&found.directory, name, Mode::from_raw_mode(0o755)) {
            Err(Errno::EXIST) => return Err(Failure::Moved),
            made => made?,
        }
        rooms.keep();
        rustix::fs::fsync(found.directory.readable()?)?;
        Ok(())
    })
}

/// Removes a file.
pub(super) fn remove(request: &Request) -> Result<(), Failure> {
    retried(|| {
        let reach = request.reach(false)?;
        let found = request.find(&reach, Missing::Leave)?;
        let name = found.name.as_deref().ok_or(Failure::IsDirectory)?;
        check_access(&reach, &found)?;
        let _held = hold(found.directory.id, name);
        let old = replaceable(&reach, &found.directory, name)?.ok_or(Failure::Missing)?;
        compare(&request.expect, Some(&old))?;
        let readable = found.directory.readable()?;
        let place =
            EntryName { directory: &found.directory, name, renameat2: request.bridge.kernel.renameat2 };
        match request.expect {
            Expectation::Version(_) => place.take_away(&old)?,
            _ => rustix::fs::unlinkat(&found.directory, name, AtFlags::empty())?,
        }
        if found.root == 0
            && request.scope.quota.is_some()
            && let Some(root) = &reach.roots()[0].handle
        {
            request.bridge.usages.give_back(&root.directory, size(&old));
        }
        rustix::fs::fsync(&readable)?;
        Ok(())
    })
}

/// Retries after a concurrent move, resolving everything anew.
fn retried<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    again(|| match attempt() {
        Err(Failure::Stale) => Err(Failure::Moved),
        done => done,
    })
}

fn check_access(reach: &Reach, found: &ResolvedPath) -> Result<(), Failure> {
    match reach.roots()[found.root].root.access {
        Access::Write => Ok(()),
        Access::Read => Err(Failure::ReadOnly),
    }
}

/// Returns the metadata of the file of this name; `None` if there is none.
fn there(directory: &Directory, name: &OsStr) -> Result<Option<Raw>, Failure> {
    match directory.stat(name) {
        Err(Errno::NOENT) => Ok(None),
        raw => Ok(Some(raw?)),
    }
}

/// Returns the existing file if it may be replaced; `None` if there is none.
fn replaceable(reach: &Reach, directory: &Directory, name: &OsStr) -> Result<Option<Raw>, Failure> {
    let Some(raw) = there(directory, name)? else { return Ok(None) };
    check_regular(&raw)?;
    check_links(&raw)?;
    if reach.denied.is_denied(Id::of(&raw)) { Err(Failure::Denied) } else { Ok(Some(raw)) }
}

fn compare(expect: &Expectation, old: Option<&Raw>) -> Result<(), Failure> {
    match (expect, old) {
        (Expectation::Anything, _) | (Expectation::Absent, None) => Ok(()),
        (Expectation::Absent, Some(_)) => Err(Failure::Exists),
        (Expectation::Version(expected), Some(old)) if version(old) == *expected => Ok(()),
        (Expectation::Version(_), _) => Err(Failure::Changed),
    }
}

/// A name in a directory, for putting a file there or removing it.
struct EntryName<'a> {
    directory: &'a Directory,
    name: &'a OsStr,
    renameat2: bool,
}

impl EntryName<'_> {
    /// Puts a finished file in place, if the existing file is still the expected one.
    fn commit(&self, new: &Unfinished<'_>, expect: &Expectation, old: Option<&Raw>) -> Result<(), Failure> {
        match (expect, old) {
            (Expectation::Anything, _) => Ok(self.rename(&new.name, self.name)?),
            (Expectation::Absent, _) => match self.rename_with(&new.name, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => Err(Failure::Exists),
                Err(error) if unsupported(error) => self.commit_locked(new, expect),
                done => Ok(done?),
            },
            (Expectation::Version(_), None) => Err(Failure::Changed),
            (Expectation::Version(_), Some(old)) => {
                // A file put in place and taken back again must not be seen by another program of ours. If
                // the lock is held for long, the write goes on without it.
                let lock = self.lock().ok();
                compare(expect, there(self.directory, self.name)?.as_ref())?;
                match self.rename_with(&new.name, RenameFlags::EXCHANGE) {
                    Err(Errno::NOENT) => Err(Failure::Changed),
                    Err(error) if unsupported(error) => {
                        // It takes the lock itself.
                        drop(lock);
                        self.commit_locked(new, expect)
                    }
                    done => {
                        done?;
                        self.check_displaced(new, old)
                    }
                }
            }
        }
    }

    /// Checks, after the exchange, that the displaced file is the expected one. If not, exchanges them again.
    fn check_displaced(&self, new: &Unfinished<'_>, old: &Raw) -> Result<(), Failure> {
        let displaced = self.directory.stat(&new.name)?;
        if same_content(&displaced, old) {
            return Ok(());
        }
        match self.rename_with(&new.name, RenameFlags::EXCHANGE) {
            // The name was taken away meanwhile; what was there before us is put back unless there is more.
            Err(Errno::NOENT) => match self.rename_with(&new.name, RenameFlags::NOREPLACE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            },
            done => done?,
        }
        let own = Id::of(&rustix::fs::fstat(&new.file)?);
        let back = self.directory.stat(&new.name);
        if back.is_ok_and(|back| Id::of(&back) != own) {
            // A third one was put in place of ours: it stays, being the last.
            self.rename_with(&new.name, RenameFlags::EXCHANGE)?;
        }
        Err(Failure::Changed)
    }

    /// Commits on file systems without such renames: under a lock that all our programs take. A program that
    /// does not take it can interfere.
    fn commit_locked(&self, new: &Unfinished<'_>, expect: &Expectation) -> Result<(), Failure> {
        let _lock = self.lock()?;
        compare(expect, there(self.directory, self.name)?.as_ref())?;
        if matches!(expect, Expectation::Absent) {
            match rustix::fs::linkat(self.directory, &new.name, self.directory, self.name, AtFlags::empty()) {
                Err(Errno::EXIST) => return Err(Failure::Exists),
                // No links there either.
                Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {}
                done => return Ok(done?),
            }
        }
        Ok(self.rename(&new.name, self.name)?)
    }

    /// Removes the file, if it is still the one that was seen.
    fn take_away(&self, old: &Raw) -> Result<(), Failure> {
        let aside = random_name()?;
        match self.rename(self.name, &aside) {
            Err(Errno::NOENT) => return Err(Failure::Changed),
            done => done?,
        }
        if same_content(&self.directory.stat(&aside)?, old) {
            return Ok(rustix::fs::unlinkat(self.directory, &aside, AtFlags::empty())?);
        }
        match self.rename_with(&aside, RenameFlags::NOREPLACE) {
            // Something newer is there already.
            Err(Errno::EXIST) => rustix::fs::unlinkat(self.directory, &aside, AtFlags::empty())?,
            Err(error) if unsupported(error) => self.rename(&aside, self.name)?,
            done => done?,
        }
        Err(Failure::Changed)
    }

    fn rename(&self, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::renameat(self.directory, from, self.directory, to)
    }

    fn rename_with(&self, from: &OsStr, flags: RenameFlags) -> rustix::io::Result<()> {
        if !self.renameat2 {
            return Err(Errno::NOSYS);
        }
        rustix::fs::renameat_with(self.directory, from, self.directory, self.name, flags)
    }

    /// Locks the directory against our other programs, for as long as the handle lives.
    fn lock(&self) -> Result<OwnedFd, Failure> {
        let handle = self.directory.readable()?;
        for _ in 0..LOCK_TRIES {
            match rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => thread::sleep(LOCK_WAIT),
                done => {
                    done?;
                    return Ok(handle);
                }
            }
        }
        Err(Failure::Io(Errno::WOULDBLOCK.into()))
    }
}

fn unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Locks for writers of this program, one at a time for each name. Two names may share a lock; nobody holds
/// two.
static WRITERS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

fn hold(within: Id, name: &OsStr) -> MutexGuard<'static, ()> {
    let mut hasher = DefaultHasher::new();
    (within, name).hash(&mut hasher);
    let index = usize::try_from(hasher.finish() % WRITERS.len() as u64).unwrap_or(0);
    WRITERS[index].lock().unwrap_or_else(PoisonError::into_inner)
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Room for directories that are made on the way to a file.
struct Rooms<'a> {
    request: &'a Request,
    reach: &'a Reach,
    /// The size of the new file, in bytes, so that no directory is created for a file that does not fit.
    bytes: usize,
    taken: RefCell<Vec<Room>>,
}

impl<'a> Rooms<'a> {
    fn new(request: &'a Request, reach: &'a Reach, bytes: usize) -> Self {
        Self { request, reach, bytes, taken: RefCell::default() }
    }

    fn directory(&self, root: usize) -> Result<(), Failure> {
        let with_file = Change { bytes: signed(self.bytes as u64), files: 1 + i64::from(self.bytes > 0) };
        drop(self.request.room(self.reach, root, with_file)?);
        let room = self.request.room(self.reach, root, Change { bytes: 0, files: 1 })?;
        self.taken.borrow_mut().extend(room);
        Ok(())
    }

    fn keep(&self) {
        self.taken.borrow_mut().drain(..).for_each(Room::keep);
    }
}

/// Counts a change of the workspace that is made elsewhere; an error if it exceeds the quota.
pub(super) fn reserve(request: &Request, growth: WorkspaceGrowth) -> Result<(), Failure> {
    let WorkspaceGrowth { bytes, entries } = growth;
    let room = request.room(&*request.reach(true)?, 0, Change { bytes, files: entries })?;
    room.into_iter().for_each(Room::keep);
    Ok(())
}

impl Request {
    /// Reserves room for a change below this root, if it has a quota.
    fn room(&self, reach: &Reach, root: usize, change: Change) -> Result<Option<Room>, Failure> {
        let (0, Some(quota)) = (root, self.scope.quota) else { return Ok(None) };
        let Some(handle) = &reach.roots()[0].handle else { return Ok(None) };
        self.bridge.usages.take(&handle.directory, quota, change).map(Some)
    }
}
