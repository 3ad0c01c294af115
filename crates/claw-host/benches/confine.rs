//! The cost of confinement: reading a small file through it, against opening it directly.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times are medians of many batches.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use claw_core::port::{Expect, FilePlace, FsBridge as _, Scope};
use claw_host::files::{Kernel, LocalFiles};
use claw_testkit::fixture::caller;
use tempfile::TempDir;

const BATCHES: usize = 60;
const READS: u32 = 500;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let directory = TempDir::new().unwrap();
    let root = directory.path().join("ws");
    fs::create_dir_all(root.join("src/deep")).unwrap();
    for name in ["small.txt", "src/deep/small.txt"] {
        fs::write(root.join(name), vec![b'x'; 1024]).unwrap();
    }
    fs::create_dir(root.join(".own")).unwrap();
    std::os::unix::fs::symlink("src", root.join("link")).unwrap();
    let plain = Scope::workspace(&root);
    let hiding = Scope { denied: vec![root.join(".own")], ..plain.clone() };

    for path in ["small.txt", "src/deep/small.txt"] {
        let full = root.join(path);
        let alone = median(async || drop(black_box(fs::read(&full).unwrap()))).await;
        println!("plain_read/{path}\t{alone:.2}\tµs");
        let base = median(async || drop(black_box(handed_over(full.clone()).await))).await;
        println!("plain_read_on_another_thread/{path}\t{base:.2}\tµs");
        for (kind, scope) in [("nothing denied", &plain), ("one denied", &hiding)] {
            for kernel in [Kernel::default(), Kernel { openat2: false, ..Kernel::default() }] {
                let files = LocalFiles::with(kernel);
                let time = median(async || read(&files, &root, scope, path).await).await;
                let how = if kernel.openat2 { "openat2" } else { "steps" };
                println!("confined_read/{path}, {kind}, {how}\t{time:.2}\tµs");
                println!("confined_read/{path}, {kind}, {how}, beside a plain one\t{:.2}\tx", time / base);
            }
        }
    }
    let files = LocalFiles::new();
    let time = median(async || read(&files, &root, &plain, "link/deep/small.txt").await).await;
    println!("confined_read/link/deep/small.txt, openat2\t{time:.2}\tµs");
}

/// Reads a file as an async program does: on a thread that may block on the disk.
async fn handed_over(path: PathBuf) -> Vec<u8> {
    tokio::task::spawn_blocking(move || fs::read(path)).await.unwrap().unwrap()
}

async fn read(files: &LocalFiles, root: &Path, scope: &Scope, path: &str) {
    let caller = caller();
    let place = FilePlace { caller: &caller, directory: root, scope, expect: Expect::Anything };
    black_box(files.read(&place, path).await.unwrap());
}

/// The median time of one, in microseconds.
async fn median(work: impl AsyncFn()) -> f64 {
    let mut times = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..READS {
            work().await;
        }
        times.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(READS));
    }
    times.sort_by(f64::total_cmp);
    times[BATCHES / 2]
}
