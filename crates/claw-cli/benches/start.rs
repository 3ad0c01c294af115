//! The program's start time, peak memory and size.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times are medians, compared with a program that does nothing.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};

const CLAWSMITH: &str = env!("CARGO_BIN_EXE_clawsmith");
const RUNS: usize = 200;

/// The median time from start to end, in milliseconds.
fn time(name: &str, program: &str, args: &[&str], home: &Path) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            let mut command = Command::new(program);
            command
                .args(args)
                .env_clear()
                .env("HOME", "/nonexistent")
                .env("CLAWSMITH_DATA_DIR", home.join("data"))
                .current_dir(home)
                .stdout(Stdio::null());
            assert!(command.status().unwrap().success(), "{name}");
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name}\t{:.2}\tms", times[RUNS / 2]);
    times[RUNS / 2]
}

/// Returns the peak memory of all children so far, in megabytes. It only rises, so the smallest goes first.
fn peak() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as f64 / 1024.0
}

fn main() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("work");
    std::fs::create_dir(&home).unwrap();
    let floor = time("a program that does nothing", "/bin/true", &[], &home);
    let version = time("clawsmith --version", CLAWSMITH, &["--version"], &home);
    println!("clawsmith --version, peak memory\t{:.1}\tMB", peak());
    let list = time("clawsmith tools list", CLAWSMITH, &["tools", "list"], &home);
    println!("clawsmith tools list, peak memory\t{:.1}\tMB", peak());
    let call = ["tools", "call", "datetime", "--args", "{\"action\": \"now\"}"];
    time("clawsmith tools call datetime", CLAWSMITH, &call, &home);
    println!("--version / nothing\t{:.1}\tx", version / floor);
    println!("tools list / nothing\t{:.1}\tx", list / floor);
    let size = std::fs::metadata(CLAWSMITH).unwrap().len() as f64 / 1e6;
    println!("stripped binary\t{size:.1}\tMB");
}
