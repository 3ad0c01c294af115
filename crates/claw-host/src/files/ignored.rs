//! The rules of `.gitignore` and `.ignore`. The files' bytes are passed in; nothing is opened here.

use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The names of the files that rules are in.
pub(super) const GITIGNORE: &str = ".gitignore";
pub(super) const IGNORE: &str = ".ignore";
/// The entry that marks the top directory of a repository.
pub(super) const REPOSITORY: &str = ".git";
/// The number of bytes, and of lines, of an ignore file that count.
pub(super) const MOST_BYTES: usize = 256 * 1024;
const MOST_LINES: usize = 10_000;

/// The rules of a directory and of its parents; `None` if there are none.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules(Option<Arc<Level>>);

/// The rules of one directory.
#[derive(Debug)]
struct Level {
    above: Rules,
    gitignore: Gitignore,
    ignore: Gitignore,
    /// True if a repository begins here: `.gitignore` rules from above do not apply in it.
    repository: bool,
}

/// The ignore files of one directory.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) gitignore: Option<Vec<u8>>,
    pub(super) ignore: Option<Vec<u8>>,
    pub(super) repository: bool,
}

/// The decision of the rules about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Nothing,
    Out,
    /// Included by name, so that it is not left out for being hidden either.
    In,
}

impl Rules {
    /// Adds the rules of a directory, whose path is relative to a root, with a leading slash.
    #[must_use]
    pub(super) fn with(&self, directory: &Path, sources: &Sources) -> Self {
        let Sources { gitignore, ignore, repository } = sources;
        if gitignore.is_none() && ignore.is_none() && !(*repository && self.0.is_some()) {
            return self.clone();
        }
        let compile = |source: &Option<Vec<u8>>| match source {
            Some(bytes) => compile(directory, bytes),
            None => Gitignore::empty(),
        };
        Self(Some(Arc::new(Level {
            above: self.clone(),
            gitignore: compile(gitignore),
            ignore: compile(ignore),
            repository: *repository,
        })))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Decides about an entry. The innermost rule wins, and `.ignore` wins over `.gitignore`.
    pub(super) fn judge(&self, path: &Path, directory: bool) -> Verdict {
        let mut by_git = Verdict::Nothing;
        let mut left = false;
        let mut at = &self.0;
        while let Some(level) = at {
            let verdict = verdict(&level.ignore, path, directory);
            if verdict != Verdict::Nothing {
                return verdict;
            }
            if by_git == Verdict::Nothing && !left {
                by_git = self::verdict(&level.gitignore, path, directory);
                left = level.repository;
            }
            at = &level.above.0;
        }
        by_git
    }
}

fn verdict(rules: &Gitignore, path: &Path, directory: bool) -> Verdict {
    match rules.matched(path, directory) {
        Match::None => Verdict::Nothing,
        Match::Ignore(_) => Verdict::Out,
        Match::Whitelist(_) => Verdict::In,
    }
}

/// Compiles an ignore file. Invalid lines are skipped, as git does.
fn compile(directory: &Path, bytes: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(directory);
    let bytes = &bytes[..bytes.len().min(MOST_BYTES)];
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    for line in text.lines().take(MOST_LINES) {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Rules can be as deep as a tree; dropping them iteratively needs no stack.
impl Drop for Level {
    fn drop(&mut self) {
        let mut next = self.above.0.take();
        while let Some(level) = next.and_then(Arc::into_inner) {
            let mut level = level;
            next = level.above.0.take();
        }
    }
}

#[cfg(test)]
mod tests;
