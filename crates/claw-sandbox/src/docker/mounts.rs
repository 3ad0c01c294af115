//! The mounts of a container, and how hidden paths stay hidden.
//!
//! A hidden directory is covered by an empty one, a hidden file by `/dev/null`. Each directory on the way
//! to them is a mount of its own, since mounts cannot be renamed: a hidden path stays where the next command
//! hides it too. Git's control files are read-only mounts of their own. The engine follows links when it mounts, so the mounts are verified from inside before
//! anything runs.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bollard::models::{Mount, MountBindOptions, MountBindOptionsPropagationEnum, MountType};

use super::super::{Reach, SandboxError};
use super::WorkspaceAccess;
use super::wire::Mounted;
use crate::git_control_files::{ControlFiles, control_files};

/// The path of the workspace inside.
pub const WORKSPACE: &str = "/workspace";

/// The mounts of one container.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Mounts {
    pub(super) binds: Vec<Mount>,
    /// Directories in memory, with their options.
    pub(super) tmpfs: HashMap<String, String>,
    /// The mounts to verify from inside.
    pub(super) mounted: Vec<Mounted>,
}

impl Mounts {
    /// Of a reach that was resolved.
    pub(super) fn of(reach: &Reach, access: WorkspaceAccess, own: &str) -> Result<Self, SandboxError> {
        let mut mounts = Self::default();
        let shown = access != WorkspaceAccess::None;
        match shown {
            true => mounts.show(&reach.workspace, WORKSPACE, !reach.write)?,
            false => drop(mounts.tmpfs.insert(WORKSPACE.to_owned(), own.to_owned())),
        }
        for grant in &reach.grants {
            mounts.show(&grant.path, text(&grant.path)?, !grant.write)?;
        }
        if shown && reach.writes_directly() {
            mounts.hold_repository(reach)?;
        }
        let mut hidden: Vec<&PathBuf> = reach.hidden.iter().collect();
        hidden.sort_by_key(|path| path.components().count());
        let mut covered: Vec<&PathBuf> = Vec::new();
        for path in hidden {
            // A path within a hidden one is hidden already, and cannot be covered twice.
            if covered.iter().any(|above| path.starts_with(above)) {
                continue;
            }
            covered.push(path);
            let mut places = Vec::new();
            if let Some(rest) = path.strip_prefix(&reach.workspace).ok().filter(|_| shown) {
                places.push((reach.workspace.as_path(), Path::new(WORKSPACE), rest, !reach.write));
            }
            for grant in &reach.grants {
                if let Ok(rest) = path.strip_prefix(&grant.path) {
                    places.push((grant.path.as_path(), grant.path.as_path(), rest, !grant.write));
                }
            }
            for (outside, inside, rest, read_only) in places {
                if rest.as_os_str().is_empty() {
                    return Err(refused(path, "it is granted, but must also be hidden"));
                }
                for above in rest.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
                    mounts.show(&outside.join(above), text(&inside.join(above))?, read_only)?;
                }
                mounts.hide(path, text(&inside.join(rest))?)?;
            }
        }
        Ok(mounts)
    }

    /// Makes git's control files read-only, in a repository that keeps its name.
    fn hold_repository(&mut self, reach: &Reach) -> Result<(), SandboxError> {
        let ControlFiles { directory, held } = control_files(&reach.workspace);
        let is_hidden = |path: &PathBuf| reach.hidden.iter().any(|hidden| path.starts_with(hidden));
        let all =
            directory.into_iter().map(|path| (path, false)).chain(held.into_iter().map(|path| (path, true)));
        for (path, read_only) in all.filter(|(path, _)| !is_hidden(path)) {
            let rest = path.strip_prefix(&reach.workspace).unwrap_or(&path);
            self.show(&path, text(&Path::new(WORKSPACE).join(rest))?, read_only)?;
        }
        Ok(())
    }

    fn show(&mut self, path: &Path, inside: &str, read_only: bool) -> Result<(), SandboxError> {
        if self.mounted.iter().any(|mounted| mounted.path == Path::new(inside)) {
            return Ok(());
        }
        self.binds.push(bind(text(path)?, inside, read_only));
        self.compare(path, inside, true)
    }

    fn hide(&mut self, path: &Path, inside: &str) -> Result<(), SandboxError> {
        let found = fs::symlink_metadata(path).map_err(|error| refused(path, &error.to_string()))?;
        if found.is_dir() {
            self.tmpfs.insert(inside.to_owned(), "ro,noexec,nosuid,nodev,size=4k,mode=0".to_owned());
        } else {
            self.binds.push(bind("/dev/null", inside, true));
        }
        self.compare(path, inside, false)
    }

    fn compare(&mut self, path: &Path, inside: &str, shown: bool) -> Result<(), SandboxError> {
        let found = fs::symlink_metadata(path).map_err(|error| refused(path, &error.to_string()))?;
        let (device, inode) = (found.dev(), found.ino());
        self.mounted.push(Mounted { path: PathBuf::from(inside), device, inode, shown });
        Ok(())
    }
}

/// Returns a bind mount without the mounts below the path: those would not be read-only.
pub(super) fn bind(path: &str, inside: &str, read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(path.to_owned()),
        target: Some(inside.to_owned()),
        read_only: Some(read_only),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            non_recursive: Some(true),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    }
}

fn text(path: &Path) -> Result<&str, SandboxError> {
    path.to_str().ok_or_else(|| refused(path, "its name is not valid UTF-8, which the engine requires"))
}

fn refused(path: &Path, reason: &str) -> SandboxError {
    SandboxError::Path { path: path.display().to_string(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Grant;

    #[test]
    fn what_is_hidden_is_covered_once_and_cannot_be_moved() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (workspace, beside) = (root.join("w"), root.join("beside"));
        fs::create_dir_all(workspace.join("a/b/data/deep")).unwrap();
        fs::create_dir(&beside).unwrap();
        fs::write(workspace.join("file"), "").unwrap();
        let hidden = ["a/b/data/deep", "file", "a/b/data", "file"].map(|name| workspace.join(name)).to_vec();
        let grants = vec![Grant { path: beside.clone(), write: false }];
        let reach = Reach { grants, hidden, ..Reach::workspace(workspace) };
        let mounts = Mounts::of(&reach, WorkspaceAccess::Rw, "own").unwrap();
        let targets: Vec<_> = mounts.binds.iter().map(|bind| bind.target.as_deref().unwrap()).collect();
        let beside = beside.to_str().unwrap();
        let wanted = ["/workspace", beside, "/workspace/file", "/workspace/a/b", "/workspace/a"];
        assert_eq!(targets, wanted);
        assert_eq!(mounts.tmpfs.keys().collect::<Vec<_>>(), ["/workspace/a/b/data"]);
        let read_only: Vec<_> = mounts.binds.iter().map(|bind| bind.read_only == Some(true)).collect();
        assert_eq!(read_only, [false, true, true, false, false]);
        assert_eq!(mounts.mounted.iter().filter(|mounted| !mounted.shown).count(), 2);
        // Nothing of it where the workspace is not shown.
        let mounts = Mounts::of(&reach, WorkspaceAccess::None, "own").unwrap();
        assert_eq!(mounts.binds.len(), 1);
        assert_eq!(mounts.tmpfs.keys().collect::<Vec<_>>(), ["/workspace"]);
    }
}
