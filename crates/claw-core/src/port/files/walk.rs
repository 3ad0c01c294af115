//! Going through directories, and searching what is in them.

use serde::{Deserialize, Serialize};

use super::UnixMillis;

/// Which files are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walk {
    /// The directory to begin in, or one file, which is wanted whatever the rest says.
    pub path: String,
    /// How deep: 1 is what is in the directory itself; `None` all of it.
    pub depth: Option<usize>,
    /// Only paths that one of these globs matches; one that begins with `!` takes out. Empty: all.
    pub globs: Vec<String>,
    /// Only files of these types, by ripgrep's names: `rust`, `py`, ... Empty: all.
    pub types: Vec<String>,
    /// Whether names that begin with a dot are wanted.
    pub hidden: bool,
    /// Whether what `.gitignore` and `.ignore` leave out is wanted.
    pub ignored: bool,
    /// Whether directories are wanted as well as files.
    pub directories: bool,
    /// In which order.
    pub order: Order,
    /// How many entries at most; the others are counted.
    pub limit: usize,
}

/// The order of what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// By path, name by name: what is in a directory follows it.
    Path,
    /// What changed last comes first.
    Newest,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walked {
    /// The entries, at most as many as wanted.
    pub entries: Vec<Entry>,
    /// How many files there are in all, those not listed included.
    pub files: u64,
    /// How many directories.
    pub directories: u64,
    /// Whether counting stopped before the end.
    pub stopped: bool,
}

/// One thing in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path, from the directory that the walk began in; empty where that is one file.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Its size in bytes; of a directory 0.
    pub size: u64,
    /// When it last changed.
    pub modified: UnixMillis,
}

/// What a thing in a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link. It is listed and not followed.
    Link,
    /// A device, a socket or a pipe, which cannot be opened.
    Other,
}

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Where. Its `limit` and `order` count for nothing, and directories are not searched for.
    pub within: Walk,
    /// A regular expression, or the text itself.
    pub pattern: String,
    /// Whether the pattern is the text itself.
    pub literal: bool,
    /// Whether case counts; `None`: where the pattern has an upper case letter.
    pub case: Option<bool>,
    /// Whether the pattern must begin and end at the border of a word.
    pub word: bool,
    /// Whether a hit may go over several lines.
    pub multiline: bool,
    /// How many lines to show before a hit.
    pub before: usize,
    /// And after it.
    pub after: usize,
    /// How many hits to give at most; the others are counted.
    pub limit: usize,
}

/// What was found, where and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Searched {
    /// The files with hits, sorted by path; those whose hits are not given have counts alone. Of very many, the
    /// first.
    pub files: Vec<Hits>,
    /// How many files have hits, those not given included.
    pub with_hits: u64,
    /// How many lines have hits in all.
    pub hits: u64,
    /// How many files were searched.
    pub searched: u64,
    /// How many were left out because they are not text.
    pub binary: u64,
    /// How many were left out because they could not be read, or are too long for what was asked.
    pub failed: u64,
    /// Whether the search stopped before the end: there is more than is counted.
    pub stopped: bool,
}

/// The hits in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hits {
    /// Its path, from the directory that the search began in; empty where that is one file.
    pub path: String,
    /// How many lines have hits.
    pub count: u64,
    /// The lines that are shown, hits and what surrounds them, scrubbed; a gap in the numbers is a gap.
    pub lines: Vec<Line>,
}

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number, counted from 1.
    pub number: u64,
    /// What it says, without its line end; of a very long one, the part around the hit.
    pub text: String,
    /// Whether it is a hit or surrounds one.
    pub hit: bool,
}
