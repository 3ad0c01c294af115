//! Walking and searching real trees: against a slow reference, on trees that are deep, wide and odd.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use claw_core::port::{
    EntryKind, Expect, FilePlace, FsBridge as _, Order, Scope, Search, Searched, Walk, Walked,
};
use claw_core::redact::{Redaction, Redactor};
use claw_host::files::LocalFiles;
use claw_testkit::fixture::caller;
use regex::Regex;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

pub(crate) fn all(path: &str) -> Walk {
    Walk {
        path: path.into(),
        depth: None,
        globs: Vec::new(),
        types: Vec::new(),
        hidden: true,
        ignored: true,
        directories: true,
        order: Order::Path,
        limit: usize::MAX,
    }
}

pub(crate) fn text(pattern: &str) -> Search {
    Search {
        within: all("."),
        pattern: pattern.into(),
        literal: false,
        case: Some(true),
        word: false,
        multiline: false,
        before: 0,
        after: 0,
        limit: usize::MAX,
    }
}

/// A redactor that finds no secrets.
pub(crate) struct Open;

impl Redactor for Open {
    fn find(&self, _text: &[u8], _found: &mut Vec<Redaction>) {}
}

struct World {
    disk: TempDir,
    files: LocalFiles,
}

impl World {
    fn new() -> Self {
        Self { disk: TempDir::new().unwrap(), files: LocalFiles::new() }
    }

    fn root(&self) -> &Path {
        self.disk.path()
    }

    async fn walk(&self, walk: &Walk) -> Walked {
        let (caller, scope) = (caller(), Scope::workspace(self.root()));
        let place =
            FilePlace { caller: &caller, directory: self.root(), scope: &scope, expect: Expect::Anything };
        self.files.walk(&place, walk).await.unwrap()
    }

    async fn search(&self, search: &Search, redactor: Arc<dyn Redactor>) -> Searched {
        let (caller, scope) = (caller(), Scope::workspace(self.root()));
        let place =
            FilePlace { caller: &caller, directory: self.root(), scope: &scope, expect: Expect::Anything };
        self.files.search(&place, search, &redactor).await.unwrap()
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Makes a tree of text files, nested directories, links to both and pipes.
fn grow(root: &Path, dice: &mut Dice) {
    let mut directories = vec![root.to_owned()];
    for index in 0..60 {
        let within = directories[dice.below(directories.len() as u64) as usize].clone();
        let names = ["a", "b.rs", ".hidden", "käse", "with space", "z"];
        let path = within.join(format!("{}{index}", names[dice.below(6) as usize]));
        match dice.below(10) {
            0..3 => {
                fs::create_dir(&path).unwrap();
                directories.push(path);
            }
            3 => symlink([".", "..", "/etc", "nowhere"][dice.below(4) as usize], &path).unwrap(),
            4 if index % 7 == 0 => {
                mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
            }
            _ => {
                let words = ["one", "two\n", "three ", "\n", "\r\n", "four"];
                let text: String = (0..dice.below(40)).map(|_| words[dice.below(6) as usize]).collect();
                let binary = if dice.below(12) == 0 { "\0" } else { "" };
                fs::write(path, format!("{text}{binary}")).unwrap();
            }
        }
    }
}

/// Lists everything below a directory with the standard library, in the order of paths.
fn naive(root: &Path) -> Vec<(PathBuf, fs::Metadata)> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_dir() {
                left.push(path.clone());
            }
            found.push((path.strip_prefix(root).unwrap().to_owned(), metadata));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn walks_and_searches_as_the_slow_way_does() {
    for seed in 0..40 {
        let world = World::new();
        grow(world.root(), &mut Dice(seed));
        let expected = naive(world.root());
        let walked = world.walk(&all(".")).await;
        let got: Vec<_> = walked.entries.iter().map(|entry| PathBuf::from(&entry.path)).collect();
        let paths: Vec<_> = expected.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(got, paths, "seed {seed}");
        for (entry, (_, metadata)) in walked.entries.iter().zip(&expected) {
            let kind = match metadata.file_type() {
                kind if kind.is_dir() => EntryKind::Directory,
                kind if kind.is_symlink() => EntryKind::Link,
                kind if kind.is_file() => EntryKind::File,
                _ => EntryKind::Other,
            };
            assert_eq!(entry.kind, kind, "{entry:?}");
            assert_eq!(entry.size, if metadata.is_dir() { 0 } else { metadata.len() }, "{entry:?}");
        }
        let directories = expected.iter().filter(|(_, metadata)| metadata.is_dir()).count() as u64;
        assert_eq!((walked.directories, walked.files), (directories, expected.len() as u64 - directories));

        for pattern in ["two", "one|four$", "^three", "o.*e"] {
            let regex = Regex::new(&format!("(?m){pattern}")).unwrap();
            let mut hits = BTreeMap::new();
            let (mut searched, mut binary) = (0, 0);
            for (path, metadata) in expected.iter().filter(|(_, metadata)| metadata.is_file()) {
                let text = fs::read_to_string(world.root().join(path)).unwrap();
                assert_eq!(text.len() as u64, metadata.len());
                if text.contains('\0') {
                    binary += 1;
                    continue;
                }
                searched += 1;
                let lines: Vec<u64> = text
                    .split_inclusive('\n')
                    .zip(1..)
                    .filter(|(line, _)| regex.is_match(line.trim_end_matches('\n').trim_end_matches('\r')))
                    .map(|(_, number)| number)
                    .collect();
                if !lines.is_empty() {
                    hits.insert(path.clone(), lines);
                }
            }
            let found = world.search(&text(pattern), Arc::new(Open)).await;
            let numbers = |hits: &claw_core::port::Hits| hits.lines.iter().map(|line| line.number).collect();
            let got: BTreeMap<PathBuf, Vec<u64>> =
                found.files.iter().map(|hits| (PathBuf::from(&hits.path), numbers(hits))).collect();
            assert_eq!(got, hits, "seed {seed}, `{pattern}`");
            assert_eq!((found.searched, found.binary, found.failed), (searched, binary, 0));
            let sorted: Vec<_> = found.files.iter().map(|hits| PathBuf::from(&hits.path)).collect();
            assert!(sorted.is_sorted(), "{sorted:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn goes_through_trees_deeper_than_any_path() {
    let world = World::new();
    // A comb: at each of 3,000 levels a directory that leads on and one that does not.
    let mut at = rustix::fs::open(world.root(), rustix::fs::OFlags::PATH, Mode::empty()).unwrap();
    for _ in 0..3_000 {
        for name in ["on", "side"] {
            rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o700)).unwrap();
        }
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        let file = rustix::fs::openat(&at, "side/file", flags, Mode::from_raw_mode(0o600)).unwrap();
        rustix::io::write(&file, b"needle\n").unwrap();
        at = rustix::fs::openat(&at, "on", rustix::fs::OFlags::PATH, Mode::empty()).unwrap();
    }
    let walked = world.walk(&Walk { limit: 5, ..all(".") }).await;
    assert_eq!((walked.files, walked.directories, walked.stopped), (3_000, 6_000, false));
    let found = world.search(&Search { limit: 1, ..text("needle") }, Arc::new(Open)).await;
    assert_eq!((found.hits, found.with_hits, found.failed), (3_000, 3_000, 0));
    // Removed by hand, since the standard library goes down by recursion.
    drop(at);
    let removed = std::process::Command::new("rm").arg("-rf").arg(world.root()).status().unwrap();
    assert!(removed.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_pipes_sockets_and_names_that_are_no_text_alone() {
    let world = World::new();
    let odd = world.root().join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    fs::write(odd, "needle").unwrap();
    mknodat(CWD, world.root().join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    mknodat(CWD, world.root().join(".gitignore"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.root().join("socket")).unwrap();
    fs::write(world.root().join(".clawsmith-tmp-1"), "needle").unwrap();
    let found = world
        .search(&Search { within: Walk { ignored: false, ..all(".") }, ..text("needle") }, Arc::new(Open))
        .await;
    assert_eq!((found.searched, found.hits, found.files[0].path.as_str()), (1, 1, "odd\u{fffd}"));
    let walked = world.walk(&all(".")).await;
    let names: Vec<_> = walked.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(names, [".gitignore", "odd\u{fffd}", "pipe", "socket"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_counted() {
    let world = World::new();
    for name in ["closed", "open"] {
        fs::write(world.root().join(name), "needle").unwrap();
    }
    let closed = world.root().join("closed");
    if rustix::process::geteuid().is_root() {
        // Even root is refused another user's file that has several names.
        fs::hard_link(&closed, world.root().join(".clawsmith-tmp-other")).unwrap();
        std::os::unix::fs::chown(&closed, Some(12_345), None).unwrap();
    } else {
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let found = world.search(&text("needle"), Arc::new(Open)).await;
    assert_eq!((found.searched, found.hits, found.failed), (1, 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn long_files_are_searched_in_parts() {
    let world = World::new();
    // Hits at every border: of chunks, of what is kept around them, and of lines longer than a chunk.
    let mut lines = Vec::new();
    for index in 0..3000 {
        let filler = "f".repeat(if index % 1000 == 999 { 1_500_000 } else { 1_000 });
        lines.push(if index % 3 == 0 { format!("{filler} needle") } else { filler });
    }
    fs::write(world.root().join("long"), lines.join("\n")).unwrap();
    let found = world.search(&Search { before: 1, limit: 10_000, ..text("needle") }, Arc::new(Open)).await;
    let hits = &found.files[0];
    assert_eq!(hits.count, 1000);
    for line in hits.lines.iter().filter(|line| line.hit) {
        assert_eq!((line.number - 1) % 3, 0);
        assert!(line.text.ends_with("needle"), "{}", line.number);
    }
    assert_eq!(hits.lines.len(), 1000 + 999);
}

/// Counts its calls.
struct Counting(AtomicU64);

impl Redactor for Counting {
    fn find(&self, _text: &[u8], _found: &mut Vec<Redaction>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_looked_for_only_where_something_was_found() {
    let world = World::new();
    for index in 0..200 {
        fs::write(world.root().join(format!("f{index}")), if index == 7 { "needle" } else { "hay" }).unwrap();
    }
    let counting = Arc::new(Counting(AtomicU64::new(0)));
    let found = world.search(&text("needle"), Arc::clone(&counting) as Arc<dyn Redactor>).await;
    assert_eq!((found.hits, found.searched, counting.0.load(Ordering::Relaxed)), (1, 200, 1));
}

/// Reports each call, and blocks it until it is released.
struct Gate {
    asked: tokio::sync::mpsc::UnboundedSender<()>,
    open: std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
    count: AtomicU64,
}

impl Redactor for Gate {
    fn find(&self, _text: &[u8], _found: &mut Vec<Redaction>) {
        self.count.fetch_add(1, Ordering::SeqCst);
        let _ = self.asked.send(());
        let _ = self.open.lock().unwrap().recv();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_stops_when_nobody_waits_for_it() {
    let world = World::new();
    for index in 0..2048 {
        fs::write(world.root().join(format!("f{index}")), "needle").unwrap();
    }
    let (asked, mut told) = tokio::sync::mpsc::unbounded_channel();
    let (open, wait) = std::sync::mpsc::channel();
    let gate = Arc::new(Gate { asked, open: std::sync::Mutex::new(wait), count: AtomicU64::new(0) });
    let searching = {
        let (files, root, gate) = (world.files.clone(), world.root().to_owned(), Arc::clone(&gate));
        tokio::spawn(async move {
            let (caller, scope) = (caller(), Scope::workspace(&root));
            let place =
                FilePlace { caller: &caller, directory: &root, scope: &scope, expect: Expect::Anything };
            let redactor: Arc<dyn Redactor> = gate;
            files.search(&place, &text("needle"), &redactor).await
        })
    };
    told.recv().await.unwrap();
    searching.abort();
    assert!(searching.await.unwrap_err().is_cancelled());
    // Nobody waits now. Whoever was at work may finish its file, and no more.
    drop(open);
    while Arc::strong_count(&gate) > 1 {
        tokio::task::yield_now().await;
    }
    assert!(gate.count.load(Ordering::SeqCst) <= 8, "{:?}", gate.count);
}
