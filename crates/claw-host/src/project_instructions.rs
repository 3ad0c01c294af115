//! A project's instructions for agents: `AGENTS.md` and `CLAUDE.md`, from the workspace up to the
//! repository's root.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};

/// Names of the files, in the order in which they are read.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// The most bytes read of one file.
const MOST_BYTES: u64 = 128 * 1024;
/// The most directories scanned.
const MOST_DIRECTORIES: usize = 32;

/// Returns the files with their texts, those of the repository's root first, by their paths from there.
/// Outside a repository only the workspace is searched. A file that is a link is left out: it could lead
/// anywhere.
pub fn instructions(workspace: &Path) -> Vec<(String, String)> {
    let ancestors: Vec<&Path> = workspace.ancestors().take(MOST_DIRECTORIES).collect();
    let root = ancestors.iter().position(|directory| directory.join(".git").exists()).unwrap_or(0);
    let top = ancestors.get(root).copied().unwrap_or(workspace);
    let mut found: Vec<(String, String)> = Vec::new();
    for directory in ancestors[..=root.min(ancestors.len().saturating_sub(1))].iter().rev() {
        for path in NAMES.map(|name| directory.join(name)) {
            let Some(text) = read(&path) else { continue };
            let is_new = found.iter().all(|(_, other)| *other != text);
            if is_new && !text.trim().is_empty() {
                found.push((shown(&path, top), text));
            }
        }
    }
    found
}

fn shown(path: &Path, top: &Path) -> String {
    path.strip_prefix(top).map(PathBuf::from).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn read(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).ok()?.st_mode);
    if kind != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    File::from(file).take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_read_from_the_root_of_the_repository_down() {
        let outside = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = outside.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("AGENTS.md", "outside of the repository");
        write("repository/.git/HEAD", "");
        write("repository/AGENTS.md", "root");
        write("repository/CLAUDE.md", "root");
        write("repository/app/CLAUDE.md", "app");
        symlink("/etc/passwd", outside.path().join("repository/app/AGENTS.md")).unwrap();
        write("repository/app/src/x", "");
        let of = |path: &str| instructions(&outside.path().join(path));
        let expected =
            [("AGENTS.md".to_owned(), "root".to_owned()), ("app/CLAUDE.md".to_owned(), "app".to_owned())];
        assert_eq!(of("repository/app/src"), expected, "a text stands once, and links are not followed");
        assert_eq!(of("repository"), expected[..1]);
        write("plain/deep/AGENTS.md", "deep");
        write("plain/AGENTS.md", "above");
        assert_eq!(of("plain/deep"), [("AGENTS.md".to_owned(), "deep".to_owned())], "without a repository");
    }
}
