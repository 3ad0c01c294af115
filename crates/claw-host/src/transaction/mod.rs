//! Transactions: a command writes to a layer over the workspace, and its changes are applied as one when it
//! has ended.
//!
//! A layer is a directory below the data directory. While the command runs, overlayfs collects its changes in
//! `upper`. Applying them exchanges each changed entry with the workspace's, so that `upper` holds the
//! previous entries: reverting the changes exchanges them again. `manifest` lists the operations, `scan`
//! finds them, `swap` carries them out; a layer whose process was killed is finished or discarded by
//! [`Transactions::recover`].

mod entry;
mod manifest;
mod pin;
mod scan;
mod swap;
mod tree;

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use claw_core::UndoId;
use claw_core::port::{ChangeKind, ChangedEntry, FileChange};
use claw_core::store::CommandUndo;
use claw_core::tool::Digest;
use rustix::fs::FlockOperation;

use self::entry::{Entry, Kind, Relative, Stamp};
use self::manifest::{Directory, Manifest, Operation, State};
use self::pin::Pinned;
pub use self::pin::{JudgedProgram, identity};
use self::scan::{Found, Scan, Within};
use self::swap::{Roots, Swapped};

/// The directory of all layers, below the data directory.
#[derive(Debug, Clone)]
pub struct Transactions {
    directory: PathBuf,
}

/// A layer that a command runs on, or has run on.
#[derive(Debug)]
pub struct Transaction {
    id: UndoId,
    path: PathBuf,
    workspace: PathBuf,
    /// Paths that the command is not shown, relative to the workspace.
    hidden: Vec<PathBuf>,
    /// Copies that [`Transaction::pin`] put into the layer.
    pinned: Vec<Pinned>,
    started: Stamp,
    found: Found,
    changes: Vec<FileChange>,
    /// True if the layer is kept on drop.
    kept: bool,
    /// Held until the changes are applied; recovery leaves a locked layer alone.
    lock: Option<File>,
}

/// A change that was not applied, since somebody else changed the same entry meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path that stays as the others left it.
    pub path: PathBuf,
    /// The command's version, stored beside it; `None` if the command deleted it.
    pub kept: Option<PathBuf>,
}

/// Changes that were applied, and can be reverted.
#[derive(Debug)]
pub struct AppliedTransaction {
    path: PathBuf,
    manifest: Manifest,
    _lock: File,
}

/// State of applied changes in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionState {
    /// The workspace is as the changes left it.
    Applied,
    /// The workspace is as it was before them.
    Reverted,
    /// Somebody else changed some of the entries since.
    Changed,
}

impl Transactions {
    /// Creates transactions below a data directory. Nothing is written before the first command.
    pub fn new(data: &Path) -> Self {
        Self { directory: data.join("undo").join("layers") }
    }

    /// Makes a layer over the workspace, in which the hidden paths do not exist. Fails if the data directory and the
    /// workspace are on different file systems.
    pub fn create(&self, workspace: &Path, hidden: &[PathBuf]) -> io::Result<Transaction> {
        let id = UndoId::new();
        let path = self.path(id);
        let mut private = DirBuilder::new();
        private.mode(0o700).recursive(true).create(&path)?;
        let lock = lock(&path)?.ok_or(ErrorKind::WouldBlock)?;
        let within = |path: &PathBuf| path.strip_prefix(workspace).ok().map(Path::to_owned);
        let mut transaction = Transaction {
            id,
            path,
            workspace: workspace.to_owned(),
            hidden: hidden.iter().filter_map(within).collect(),
            pinned: Vec::new(),
            started: Stamp(0, 0),
            found: Found::default(),
            changes: Vec::new(),
            kept: false,
            lock: Some(lock),
        };
        transaction.prepare()?;
        Ok(transaction)
    }

    /// Opens changes that were applied. `NotFound` if they are no longer kept.
    pub fn open(&self, id: UndoId) -> io::Result<AppliedTransaction> {
        let path = self.path(id);
        let manifest = Manifest::read(&path)?;
        let lock = lock(&path)?;
        let lock =
            lock.ok_or_else(|| io::Error::other("another process is applying or undoing these changes"))?;
        Ok(AppliedTransaction { path, manifest, _lock: lock })
    }

    /// Finishes the layers of killed processes, and discards layers whose command never ended. Returns how
    /// many were finished.
    pub fn recover(&self) -> io::Result<usize> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            entries => entries?,
        };
        let mut finished = 0;
        for entry in entries {
            let path = entry?.path();
            let Ok(Some(held)) = lock(&path) else { continue };
            match recover_one(&path) {
                Ok(was_unfinished) => finished += usize::from(was_unfinished),
                // One that cannot be finished does not stand in the way of the others.
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "a layer's manifest cannot be read");
                }
            }
            drop(held);
        }
        Ok(finished)
    }

    /// Removes the layer of this name, unless it is in use.
    pub(crate) fn remove(&self, name: &Digest) -> io::Result<()> {
        let path = self.directory.join(hex(name));
        match lock(&path) {
            // One that is unfinished is needed to finish it.
            Ok(Some(_held)) => match Manifest::read(&path).map(|manifest| manifest.state) {
                Ok(State::Applying | State::Reverting) => Ok(()),
                _ => remove_whole(&path),
            },
            Ok(None) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Names of the layers that no command uses any more.
    pub(crate) fn finished(&self) -> io::Result<Vec<Digest>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let named = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            lock(&entry.path()).ok()??;
            let name = format!("sha256:{}", entry.file_name().to_str()?);
            serde_json::from_value(name.into()).ok()
        };
        Ok(entries.filter_map(named).collect())
    }

    fn path(&self, id: UndoId) -> PathBuf {
        self.directory.join(hex(&CommandUndo::blob(id)))
    }
}

fn hex(digest: &Digest) -> String {
    digest.to_string().trim_start_matches("sha256:").to_owned()
}

/// Finishes one layer; returns whether it was unfinished.
fn recover_one(path: &Path) -> io::Result<bool> {
    let mut manifest = match Manifest::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return remove_whole(path).map(|()| false),
        manifest => manifest?,
    };
    match manifest.state {
        State::Applied | State::Reverted => return Ok(false),
        _ if !manifest.workspace.is_dir() => return remove_whole(path).map(|()| true),
        State::Applying => drop(manifest.apply(path)?),
        State::Reverting => drop(manifest.revert(path, false)?),
    }
    Ok(true)
}

/// Locks a layer; `None` if another process holds it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path.join("lock"))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        locked => Ok(locked.map(|()| Some(file))?),
    }
}

/// Removes a directory with everything in it, regardless of its modes.
pub fn remove_whole(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    match entry::open_root(parent) {
        Ok(parent) => tree::remove(parent.as_fd(), name),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

impl Transaction {
    /// The layer's id, by which its changes are undone.
    pub const fn id(&self) -> UndoId {
        self.id
    }

    /// The directory in which overlayfs collects the changes.
    pub fn upper(&self) -> PathBuf {
        self.path.join("upper")
    }

    /// The directory that overlayfs works in.
    pub fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    /// Makes the directories of the layer.
    fn prepare(&mut self) -> io::Result<()> {
        let (upper, workspace) = (self.upper(), entry::open_root(&self.workspace)?);
        DirBuilder::new().mode(0o700).create(&upper)?;
        DirBuilder::new().mode(0o700).create(self.work())?;
        let layer = entry::open_root(&upper)?;
        if !tree::on_one_mount(layer.as_fd(), workspace.as_fd())? {
            let reason = "the data directory is on another file system than the workspace";
            return Err(io::Error::new(ErrorKind::CrossesDevices, reason));
        }
        for hidden in &self.hidden {
            tree::mask((layer.as_fd(), workspace.as_fd()), hidden)?;
        }
        // The layer's top stands for the workspace's.
        tree::mirror(layer.as_fd(), workspace.as_fd())?;
        let started = Entry::of(&rustix::fs::fstat(&layer)?).changed;
        self.started = started;
        Ok(())
    }

    /// Puts copies of programs into the layer as they were judged, with the links that lead to them: the command
    /// runs these, whatever somebody makes of the workspace's meanwhile. It can still replace them itself. Fails
    /// with [`ErrorKind::Interrupted`] if one is another file by now.
    pub fn pin(&mut self, programs: &[JudgedProgram]) -> io::Result<()> {
        let (layer, workspace) = (entry::open_root(&self.upper())?, entry::open_root(&self.workspace)?);
        for program in programs {
            let sides = (layer.as_fd(), workspace.as_fd());
            self.pinned.extend(pin::program(sides, &self.workspace, program)?);
        }
        tree::mirror(layer.as_fd(), workspace.as_fd())?;
        self.started = Entry::of(&rustix::fs::fstat(&layer)?).changed;
        Ok(())
    }

    /// Makes a layer over another directory, which is discarded with this one. Returns its upper directory and the one
    /// that overlayfs works in.
    pub fn beside(&self, name: &str, over: &Path) -> io::Result<(PathBuf, PathBuf)> {
        let made = [format!("{name}.upper"), format!("{name}.work")].map(|name| self.path.join(name));
        for path in &made {
            DirBuilder::new().mode(0o700).create(path)?;
        }
        let [upper, work] = made;
        tree::mirror(entry::open_root(&upper)?.as_fd(), entry::open_root(over)?.as_fd())?;
        Ok((upper, work))
    }

    /// Finds the command's changes.
    pub fn read(&mut self) -> io::Result<()> {
        let (upper, lower) = (entry::open_root(&self.upper())?, entry::open_root(&self.workspace)?);
        let layer = upper.as_fd();
        let mut scan = Scan {
            layer,
            started: self.started,
            hidden: &self.hidden,
            pinned: &self.pinned,
            found: Found::default(),
        };
        scan.directory((upper.as_fd(), lower.as_fd()), Path::new(""), Within::default())?;
        self.found = scan.found;
        self.changes = changes(&self.found.operations, &self.found.directories);
        Ok(())
    }

    /// The changes, sorted by path.
    pub fn changes(&self) -> &[FileChange] {
        &self.changes
    }

    /// Changes that are never applied: of hidden paths, sockets, and directories that cannot be read.
    pub fn refused(&self) -> &[PathBuf] {
        &self.found.refused
    }

    /// Returns whether the layer stays: its changes are in the workspace, or some of them are.
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// Returns the bytes kept for undoing the changes.
    pub fn kept_bytes(&self) -> u64 {
        manifest::kept_bytes(&self.found.operations)
    }

    /// Reads at most `most` bytes of a file before and after; `None` if there is no file or it is longer.
    pub fn contents(&self, path: &Path, most: u64) -> [Option<Vec<u8>>; 2] {
        [&self.workspace, &self.upper()].map(|root| read_file(root, path, most))
    }

    /// Returns whether there is an entry at this path after the changes.
    pub fn exists(&self, path: &Path) -> io::Result<bool> {
        let mut upper = entry::open_root(&self.upper())?;
        let mut names = path.components().map(|component| component.as_os_str()).peekable();
        let mut opaque = false;
        while let Some(name) = names.next() {
            match entry::find(upper.as_fd(), name)? {
                Some(raw) if scan::is_whiteout(&raw) => return Ok(false),
                Some(_) if names.peek().is_none() => return Ok(true),
                Some(raw) if Entry::of(&raw).kind != Kind::Directory => return Ok(false),
                Some(_) => {
                    upper = entry::open_directory(upper.as_fd(), name)?;
                    opaque |= scan::is_opaque(upper.as_fd());
                }
                None => return Ok(!opaque && fs::symlink_metadata(self.workspace.join(path)).is_ok()),
            }
        }
        Ok(true)
    }

    /// Applies the changes to the workspace, except those `held`. The applied changes can be undone from then
    /// on.
    pub fn apply(&mut self, held: &[PathBuf]) -> io::Result<Vec<Conflict>> {
        self.hold(held)?;
        let found = std::mem::take(&mut self.found);
        let mut manifest = Manifest {
            state: State::Applying,
            workspace: self.workspace.clone(),
            stage: self.upper(),
            operations: found.operations,
            directories: found.directories,
        };
        let keeps_modes = |directory: &Directory| directory.old.0 == directory.new.0;
        if manifest.operations.is_empty() && manifest.directories.iter().all(keeps_modes) {
            if held.is_empty() {
                let (workspace, stage) = manifest.roots()?;
                let roots = Roots { workspace: workspace.as_fd(), stage: stage.as_fd() };
                manifest.set_directories(roots, true);
            }
            return Ok(Vec::new());
        }
        manifest.write(&self.path, true)?;
        self.kept = true;
        let applied = manifest.apply(&self.path);
        // Changes that failed and were taken back are nothing to be undone.
        self.kept = applied.is_ok() || manifest.state != State::Reverted;
        if self.kept {
            self.lock = None;
        }
        applied
    }

    /// Excludes entries from being applied.
    fn hold(&mut self, held: &[PathBuf]) -> io::Result<()> {
        if held.is_empty() {
            return Ok(());
        }
        let upper = entry::open_root(&self.upper())?;
        self.found.operations.retain(|operation| !held.contains(&operation.path.0));
        self.found.directories.retain(|directory| !held.contains(&directory.path.0));
        for operation in &mut self.found.operations {
            let Some(new) = &mut operation.new else { continue };
            for path in held.iter().filter(|path| path.starts_with(&operation.path.0)) {
                let (parent, name) = entry::open_parent(upper.as_fd(), path)?;
                tree::remove(parent.as_fd(), name)?;
                let (top, name) = entry::open_parent(upper.as_fd(), &operation.path.0)?;
                *new = Entry::read(top.as_fd(), name, true)?;
            }
        }
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = remove_whole(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "a layer could not be removed");
        }
    }
}

impl Manifest {
    fn roots(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        Ok((entry::open_root(&self.workspace)?, entry::open_root(&self.stage)?))
    }

    /// Carries the operations out, from any intermediate state. If one fails, those before it are reverted.
    fn apply(&mut self, layer: &Path) -> io::Result<Vec<Conflict>> {
        let (workspace, stage) = self.roots()?;
        let roots = Roots { workspace: workspace.as_fd(), stage: stage.as_fd() };
        let suffix = suffix(layer);
        let mut conflicts = Vec::new();
        for at in 0..self.operations.len() {
            let operation = &mut self.operations[at];
            let swapped = match operation.conflict {
                true => Ok(Swapped::Conflict),
                false => roots.apply(operation),
            };
            let kept = swapped.and_then(|swapped| match swapped {
                Swapped::Done => Ok(None),
                Swapped::Conflict => keep_beside(roots, operation, &suffix).map(Some),
            });
            match kept {
                Ok(conflict) => conflicts.extend(conflict),
                Err(error) => {
                    let path = self.operations[at].path.0.display().to_string();
                    self.operations.truncate(at);
                    self.revert(layer, false)?;
                    return Err(io::Error::new(error.kind(), format!("`{path}`: {error}")));
                }
            }
        }
        self.set_directories(roots, true);
        // An operation that came to nothing has nothing to be taken back.
        self.operations.retain(|operation| operation.old.is_some() || operation.new.is_some());
        self.state = State::Applied;
        self.write(layer, false)?;
        Ok(conflicts)
    }

    /// Sets the modes and times of directories. This fails for directories of other owners, which undoes
    /// nothing.
    fn set_directories(&self, roots: Roots<'_>, forwards: bool) {
        for directory in &self.directories {
            if let Err(error) = roots.set(directory, forwards) {
                tracing::debug!(%error, path = %directory.path.0.display(), "a directory keeps its mode and time");
            }
        }
    }

    /// Reverts the operations, from any intermediate state. Returns the entries that somebody else changed
    /// since.
    fn revert(&mut self, layer: &Path, force: bool) -> io::Result<Vec<PathBuf>> {
        let (workspace, stage) = self.roots()?;
        let roots = Roots { workspace: workspace.as_fd(), stage: stage.as_fd() };
        self.state = State::Reverting;
        self.write(layer, true)?;
        let mut left = Vec::new();
        for operation in self.operations.iter().rev() {
            if roots.revert(operation, force)? == Swapped::Conflict {
                left.push(operation.path.0.clone());
            }
        }
        self.set_directories(roots, false);
        self.state = State::Reverted;
        self.write(layer, false)?;
        Ok(left)
    }
}

/// Puts the command's version of an entry beside the one that somebody else changed. The operation then
/// refers to that.
fn keep_beside(roots: Roots<'_>, operation: &mut Operation, suffix: &str) -> io::Result<Conflict> {
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

fn suffix(layer: &Path) -> String {
    let name = layer.file_name().and_then(OsStr::to_str).unwrap_or_default();
    format!(".from-command-{}", &name[..name.len().min(8)])
}

impl AppliedTransaction {
    /// The changes, sorted by path.
    pub fn changes(&self) -> Vec<FileChange> {
        changes(&self.manifest.operations, &self.manifest.directories)
    }

    /// Returns the bytes kept for reverting them.
    pub fn kept_bytes(&self) -> u64 {
        manifest::kept_bytes(&self.manifest.operations)
    }

    /// Compares the workspace with the result of the changes.
    pub fn state(&self) -> io::Result<TransactionState> {
        let (workspace, _) = self.manifest.roots()?;
        if self.changed()?.is_empty() {
            return Ok(TransactionState::Applied);
        }
        for operation in &self.manifest.operations {
            let now = read_entry(&workspace, &operation.path.0)?;
            let same = match (&now, &operation.old) {
                (None, None) => true,
                (Some(now), Some(old)) => now.kind == old.kind && now.inode == old.inode,
                _ => false,
            };
            if !same {
                return Ok(TransactionState::Changed);
            }
        }
        Ok(TransactionState::Reverted)
    }

    /// Returns the paths that somebody changed since the changes were applied.
    pub fn changed(&self) -> io::Result<Vec<PathBuf>> {
        let (workspace, _) = self.manifest.roots()?;
        let mut changed = Vec::new();
        for operation in &self.manifest.operations {
            let now = read_entry(&workspace, &operation.path.0)?;
            let same = match (&now, &operation.new) {
                (None, None) => true,
                (Some(now), Some(new)) => now.holds_same(new),
                _ => false,
            };
            if !same {
                changed.push(operation.path.0.clone());
            }
        }
        Ok(changed)
    }

    /// Reverts the changes. Entries that somebody else changed since stay, and are returned; with `force`
    /// they go to the layer, and the previous entries come back.
    pub fn revert(&mut self, force: bool) -> io::Result<Vec<PathBuf>> {
        self.refresh()?;
        self.manifest.revert(&self.path, force)
    }

    /// Applies changes again that were reverted.
    pub fn apply(&mut self) -> io::Result<Vec<Conflict>> {
        self.manifest.state = State::Applying;
        self.manifest.write(&self.path, true)?;
        self.manifest.apply(&self.path)
    }

    /// Updates entries that have the same content under another inode: a file that was edited and restored
    /// since.
    fn refresh(&mut self) -> io::Result<()> {
        let (workspace, _) = self.manifest.roots()?;
        for operation in &mut self.manifest.operations {
            if let Some(new) = &mut operation.new
                && let Some(now) = read_entry(&workspace, &operation.path.0)?
                && now.holds_same(new)
            {
                *new = now;
            }
        }
        Ok(())
    }

    /// Reads at most `most` bytes of a file before and after; `None` if there is no file or it is longer.
    pub fn contents(&self, path: &Path, most: u64) -> [Option<Vec<u8>>; 2] {
        let roots = match self.manifest.state {
            State::Applied | State::Reverting => [&self.manifest.stage, &self.manifest.workspace],
            State::Applying | State::Reverted => [&self.manifest.workspace, &self.manifest.stage],
        };
        roots.map(|root| read_file(root, path, most))
    }
}

fn read_entry(root: &OwnedFd, path: &Path) -> io::Result<Option<Entry>> {
    let (parent, name) = match entry::open_parent(root.as_fd(), path) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP)) => {
            return Ok(None);
        }
        opened => opened?,
    };
    match entry::find(parent.as_fd(), name)? {
        Some(_) => Entry::read(parent.as_fd(), name, true).map(Some),
        None => Ok(None),
    }
}

fn read_file(root: &Path, path: &Path, most: u64) -> Option<Vec<u8>> {
    let root = entry::open_root(root).ok()?;
    let (parent, name) = entry::open_parent(root.as_fd(), path).ok()?;
    let found = Entry::of(&entry::find(parent.as_fd(), name).ok()??);
    if found.kind != Kind::File || found.bytes > most {
        return None;
    }
    let mut bytes = Vec::new();
    entry::open_file(parent.as_fd(), name).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The changes of files that operations make.
fn changes(operations: &[Operation], directories: &[Directory]) -> Vec<FileChange> {
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
