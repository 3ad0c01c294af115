//! The `/tmp` of a session and the home of an agent's commands: they last from one command to the next, and
//! nobody else sees them.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use claw_core::tool::Digest;

/// A session that ran no command for so long loses its `/tmp`.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A home that no command used for so long is removed, with the caches in it.
const HOME_KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Returns the `/tmp` of the sandbox of this name, below `root`, making it if missing. Removes those that
/// were not used for long.
pub(super) fn directory(root: &Path, sandbox: &str) -> io::Result<PathBuf> {
    let (temporary, is_new) = lasting(root, sandbox, "tmp", KEPT)?;
    if is_new {
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777))?;
    }
    Ok(temporary)
}

/// Returns the home directory of this key, below `root`, making it if missing. With `knows_user`, a new one
/// tells git the name and address of this program's user. Removes those that were not used for long.
pub(super) fn home(root: &Path, key: &str, knows_user: bool) -> io::Result<PathBuf> {
    let (home, is_new) = lasting(root, key, "home", HOME_KEPT)?;
    if is_new && knows_user {
        let settings = ["name", "email"].into_iter().filter_map(|name| {
            let value = git_setting(&format!("user.{name}"))?;
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            Some(format!("\t{name} = \"{value}\"\n"))
        });
        let settings: String = settings.collect();
        if !settings.is_empty() {
            fs::write(home.join(".gitconfig"), format!("[user]\n{settings}"))?;
        }
    }
    Ok(home)
}

/// A setting of this program's user, as git knows it.
fn git_setting(name: &str) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["config", "--global", "--includes", "--get", name]).current_dir("/");
    let read = git.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let value = String::from_utf8(read.stdout).ok()?.trim().to_owned();
    (read.status.success() && !value.is_empty() && !value.contains(['\n', '\0'])).then_some(value)
}

/// Returns the directory of this key and name, and whether it was just made.
fn lasting(root: &Path, key: &str, name: &str, kept: Duration) -> io::Result<(PathBuf, bool)> {
    let digest = Digest::of_bytes(key.as_bytes()).to_string();
    let own = root.join(digest.trim_start_matches("sha256:"));
    let directory = own.join(name);
    let is_new = !directory.is_dir();
    if is_new {
        DirBuilder::new().mode(0o700).recursive(true).create(&directory)?;
        prune(root, SystemTime::now(), kept);
    }
    // The removal of old directories checks this file's time.
    fs::write(own.join("used"), "")?;
    Ok((directory, is_new))
}

fn prune(root: &Path, now: SystemTime, kept: Duration) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let used = fs::metadata(entry.path().join("used")).and_then(|used| used.modified());
        let is_old = used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > kept));
        if is_old && let Err(error) = claw_host::transaction::remove_whole(&entry.path()) {
            tracing::warn!(%error, "an old directory of commands could not be removed");
        }
    }
}
