//! The cost of a transaction: changes made on a layer and then applied, against direct writes and `cp -a`.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times are medians of rounds in which the compared runs alternate.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use claw_core::port::{RunContext, ShellHost as _, WorkspaceAccess};
use claw_core::tool::Script;
use claw_host::transaction::Transactions;
use claw_sandbox::shell::{LocalShell, ShellOptions};
use claw_sandbox::{Launcher, Limits};

fn main() {
    claw_sandbox::enter_if_asked();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(run());
}

async fn run() {
    for files in [1, 100, 10_000] {
        let change = format!("for i in $(seq {files}); do echo changed > f$i; done");
        measure(&format!("{files} changed files"), files, if files > 100 { 3 } else { 15 }, &change).await;
    }
    measure("a file of 1 GB", 0, 3, "head -c 1000000000 /dev/zero > large").await;
    // Compiles nothing, but does what a build does: reads every source and writes as many objects.
    let build = "mkdir out; for i in $(seq 500); do sha256sum f$i > out/f$i.o; done; cat out/* > out/all";
    measure("a build of 500 files", 500, 9, build).await;
}

/// Measures a change of a workspace with this many files, in so many rounds.
async fn measure(name: &str, files: usize, rounds: usize, change: &str) {
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..rounds {
        let round = once(files, change).await;
        times.iter_mut().zip(round).for_each(|(times, time)| times.push(time));
    }
    let [written, on_layer, applied, copied] = times.map(median);
    println!("{name}, written directly\t{written:.1}\tms");
    println!("{name}, on a layer and read\t{on_layer:.1}\tms");
    println!("{name}, applied\t{applied:.1}\tms");
    println!("{name}, cp -a\t{copied:.1}\tms");
    println!("{name}, layer and applying / directly\t{:.2}\tx", (on_layer + applied) / written);
    println!("{name}, applying / cp -a\t{:.2}\tx", applied / copied);
}

/// Times of writing directly, on a layer, of applying, and of copying the workspace.
async fn once(files: usize, change: &str) -> [f64; 4] {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let transactions = Some(Transactions::new(&root.join("data")));
    let limits = Limits { file_size: None, disk: None, ..Limits::default() };
    let options = ShellOptions { transactions, limits, ..ShellOptions::default() };
    let shell = Arc::new(LocalShell::new(Arc::new(Launcher::new()), options));
    let script = Script { text: change.to_owned(), directory: String::new(), ..Script::default() };
    let warm = Script { text: "true".to_owned(), directory: String::new(), ..Script::default() };
    let place = |name: &str| {
        let place = root.join(name);
        std::fs::create_dir(&place).unwrap();
        for i in 1..=files {
            std::fs::write(place.join(format!("f{i}")), "as it was\n").unwrap();
        }
        place
    };
    let (direct, layered) = (place("direct"), place("layered"));
    shell.run(&context(&direct, WorkspaceAccess::Direct), &warm).await.unwrap();
    let begun = Instant::now();
    let ran = shell.run(&context(&direct, WorkspaceAccess::Direct), &script).await.unwrap();
    let written = millis(begun);
    assert_eq!(ran.exit, Some(0), "{}", ran.output);
    let begun = Instant::now();
    let ran = shell.run(&context(&layered, WorkspaceAccess::Layer), &script).await.unwrap();
    let on_layer = millis(begun);
    assert_eq!(ran.exit, Some(0), "{}", ran.output);
    let mut pending = ran.pending.unwrap();
    let begun = Instant::now();
    pending.apply(&[]).await.unwrap();
    let applied = millis(begun);
    let begun = Instant::now();
    let copied = Command::new("cp").arg("-a").args([&layered, &root.join("copy")]).status().unwrap();
    assert!(copied.success());
    let copied = millis(begun);
    [written, on_layer, applied, copied]
}

fn context(workspace: &Path, access: WorkspaceAccess) -> RunContext {
    RunContext { access, ..RunContext::new(workspace, "bench") }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn millis(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}
