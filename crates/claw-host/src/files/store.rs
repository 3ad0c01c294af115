//! Files in a store, with their directories: for embedders, and for nodes that share a database and no disk.
//! Confined like real files, by the text of their paths: there are no links.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{
    Access, Clock, Confinement, FilePlace, FsBridge, Search, Searched, Stat, Walk, Walked,
};
use claw_core::redact::Redactor;
use claw_core::store::{
    DEEPEST_PATH, FileChange, FileError, LARGEST_FILE, LONGEST_PATH, StoreError, WorkspaceFiles,
};
use claw_core::tool::{ErrorKind, Sight, Target, ToolError};

use super::failure::{Excess, Failure, shown};
use super::ignored;
use super::listing::{FoundFile, Looked, walk_tree, wanted_files};
use super::resolve_by_text::{self, is_denied, outermost};
use super::search::Prepared;
use super::tree_snapshot::Cards;

/// The most entries read below a directory; if there are more, the result is marked incomplete.
const MOST_CARDS: usize = 200_000;
/// The bytes of files in memory at once during a search, unless one file alone has more.
const BATCH_BYTES: u64 = 8 << 20;
/// The number of files loaded at once.
const BATCH_FILES: usize = 500;
/// The most bytes of ignore files that count in one tree.
const MOST_RULES: usize = 32 << 20;

/// The files of a store. Each tenant has a tree of its own, in which a workspace is at its own path.
///
/// Commands do not see them: they run on a machine, and these files are on none.
pub struct StoreFiles {
    store: Arc<dyn WorkspaceFiles>,
    clock: Arc<dyn Clock>,
}

impl StoreFiles {
    /// Creates a bridge to the files of this store.
    pub fn new(store: Arc<dyn WorkspaceFiles>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Makes a change, within the quota of the caller's first root.
    async fn change<'a, T>(
        &self,
        place: &'a FilePlace<'_>,
        path: &str,
        full: &'a str,
        make: impl AsyncFnOnce(FileChange<'_>) -> Result<T, FileError>,
    ) -> Result<T, ToolError> {
        let first = place.scope.roots.first().and_then(|root| resolve_by_text::normal(&root.path));
        let first = first.as_deref().and_then(Path::to_str);
        let change = FileChange {
            tenant: &place.caller.tenant,
            path: full,
            expect: place.expect,
            room: first.zip(place.scope.quota),
            at: self.clock.now(),
        };
        make(change).await.map_err(|error| told(error, place, path))
    }

    /// Loads the files that a caller sees below a path. Only ignore files are loaded with their bytes.
    async fn seen(&self, place: &FilePlace<'_>, walk: &Walk) -> Result<Seen, ToolError> {
        let full = resolve(place, &walk.path, Access::Read)?;
        let root = outermost(place, Path::new(&full));
        let mut seen = Seen { root, cards: Cards::default(), start: String::new(), whole: true };
        seen.start = seen.within(&full).unwrap_or_default();
        let tenant = &place.caller.tenant;
        let failed = |error| unavailable(error, &walk.path);
        let Some(stat) = self.store.file_stat(tenant, &full).await.map_err(failed)? else {
            return Err(Failure::Missing.about(&walk.path));
        };
        seen.cards.add(&seen.start, &stat, None);
        let mut rules = Vec::new();
        if stat.directory {
            let below = self.store.files_below(tenant, &full, MOST_CARDS + 1).await.map_err(failed)?;
            seen.whole = below.len() <= MOST_CARDS;
            for (path, stat) in below.into_iter().take(MOST_CARDS) {
                seen.take(place, path, &stat, &mut rules);
            }
        }
        if walk.ignored {
            return Ok(seen);
        }
        // Ignore rules above the path apply below it.
        for directory in seen.above() {
            for name in [ignored::GITIGNORE, ignored::IGNORE, ignored::REPOSITORY] {
                let path = directory.join(name);
                let Some(path) = path.to_str().filter(|path| path.len() <= LONGEST_PATH) else { continue };
                if let Some(stat) = self.store.file_stat(tenant, path).await.map_err(failed)? {
                    seen.take(place, path.to_owned(), &stat, &mut rules);
                }
            }
        }
        let mut left = MOST_RULES;
        for batch in batches(rules, |(_, size)| *size) {
            let paths: Vec<String> = batch.into_iter().map(|(path, _)| path).collect();
            for (path, mut bytes) in self.store.file_contents(tenant, &paths).await.map_err(failed)? {
                bytes.truncate(ignored::MOST_BYTES);
                match left.checked_sub(bytes.len()) {
                    Some(less) => left = less,
                    None => {
                        seen.whole = false;
                        return Ok(seen);
                    }
                }
                if let Some(path) = seen.within(&path) {
                    seen.cards.fill(&path, bytes);
                }
            }
        }
        Ok(seen)
    }
}

/// The files of a tree that a caller sees.
struct Seen {
    root: PathBuf,
    cards: Cards,
    /// The start of the walk, relative to the root.
    start: String,
    whole: bool,
}

impl Seen {
    /// An absolute path as it counts from the root.
    fn within(&self, full: &str) -> Option<String> {
        Path::new(full).strip_prefix(&self.root).ok()?.to_str().map(str::to_owned)
    }

    /// Takes the entry at a path, unless it is denied, and notes ignore files.
    fn take(&mut self, place: &FilePlace<'_>, full: String, stat: &Stat, rules: &mut Vec<(String, u64)>) {
        let Some(path) = self.within(&full).filter(|_| !is_denied(place, Path::new(&full))) else {
            return;
        };
        self.cards.add(&path, stat, None);
        let name = path.rsplit('/').next();
        if !stat.directory && matches!(name, Some(ignored::GITIGNORE | ignored::IGNORE)) {
            rules.push((full, stat.size));
        }
    }

    /// Returns the directories from the root to the parent of the start.
    fn above(&self) -> Vec<PathBuf> {
        let start = Path::new(&self.start);
        start.ancestors().skip(1).map(|directory| self.root.join(directory)).collect()
    }

    /// The absolute form of a path from the root.
    fn full(&self, path: &str) -> Option<String> {
        self.root.join(path).to_str().map(str::to_owned)
    }
}

#[async_trait]
impl FsBridge for StoreFiles {
    fn confinement(&self) -> Confinement {
        Confinement::Enforced
    }

    async fn stat(&self, place: &FilePlace<'_>, path: &str) -> Result<Option<Stat>, ToolError> {
        let full = match text(place, path, Access::Read) {
            Err(Failure::Denied) => return Ok(None),
            full => full.map_err(|failure| failure.about(path))?,
        };
        self.store.file_stat(&place.caller.tenant, &full).await.map_err(|error| unavailable(error, path))
    }

    async fn read(&self, place: &FilePlace<'_>, path: &str) -> Result<(Vec<u8>, Stat), ToolError> {
        let full = resolve(place, path, Access::Read)?;
        let found = self.store.file(&place.caller.tenant, &full).await;
        match found.map_err(|error| unavailable(error, path))? {
            None => Err(Failure::Missing.about(path)),
            Some((stat, _)) if stat.directory => Err(Failure::IsDirectory.about(path)),
            Some((stat, bytes)) => Ok((bytes, stat)),
        }
    }

    async fn mkdirp(&self, place: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        let full = resolve(place, path, Access::Write)?;
        self.change(place, path, &full, async |change| self.store.put_directory(&change).await).await
    }

    async fn write(&self, place: &FilePlace<'_>, path: &str, bytes: &[u8]) -> Result<Stat, ToolError> {
        let full = resolve(place, path, Access::Write)?;
        if bytes.len() > LARGEST_FILE {
            let (size, path) = (bytes.len(), shown(path));
            let message =
                format!("`{path}` would have {size} bytes; a file in the store has at most {LARGEST_FILE}");
            return Err(ToolError::invalid(message).try_instead("write it as several files"));
        }
        self.change(place, path, &full, async |change| self.store.put_file(&change, bytes).await).await
    }

    async fn remove(&self, place: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        let full = resolve(place, path, Access::Write)?;
        self.change(place, path, &full, async |change| self.store.remove_file(&change).await).await
    }

    async fn look(&self, place: &FilePlace<'_>, path: &str) -> Result<Sight, ToolError> {
        let full = resolve(place, path, Access::Read)?;
        let stat = self.store.file_stat(&place.caller.tenant, &full).await;
        let stat = stat.map_err(|error| unavailable(error, path))?;
        Ok(Sight {
            target: Target::File { path: path.to_owned() },
            path: Some(full),
            identity: stat.map(|stat| stat.version.0.to_string()),
            credential: None,
            writable: false,
        })
    }

    async fn walk(&self, place: &FilePlace<'_>, walk: &Walk) -> Result<Walked, ToolError> {
        let seen = self.seen(place, walk).await?;
        let mut walked = walk_tree(&seen.cards, &seen.start, walk)?;
        walked.stopped |= !seen.whole;
        Ok(walked)
    }

    async fn search(
        &self,
        place: &FilePlace<'_>,
        search: &Search,
        redactor: &Arc<dyn Redactor>,
    ) -> Result<Searched, ToolError> {
        let prepared = Arc::new(Prepared::new(search)?);
        let path = &search.within.path;
        let seen = self.seen(place, &search.within).await?;
        let wanted = wanted_files(&seen.cards, &seen.start, path, &prepared.filter)?;
        let mut looked = Looked::new(search.limit);
        for batch in batches(wanted, |(_, entry)| entry.size) {
            let named: Vec<(String, String)> = batch
                .into_iter()
                .filter_map(|(from_root, entry)| Some((seen.full(&from_root)?, entry.path)))
                .collect();
            let paths: Vec<String> = named.iter().map(|(full, _)| full.clone()).collect();
            let contents = self.store.file_contents(&place.caller.tenant, &paths).await;
            let contents: HashMap<_, _> =
                contents.map_err(|error| unavailable(error, path))?.into_iter().collect();
            let (prepared, redactor) = (Arc::clone(&prepared), Arc::clone(redactor));
            let look = move || {
                for (full, shown) in named {
                    let bytes = contents.get(&full).map(Vec::as_slice);
                    looked.look(FoundFile { full: &full, path: shown, bytes }, &prepared, &*redactor);
                }
                looked
            };
            looked = tokio::task::spawn_blocking(look).await.map_err(ToolError::internal)?;
        }
        let mut searched = looked.give();
        searched.stopped |= !seen.whole;
        Ok(searched)
    }
}

/// Resolves a path to the text under which the store knows it.
fn text(place: &FilePlace<'_>, path: &str, access: Access) -> Result<String, Failure> {
    let full = resolve_by_text::resolve(place, path, access)?;
    let full = full.into_os_string().into_string().map_err(|_| Failure::NotAPath)?;
    if full.len() > LONGEST_PATH || full.matches('/').count() > DEEPEST_PATH {
        return Err(Failure::TooLong);
    }
    Ok(full)
}

fn resolve(place: &FilePlace<'_>, path: &str, access: Access) -> Result<String, ToolError> {
    text(place, path, access).map_err(|failure| failure.about(path))
}

/// Splits a list into batches that fit in memory.
fn batches<T>(all: Vec<T>, size: impl Fn(&T) -> u64) -> Vec<Vec<T>> {
    let (mut batches, mut held) = (Vec::new(), 0);
    for one in all {
        let more = size(&one);
        match batches.last_mut() {
            Some(batch) if Vec::len(batch) < BATCH_FILES && held + more <= BATCH_BYTES => batch.push(one),
            _ => {
                held = 0;
                batches.push(vec![one]);
            }
        }
        held += more;
    }
    batches
}

/// Converts a refused change into a tool error about this path.
fn told(error: FileError, place: &FilePlace<'_>, path: &str) -> ToolError {
    let failure = match error {
        FileError::Missing => Failure::Missing,
        FileError::IsDirectory => Failure::IsDirectory,
        FileError::NotDirectory => Failure::NotDirectory,
        FileError::Exists => Failure::Exists,
        FileError::Changed => Failure::Changed,
        FileError::Quota { bytes, files } => {
            let (most_bytes, most_files) =
                place.scope.quota.map_or((0, 0), |quota| (quota.bytes, quota.files));
            Failure::Quota(Excess { bytes, files, most_bytes, most_files })
        }
        FileError::Store(error) => return unavailable(error, path),
    };
    failure.about(path)
}

/// Converts a store's failure into a tool error; a transient one is marked as such.
fn unavailable(error: StoreError, path: &str) -> ToolError {
    match error {
        StoreError::Database { transient: true, .. } => {
            let message = format!("the store that holds `{}` cannot be used now", shown(path));
            ToolError::new(ErrorKind::Unavailable, message).try_instead("try again later").because(error)
        }
        error => ToolError::internal(error),
    }
}
