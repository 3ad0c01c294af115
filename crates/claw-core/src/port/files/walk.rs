//! Walking directories, and searching their files.

use serde::{Deserialize, Serialize};

use super::UnixMillis;

/// The directory entries to list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walk {
    /// The directory to begin in, or one file, which is listed regardless of the filters.
    pub path: String,
    /// The depth: 1 lists the directory itself; `None` has no limit.
    pub depth: Option<usize>,
    /// Only paths that match one of these globs; a glob that begins with `!` excludes. Empty: all.
    pub globs: Vec<String>,
    /// Only files of these types, by ripgrep's names: `rust`, `py`, ... Empty: all.
    pub types: Vec<String>,
    /// True to include names that begin with a dot.
    pub hidden: bool,
    /// True to include paths that `.gitignore` and `.ignore` exclude.
    pub ignored: bool,
    /// True to list directories as well as files.
    pub directories: bool,
    /// The order of the entries.
    pub order: Order,
    /// The most entries to list; further ones are counted.
    pub limit: usize,
}

/// The order of listed entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// By path, name by name: the contents of a directory follow it.
    Path,
    /// Most recently changed first.
    Newest,
}

/// The outcome of a walk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walked {
    /// The entries, at most the walk's limit.
    pub entries: Vec<Entry>,
    /// The number of files, including those not listed.
    pub files: u64,
    /// The number of directories.
    pub directories: u64,
    /// True if counting stopped before the end.
    pub stopped: bool,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path, from the directory that the walk began in; empty if that is one file.
    pub path: String,
    /// Its kind.
    pub kind: EntryKind,
    /// Its size in bytes; 0 for a directory.
    pub size: u64,
    /// The time of its last change.
    pub modified: UnixMillis,
}

/// The kind of a directory entry.
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

/// A search in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The files to search. Its `limit` and `order` are ignored, and directories are left out.
    pub within: Walk,
    /// A regular expression, or a literal text.
    pub pattern: String,
    /// True if the pattern is a literal text.
    pub literal: bool,
    /// True if case matters; `None`: it matters if the pattern has an upper case letter.
    pub case: Option<bool>,
    /// True if hits must begin and end at word boundaries.
    pub word: bool,
    /// True if a hit may span several lines.
    pub multiline: bool,
    /// The number of lines to show before a hit.
    pub before: usize,
    /// The number of lines to show after a hit.
    pub after: usize,
    /// The most hits to return; further ones are counted.
    pub limit: usize,
}

/// The outcome of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Searched {
    /// The files with hits, sorted by path; beyond the limit they carry counts without lines. Of very many,
    /// the first.
    pub files: Vec<Hits>,
    /// The number of files with hits, including those not returned.
    pub with_hits: u64,
    /// The number of lines with hits in all files.
    pub hits: u64,
    /// The number of files searched.
    pub searched: u64,
    /// The number of files skipped because they are not text.
    pub binary: u64,
    /// The number of files skipped because they could not be read or are too long for the search.
    pub failed: u64,
    /// True if the search stopped before the end: the counts are incomplete.
    pub stopped: bool,
}

/// The hits in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hits {
    /// Its path, from the directory that the search began in; empty if that is one file.
    pub path: String,
    /// The number of lines with hits.
    pub count: u64,
    /// The lines to show, hits and context, scrubbed; a gap in the numbers is a gap in the file.
    pub lines: Vec<SearchLine>,
}

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchLine {
    /// Its number, counted from 1.
    pub number: u64,
    /// Its text, without its line end; of a very long line, the part around the hit.
    pub text: String,
    /// True for a hit, false for context.
    pub hit: bool,
}
