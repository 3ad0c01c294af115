//! Searches the content of files without revealing secrets in them.
//!
//! The hits are those in the text with its secrets removed. Every file is searched unmasked first, which
//! finds no fewer hits; only where that finds something are the secrets located ([`judge`]).

mod collect;
mod judge;
mod pattern;
mod stream;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use claw_core::port::{EntryKind, Hits, Search, Searched};
use claw_core::redact::Redactor;
use claw_core::tool::ToolError;

pub use self::collect::Collected;
use self::pattern::Pattern;
use self::stream::{Looked, Scanner};
use super::Request;
use super::failure::Failure;
use super::filter::Filter;
use super::handle::Directory;
use super::read::{self, check_opened};
use super::roots::Reach;
use super::walk::{Came, Crawl, Start, Visitor, begin};

/// The context that can show that a text is secret, in bytes on either side.
pub(super) const CONTEXT: usize = 64 * 1024;

/// The parts of a search that are prepared before any file is read.
pub struct Prepared {
    search: Search,
    pub(super) filter: Filter,
    pattern: Pattern,
}

impl Prepared {
    /// Compiles the filter and the pattern of a search.
    pub fn new(search: &Search) -> Result<Self, ToolError> {
        let mut search = search.clone();
        search.within.directories = false;
        let (filter, pattern) = (Filter::new(&search.within)?, Pattern::new(&search)?);
        Ok(Self { search, filter, pattern })
    }
}

/// Searches the text of one file in memory, for bridges that do not keep files on a disk. `None` if the bytes are not
/// text.
pub fn search_text(
    path: &str,
    bytes: &[u8],
    search: &Search,
    redactor: &dyn Redactor,
) -> Result<Option<Hits>, ToolError> {
    Ok(search_prepared(path, bytes, &Prepared::new(search)?, redactor))
}

/// Searches one text with a prepared search. `None` if the bytes are not text.
pub fn search_prepared(
    path: &str,
    bytes: &[u8],
    prepared: &Prepared,
    redactor: &dyn Redactor,
) -> Option<Hits> {
    let Prepared { search, pattern, .. } = prepared;
    match Scanner::new(pattern, search, redactor, &NEVER).text(path, bytes, search.limit) {
        Looked::Binary | Looked::TooLong => None,
        Looked::Text(hits) => Some(hits),
    }
}

static NEVER: AtomicBool = AtomicBool::new(false);

/// Searches the files of a scope for a pattern.
pub(super) fn search(
    request: &Request,
    prepared: &Prepared,
    redactor: &Arc<dyn Redactor>,
    stop: &AtomicBool,
) -> Result<Searched, Failure> {
    let Prepared { search, filter, pattern } = prepared;
    let reach = request.reach(false)?;
    let collected = Mutex::new(Collected::new(search.limit));
    let searcher = || Searcher {
        reach: &reach,
        start: &search.within.path,
        scanner: Scanner::new(pattern, search, &**redactor, stop),
        collected: &collected,
        searched: Searched::default(),
    };
    let (searchers, stopped, failed) = match begin(request, &reach, filter)? {
        Start::Directory(top) => {
            let crawled = Crawl::new(&reach, filter, stop).run(top, searcher);
            (crawled.visitors, crawled.stopped, crawled.failed)
        }
        Start::File(found) => {
            let mut searcher = searcher();
            let (mut file, _) = read::open(&reach, &found)?;
            searcher.look(&mut file, "");
            (vec![searcher], false, 0)
        }
    };
    let mut all = Searched { stopped, failed, ..Searched::default() };
    for searcher in searchers {
        all.searched += searcher.searched.searched;
        all.binary += searcher.searched.binary;
        all.failed += searcher.searched.failed;
    }
    let collected = collected.into_inner().unwrap_or_else(PoisonError::into_inner);
    collected.give(&mut all);
    Ok(all)
}

/// Searches files on one thread.
struct Searcher<'a> {
    reach: &'a Reach,
    /// The path that the search starts at.
    start: &'a str,
    scanner: Scanner<'a>,
    collected: &'a Mutex<Collected>,
    searched: Searched,
}

impl Visitor for Searcher<'_> {
    const SPREADS: bool = true;

    fn visit(&mut self, came: &Came<'_>) {
        if came.kind != EntryKind::File {
            return;
        }
        match open(self.reach, came) {
            Some(mut file) => self.look(&mut file, came.path),
            None => self.searched.failed += 1,
        }
    }
}

fn open(reach: &Reach, came: &Came<'_>) -> Option<std::fs::File> {
    let (file, raw) = Directory::open(came.directory, came.name).ok()?;
    check_opened(reach, came.directory.id, &file, &raw).ok()?;
    Some(file)
}

impl Searcher<'_> {
    fn look(&mut self, file: &mut std::fs::File, path: &str) {
        let wanted = self.collected.lock().unwrap_or_else(PoisonError::into_inner).wanted(path);
        let named = if path.is_empty() { self.start } else { path };
        match self.scanner.file(named, file, wanted) {
            Err(_) | Ok(Looked::TooLong) => self.searched.failed += 1,
            Ok(Looked::Binary) => self.searched.binary += 1,
            Ok(Looked::Text(mut hits)) => {
                self.searched.searched += 1;
                if hits.count > 0 {
                    path.clone_into(&mut hits.path);
                    self.collected.lock().unwrap_or_else(PoisonError::into_inner).add(hits);
                }
            }
        }
    }
}
