//! The files that are denied to a caller: identified by device and inode, not by name.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::handle::Id;

/// The prefix of our own unfinished files. They are hidden from every caller.
pub(super) const UNFINISHED: &str = ".clawsmith-tmp-";

/// The denied files and names of one scope.
///
/// A path to an existing file denies that file by device and inode: no other spelling, link or mount reaches
/// it. It also denies the name in its directory, whatever file gets that name later. A path to nothing denies
/// the first missing name on the way.
#[derive(Debug, Default)]
pub(super) struct Denied {
    there: Vec<Id>,
    names: Vec<Name>,
    /// The denied paths whose directory does not exist yet.
    open: Vec<PathBuf>,
}

/// A name that is denied, or would be if it existed.
#[derive(Debug)]
struct Name {
    /// The last existing directory on the way.
    within: Id,
    /// The name in it.
    name: OsString,
    /// True if the name itself is denied, false if it only leads to a denied path.
    last: bool,
    /// True if the directory ignores case in names.
    folded: bool,
}

impl Name {
    /// Returns whether `name` in the directory `within` is this name, or would be if it existed.
    fn is(&self, within: Id, name: &OsStr) -> bool {
        if self.within != within {
            return false;
        }
        // How a file system folds what is not ASCII is its own affair: such a name may always be the one.
        let alike = || self.name.eq_ignore_ascii_case(name) || !self.name.is_ascii() || !name.is_ascii();
        self.name == name || (self.folded && alike())
    }
}

impl Denied {
    /// Looks up these paths; a relative one counts from each of the roots.
    pub(super) fn new<'a>(paths: &[PathBuf], roots: impl Iterator<Item = &'a Path> + Clone) -> Self {
        let mut denied = Self::default();
        for path in paths {
            if path.is_absolute() {
                denied.add(path);
            } else {
                roots.clone().for_each(|root| denied.add(&root.join(path)));
            }
        }
        denied
    }

    fn add(&mut self, path: &Path) {
        if let Ok(raw) = rustix::fs::stat(path) {
            self.there.push(Id::of(&raw));
        }
        let mut last = true;
        for at in path.ancestors() {
            let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else { continue };
            if let Ok(raw) = rustix::fs::stat(parent) {
                let (within, folded) = (Id::of(&raw), folds(parent));
                self.names.push(Name { within, name: name.to_owned(), last, folded });
                if !last {
                    self.open.push(path.to_owned());
                }
                return;
            }
            last = false;
        }
    }

    /// Returns the denied paths that do not exist yet; they are looked up again after a directory is created
    /// on the way.
    pub(super) fn open(&self) -> &[PathBuf] {
        &self.open
    }

    pub(super) fn is_empty(&self) -> bool {
        self.there.is_empty() && self.names.is_empty()
    }

    /// Returns whether this file or directory is denied. Entries below a denied directory are not known here:
    /// the walk that enters it finds out.
    pub(super) fn is_denied(&self, id: Id) -> bool {
        self.there.contains(&id)
    }

    /// Returns whether a file with this inode number is denied on some device.
    pub(super) fn may_be(&self, inode: u64) -> bool {
        self.there.iter().any(|id| id.inode == inode)
    }

    /// Returns whether this name is hidden in this directory, whatever file has it.
    pub(super) fn is_hidden(&self, within: Id, name: &OsStr) -> bool {
        name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
            || self.names.iter().any(|denied| denied.last && denied.is(within, name))
    }

    /// Returns whether a newly created directory of this name leads to a denied path that must be looked up
    /// again.
    pub(super) fn leads(&self, within: Id, name: &OsStr) -> bool {
        self.names.iter().any(|denied| !denied.last && denied.is(within, name))
    }
}

/// The flag of a directory in which case does not count (`FS_CASEFOLD_FL`).
const CASEFOLD: u32 = 0x4000_0000;

/// Returns whether the directory ignores case. False if its flags cannot be read.
fn folds(directory: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty());
    opened.and_then(rustix::fs::ioctl_getflags).is_ok_and(|flags| flags.bits() & CASEFOLD != 0)
}

#[cfg(test)]
mod tests;
