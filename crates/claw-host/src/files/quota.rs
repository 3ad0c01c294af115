//! The usage of workspaces: counted once, then updated with each change, and counted again when the count is
//! old.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use claw_core::port::Quota;
use rustix::fs::{Dir, FileType};

use super::failure::{Excess, Failure};
use super::handle::{Directory, Id, size};

/// The age at which a count is stale, since other programs may write there too.
const STALE: Duration = Duration::from_secs(60);
/// The number of workspaces with a cached usage.
const KEPT: usize = 1024;
/// The number of handles that counting holds open at once.
const HANDLES: usize = 64;

/// The usage of workspaces that have a quota.
#[derive(Debug, Default)]
pub(super) struct Usages(Mutex<HashMap<Id, Arc<Usage>>>);

#[derive(Debug, Default)]
struct Usage(Mutex<Option<Counted>>);

#[derive(Debug, Clone, Copy)]
struct Counted {
    held: Held,
    at: Instant,
}

/// Bytes of files; files and directories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// The growth caused by a change; negative if it shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) bytes: i64,
    pub(super) files: i64,
}

/// Room reserved for a change. Given back on drop unless the change was made.
#[derive(Debug)]
pub(super) struct Room {
    usage: Arc<Usage>,
    change: Change,
}

impl Room {
    /// Keeps the room: the change was made.
    pub(super) fn keep(mut self) {
        self.change = Change { bytes: 0, files: 0 };
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Change { bytes, files } = self.change;
        if let Some(counted) = self.usage.lock().as_mut() {
            counted.held = counted.held.after(Change { bytes: -bytes, files: -files });
        }
    }
}

impl Usages {
    /// Reserves room for a change in the workspace at `root`, or returns the excess.
    pub(super) fn take(&self, root: &Directory, quota: Quota, change: Change) -> Result<Room, Failure> {
        let usage = self.usage(root.id);
        let mut kept = usage.lock();
        let believed = kept.filter(|counted| counted.at.elapsed() < STALE);
        let mut counted = match believed {
            // Where it would be refused, others may have made room since it was counted.
            Some(counted) if excess(counted.held, quota, change).is_none() => counted,
            _ => Counted::now(root),
        };
        *kept = Some(counted);
        if let Some(excess) = excess(counted.held, quota, change) {
            return Err(Failure::Quota(excess));
        }
        counted.held = counted.held.after(change);
        *kept = Some(counted);
        drop(kept);
        Ok(Room { usage, change })
    }

    /// Subtracts a removed file.
    pub(super) fn give_back(&self, root: &Directory, bytes: u64) {
        let change = Change { bytes: i64::try_from(bytes).unwrap_or(i64::MAX).saturating_neg(), files: -1 };
        if let Some(counted) = self.usage(root.id).lock().as_mut() {
            counted.held = counted.held.after(change);
        }
    }

    fn usage(&self, root: Id) -> Arc<Usage> {
        let mut usages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if usages.len() >= KEPT && !usages.contains_key(&root) {
            usages.clear();
        }
        Arc::clone(usages.entry(root).or_default())
    }
}

impl Usage {
    fn lock(&self) -> MutexGuard<'_, Option<Counted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    fn now(root: &Directory) -> Self {
        Self { held: count(root), at: Instant::now() }
    }
}

impl Held {
    fn after(self, change: Change) -> Self {
        Self {
            bytes: self.bytes.saturating_add_signed(change.bytes),
            files: self.files.saturating_add_signed(change.files),
        }
    }
}

/// Returns the excess after the change. A change that only shrinks never exceeds.
fn excess(held: Held, quota: Quota, change: Change) -> Option<Excess> {
    let Held { bytes, files } = held.after(change);
    let too_much = (change.bytes > 0 && bytes > quota.bytes) || (change.files > 0 && files > quota.files);
    too_much.then_some(Excess { bytes, files, most_bytes: quota.bytes, most_files: quota.files })
}

/// Counts the files below a directory, on its own device, following no link. A directory that cannot be
/// opened counts as empty.
fn count(root: &Directory) -> Held {
    let mut held = Held::default();
    let mut levels = vec![Level { name: OsString::new(), directory: Some(root.clone()), inner: Vec::new() }];
    levels[0].inner = list(root, &mut held);
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.inner.pop() else {
            levels.pop();
            continue;
        };
        let Some(directory) = at(root, &mut levels) else {
            levels.pop();
            continue;
        };
        let Ok(inner) = directory.step(&name) else { continue };
        if inner.id.device != root.id.device {
            continue;
        }
        let names = list(&inner, &mut held);
        levels.push(Level { name, directory: Some(inner), inner: names });
        if let Some(old) = levels.len().checked_sub(HANDLES) {
            levels[old].directory = None;
        }
    }
    held
}

struct Level {
    name: OsString,
    directory: Option<Directory>,
    /// The directories in it that are still to be counted.
    inner: Vec<OsString>,
}

/// Returns the directory of the last level, opened again if its handle was not kept.
fn at(root: &Directory, levels: &mut [Level]) -> Option<Directory> {
    if let Some(directory) = levels.last()?.directory.clone() {
        return Some(directory);
    }
    let mut at = root.clone();
    for level in levels.iter().skip(1) {
        at = at.step(&level.name).ok()?;
    }
    levels.last_mut()?.directory = Some(at.clone());
    Some(at)
}

/// Counts the entries of a directory, and returns its subdirectories.
fn list(directory: &Directory, held: &mut Held) -> Vec<OsString> {
    let mut inner = Vec::new();
    let Ok(entries) = directory.readable().and_then(Dir::new) else { return inner };
    for entry in entries {
        // A directory that fails in the middle fails for ever.
        let Ok(entry) = entry else { break };
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let Ok(raw) = directory.stat(name) else { continue };
        held.files += 1;
        match FileType::from_raw_mode(raw.st_mode) {
            FileType::Directory => inner.push(name.to_owned()),
            FileType::RegularFile => held.bytes = held.bytes.saturating_add(size(&raw)),
            _ => {}
        }
    }
    inner
}

#[cfg(test)]
mod tests;
