//! Walks a tree and lists it.
//!
//! [`crawl`] reads directories from handle to handle, never by a path, on several threads; [`tree`] keeps few
//! of those handles open. Denied files are left out; links are listed but not followed.

mod crawl;
mod kept;
mod tree;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use claw_core::port::{Entry, EntryKind, Walk, Walked};
use rustix::fs::{FileType, Stat as Raw};

pub(super) use self::crawl::{Came, Crawl, Visitor};
pub(super) use self::kept::{Kept, by_path};
use super::Request;
use super::failure::Failure;
use super::filter::Filter;
use super::handle::{self, Directory, Id, is_directory};
use super::ignored::Rules;
use super::resolve::{ResolvedPath, again};
use super::roots::Reach;

/// The start of a walk.
pub(super) enum Start {
    /// A directory.
    Directory(Top),
    /// A file that was requested by name: no filter leaves it out.
    File(ResolvedPath),
}

/// The directory that a walk begins in.
pub(super) struct Top {
    pub(super) directory: Directory,
    /// The directory's path from the root, with a leading slash; empty for the root itself.
    pub(super) base: PathBuf,
    /// The ignore rules of the directories above, up to the root.
    pub(super) rules: Rules,
}

/// Finds the start.
pub(super) fn begin(request: &Request, reach: &Reach, filter: &Filter) -> Result<Start, Failure> {
    again(|| {
        let found = request.find_stepwise(reach)?;
        match &found.raw {
            None => Err(Failure::Missing),
            Some(raw) if is_directory(raw) => top(reach, &found, filter).map(Start::Directory),
            Some(raw) => {
                handle::check_regular(raw)?;
                handle::check_links(raw)?;
                Ok(Start::File(found))
            }
        }
    })
}

fn top(reach: &Reach, found: &ResolvedPath, filter: &Filter) -> Result<Top, Failure> {
    let directory = found.enter(reach)?;
    let root = reach.roots()[found.root].handle.as_ref();
    let below = root.zip(found.real(reach)).and_then(|(root, real)| {
        let names = real.strip_prefix(&root.real).ok()?;
        Some((&root.directory, names.to_owned()))
    });
    let Some((root, names)) = below else {
        return Ok(Top { directory, base: PathBuf::new(), rules: Rules::default() });
    };
    let (mut base, mut rules, mut at) = (PathBuf::new(), Rules::default(), root.clone());
    for name in &names {
        if !filter.ignored {
            let sources = crawl::sources(reach, &at, !rules.is_empty());
            rules = rules.with(if base.as_os_str().is_empty() { "/".as_ref() } else { &base }, &sources);
        }
        if base.as_os_str().is_empty() {
            base.push("/");
        }
        base.push(name);
        at = at.step(name).map_err(|_| Failure::Moved)?;
    }
    if at.id == directory.id { Ok(Top { directory, base, rules }) } else { Err(Failure::Moved) }
}

/// Lists a directory.
pub(super) fn walk(
    request: &Request,
    walk: &Walk,
    filter: &Filter,
    stop: &AtomicBool,
) -> Result<Walked, Failure> {
    let reach = request.reach(false)?;
    let top = match begin(request, &reach, filter)? {
        Start::Directory(top) => top,
        Start::File(found) => return Ok(one(&found)),
    };
    let listing =
        || Listing { reach: &reach, kept: Kept::new(walk.order, walk.limit), walked: Walked::default() };
    let crawled = Crawl::new(&reach, filter, stop).run(top, listing);
    let mut kept = Kept::new(walk.order, walk.limit);
    let mut all = Walked { stopped: crawled.stopped, ..Walked::default() };
    for listing in crawled.visitors {
        all.files += listing.walked.files;
        all.directories += listing.walked.directories;
        kept.merge(listing.kept);
    }
    all.entries = kept.into_sorted();
    Ok(all)
}

/// Lists a single file, whose path from the start is empty.
fn one(found: &ResolvedPath) -> Walked {
    let entries = found.raw.iter().map(|raw| entry(String::new(), raw)).collect();
    Walked { entries, files: 1, ..Walked::default() }
}

struct Listing<'a> {
    reach: &'a Reach,
    kept: Kept,
    walked: Walked,
}

impl Visitor for Listing<'_> {
    const SPREADS: bool = false;

    fn visit(&mut self, came: &Came<'_>) {
        let directory = came.kind == EntryKind::Directory;
        // Whether a directory is denied has to be asked of it.
        if directory || self.kept.may_take(came.path) {
            let Ok(raw) = came.directory.stat(came.name) else { return };
            if self.reach.denied.is_denied(Id::of(&raw)) {
                return;
            }
            self.kept.take(entry(came.path.to_owned(), &raw));
        }
        if directory {
            self.walked.directories += 1;
        } else {
            self.walked.files += 1;
        }
    }
}

fn entry(path: String, raw: &Raw) -> Entry {
    let stat = handle::stat(raw);
    let kind = match FileType::from_raw_mode(raw.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    };
    Entry { path, kind, size: stat.size, modified: stat.modified }
}
