//! The layer that a command runs on: made, read when the command has ended, and applied.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use claw_core::UndoId;
use claw_core::port::FileChange;

use super::changes::changes;
use super::entry::{Entry, Kind, Stamp};
use super::judged_programs::{JudgedProgram, Pinned};
use super::manifest::{self, Directory, Manifest, State};
use super::scan::{Scan, ScannedChanges, Sides, Within};
use super::swap::Roots;
use super::{Conflict, entry, judged_programs, remove_whole, scan, tree};

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
    found: ScannedChanges,
    changes: Vec<FileChange>,
    /// True if the layer is kept on drop.
    kept: bool,
    /// Held until the changes are applied; recovery leaves a locked layer alone.
    lock: Option<File>,
}

impl Transaction {
    /// Makes a layer in a directory that `lock` holds.
    pub(super) fn create(
        id: UndoId,
        path: PathBuf,
        workspace: &Path,
        hidden: &[PathBuf],
        lock: File,
    ) -> io::Result<Self> {
        let within = |path: &PathBuf| path.strip_prefix(workspace).ok().map(Path::to_owned);
        let mut transaction = Self {
            id,
            path,
            workspace: workspace.to_owned(),
            hidden: hidden.iter().filter_map(within).collect(),
            pinned: Vec::new(),
            started: Stamp(0, 0),
            found: ScannedChanges::default(),
            changes: Vec::new(),
            kept: false,
            lock: Some(lock),
        };
        transaction.prepare()?;
        Ok(transaction)
    }

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
            tree::mask(layer.as_fd(), workspace.as_fd(), hidden)?;
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
            let pinned =
                judged_programs::program(layer.as_fd(), workspace.as_fd(), &self.workspace, program)?;
            self.pinned.extend(pinned);
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
            found: ScannedChanges::default(),
        };
        let sides = Sides { upper: upper.as_fd(), lower: lower.as_fd() };
        scan.directory(sides, Path::new(""), Within::default())?;
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
        [&self.workspace, &self.upper()].map(|root| entry::read_file(root, path, most))
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
