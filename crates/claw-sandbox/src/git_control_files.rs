//! Files of the workspace's git repository that make git run programs. A command that writes to the workspace
//! directly can read them, but not change, replace or create them.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

/// Directories and files of a repository by which git finds programs to run.
const HELD: [&str; 5] = ["config", "hooks", "info", "config.worktree", "commondir"];

/// Paths that a command must not change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlFiles {
    /// The repository's directory in the workspace, which must keep its name.
    pub(crate) directory: Option<PathBuf>,
    /// Files and directories that are read-only.
    pub(crate) held: Vec<PathBuf>,
}

/// Finds the control files of the workspace's own repository. `config`, `hooks` and `info` are created if the
/// repository lacks them, because only an existing path can be held.
pub(crate) fn control_files(workspace: &Path) -> ControlFiles {
    let git = workspace.join(".git");
    match fs::symlink_metadata(&git) {
        Ok(found) if found.is_dir() => {
            ControlFiles { held: held_in(&git, is_repository(&git)), directory: Some(git) }
        }
        // It names the directory of the repository, which is elsewhere.
        Ok(found) if found.is_file() => ControlFiles { directory: None, held: vec![git] },
        Err(_) if is_repository(workspace) => {
            ControlFiles { directory: None, held: held_in(workspace, true) }
        }
        _ => ControlFiles::default(),
    }
}

/// Returns whether git takes a directory for a repository.
fn is_repository(directory: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|part| fs::symlink_metadata(directory.join(part)).is_ok())
}

fn held_in(directory: &Path, is_repository: bool) -> Vec<PathBuf> {
    if is_repository {
        complete(directory);
    }
    let is_held =
        |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() || found.is_file());
    HELD.iter().map(|name| directory.join(name)).filter(is_held).collect()
}

/// Creates the missing control files, empty. If this fails, the command cannot create them either: it runs as the same
/// user.
fn complete(directory: &Path) {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = openat(CWD, directory, flags, Mode::empty()) else { return };
    for name in ["hooks", "info"] {
        let _ = mkdirat(&opened, name, Mode::from_raw_mode(0o755));
    }
    // Git reads `config.worktree` only if `config` says so.
    let config = fs::read(directory.join("config")).unwrap_or_default();
    let per_worktree = String::from_utf8_lossy(&config).to_ascii_lowercase().contains("worktreeconfig");
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for name in ["config", "config.worktree"].iter().take(if per_worktree { 2 } else { 1 }) {
        let _ = openat(&opened, *name, flags, Mode::from_raw_mode(0o644));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(workspace: &Path, directory: Option<&str>, held: &[&str]) {
        let found = control_files(workspace);
        assert_eq!(found.directory, directory.map(|name| workspace.join(name)));
        assert_eq!(found.held, held.iter().map(|name| workspace.join(name)).collect::<Vec<_>>());
    }

    #[test]
    fn missing_control_files_of_a_repository_are_created_and_held() {
        let workspace = tempfile::tempdir().unwrap();
        let (root, git) = (workspace.path(), workspace.path().join(".git"));
        check(root, None, &[]);
        fs::create_dir_all(git.join("objects")).unwrap();
        check(root, Some(".git"), &[]);
        fs::create_dir(git.join("refs")).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        check(root, Some(".git"), &[".git/config", ".git/hooks", ".git/info"]);
        fs::write(git.join("config"), "[extensions]\n\tworktreeConfig = true\n").unwrap();
        check(root, Some(".git"), &[".git/config", ".git/hooks", ".git/info", ".git/config.worktree"]);
    }

    #[test]
    fn a_worktree_and_a_bare_repository_are_held_too() {
        let workspace = tempfile::tempdir().unwrap();
        fs::write(workspace.path().join(".git"), "gitdir: elsewhere\n").unwrap();
        check(workspace.path(), None, &[".git"]);
        let bare = tempfile::tempdir().unwrap();
        fs::write(bare.path().join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::create_dir(bare.path().join("objects")).unwrap();
        fs::create_dir(bare.path().join("refs")).unwrap();
        check(bare.path(), None, &["config", "hooks", "info"]);
    }
}
