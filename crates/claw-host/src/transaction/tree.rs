//! Whole trees: removing them regardless of their modes, and clearing overlayfs's marks.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::entry::{self, Entry, Stamp};

/// Nesting at which a subtree is moved to the top before it is removed: each level holds a descriptor.
const DEEP: usize = 100;

/// Removes an entry and everything below it. Directories that cannot be read or written are opened up first.
pub(super) fn remove(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let mut deep = vec![name.to_owned()];
    let mut count = 0;
    while let Some(name) = deep.pop() {
        remove_at(directory, &name, 0, &mut |parent, name| {
            count += 1;
            let moved = OsString::from(format!(".deep-{}-{count}", std::process::id()));
            rustix::fs::renameat(parent, name, directory, &moved)?;
            deep.push(moved);
            Ok(())
        })?;
    }
    Ok(())
}

fn remove_at(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    depth: usize,
    defer: &mut dyn FnMut(BorrowedFd<'_>, &OsStr) -> io::Result<()>,
) -> io::Result<()> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    if depth >= DEEP {
        return defer(directory, name);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    // The name may lead elsewhere by now; the handle does not.
    let _ = rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::RWXU);
    let inside = entry::open_directory(directory, name)?;
    for name in entry::names(inside.as_fd())? {
        remove_at(inside.as_fd(), &name, depth + 1, defer)?;
    }
    Ok(rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?)
}

/// Returns whether entries can be renamed from one directory to the other: both are on one mount of one file
/// system.
pub(super) fn on_one_mount(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> io::Result<bool> {
    use rustix::fs::{StatxFlags, statx};
    let mount = |directory: BorrowedFd<'_>| {
        let found = statx(directory, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
        Ok::<_, Errno>((found.stx_dev_major, found.stx_dev_minor, found.stx_mnt_id))
    };
    Ok(mount(one)? == mount(other)?)
}

/// Hides `path` in a layer: a whiteout in copies of the directories that hold it. Does nothing if the
/// workspace has a file on the way.
pub(super) fn mask(layer: BorrowedFd<'_>, workspace: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let Some((first, rest)) = split(path) else { return Ok(()) };
    if rest.as_os_str().is_empty() {
        let whiteout = rustix::fs::mknodat(layer, first, FileType::CharacterDevice, Mode::empty(), 0);
        return match whiteout {
            Err(Errno::EXIST) => Ok(()),
            made => Ok(made?),
        };
    }
    // Where a directory on the way is not there yet, that is what does not exist.
    let below = match entry::open_directory(workspace, first) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return mask(layer, workspace, Path::new(first));
        }
        Err(_) => return Ok(()),
        Ok(below) => below,
    };
    match rustix::fs::mkdirat(layer, first, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let Ok(copy) = entry::open_directory(layer, first) else { return Ok(()) };
    mask(copy.as_fd(), below.as_fd(), rest)?;
    mirror(copy.as_fd(), below.as_fd())
}

/// Puts an entry at `path` of a layer, in copies of the directories that hold it in the workspace; none of them may
/// be a link.
pub(super) fn place(
    layer: BorrowedFd<'_>,
    workspace: BorrowedFd<'_>,
    path: &Path,
    put: &mut dyn FnMut(BorrowedFd<'_>, &OsStr) -> io::Result<()>,
) -> io::Result<()> {
    let Some((first, rest)) = split(path) else { return Ok(()) };
    if rest.as_os_str().is_empty() {
        return put(layer, first);
    }
    let below = entry::open_directory(workspace, first)?;
    match rustix::fs::mkdirat(layer, first, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let copy = entry::open_directory(layer, first)?;
    place(copy.as_fd(), below.as_fd(), rest, put)?;
    mirror(copy.as_fd(), below.as_fd())
}

fn split(path: &Path) -> Option<(&OsStr, &Path)> {
    let mut components = path.components();
    Some((components.next()?.as_os_str(), components.as_path()))
}

/// Gives a directory the mode and times of another one.
pub(super) fn mirror(copy: BorrowedFd<'_>, original: BorrowedFd<'_>) -> io::Result<()> {
    let raw = rustix::fs::fstat(original)?;
    let Entry { mode, modified: Stamp(seconds, nanoseconds), .. } = Entry::of(&raw);
    rustix::fs::fchmod(copy, Mode::from_raw_mode(mode))?;
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    Ok(rustix::fs::futimens(copy, &Timestamps { last_access: time, last_modification: time })?)
}

/// Clears the marks that overlay left on an entry and everything below it. Marks of files that their owner cannot write
/// stay; they mean nothing outside a layer.
pub(super) fn clear_marks(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    const MARKS: [&str; 6] = [
        "user.overlay.origin",
        "user.overlay.opaque",
        "user.overlay.impure",
        "user.overlay.nlink",
        "user.overlay.uuid",
        "user.overlay.protattr",
    ];
    let Some(raw) = entry::find(directory, name)? else { return Ok(()) };
    match FileType::from_raw_mode(raw.st_mode) {
        FileType::Directory => {
            let inside = entry::open_directory(directory, name)?;
            for mark in MARKS {
                let _ = rustix::fs::fremovexattr(&inside, mark);
            }
            for name in entry::names(inside.as_fd())? {
                clear_marks(inside.as_fd(), &name)?;
            }
        }
        FileType::RegularFile => {
            if let Ok(file) = entry::open_file(directory, name) {
                for mark in MARKS {
                    let _ = rustix::fs::fremovexattr(&file, mark);
                }
            }
        }
        _ => {}
    }
    Ok(())
}
