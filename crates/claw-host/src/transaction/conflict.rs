//! Conflicts: entries that somebody else changed while a command ran. Their version stays in the workspace, and the
//! command's is kept beside it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use super::entry::{self, Entry, Kind, Relative, Stamp};
use super::manifest::Operation;
use super::swap::{Roots, Swapped};

/// A change that was not applied, since somebody else changed the same entry meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path that stays as the others left it.
    pub path: PathBuf,
    /// The command's version, stored beside it; `None` if the command deleted it.
    pub kept: Option<PathBuf>,
}

/// Returns whether somebody else may have moved a directory to its place since the command started. A move changes the
/// directory itself and the list of names in its parent, and nothing in what it holds.
pub(super) fn may_be_moved(directory: &Entry, parent: BorrowedFd<'_>, started: Stamp) -> io::Result<bool> {
    if directory.changed <= started {
        return Ok(false);
    }
    let parent = Entry::of(&rustix::fs::fstat(parent)?);
    // The last change of it was one of its mode or time, as another command's changes are applied.
    let only_set = directory.changed > parent.modified && directory.modified < directory.changed;
    Ok(parent.modified > started && !only_set)
}

/// Returns whether the entry of this name is the expected one, and nobody changed anything below it.
pub(super) fn is_untouched(directory: BorrowedFd<'_>, name: &OsStr, expected: &Entry) -> bool {
    is_at(directory, name, expected)
        && (expected.kind != Kind::Directory
            || Entry::read(directory, name, false).is_ok_and(|found| found.is_untouched(expected)))
}

/// Returns whether the entry of this name is the expected one, unchanged.
pub(super) fn is_at(directory: BorrowedFd<'_>, name: &OsStr, expected: &Entry) -> bool {
    let found = entry::find(directory, name).ok().flatten().map(|raw| Entry::of(&raw));
    found.is_some_and(|found| found.inode == expected.inode && found.modified == expected.modified)
}

/// Puts the command's version of an entry beside the one that somebody else changed. The operation then
/// refers to that.
pub(super) fn keep_beside(roots: Roots<'_>, operation: &mut Operation, suffix: &str) -> io::Result<Conflict> {
    let path = operation.path.0.clone();
    operation.conflict = false;
    operation.old = None;
    let Some(new) = &operation.new else { return Ok(Conflict { path, kept: None }) };
    let beside = with_suffix(&path, suffix);
    let (stage, name) = entry::open_parent(roots.stage, &path)?;
    let target = beside.file_name().unwrap_or(OsStr::new("")).to_owned();
    if entry::find(stage.as_fd(), name)?.is_some_and(|raw| raw.st_ino == new.inode) {
        rustix::fs::renameat(&stage, name, &stage, &target)?;
    }
    operation.path = Relative(beside.clone());
    let kept = match roots.apply(operation)? {
        Swapped::Done => Some(beside),
        Swapped::Conflict => {
            operation.new = None;
            None
        }
    };
    Ok(Conflict { path, kept })
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(suffix);
    path.with_file_name(name)
}

/// The end of the names of the command's versions.
pub(super) fn suffix(layer: &Path) -> String {
    let name = layer.file_name().and_then(OsStr::to_str).unwrap_or_default();
    format!(".from-command-{}", &name[..name.len().min(8)])
}
