//! A problem found in the tree: its file and line, what is wrong and what to do about it.

use std::fmt;

/// Prints as `path:line: what is wrong; what to do`, which editors and terminals turn into a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    says: String,
}

impl Finding {
    /// Makes a finding; `line` counts from 1.
    pub(crate) fn new(path: &str, line: usize, says: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, says: says.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.says)
    }
}
