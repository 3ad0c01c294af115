//! The `/tmp` of a session: it lasts from one command to the next, and nobody else sees it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use claw_core::tool::Digest;

/// A session that ran no command for so long loses its `/tmp`.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Returns the `/tmp` of the sandbox of this name, below `root`; makes it where it is not there. Removes those that were
/// not used for long.
pub(super) fn directory(root: &Path, sandbox: &str) -> io::Result<PathBuf> {
    let name = Digest::of_bytes(sandbox.as_bytes()).to_string();
    let own = root.join(name.trim_start_matches("sha256:"));
    let temporary = own.join("tmp");
    if !temporary.is_dir() {
        DirBuilder::new().mode(0o700).recursive(true).create(&temporary)?;
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777))?;
        prune(root, SystemTime::now());
    }
    // Whoever removes old ones looks at this.
    fs::write(own.join("used"), "")?;
    Ok(temporary)
}

fn prune(root: &Path, now: SystemTime) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let used = fs::metadata(entry.path().join("used")).and_then(|used| used.modified());
        let is_old = used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > KEPT));
        if is_old && let Err(error) = crate::transaction::remove_whole(&entry.path()) {
            tracing::warn!(%error, "the old `/tmp` of a session could not be removed");
        }
    }
}
