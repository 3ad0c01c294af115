//! Listing and searching documents at their place among files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use claw_core::port::{
    Access, Entry, EntryKind, FilePlace, FsBridge as _, Search, Searched, UnixMillis, Walk, Walked,
};
use claw_core::redact::Redactor;
use claw_core::store::Shelf;
use claw_core::tool::{ErrorKind, ToolError};

use super::{GENERATED, RoutedFiles, Spot};
use crate::files::listing::{Tree, search_tree, walk_tree};
use crate::files::walk::Kept;

/// Documents at one moment, by their paths in the workspace.
struct Seen {
    files: BTreeMap<String, (Entry, Option<String>)>,
    directories: BTreeSet<String>,
    /// Paths of untrusted documents, where texts were read.
    untrusted: BTreeSet<String>,
}

/// The sources that a listing covers.
enum Part {
    /// Only the bridge behind.
    Files,
    /// The bridge and all documents: the listing begins at the workspace's root.
    Both,
    /// Only documents, from this path on.
    Documents(String),
}

impl RoutedFiles {
    async fn part(&self, place: &FilePlace<'_>, path: &str) -> Result<Part, ToolError> {
        let full = match place.scope.resolve_text(place.directory, path, Access::Read) {
            Ok(full) => full,
            // It is told as of any file.
            Err(_) => return Ok(Part::Files),
        };
        if full == place.caller.workspace {
            return Ok(Part::Both);
        }
        Ok(match self.route(place, path, Access::Read).await? {
            super::Route::Elsewhere => Part::Files,
            super::Route::Document { path, .. } | super::Route::Memories(path) => Part::Documents(path),
            super::Route::Generated(name) => Part::Documents(name.to_owned()),
        })
    }

    /// Loads the caller's documents, with their texts if `texts`.
    async fn seen(&self, place: &FilePlace<'_>, texts: bool) -> Result<Seen, ToolError> {
        let mut seen = Seen {
            files: BTreeMap::new(),
            directories: BTreeSet::from([String::new()]),
            untrusted: BTreeSet::new(),
        };
        let reached = |path: &str| {
            let full = place.caller.workspace.join(path);
            !place.scope.denied.iter().any(|denied| full.starts_with(denied))
        };
        for shelf in [Shelf::Context, Shelf::Memory] {
            for (path, card) in self.shelves.list(place.caller, shelf).await? {
                if !reached(&path) || self.document(place.caller, Path::new(&path)).is_none() {
                    continue;
                }
                let text = if texts {
                    let spot = Spot { shelf, path: &path, shown: &path };
                    let found = self.shelves.get(place.caller, &spot).await?;
                    let Some((text, _, untrusted)) = found else { continue };
                    if untrusted {
                        seen.untrusted.insert(path.clone());
                    }
                    Some(text)
                } else {
                    None
                };
                seen.add(path, card.bytes, card.at, text);
            }
        }
        let generated = GENERATED.into_iter().filter(|name| reached(name) && self.is_routed(place.caller));
        for name in generated {
            if let Some((text, stat)) = self.generated(place.caller, name).await? {
                seen.add(name.to_owned(), stat.size, stat.modified, Some(text));
            }
        }
        Ok(seen)
    }

    pub(super) async fn walk_both(&self, place: &FilePlace<'_>, walk: &Walk) -> Result<Walked, ToolError> {
        let part = self.part(place, &walk.path).await?;
        if let Part::Documents(start) = &part {
            return walk_tree(&self.seen(place, false).await?, start, walk);
        }
        let files = behind!(self, place, |inner| self.files.walk(inner, walk));
        if matches!(part, Part::Files) {
            return files;
        }
        let mut walked = or_nothing(files)?;
        let documents = walk_tree(&self.seen(place, false).await?, "", walk)?;
        let mut kept = Kept::new(walk.order, walk.limit);
        walked.entries.drain(..).chain(documents.entries).for_each(|entry| kept.take(entry));
        walked.entries = kept.into_sorted();
        walked.files += documents.files;
        walked.directories += documents.directories;
        walked.stopped |= documents.stopped;
        Ok(walked)
    }

    /// Searches the caller's documents; lines of untrusted ones are noted of the caller's run.
    async fn search_documents(
        &self,
        place: &FilePlace<'_>,
        start: &str,
        search: &Search,
        redactor: &dyn Redactor,
    ) -> Result<Searched, ToolError> {
        let seen = self.seen(place, true).await?;
        let searched = search_tree(&seen, start, search, redactor)?;
        // Hits are named from where the search began.
        let is_of = |shown: &str| {
            let name = Path::new(shown).file_name();
            seen.untrusted.iter().any(|path| Path::new(path).file_name() == name)
        };
        if searched.files.iter().any(|hits| is_of(&hits.path)) {
            place.caller.trace.read_untrusted();
        }
        Ok(searched)
    }

    pub(super) async fn search_both(
        &self,
        place: &FilePlace<'_>,
        search: &Search,
        redactor: &Arc<dyn Redactor>,
    ) -> Result<Searched, ToolError> {
        let part = self.part(place, &search.within.path).await?;
        if let Part::Documents(start) = &part {
            return self.search_documents(place, start, search, &**redactor).await;
        }
        let files = behind!(self, place, |inner| self.files.search(inner, search, redactor));
        if matches!(part, Part::Files) {
            return files;
        }
        let mut searched = or_nothing(files)?;
        let shown = searched.files.iter().flat_map(|hits| &hits.lines).filter(|line| line.hit).count();
        let rest = Search { limit: search.limit.saturating_sub(shown), ..search.clone() };
        let documents = self.search_documents(place, "", &rest, &**redactor).await?;
        searched.files.extend(documents.files);
        searched.files.sort_by(|one, other| one.path.cmp(&other.path));
        searched.with_hits += documents.with_hits;
        searched.hits += documents.hits;
        searched.searched += documents.searched;
        searched.binary += documents.binary;
        searched.failed += documents.failed;
        searched.stopped |= documents.stopped;
        Ok(searched)
    }
}

/// Treats a missing workspace as one without files.
fn or_nothing<T: Default>(found: Result<T, ToolError>) -> Result<T, ToolError> {
    match found {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(T::default()),
        found => found,
    }
}

impl Seen {
    fn add(&mut self, path: String, size: u64, modified: UnixMillis, text: Option<String>) {
        let above = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
        self.directories.extend(above);
        let entry = Entry { path: path.clone(), kind: EntryKind::File, size, modified };
        self.files.insert(path, (entry, text));
    }
}

impl Tree for Seen {
    fn entry(&self, path: &str) -> Option<Entry> {
        if let Some((entry, _)) = self.files.get(path) {
            return Some(entry.clone());
        }
        // The directory of memories is always there.
        (self.directories.contains(path) || path == super::MEMORIES).then(|| directory(path))
    }

    fn entries(&self, within: &str) -> Vec<Entry> {
        let name = |path: &str| {
            let path = Path::new(path);
            let inside = path.parent() == Some(Path::new(within));
            path.file_name().filter(|_| inside).map(|name| name.to_string_lossy().into_owned())
        };
        let directories = self.directories.iter().filter_map(|path| Some(directory(&name(path)?)));
        let files = self
            .files
            .iter()
            .filter_map(|(path, (entry, _))| Some(Entry { path: name(path)?, ..entry.clone() }));
        directories.chain(files).collect()
    }

    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let (_, text) = self.files.get(path)?;
        text.clone().map(String::into_bytes)
    }
}

fn directory(path: &str) -> Entry {
    Entry { path: path.to_owned(), kind: EntryKind::Directory, size: 0, modified: UnixMillis(0) }
}
