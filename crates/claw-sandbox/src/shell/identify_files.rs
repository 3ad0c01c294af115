//! Looks at the files that a command leads to: the path that a name means now, and the file's identity.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use claw_core::tool::{Sight, Target, ToolError};
use claw_host::transaction::identity;
use tokio::task::spawn_blocking;

use super::search_path::SearchPath;

/// The path of a file, and its identity.
pub(super) type Seen = (Option<String>, Option<String>);

/// Looks up these targets in the file system, in their order; other kinds of targets are left out. Runs on a
/// thread that may block: a path can lead to a slow disk or server.
pub(super) async fn look(
    targets: &[Target],
    workspace: &Path,
    search: impl FnOnce() -> SearchPath + Send + 'static,
) -> Result<Vec<Seen>, ToolError> {
    let is_there = |target: &Target| {
        matches!(target, Target::Program { .. } | Target::File { .. } | Target::Outside { .. })
    };
    if !targets.iter().any(is_there) {
        return Ok(vec![(None, None); targets.len()]);
    }
    let (targets, workspace) = (targets.to_vec(), workspace.to_owned());
    let seen = spawn_blocking(move || {
        let search = search();
        let look = |target: &Target| match target {
            Target::Program { name, directory } => program(name, &workspace.join(directory), &search),
            Target::File { path } => file(&workspace.join(path)),
            Target::Outside { path } => (file(Path::new(path)).0, Some(Sight::DIRECTORY.to_owned())),
            Target::Sandbox
            | Target::Skill { .. }
            | Target::Process { .. }
            | Target::Host { .. }
            | Target::Session { .. } => (None, None),
        };
        targets.iter().map(look).collect()
    });
    seen.await.map_err(ToolError::internal)
}

/// Keeps the paths that exist. Runs on a thread that may block; if that fails, all of them are kept.
pub(super) async fn existing(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    if paths.is_empty() {
        return paths;
    }
    let all = paths.clone();
    let looked = spawn_blocking(move || paths.into_iter().filter(|path| path.exists()).collect());
    looked.await.unwrap_or(all)
}

/// Returns the program that a word in command position means.
fn program(name: &str, directory: &Path, search: &SearchPath) -> Seen {
    let found = match name.contains('/') {
        true => Some(directory.join(name)),
        false => found_in(search, name),
    };
    found.map_or((None, None), |path| file(&path))
}

/// The program of the system of this name.
pub(super) fn in_path(name: &str) -> Option<PathBuf> {
    found_in(&SearchPath::default(), name)
}

/// The program of this name that a command finds.
fn found_in(search: &SearchPath, name: &str) -> Option<PathBuf> {
    search.directories.iter().map(|directory| directory.join(name)).find(is_program)
}

/// A file, wherever links lead.
pub(super) fn file(path: &Path) -> Seen {
    let Ok(path) = path.canonicalize() else { return (None, None) };
    let identity = std::fs::metadata(&path).ok().as_ref().map(identity);
    (Some(path.display().to_string()), identity)
}

/// The directories in which every command can write to a place of its own.
pub(crate) const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Returns whether a program lies in one of these directories, or is found by a name that leads through one:
/// writers there decide what runs.
pub(crate) fn is_writable(
    target: &Target,
    path: Option<&str>,
    workspace: &Path,
    writable: &[PathBuf],
) -> bool {
    let Target::Program { name, directory } = target else { return false };
    let named = name.contains('/').then(|| workspace.join(directory).join(name));
    let is_inside = |path: &Path| writable.iter().any(|directory| path.starts_with(directory));
    named.is_some_and(|named| is_inside(&named)) || path.is_some_and(|path| is_inside(Path::new(path)))
}

/// Names a target, for display.
pub(crate) fn named(target: &Target) -> String {
    match target {
        Target::Program { name, .. } => format!("the program `{name}`"),
        Target::File { path } => format!("the file `{path}`"),
        Target::Skill { path } => format!("the skill in `{path}`"),
        Target::Sandbox => "the sandbox".to_owned(),
        Target::Process { process } => format!("the background command `{process}`"),
        Target::Outside { path } => format!("the directory `{path}`"),
        Target::Host { host } => format!("the host `{host}`"),
        Target::Session { session } => format!("the session `{session}`"),
    }
}

fn is_program(path: &PathBuf) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, SystemTime};

    use claw_core::tool::Target;

    use super::{SearchPath, existing, file, look};

    #[tokio::test]
    async fn only_paths_that_exist_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (there, absent) = (directory.path().join("there"), directory.path().join("absent"));
        fs::write(&there, "").unwrap();
        assert_eq!(existing(vec![absent, there.clone()]).await, [there]);
        assert!(existing(Vec::new()).await.is_empty());
    }

    #[tokio::test]
    async fn other_tasks_go_on_while_files_are_looked_at() {
        let beats = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&beats);
        // On the one thread of this runtime: it beats only where looking does not keep that thread.
        let heart = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let directory = tempfile::tempdir().unwrap();
        let targets = vec![Target::File { path: "missing".into() }; 1_000];
        let seen = look(&targets, directory.path(), SearchPath::default).await.unwrap();
        assert_eq!(seen, vec![(None, None); 1_000]);
        assert!(beats.load(Ordering::Relaxed) > 0);
        heart.abort();
    }

    #[test]
    fn a_file_whose_time_was_set_back_is_another_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        fs::write(&path, "#!/bin/sh\necho good\n").unwrap();
        let set_time = |time: SystemTime| {
            fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        };
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        set_time(time);
        let seen = file(&path);
        assert_eq!(file(&path), seen, "what nobody touched is the same");
        // The kernel's clock ticks every few milliseconds, so the first try may fall into the same tick.
        let is_another = (0..100_000).any(|_| {
            fs::write(&path, "#!/bin/sh\necho evil\n").unwrap();
            set_time(time);
            file(&path) != seen
        });
        assert!(is_another, "size and time are as before, and the content is not");
    }
}
