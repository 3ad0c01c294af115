//! Directories with generated files, which commands write to directly: builds stay fast, and nobody undoes
//! them.

use std::fs;
use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;

/// Finds the directories of these names that exist and hold generated files: at the workspace's top, and on
/// the way from there to the command's working directory.
pub(super) fn find(workspace: &Path, start: &str, names: &[String]) -> Vec<PathBuf> {
    let start = workspace.join(start);
    let on_the_way = start.ancestors().filter(|above| above.starts_with(workspace) && *above != workspace);
    let mut found = Vec::new();
    for parent in on_the_way.chain([workspace]) {
        for name in names.iter().filter(|name| !name.contains('/')) {
            let path = parent.join(name);
            let is_directory = fs::symlink_metadata(&path).is_ok_and(|there| there.is_dir());
            if is_directory && is_generated(workspace, parent, name) {
                found.push(path);
            }
        }
    }
    found
}

/// Returns whether git ignores a directory. A directory that is a repository itself is not generated.
fn is_generated(workspace: &Path, parent: &Path, name: &str) -> bool {
    let path = parent.join(name);
    let ignores = |directory: &Path| {
        let (rules, _) = Gitignore::new(directory.join(".gitignore"));
        path.strip_prefix(directory).is_ok_and(|path| rules.matched(path, true).is_ignore())
    };
    let is_repository = [".git", "HEAD"].iter().any(|part| fs::symlink_metadata(path.join(part)).is_ok());
    !is_repository && parent.ancestors().take_while(|above| above.starts_with(workspace)).any(ignores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_git_ignores() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for directory in
            ["target", "node_modules", ".venv", "sub/node_modules", "sub/target", "other/target", "build"]
        {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::write(root.join(".gitignore"), "/target\nnode_modules/\n.venv\n").unwrap();
        // A command could have written these.
        fs::write(root.join("build/.gitignore"), "*\n").unwrap();
        fs::write(root.join("sub/target/CACHEDIR.TAG"), "").unwrap();
        let names = ["target", "node_modules", ".venv", "build", "missing", "a/b"].map(str::to_owned);
        let mut found = find(root, "sub", &names);
        found.sort();
        let expected = [".venv", "node_modules", "sub/node_modules", "target"];
        assert_eq!(found, expected.map(|path| root.join(path)));
        assert_eq!(find(root, ".", &names).len(), 3);
        std::os::unix::fs::symlink("/etc", root.join("sub/.venv")).unwrap();
        assert_eq!(find(root, "sub", &names).len(), 4, "a link is no directory");
        fs::create_dir(root.join("target/.git")).unwrap();
        assert_eq!(find(root, ".", &names).len(), 2, "a repository is not generated");
    }
}
