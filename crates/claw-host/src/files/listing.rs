//! Walking and searching for bridges that do not keep their files on a disk, with the same filters and
//! results as on a disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use claw_core::port::{Entry, EntryKind, Hits, Search, Searched, Walk, Walked};
use claw_core::redact::Redactor;
use claw_core::tool::ToolError;

use super::filter::{Filter, is_hidden};
use super::ignored::{self, Rules, Sources, Verdict};
use super::search::{Collected, Prepared, search_prepared};
use super::walk::Kept;

/// A tree of files. Paths are relative to its root, without a leading slash; the root's own path is empty.
/// The tree holds no files that are denied to the caller.
pub trait Tree {
    /// Returns the entry at a path; `None` if there is none.
    fn entry(&self, path: &str) -> Option<Entry>;
    /// Returns the entries of a directory, each with its bare name.
    fn entries(&self, directory: &str) -> Vec<Entry>;
    /// The bytes of a file.
    fn read(&self, path: &str) -> Option<Vec<u8>>;
}

/// Lists a directory of a tree, or one file.
pub fn walk_tree(tree: &dyn Tree, start: &str, walk: &Walk) -> Result<Walked, ToolError> {
    let filter = Filter::new(walk)?;
    let mut kept = Kept::new(walk.order, walk.limit);
    let mut walked = Walked::default();
    go_through(tree, start, &walk.path, &filter, &mut |_, entry| {
        if entry.kind == EntryKind::Directory {
            walked.directories += 1;
        } else {
            walked.files += 1;
        }
        kept.take(entry);
    })?;
    walked.entries = kept.into_sorted();
    Ok(walked)
}

/// Searches the files of a tree for a pattern.
pub fn search_tree(
    tree: &dyn Tree,
    start: &str,
    search: &Search,
    redactor: &dyn Redactor,
) -> Result<Searched, ToolError> {
    let prepared = Prepared::new(search)?;
    let mut looked = Looked::new(search.limit);
    for (full, entry) in wanted_files(tree, start, &search.within.path, &prepared.filter)? {
        let content = tree.read(&full);
        let file = FoundFile { full: &full, path: entry.path, bytes: content.as_deref() };
        looked.look(file, &prepared, redactor);
    }
    Ok(looked.give())
}

/// Returns the selected files of a tree: the path of each from the root, and the entry under its path from
/// the start.
pub(super) fn wanted_files(
    tree: &dyn Tree,
    start: &str,
    shown: &str,
    filter: &Filter,
) -> Result<Vec<(String, Entry)>, ToolError> {
    let mut wanted = Vec::new();
    go_through(tree, start, shown, filter, &mut |full, entry| {
        if entry.kind == EntryKind::File {
            wanted.push((full.to_owned(), entry));
        }
    })?;
    Ok(wanted)
}

/// A file to be searched.
pub(super) struct FoundFile<'a> {
    /// The full path.
    pub(super) full: &'a str,
    /// The path that is shown.
    pub(super) path: String,
    /// The content; `None` if it could not be read.
    pub(super) bytes: Option<&'a [u8]>,
}

/// The hits found so far, file by file.
pub(super) struct Looked {
    collected: Collected,
    searched: Searched,
}

impl Looked {
    pub(super) fn new(limit: usize) -> Self {
        Self { collected: Collected::new(limit), searched: Searched::default() }
    }

    /// Searches one file.
    pub(super) fn look(
        &mut self,
        FoundFile { full, path, bytes }: FoundFile<'_>,
        prepared: &Prepared,
        redactor: &dyn Redactor,
    ) {
        match bytes.map(|bytes| search_prepared(full, bytes, prepared, redactor)) {
            None => self.searched.failed += 1,
            Some(None) => self.searched.binary += 1,
            Some(Some(hits)) => {
                self.searched.searched += 1;
                if hits.count > 0 {
                    self.collected.add(Hits { path, ..hits });
                }
            }
        }
    }

    /// Returns all results.
    pub(super) fn give(mut self) -> Searched {
        self.collected.give(&mut self.searched);
        self.searched
    }
}

/// Calls back for every selected entry: its path from the root, and the entry under its path from the start.
fn go_through(
    tree: &dyn Tree,
    start: &str,
    shown: &str,
    filter: &Filter,
    tell: &mut dyn FnMut(&str, Entry),
) -> Result<(), ToolError> {
    let first = tree.entry(start).ok_or_else(|| ToolError::not_found(format!("`{shown}` does not exist")))?;
    if first.kind != EntryKind::Directory {
        tell(start, Entry { path: String::new(), ..first });
        return Ok(());
    }
    let mut rules = Rules::default();
    if !filter.ignored {
        let above = start.match_indices('/').map(|(at, _)| &start[..at]);
        for directory in [""].into_iter().chain(above).filter(|directory| *directory != start) {
            rules = rules.with(&rooted(directory), &sources(tree, directory));
        }
    }
    let mut left: BTreeMap<String, (usize, Rules)> = BTreeMap::from([(start.to_owned(), (0, rules))]);
    while let Some((directory, (depth, mut rules))) = left.pop_first() {
        if depth >= filter.depth {
            continue;
        }
        if !filter.ignored {
            rules = rules.with(&rooted(&directory), &sources(tree, &directory));
        }
        for entry in tree.entries(&directory) {
            let full = join(&directory, &entry.path);
            let is_directory = entry.kind == EntryKind::Directory;
            let verdict = rules.judge(&rooted(&full), is_directory);
            let hidden = is_hidden(entry.path.as_bytes()) && !filter.hidden && verdict != Verdict::In;
            if verdict == Verdict::Out || hidden {
                continue;
            }
            let path = full[start.len()..].trim_start_matches('/').to_owned();
            let below = rooted(&path);
            if is_directory && filter.enters(&below) {
                if filter.wants_directory(&below) {
                    tell(&full, Entry { path, ..entry });
                }
                left.insert(full, (depth + 1, rules.clone()));
            } else if !is_directory && filter.wants_file(&below) {
                tell(&full, Entry { path, ..entry });
            }
        }
    }
    Ok(())
}

fn sources(tree: &dyn Tree, directory: &str) -> Sources {
    Sources {
        gitignore: tree.read(&join(directory, ignored::GITIGNORE)),
        ignore: tree.read(&join(directory, ignored::IGNORE)),
        repository: tree.entry(&join(directory, ignored::REPOSITORY)).is_some(),
    }
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

fn rooted(path: &str) -> PathBuf {
    Path::new("/").join(path)
}
