//! The `/tmp` of a session and the home of an agent's commands: they last from one command to the next, and
//! nobody else sees them.

use std::fs::{self, DirBuilder};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use claw_core::tool::Digest;
use rustix::fs::{Mode, OFlags};

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

/// Returns the home directory of this key, below `root`, making it if missing. With `knows_user`, git knows the name
/// and address of this program's user in it. Removes those that were not used for long.
pub(super) fn home(root: &Path, key: &str, knows_user: bool) -> io::Result<PathBuf> {
    let (home, _) = lasting(root, key, "home", HOME_KEPT)?;
    if knows_user {
        // Asking git takes time: once for each program that runs commands.
        static IDENTITY: OnceLock<String> = OnceLock::new();
        introduce(&home, IDENTITY.get_or_init(identity))?;
    }
    Ok(home)
}

/// The `.gitconfig` that names this program's user; empty if git does not know them.
fn identity() -> String {
    let settings = ["name", "email"].into_iter().filter_map(|name| {
        let value = git_setting(&format!("user.{name}"))?;
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        Some(format!("\t{name} = \"{value}\"\n"))
    });
    let settings: String = settings.collect();
    if settings.is_empty() { settings } else { format!("[user]\n{settings}") }
}

/// Writes the `.gitconfig` of a home if it differs, and is missing or as it was written before. One that a command
/// changed stays.
fn introduce(home: &Path, identity: &str) -> io::Result<()> {
    let Some(own) = home.parent() else { return Ok(()) };
    let (record, file) = (own.join("identity"), home.join(".gitconfig"));
    let written = fs::read_to_string(&record).ok();
    if identity.is_empty() || written.as_deref() == Some(identity) {
        return Ok(());
    }
    let is_ours = match (fs::symlink_metadata(&file), &written) {
        (Err(error), _) => error.kind() == io::ErrorKind::NotFound,
        (Ok(found), Some(written)) => found.is_file() && plain_text(&file, written.len())? == *written,
        (Ok(_), None) => false,
    };
    if is_ours {
        // Renamed into place: commands can make links there, which a write would follow.
        let new = own.join("identity.new");
        fs::write(&new, identity)?;
        fs::rename(&new, &file)?;
        fs::write(&record, identity)?;
    }
    Ok(())
}

/// Reads so many bytes of a file that commands can replace at any moment; follows no link and waits for no pipe.
fn plain_text(file: &Path, length: usize) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut bytes = Vec::new();
    let opened = fs::File::from(rustix::fs::open(file, flags, Mode::empty())?);
    opened.take(length as u64 + 1).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_changed_identity_arrives_unless_a_command_wrote_its_own() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        fs::create_dir(&home).unwrap();
        let file = home.join(".gitconfig");
        let told = |identity: &str| {
            introduce(&home, identity).unwrap();
            fs::read_to_string(&file).unwrap_or_default()
        };
        assert_eq!(told(""), "");
        assert_eq!(told("ada"), "ada");
        assert_eq!(told("ada lovelace"), "ada lovelace");
        fs::write(&file, "mine").unwrap();
        assert_eq!(told("grace"), "mine", "a command's own settings stay");
    }

    #[test]
    fn a_link_that_a_command_left_is_not_written_through() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        fs::create_dir(&home).unwrap();
        introduce(&home, "ada").unwrap();
        let outside = root.path().join("outside");
        fs::write(&outside, "ada").unwrap();
        fs::remove_file(home.join(".gitconfig")).unwrap();
        symlink(&outside, home.join(".gitconfig")).unwrap();
        introduce(&home, "grace").unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "ada");
    }
}
