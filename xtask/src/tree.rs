//! The files of the repository that people write, read once and handed to every check.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::source;

/// Directories that hold no file of ours.
const SKIPPED: &[&str] = &["target", "node_modules", ".git", ".cache", ".clawsmith"];

/// The repository's root: the parent of this package.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map_or_else(|| here.clone(), Path::to_path_buf)
}

/// All files that the checks look at, by path.
pub(crate) struct Tree {
    files: Vec<File>,
}

/// One file, its path relative to the root with `/` between the parts.
pub(crate) struct File {
    /// Where it is.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

impl Tree {
    /// Reads the files below `root`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        read_into(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// A tree of these paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File { path: (*path).to_owned(), text: (*text).to_owned() };
        Self { files: files.iter().map(file).collect() }
    }

    /// The files, sorted by path.
    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files().filter(|file| file.path.ends_with(".rs"))
    }

    /// The file at `path`.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files().find(|file| file.path == path)
    }
}

impl File {
    /// Whether it is there for tests alone: a test, a bench, or the test kit.
    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.contains("/tests/")
            || self.path.contains("/benches/")
            || self.path.starts_with("crates/claw-testkit/")
    }

    /// Whether it is in `src/` of the crate `name`.
    pub(crate) fn in_crate(&self, name: &str) -> bool {
        let rest = self.path.strip_prefix("crates/").and_then(|path| path.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with("/src/"))
    }

    /// Its code without comments, literals and test items; nothing for a test file.
    pub(crate) fn production(&self) -> String {
        if self.is_test() { String::new() } else { source::production(&self.text) }
    }

    /// The line, counted from 1, that the byte at `position` is in.
    pub(crate) fn line(&self, position: usize) -> usize {
        source::line(&self.text, position)
    }
}

fn read_into(directory: &Path, prefix: &str, files: &mut Vec<File>) -> Result<()> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot list `{}`", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            read_into(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && is_ours(&path) {
            let text = fs::read_to_string(entry.path()).with_context(|| format!("cannot read `{path}`"))?;
            files.push(File { path, text });
        }
    }
    Ok(())
}

fn is_ours(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    matches!(extension, "rs" | "toml" | "md" | "sh" | "json") || name == "Makefile" || path == ".ci/run"
}
