//! Reading directories on several threads.
//!
//! A directory is opened from its parent's handle, without following a link, and checked after opening. The
//! queue holds names, not handles, so few handles are open however large the tree.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use claw_core::port::EntryKind;
use rustix::fs::{FileType, Mode, OFlags, RawDir};

use super::super::filter::{Filter, is_hidden};
use super::super::handle::{Directory, Id, check_regular};
use super::super::ignored::{self, Rules, Sources, Verdict};
use super::super::read::check_opened;
use super::super::resolve::check_directory;
use super::super::roots::Reach;
use super::Top;
use super::tree::{Handles, Node};

/// The depth at which a walk stops descending.
const DEEPEST: usize = 10_000;
/// The number of files in one work item.
const BATCH: usize = 64;
/// The most work items queued; beyond it, the thread that finds an item does it itself.
const WAITING: usize = 1024;
/// The bytes of a directory read at once.
const BUFFER: usize = 64 * 1024;

/// Receives the selected entries. Each thread has its own.
pub(in super::super) trait Visitor: Send {
    /// True if visiting a file is slow enough that other threads should share the files of one directory.
    const SPREADS: bool;
    /// Takes a selected entry.
    fn visit(&mut self, came: &Came<'_>);
}

/// An entry found by a walk.
pub(in super::super) struct Came<'a> {
    /// The directory that it is in.
    pub(in super::super) directory: &'a Directory,
    /// The entry's name in `directory`.
    pub(in super::super) name: &'a OsStr,
    /// The entry's path from the top.
    pub(in super::super) path: &'a str,
    /// The entry's type according to its directory.
    pub(in super::super) kind: EntryKind,
}

/// A walk through one tree.
pub(in super::super) struct Crawl<'a> {
    reach: &'a Reach,
    filter: &'a Filter,
    stop: &'a AtomicBool,
    handles: Handles,
    queue: Mutex<Queue>,
    bell: Condvar,
}

/// The result of a walk.
pub(in super::super) struct Crawled<V> {
    pub(in super::super) visitors: Vec<V>,
    /// True if the walk was stopped or left out directories that are too deep.
    pub(in super::super) stopped: bool,
    /// The number of directories that could not be read.
    pub(in super::super) failed: u64,
}

#[derive(Default)]
struct Queue {
    work: Vec<Work>,
    /// The number of threads at work, which may still queue more.
    busy: usize,
}

enum Work {
    /// Directories to read, and the rules of their parent.
    Directories { above: Arc<Node>, rules: Rules, names: Vec<OsString> },
    /// Files to visit.
    Files { node: Arc<Node>, names: Vec<OsString> },
}

impl<'a> Crawl<'a> {
    pub(in super::super) fn new(reach: &'a Reach, filter: &'a Filter, stop: &'a AtomicBool) -> Self {
        let (handles, queue, bell) = (Handles::default(), Mutex::default(), Condvar::new());
        Self { reach, filter, stop, handles, queue, bell }
    }

    /// Walks the tree.
    pub(in super::super) fn run<V: Visitor>(self, top: Top, visitor: impl Fn() -> V) -> Crawled<V> {
        let base = top.base.into_os_string().into_encoded_bytes();
        let worker = || Worker {
            crawl: &self,
            base: &base,
            visitor: visitor(),
            entries: Vec::with_capacity(BUFFER),
            stopped: false,
            failed: 0,
        };
        let mut first = worker();
        // The top is read before others come to help, so that small trees need none.
        first.read(&Node::top(top.directory.clone()), &top.directory, &top.rules);
        let helpers = if self.queue().work.is_empty() { 0 } else { threads() - 1 };
        let workers: Vec<_> = thread::scope(|scope| {
            let helping: Vec<_> =
                (0..helpers).map(|_| worker()).map(|worker| scope.spawn(move || worker.work())).collect();
            let mut workers = vec![first.work()];
            for helper in helping {
                match helper.join() {
                    Ok(worker) => workers.push(worker),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            workers
        });
        let stopped = self.stop.load(Ordering::Relaxed) || workers.iter().any(|worker| worker.stopped);
        let failed = workers.iter().map(|worker| worker.failed).sum();
        Crawled { visitors: workers.into_iter().map(|worker| worker.visitor).collect(), stopped, failed }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, work: Work) {
        self.queue().work.push(work);
        self.bell.notify_one();
    }

    /// The next piece of work; `None` when all of it is done.
    fn next(&self) -> Option<(Work, Busy<'_>)> {
        let mut queue = self.queue();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                queue.work.clear();
            }
            if let Some(work) = queue.take() {
                queue.busy += 1;
                if !queue.work.is_empty() {
                    self.bell.notify_one();
                }
                return Some((work, Busy(self)));
            }
            if queue.busy == 0 {
                self.bell.notify_all();
                return None;
            }
            queue = self.bell.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Returns the number of threads that walk a tree.
fn threads() -> usize {
    thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 8))
}

impl Queue {
    /// Takes one directory or a batch of files.
    fn take(&mut self) -> Option<Work> {
        match self.work.last_mut()? {
            Work::Directories { above, rules, names } if names.len() > 1 => {
                let name = names.pop()?;
                Some(Work::Directories { above: Arc::clone(above), rules: rules.clone(), names: vec![name] })
            }
            _ => self.work.pop(),
        }
    }
}

/// Marks its thread as busy until dropped, even if that thread panics.
struct Busy<'a>(&'a Crawl<'a>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.busy -= 1;
        if thread::panicking() {
            queue.work.clear();
        }
        if queue.busy == 0 && queue.work.is_empty() {
            self.0.bell.notify_all();
        }
    }
}

struct Worker<'a, V> {
    crawl: &'a Crawl<'a>,
    base: &'a [u8],
    visitor: V,
    entries: Vec<u8>,
    stopped: bool,
    failed: u64,
}

impl<V: Visitor> Worker<'_, V> {
    fn work(mut self) -> Self {
        let crawl = self.crawl;
        while let Some((work, _busy)) = crawl.next() {
            match work {
                Work::Directories { above, rules, names } => {
                    names.iter().for_each(|name| self.enter(&above, name, &rules));
                }
                Work::Files { node, names } => self.visit_all(&node, &names),
            }
        }
        self
    }

    /// Reads the directory of this name, unless it is out of reach.
    fn enter(&mut self, above: &Arc<Node>, name: &OsStr, rules: &Rules) {
        let Some(parent) = self.crawl.handles.open(above) else { return };
        let flags =
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = rustix::fs::openat(&parent, name, flags, Mode::empty());
        let Ok(directory) = opened.and_then(Directory::new) else {
            self.failed += 1;
            return;
        };
        if check_directory(self.crawl.reach, &parent, &directory).is_err() {
            return;
        }
        let node = self.crawl.handles.add(above, name, &directory);
        self.read(&node, &directory, rules);
    }

    /// Reads a directory: visits its files and queues its subdirectories.
    fn read(&mut self, node: &Arc<Node>, directory: &Directory, rules: &Rules) {
        let crawl = self.crawl;
        let mut path = self.base.to_vec();
        node.path(&mut path);
        let rules = match crawl.filter.ignored {
            true => Rules::default(),
            false => {
                let here = if path.is_empty() { b"/" } else { path.as_slice() };
                rules.with(as_path(here), &sources(crawl.reach, directory, !rules.is_empty()))
            }
        };
        path.push(b'/');
        // Opened again only where the handle is one that cannot be read.
        let readable = match node.depth {
            0 => directory.readable().ok(),
            _ => None,
        };
        let mut buffer = std::mem::take(&mut self.entries);
        let mut reading =
            Reading { node, directory, rules: &rules, path, directories: Vec::new(), files: Vec::new() };
        let handle =
            readable.as_ref().map_or_else(|| std::os::fd::AsFd::as_fd(directory), std::os::fd::AsFd::as_fd);
        let mut entries = RawDir::new(handle, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            // A directory that fails in the middle fails for ever.
            let Ok(entry) = entry else {
                self.failed += 1;
                break;
            };
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                self.entry(&mut reading, OsStr::from_bytes(name), entry.ino(), entry.file_type());
            }
            if crawl.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        let Reading { directories, files, .. } = reading;
        self.entries = buffer;
        if !files.is_empty() {
            self.files(node, files);
        }
        if !directories.is_empty() {
            crawl.add(Work::Directories { above: Arc::clone(node), rules, names: directories });
        }
    }

    fn entry(&mut self, reading: &mut Reading<'_>, name: &OsStr, inode: u64, kind: FileType) {
        let Crawl { reach, filter, .. } = self.crawl;
        let Reading { node, directory, rules, .. } = *reading;
        if reach.denied.is_hidden(node.id, name) {
            return;
        }
        let kind = match kind {
            FileType::Unknown => match directory.stat(name) {
                Ok(raw) => FileType::from_raw_mode(raw.st_mode),
                Err(_) => return,
            },
            known => known,
        };
        let is_directory = kind == FileType::Directory;
        if !is_directory && reach.denied.may_be(inode) {
            match directory.stat(name) {
                Ok(raw) if !reach.denied.is_denied(Id::of(&raw)) => {}
                _ => return,
            }
        }
        let start = reading.path.len();
        reading.path.extend_from_slice(name.as_bytes());
        let full = as_path(&reading.path);
        let verdict = if rules.is_empty() { Verdict::Nothing } else { rules.judge(full, is_directory) };
        let hidden = is_hidden(name.as_bytes()) && !filter.hidden && verdict != Verdict::In;
        if verdict != Verdict::Out && !hidden {
            let kind = match kind {
                FileType::Directory => EntryKind::Directory,
                FileType::RegularFile => EntryKind::File,
                FileType::Symlink => EntryKind::Link,
                _ => EntryKind::Other,
            };
            self.wanted(reading, name, kind);
        }
        reading.path.truncate(start);
    }

    /// An entry that neither rules nor custom leave out.
    fn wanted(&mut self, reading: &mut Reading<'_>, name: &OsStr, kind: EntryKind) {
        let filter = self.crawl.filter;
        // From the top, with a slash before it.
        let path = as_path(&reading.path[self.base.len()..]);
        if kind != EntryKind::Directory {
            if !filter.wants_file(path) {
                return;
            }
            if V::SPREADS {
                if kind == EntryKind::File {
                    reading.files.push(name.to_owned());
                }
                if reading.files.len() >= BATCH {
                    let names = std::mem::take(&mut reading.files);
                    self.files(reading.node, names);
                }
                return;
            }
            return self.came(reading, name, kind);
        }
        if !filter.enters(path) {
            return;
        }
        let listed = filter.wants_directory(path);
        if reading.node.depth + 1 >= DEEPEST {
            self.stopped = true;
        } else if reading.node.depth + 1 < filter.depth {
            reading.directories.push(name.to_owned());
        }
        if listed {
            self.came(reading, name, kind);
        }
    }

    fn came(&mut self, reading: &Reading<'_>, name: &OsStr, kind: EntryKind) {
        let path = String::from_utf8_lossy(&reading.path[self.base.len() + 1..]);
        self.visitor.visit(&Came { directory: reading.directory, name, path: &path, kind });
    }

    /// Queues files to visit, or visits them now if the queue is full.
    fn files(&mut self, node: &Arc<Node>, names: Vec<OsString>) {
        if self.crawl.queue().work.len() < WAITING {
            self.crawl.add(Work::Files { node: Arc::clone(node), names });
        } else {
            self.visit_all(node, &names);
        }
    }

    fn visit_all(&mut self, node: &Arc<Node>, names: &[OsString]) {
        let Some(directory) = self.crawl.handles.open(node) else { return };
        let mut path = Vec::new();
        node.path(&mut path);
        path.push(b'/');
        let start = path.len();
        for name in names {
            if self.crawl.stop.load(Ordering::Relaxed) {
                return;
            }
            path.extend_from_slice(name.as_bytes());
            let shown = String::from_utf8_lossy(&path[1..]);
            let came = Came { directory: &directory, name, path: &shown, kind: EntryKind::File };
            self.visitor.visit(&came);
            path.truncate(start);
        }
    }
}

/// A directory that is being read.
struct Reading<'a> {
    node: &'a Arc<Node>,
    directory: &'a Directory,
    rules: &'a Rules,
    /// The directory's path from the root, with slashes around it; an entry's name is appended.
    path: Vec<u8>,
    /// Directories in it to go into.
    directories: Vec<OsString>,
    /// Files in it to visit.
    files: Vec<OsString>,
}

/// Reads the ignore files of a directory. A repository's start is looked for only `within` another one.
pub(super) fn sources(reach: &Reach, directory: &Directory, within: bool) -> Sources {
    Sources {
        gitignore: source(reach, directory, ignored::GITIGNORE),
        ignore: source(reach, directory, ignored::IGNORE),
        repository: within && directory.stat(OsStr::new(ignored::REPOSITORY)).is_ok(),
    }
}

fn source(reach: &Reach, directory: &Directory, name: &str) -> Option<Vec<u8>> {
    let name = OsStr::new(name);
    // So that a device or a pipe is not even opened.
    directory.stat(name).ok().filter(|raw| check_regular(raw).is_ok())?;
    if reach.denied.is_hidden(directory.id, name) {
        return None;
    }
    let (file, raw) = directory.open(name).ok()?;
    check_opened(reach, directory.id, &file, &raw).ok()?;
    let mut bytes = Vec::new();
    file.take(ignored::MOST_BYTES as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
