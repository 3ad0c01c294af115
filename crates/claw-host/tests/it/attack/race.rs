//! A racer that swaps directories, links and files while operations run.
//!
//! `CLAWSMITH_RACE_OPS` sets the number of operations, `CLAWSMITH_RACE_SEED` the seed, to repeat a failure.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use claw_core::port::{Expect, FilePlace};
use claw_core::tool::{ErrorKind, ToolError};
use claw_host::files::Kernel;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use tokio::runtime::Runtime;

use super::{CANARY, KERNELS, Target};

/// The number of operations with each set of kernel calls: about a minute of them, unoptimised.
const OPERATIONS: u64 = 400_000;
const WORKERS: u64 = 4;
/// The content of the directory that is denied to half of the operations.
const OWN: &str = "what is denied";

#[test]
fn a_racer_never_leads_the_kernel_out() {
    race(KERNELS[0]);
}

#[test]
fn a_racer_never_leads_our_steps_out() {
    race(KERNELS[1]);
}

fn race(kernel: Kernel) {
    let seed = number("CLAWSMITH_RACE_SEED").unwrap_or(1);
    let operations = number("CLAWSMITH_RACE_OPS").unwrap_or(OPERATIONS);
    let mut target = Target::on_disk(kernel);
    prepare(&target.root);
    // Half of the operations run with something denied below the root, and half without.
    let denied = vec![target.root.join("own")];
    let open = target.scope.clone();
    target.scope.denied = denied;
    let target = Arc::new(target);
    let runtime = Runtime::new().unwrap();
    let before = runtime.block_on(target.outside());
    let over = AtomicBool::new(false);
    let swaps = AtomicU64::new(0);
    let mut tally = Tally::default();
    thread::scope(|scope| {
        for racer in 0..2 {
            let (root, over, swaps) = (&target.root, &over, &swaps);
            scope.spawn(move || swap(root, seed ^ (racer << 32), over, swaps));
        }
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (target, open) = (Arc::clone(&target), open.clone());
                runtime.spawn(async move {
                    let mut dice = Dice(seed.wrapping_mul(WORKERS + 1) + worker + 1);
                    let mut tally = Tally::default();
                    for _ in 0..operations / WORKERS {
                        let scope = if dice.below(2) == 0 { &open } else { &target.scope };
                        let place = FilePlace { scope, ..target.place() };
                        tally.add(operate(&target, &place, &mut dice).await);
                    }
                    tally
                })
            })
            .collect();
        for worker in workers {
            let worker = runtime.block_on(worker);
            over.store(worker.is_err(), Ordering::Relaxed);
            tally.sum(&worker.unwrap());
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(runtime.block_on(target.outside()), before, "seed {seed}: something outside was changed");
    for name in ["canary", "file"] {
        assert_eq!(fs::read_to_string(target.root.join("own").join(name)).unwrap(), OWN);
    }
    let swaps = swaps.into_inner();
    println!("{operations} operations, {swaps} swaps: {tally:?}");
    assert!(swaps > operations / 100, "the racer raced: {swaps} swaps");
    assert!(tally.done > operations / 20, "operations got somewhere: {tally:?}");
    assert!(tally.refused > operations / 20, "and ran into the traps: {tally:?}");
}

/// Pairs of names that the racer exchanges, one of each harmless.
const PAIRS: [(&str, &str); 6] = [
    ("swap", "swap-out"),
    ("swap", "swap-absolute"),
    ("swap", "swap-own"),
    ("file", "file-out"),
    ("file", "file-pipe"),
    ("dir/deep", "dir/deep-out"),
];

fn prepare(root: &Path) {
    for directory in ["swap", "dir/deep", "own"] {
        fs::create_dir_all(root.join(directory)).unwrap();
        for name in ["canary", "file"] {
            let text = if directory == "own" { OWN } else { "inside" };
            fs::write(root.join(directory).join(name), text).unwrap();
        }
    }
    fs::write(root.join("file"), "inside").unwrap();
    let outside = root.parent().unwrap().join("outside");
    symlink("../outside", root.join("swap-out")).unwrap();
    symlink(&outside, root.join("swap-absolute")).unwrap();
    symlink("own", root.join("swap-own")).unwrap();
    symlink("../outside/canary", root.join("file-out")).unwrap();
    symlink("../../outside", root.join("dir/deep-out")).unwrap();
    mknodat(CWD, root.join("file-pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

fn swap(root: &Path, seed: u64, over: &AtomicBool, swaps: &AtomicU64) {
    let mut dice = Dice(seed + 99);
    while !over.load(Ordering::Relaxed) {
        let (one, other) = PAIRS[dice.below(PAIRS.len())];
        let (one, other) = (root.join(one), root.join(other));
        if dice.below(8) == 0 {
            // A moment in which there is nothing at all.
            let aside = root.join(format!("aside-{seed}"));
            if fs::rename(&one, &aside).is_ok() {
                put_back(&aside, &one);
            }
        } else {
            let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
        }
        swaps.fetch_add(1, Ordering::Relaxed);
        if dice.below(4) == 0 {
            thread::yield_now();
        }
    }
}

/// Puts an entry back in place. If a worker has made something there meanwhile, the trap of the two stays.
fn put_back(aside: &Path, place: &Path) {
    let is_trap = |path: &Path| path.symlink_metadata().is_ok_and(|it| !it.is_dir() && !it.is_file());
    for _ in 0..1000 {
        if renameat_with(CWD, aside, CWD, place, RenameFlags::NOREPLACE).is_ok() {
            return;
        }
        if is_trap(aside) {
            let _ = renameat_with(CWD, aside, CWD, place, RenameFlags::EXCHANGE);
        }
        if !is_trap(aside) {
            break;
        }
    }
    let _ = fs::remove_file(aside).or_else(|_| fs::remove_dir_all(aside));
}

const PATHS: [&str; 14] = [
    "swap/canary",
    "swap/file",
    "swap/../swap/canary",
    "dir/../swap/canary",
    "swap-out/canary",
    "swap-own/canary",
    "swap-absolute/canary",
    "file",
    "file-out",
    "dir/deep/canary",
    "dir/deep/file",
    "dir/deep/../deep/canary",
    "dir/deep-out/canary",
    "swap/dir/canary",
];

/// Runs one operation and checks its result: nothing outside or denied is ever seen.
async fn operate(target: &Target, place: &FilePlace<'_>, dice: &mut Dice) -> Result<(), ToolError> {
    let path = PATHS[dice.below(PATHS.len())];
    let hides = !place.scope.denied.is_empty();
    match dice.below(100) {
        0..=69 => {
            let (bytes, _) = target.files.read(place, path).await?;
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(CANARY), "`{path}` shows what is outside");
            assert!(!hides || !text.contains(OWN), "`{path}` shows what is denied");
            Ok(())
        }
        70..=84 => target.files.stat(place, path).await.map(|_| ()),
        85..=89 => target.files.look(place, path).await.map(|_| ()),
        // Writes go only where `own` cannot be: its content must stay.
        90..=95 if hides => target.files.write(place, path, b"worker").await.map(|_| ()),
        96..=97 if hides => {
            let stat = target.files.stat(place, path).await?;
            let Some(stat) = stat else { return Ok(()) };
            let place = FilePlace { expect: Expect::Version(&stat.version), ..*place };
            target.files.write(&place, path, b"worker").await.map(|_| ())
        }
        98 if hides => target.files.remove(place, path).await,
        _ => target.files.mkdirp(place, "swap").await,
    }
}

#[derive(Debug, Default)]
struct Tally {
    done: u64,
    refused: u64,
    missing: u64,
    restless: u64,
}

impl Tally {
    fn add(&mut self, outcome: Result<(), ToolError>) {
        match outcome.map_err(|error| error.kind) {
            Ok(()) => self.done += 1,
            Err(ErrorKind::NotFound) => self.missing += 1,
            Err(ErrorKind::Unavailable) => self.restless += 1,
            Err(_) => self.refused += 1,
        }
    }

    fn sum(&mut self, other: &Self) {
        self.done += other.done;
        self.refused += other.refused;
        self.missing += other.missing;
        self.restless += other.restless;
    }
}

/// A generator of the same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}
