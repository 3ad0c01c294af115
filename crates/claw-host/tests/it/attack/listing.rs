//! A racer that swaps directories for links to others while trees are walked and searched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use claw_core::port::{FilePlace, FsBridge as _, Search, Walk};
use claw_core::redact::Redactor;
use claw_host::files::{Kernel, LocalFiles};
use rustix::fs::{Mode, OFlags, RenameFlags, renameat_with};
use tokio::runtime::Runtime;

use super::{CANARY, Target};
use crate::trees::{Open, all, text};

/// The number of walks and searches.
const ROUNDS: u64 = 400;

#[test]
fn a_racer_never_leads_a_walk_or_a_search_out() {
    let mut target = Target::on_disk(Kernel::default());
    target.scope.denied = vec![target.root.join("own")];
    prepare(&target.root, &target.around.join("outside"));
    let rounds = std::env::var("CLAWSMITH_RACE_OPS").ok().and_then(|text| text.parse().ok());
    let rounds = rounds.map_or(ROUNDS, |operations: u64| operations / 500);
    let (over, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let runtime = Runtime::new().unwrap();
    let (mut entered, mut found) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| swap(&target, &over, &swaps));
        // However this ends, the racer must end too.
        let _ends = Ends(&over);
        let files = LocalFiles::new();
        let redactor: Arc<dyn Redactor> = Arc::new(Open);
        for _ in 0..rounds {
            let place = target.place();
            let within = Walk { ignored: false, ..all(".") };
            let walked = runtime.block_on(files.walk(&place, &within)).unwrap();
            for entry in &walked.entries {
                assert!(!entry.path.contains("canary"), "a walk got out: {}", entry.path);
                assert!(!entry.path.contains("denied"), "a walk got in: {}", entry.path);
                entered += u64::from(entry.path.ends_with("inner"));
            }
            let search = Search { within, ..text("canary|denied|inside") };
            let searched = runtime.block_on(files.search(&place, &search, &redactor)).unwrap();
            for line in searched.files.iter().flat_map(|hits| &hits.lines) {
                assert_eq!(line.text, "inside", "a search got out");
                found += 1;
            }
            let from = FilePlace { directory: &target.root, ..place };
            for path in ["swap/0", "swap/1/deep"] {
                if let Ok(walked) = runtime.block_on(files.walk(&from, &all(path))) {
                    assert!(walked.entries.iter().all(|entry| !entry.path.contains("canary")));
                }
            }
        }
    });
    assert!(swaps.load(Ordering::Relaxed) > 100, "nothing was swapped");
    assert!(entered > 100 && found > 100, "the racer let nothing be found: {entered} {found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_denied_by_another_name_is_neither_listed_nor_searched() {
    let mut target = Target::on_disk(Kernel::default());
    fs::create_dir_all(target.root.join("dir/real/deep")).unwrap();
    fs::write(target.root.join("dir/real/deep/file"), "inside").unwrap();
    fs::write(target.root.join("dir/single"), "inside").unwrap();
    symlink("dir/real", target.root.join("alias")).unwrap();
    symlink("dir/single", target.root.join("one")).unwrap();
    target.scope.denied = ["alias", "one"].map(|name| target.root.join(name)).to_vec();
    let (files, place) = (LocalFiles::new(), target.place());
    let walked = files.walk(&place, &all(".")).await.unwrap();
    let paths: Vec<_> = walked.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["dir", "dir/deep", "dir/file"]);
    assert_eq!((walked.files, walked.directories), (1, 2));
    let redactor: Arc<dyn Redactor> = Arc::new(Open);
    let searched = files.search(&place, &text("inside"), &redactor).await.unwrap();
    assert_eq!((searched.hits, searched.searched, searched.failed), (1, 1, 0));
    let globbed = files.walk(&place, &Walk { directories: false, ..all(".") }).await.unwrap();
    assert_eq!(globbed.files, 1);
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn prepare(root: &Path, outside: &Path) {
    fs::create_dir_all(outside.join("deep")).unwrap();
    fs::write(outside.join("deep/canary"), CANARY).unwrap();
    fs::create_dir_all(root.join("own/deep")).unwrap();
    for name in ["own/denied", "own/deep/denied"] {
        fs::write(root.join(name), "denied").unwrap();
    }
    for index in 0..8 {
        let directory = root.join(format!("swap/{index}/deep"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("inner"), "inside").unwrap();
        fs::write(directory.parent().unwrap().join("inner"), "inside").unwrap();
        // The replacements of a directory: a link out, a link to denied files, a file that is a link.
        let target = if index % 2 == 0 { outside.to_owned() } else { root.join("own") };
        symlink(&target, root.join(format!(".link{index}"))).unwrap();
        symlink(target.join("deep/canary"), root.join(format!(".file{index}"))).unwrap();
    }
}

/// Exchanges directories and files with links, back and forth. Uses handles, so that it never follows one of
/// its own links and moves outside files in.
fn swap(target: &Target, over: &AtomicBool, swaps: &AtomicU64) {
    let open = |path: &Path| rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let (root, swap) = (open(&target.root), open(&target.root.join("swap")));
    let inner: Vec<_> = (0..8).map(|index| open(&target.root.join(format!("swap/{index}")))).collect();
    let mut round = 0_usize;
    while !over.load(Ordering::Relaxed) {
        round += 1;
        let index = round * 5 % 8;
        let (within, name, link) = match round % 3 {
            0 => (&swap, index.to_string(), format!(".link{index}")),
            1 => (&inner[index], "deep".to_owned(), format!(".link{index}")),
            _ => (&inner[index], "inner".to_owned(), format!(".file{index}")),
        };
        let exchange = || renameat_with(within, &name, &root, &link, RenameFlags::EXCHANGE).is_ok();
        if exchange() {
            swaps.fetch_add(1, Ordering::Relaxed);
            if !round.is_multiple_of(4) {
                exchange();
            }
        }
    }
}
