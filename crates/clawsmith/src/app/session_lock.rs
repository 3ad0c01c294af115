//! Locks a session for one terminal of this machine, so that no other chats in it at the same time.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use claw_core::SessionKey;

use super::App;
use super::session_list::short_id;

/// The directory in the data directory with a locked file for each session open at a terminal.
const HELD: &str = "chats";

impl App {
    /// Returns the file that a terminal keeps locked while it has a session open; `None` without a data
    /// directory.
    pub(super) fn lock_file(&self, session: &SessionKey) -> Option<PathBuf> {
        Some(self.setup.data_dir().ok()?.join(HELD).join(short_id(session)))
    }
}

/// Locks the file; `None` if another terminal has it. The lock ends with the file.
pub(super) fn lock(path: &Path) -> Option<File> {
    let directory = path.parent()?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).ok()?;
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).ok()?;
    file.try_lock().ok().map(|()| file)
}

/// Returns whether a terminal has the file locked.
pub(super) fn is_locked(path: &Path) -> bool {
    OpenOptions::new().write(true).open(path).is_ok_and(|file| file.try_lock().is_err())
}
