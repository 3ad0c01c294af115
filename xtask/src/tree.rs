//! The files of the repository that people write, read once for all checks.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::source;

/// Directories without files of ours.
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

/// A file of the tree.
pub(crate) struct File {
    /// Path relative to the root, with `/` between the parts.
    pub(crate) path: String,
    /// The whole content.
    pub(crate) text: String,
    test: bool,
}

impl Tree {
    /// Reads the files below `root`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        read_into(root, "", &mut files)?;
        Ok(Self::new(files))
    }

    fn new(mut files: Vec<File>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let for_tests: Vec<String> = files.iter().flat_map(test_modules).collect();
        for file in &mut files {
            file.test = is_test(&file.path) || for_tests.iter().any(|module| is_in(&file.path, module));
        }
        Self { files }
    }

    /// A tree of these paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File::new((*path).to_owned(), (*text).to_owned());
        Self::new(files.iter().map(file).collect())
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
    fn new(path: String, text: String) -> Self {
        Self { path, text, test: false }
    }

    /// Returns whether the file is for tests only: a test, a bench, the test kit, a module under
    /// `#[cfg(test)]`.
    pub(crate) const fn is_test(&self) -> bool {
        self.test
    }

    /// Returns whether the file is in `src/` of the crate `name`.
    pub(crate) fn in_crate(&self, name: &str) -> bool {
        let rest = self.path.strip_prefix("crates/").and_then(|path| path.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with("/src/"))
    }

    /// The code without comments, literals and test items; empty for a test file.
    pub(crate) fn production(&self) -> String {
        if self.is_test() { String::new() } else { source::production(&self.text) }
    }

    /// The line, counted from 1, that the byte at `position` is in.
    pub(crate) fn line(&self, position: usize) -> usize {
        source::line(&self.text, position)
    }
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || path.contains("/tests/")
        || path.contains("/benches/")
        || path.starts_with("crates/claw-testkit/")
}

/// The modules that `file` declares for tests only, as paths without `.rs`.
fn test_modules(file: &File) -> Vec<String> {
    let Some(path) = file.path.strip_suffix(".rs") else { return Vec::new() };
    let directory = match path.rsplit_once('/') {
        Some((directory, "lib" | "main" | "mod")) => directory,
        _ => path,
    };
    source::test_modules(&file.text).into_iter().map(|name| format!("{directory}/{name}")).collect()
}

/// Returns whether the file is that module or below it.
fn is_in(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
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
            files.push(File::new(path, text));
        }
    }
    Ok(())
}

fn is_ours(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    matches!(extension, "rs" | "toml" | "md" | "sh" | "json" | "sql")
        || name == "Makefile"
        || path == ".ci/run"
}

#[cfg(test)]
mod tests;
