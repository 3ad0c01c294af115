//! Renaming directories on a layer.
//!
//! Overlayfs without privileges refuses to rename a directory that the workspace has (`EXDEV`). `mv` copies
//! then, but many programs give up. So the system call filter hands every rename of a layered command to the
//! process that looks after it: a rename that overlayfs supports continues as it is, and a directory that it
//! cannot rename is copied within the layer, put in its new place at once and removed from its old one.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::sys::{self, Answer, Notification};

/// Longest path that the kernel takes.
const PATH_MAX: usize = 4096;
/// Deepest tree that is copied; each level holds descriptors.
const MOST_DEPTH: usize = 200;

/// Handles the renames of one command.
pub(crate) struct Renames {
    listener: OwnedFd,
    /// The device of the layer.
    device: u64,
    count: u64,
    /// Processes that move directories.
    workers: Vec<rustix::process::Pid>,
}

/// A rename requested by a process.
struct Asked {
    pid: u32,
    from: (i32, u64),
    to: (i32, u64),
    flags: u32,
}

/// A name in a directory.
struct Spot {
    parent: OwnedFd,
    name: OsString,
}

impl Renames {
    pub(crate) fn new(listener: OwnedFd, workspace: &Path) -> rustix::io::Result<Self> {
        let device = rustix::fs::stat(workspace)?.st_dev;
        Ok(Self { listener, device, count: 0, workers: Vec::new() })
    }

    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one request. `Err` once no process is left that could ask. A directory is moved by a process
    /// of its own, so that this one can kill the command meanwhile.
    pub(crate) fn serve(&mut self) -> io::Result<()> {
        let Some(notification) = sys::receive_notification(self.listener.as_fd())? else { return Ok(()) };
        let id = notification.id;
        let found = Asked::read(&notification).and_then(|asked| Some((asked.flags, self.spots(&asked, id)?)));
        let Some((flags, (from, to))) = found else {
            sys::answer_notification(self.listener.as_fd(), id, Answer::Continue);
            return Ok(());
        };
        self.count += 1;
        let worker = sys::fork(0, || {
            let answer = match self.rename(&from, &to, flags) {
                Ok(()) => Answer::Value(0),
                Err(error) => Answer::Error(error.raw_os_error()),
            };
            sys::answer_notification(self.listener.as_fd(), id, answer);
            0
        });
        match worker {
            Ok(worker) => self.workers.push(worker),
            Err(_) => sys::answer_notification(self.listener.as_fd(), id, Answer::Continue),
        }
        Ok(())
    }

    /// Kills the processes that still move directories: nobody waits for them any more.
    pub(crate) fn end(&mut self) {
        for worker in self.workers.drain(..) {
            let _ = rustix::process::kill_process(worker, rustix::process::Signal::KILL);
            let _ = rustix::process::waitpid(Some(worker), rustix::process::WaitOptions::empty());
        }
    }

    /// Returns both ends of the rename of a directory on the layer; `None` for every other rename.
    fn spots(&self, asked: &Asked, id: u64) -> Option<(Spot, Spot)> {
        let memory = File::open(format!("/proc/{}/mem", asked.pid)).ok()?;
        let (from, to) = (path_at(&memory, asked.from.1)?, path_at(&memory, asked.to.1)?);
        // The number of the process may belong to another one by now; then the request is not valid any more.
        if !sys::is_notification_valid(self.listener.as_fd(), id) {
            return None;
        }
        let spot = |directory: i32, path: &Path| Spot::find(asked.pid, directory, path);
        let (from, to) = (spot(asked.from.0, &from)?, spot(asked.to.0, &to)?);
        let on_layer =
            |spot: &Spot| rustix::fs::fstat(&spot.parent).is_ok_and(|raw| raw.st_dev == self.device);
        let is_directory = from.stat().is_ok_and(|raw| kind(&raw) == FileType::Directory);
        (is_directory && on_layer(&from) && on_layer(&to)).then_some((from, to))
    }

    fn rename(&self, from: &Spot, to: &Spot, flags: u32) -> rustix::io::Result<()> {
        let flags = RenameFlags::from_bits_retain(flags);
        match rustix::fs::renameat_with(&from.parent, &*from.name, &to.parent, &*to.name, flags) {
            Err(Errno::XDEV) if flags.difference(RenameFlags::NOREPLACE).is_empty() => {}
            renamed => return renamed,
        }
        match to.stat() {
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
            Ok(_) if flags.contains(RenameFlags::NOREPLACE) => return Err(Errno::EXIST),
            Ok(raw) if kind(&raw) != FileType::Directory => return Err(Errno::NOTDIR),
            Ok(raw) if from.stat()?.st_ino == raw.st_ino => return Ok(()),
            // One that is not empty is refused, as rename does.
            Ok(_) => {
                let removed = rustix::fs::unlinkat(&to.parent, &*to.name, AtFlags::REMOVEDIR);
                removed.map_err(|error| if error == Errno::EXIST { Errno::NOTEMPTY } else { error })?;
            }
        }
        movable((from.parent.as_fd(), &from.name), self.device, 0)?;
        let copy = OsString::from(format!(".clawsmith-renaming-{}", self.count));
        let copied =
            copy_entry((from.parent.as_fd(), &from.name), (to.parent.as_fd(), &copy), &mut Links::new(), 0);
        let moved = copied.and_then(|()| rustix::fs::renameat(&to.parent, &copy, &to.parent, &*to.name));
        if let Err(error) = moved {
            let _ = remove(to.parent.as_fd(), &copy, 0);
            return Err(error);
        }
        remove(from.parent.as_fd(), &from.name, 0)
    }
}

impl Asked {
    #[expect(clippy::cast_possible_truncation, reason = "the kernel truncates them too")]
    fn read(notification: &Notification) -> Option<Self> {
        let (pid, argument) = (notification.pid, notification.arguments);
        let at = |directory: usize, path: usize| (argument[directory] as i32, argument[path]);
        let here = |path: usize| (libc::AT_FDCWD, argument[path]);
        match libc::c_long::from(notification.call) {
            libc::SYS_renameat2 => {
                Some(Self { pid, from: at(0, 1), to: at(2, 3), flags: argument[4] as u32 })
            }
            libc::SYS_renameat => Some(Self { pid, from: at(0, 1), to: at(2, 3), flags: 0 }),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => Some(Self { pid, from: here(0), to: here(1), flags: 0 }),
            _ => None,
        }
    }
}

impl Spot {
    fn find(pid: u32, directory: i32, path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_owned();
        let parent = path.parent().unwrap_or(Path::new(""));
        let base = match directory {
            libc::AT_FDCWD => format!("/proc/{pid}/cwd"),
            directory => format!("/proc/{pid}/fd/{directory}"),
        };
        // An absolute path stays what it is.
        let parent = PathBuf::from(base).join(parent);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Some(Self { parent: rustix::fs::openat(CWD, &parent, flags, Mode::empty()).ok()?, name })
    }

    fn stat(&self) -> rustix::io::Result<Stat> {
        rustix::fs::statat(&self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// Reads a path from the memory of a process.
fn path_at(memory: &File, address: u64) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    while bytes.len() < PATH_MAX {
        let mut buffer = [0; 256];
        // Up to the end of a page, since the next one may not be there.
        let at = address.checked_add(bytes.len() as u64)?;
        let room = usize::try_from(PATH_MAX as u64 - at % PATH_MAX as u64).ok()?.min(buffer.len());
        let read = memory.read_at(&mut buffer[..room], at).ok().filter(|read| *read > 0)?;
        match buffer[..read].iter().position(|byte| *byte == 0) {
            Some(end) => {
                bytes.extend_from_slice(&buffer[..end]);
                return Some(OsString::from_vec(bytes).into());
            }
            None => bytes.extend_from_slice(&buffer[..read]),
        }
    }
    None
}

fn kind(raw: &Stat) -> FileType {
    FileType::from_raw_mode(raw.st_mode)
}

/// Refuses a tree that cannot be copied faithfully: with entries of other owners, or on other mounts.
fn movable((directory, name): At<'_>, device: u64, depth: usize) -> rustix::io::Result<()> {
    let raw = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if raw.st_dev != device || (raw.st_uid, raw.st_gid) != own || depth > MOST_DEPTH {
        return Err(Errno::XDEV);
    }
    if kind(&raw) == FileType::Directory {
        let inside = open_directory((directory, name))?;
        for name in names(inside.as_fd())? {
            movable((inside.as_fd(), &name), device, depth + 1)?;
        }
    }
    Ok(())
}

/// Files with several names that were copied, by their inodes.
type Links = std::collections::HashMap<u64, (OwnedFd, OsString)>;

/// An entry of a directory.
type At<'a> = (BorrowedFd<'a>, &'a OsStr);

/// Copies an entry with all below it: bytes, modes, times, links and attributes.
fn copy_entry(from: At<'_>, to: At<'_>, links: &mut Links, depth: usize) -> rustix::io::Result<()> {
    let raw = rustix::fs::statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW)?;
    // This process is under no filter, so what the filter refuses must not be done here: no mode lends an identity.
    let mode = Mode::from_raw_mode(raw.st_mode & 0o1777);
    if kind(&raw) != FileType::Directory && raw.st_nlink > 1 {
        if let Some((directory, name)) = links.get(&raw.st_ino) {
            return rustix::fs::linkat(directory, &**name, to.0, to.1, AtFlags::empty());
        }
        links.insert(raw.st_ino, (rustix::io::fcntl_dupfd_cloexec(to.0, 3)?, to.1.to_owned()));
        // Its other names may be elsewhere: it stays the same file.
        if rustix::fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty()).is_ok() {
            return Ok(());
        }
    }
    match kind(&raw) {
        FileType::Directory => {
            if depth >= MOST_DEPTH {
                return Err(Errno::NAMETOOLONG);
            }
            rustix::fs::mkdirat(to.0, to.1, Mode::RWXU)?;
            let (source, target) = (open_directory(from)?, open_directory(to)?);
            for name in names(source.as_fd())? {
                copy_entry((source.as_fd(), &name), (target.as_fd(), &name), links, depth + 1)?;
            }
            copy_attributes(source.as_fd(), target.as_fd());
            rustix::fs::fchmod(&target, mode)?;
            rustix::fs::futimens(&target, &times(&raw))
        }
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let source = rustix::fs::openat(from.0, from.1, flags, Mode::empty())?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let target = rustix::fs::openat(to.0, to.1, flags, Mode::RUSR | Mode::WUSR)?;
            copy_bytes(&source, &target)?;
            copy_attributes(source.as_fd(), target.as_fd());
            rustix::fs::fchmod(&target, mode)?;
            rustix::fs::futimens(&target, &times(&raw))
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(from.0, from.1, Vec::new())?;
            rustix::fs::symlinkat(&target, to.0, to.1)?;
            rustix::fs::utimensat(to.0, to.1, &times(&raw), AtFlags::SYMLINK_NOFOLLOW)
        }
        other => {
            rustix::fs::mknodat(to.0, to.1, other, mode, 0)?;
            rustix::fs::utimensat(to.0, to.1, &times(&raw), AtFlags::SYMLINK_NOFOLLOW)
        }
    }
}

/// Copies the bytes of a file, its holes left as holes.
fn copy_bytes(source: &OwnedFd, target: &OwnedFd) -> rustix::io::Result<()> {
    use rustix::fs::SeekFrom;
    let size = rustix::fs::seek(source, SeekFrom::End(0))?;
    let mut at = 0;
    while at < size {
        let start = match rustix::fs::seek(source, SeekFrom::Data(at)) {
            Err(Errno::NXIO) => break,
            start => start?,
        };
        let end = rustix::fs::seek(source, SeekFrom::Hole(start))?;
        let (mut read, mut written) = (start, start);
        while read < end {
            let room = usize::try_from(end - read).unwrap_or(usize::MAX).min(1 << 30);
            if rustix::fs::copy_file_range(source, Some(&mut read), target, Some(&mut written), room)? == 0 {
                break;
            }
        }
        at = end;
    }
    rustix::fs::ftruncate(target, size)
}

/// Copies extended user attributes. One that cannot be copied is left out.
fn copy_attributes(source: BorrowedFd<'_>, target: BorrowedFd<'_>) {
    let mut list = vec![0_u8; 64 * 1024];
    let Ok(length) = rustix::fs::flistxattr(source, &mut list) else { return };
    for name in list[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        let Ok(name) = CString::new(name) else { continue };
        let mut value = vec![0_u8; 64 * 1024];
        if let Ok(length) = rustix::fs::fgetxattr(source, &name, &mut value) {
            let _ = rustix::fs::fsetxattr(target, &name, &value[..length], rustix::fs::XattrFlags::empty());
        }
    }
}

/// Removes an entry with all below it.
fn remove(directory: BorrowedFd<'_>, name: &OsStr, depth: usize) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR) if depth < MOST_DEPTH => {}
        removed => return removed,
    }
    let inside = open_directory((directory, name))?;
    for name in names(inside.as_fd())? {
        remove(inside.as_fd(), &name, depth + 1)?;
    }
    rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)
}

fn open_directory((directory, name): At<'_>) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

fn names(directory: BorrowedFd<'_>) -> rustix::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

#[expect(clippy::unnecessary_cast, reason = "the types of these fields differ between machines")]
fn times(raw: &Stat) -> Timestamps {
    let time = |seconds: i64, nanoseconds: i64| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    Timestamps {
        last_access: time(raw.st_atime as i64, raw.st_atime_nsec as i64),
        last_modification: time(raw.st_mtime as i64, raw.st_mtime_nsec as i64),
    }
}
