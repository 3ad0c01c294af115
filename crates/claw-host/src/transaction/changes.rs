//! The list of changes that a person, the journal and the ledger are told.

use std::path::PathBuf;

use claw_core::port::{ChangeKind, ChangedEntry, FileChange};

use super::entry::{Entry, Kind};
use super::manifest::{Directory, Operation};

/// The changes of files that operations make.
pub(super) fn changes(operations: &[Operation], directories: &[Directory]) -> Vec<FileChange> {
    let mut list = Vec::new();
    for Directory { path, new, .. } in
        directories.iter().filter(|directory| directory.old.0 != directory.new.0)
    {
        list.push(FileChange {
            path: path.0.clone(),
            kind: ChangeKind::Changed,
            entry: ChangedEntry::Directory,
            bytes_before: Some(0),
            bytes_after: Some(0),
            mode: Some(new.0),
        });
    }
    for operation in operations {
        let path = &operation.path.0;
        let is_directory =
            |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.kind == Kind::Directory);
        if !is_directory(&operation.old) && !is_directory(&operation.new) {
            list.push(change(path.clone(), operation.old.as_ref(), operation.new.as_ref()));
            continue;
        }
        if let Some(old) = &operation.old {
            old.each(path, &mut |path, entry| list.push(change(path, Some(entry), None)));
        }
        if let Some(new) = &operation.new {
            new.each(path, &mut |path, entry| list.push(change(path, None, Some(entry))));
        }
    }
    list.sort_by(|one, other| one.path.cmp(&other.path));
    list
}

fn change(path: PathBuf, old: Option<&Entry>, new: Option<&Entry>) -> FileChange {
    let kind = match (old, new) {
        (None, _) => ChangeKind::Created,
        (_, None) => ChangeKind::Deleted,
        _ => ChangeKind::Changed,
    };
    let entry = match new.or(old).map(|entry| entry.kind) {
        Some(Kind::Directory) => ChangedEntry::Directory,
        Some(Kind::Link) => ChangedEntry::Link,
        _ => ChangedEntry::File,
    };
    FileChange {
        path,
        kind,
        entry,
        bytes_before: old.map(|old| old.bytes),
        bytes_after: new.map(|new| new.bytes),
        mode: new.map(|new| new.mode).filter(|mode| old.is_some_and(|old| old.mode != *mode)),
    }
}
