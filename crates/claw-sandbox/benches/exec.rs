//! The cost of running a command: on the host against a bare `sh -c true`, and in the kernel sandbox against
//! `bwrap` with the same layers.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times are medians, and the compared runs alternate.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use claw_core::port::{RunContext, ShellHost as _, WorkspaceAccess};
use claw_core::tool::Script;
use claw_host::transaction::Transactions;
use claw_sandbox::Launcher;
use claw_sandbox::shell::{LocalShell, ShellOptions};

const RUNS: usize = 200;
const AT_ONCE: usize = 200;

fn main() {
    claw_sandbox::enter_if_asked();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(run());
}

async fn run() {
    let workspace = tempfile::tempdir().unwrap();
    let place = workspace.path().canonicalize().unwrap();
    let launcher = Arc::new(Launcher::new());
    let data = tempfile::tempdir().unwrap();
    let transactions = Some(Transactions::new(data.path()));
    let shell = Arc::new(LocalShell::new(launcher, ShellOptions { transactions, ..ShellOptions::default() }));
    let (host, inside) = (context(&place, false), context(&place, true));
    let reading = RunContext { access: WorkspaceAccess::ReadOnly, ..inside.clone() };
    let layered = RunContext { access: WorkspaceAccess::Layer, ..inside.clone() };
    let script = Script { text: "true".into(), directory: String::new(), ..Script::default() };
    // The helper is started and the layers are probed once for a program.
    let begun = Instant::now();
    shell.run(&inside, &script).await.unwrap();
    println!("first command of a program, helper and probing included\t{:.2}\tms", millis(begun));

    let bwrap = Command::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_ok();
    let mut times: [Vec<f64>; 6] = Default::default();
    for _ in 0..RUNS {
        let begun = Instant::now();
        bare(&place);
        times[0].push(millis(begun));
        let begun = Instant::now();
        shell.run(&host, &script).await.unwrap();
        times[1].push(millis(begun));
        let begun = Instant::now();
        shell.run(&inside, &script).await.unwrap();
        times[2].push(millis(begun));
        if bwrap {
            let begun = Instant::now();
            bubblewrap(&place);
            times[3].push(millis(begun));
        }
        let begun = Instant::now();
        shell.run(&reading, &script).await.unwrap();
        times[4].push(millis(begun));
        let begun = Instant::now();
        let mut pending = shell.run(&layered, &script).await.unwrap().pending.unwrap();
        pending.apply(&[]).await.unwrap();
        times[5].push(millis(begun));
    }
    let [bare, host, sandbox, bwrapped, reading, layered] = times.map(median);
    println!("bare bash -c true\t{bare:.2}\tms");
    println!("exec true on the host\t{host:.2}\tms");
    println!("exec true on the host / bare\t{:.2}\tx", host / bare);
    println!("exec true in the kernel sandbox\t{sandbox:.2}\tms");
    println!("exec true in the kernel sandbox / bare\t{:.2}\tx", sandbox / bare);
    println!("exec true in the kernel sandbox, reading\t{reading:.2}\tms");
    println!("exec true on a layer, applied\t{layered:.2}\tms");
    if bwrap {
        println!("exec true on a layer / bwrap\t{:.2}\tx", layered / bwrapped);
        println!("bwrap with the same namespaces, bash -c true\t{bwrapped:.2}\tms");
        println!("exec true in the kernel sandbox / bwrap\t{:.2}\tx", sandbox / bwrapped);
    } else {
        println!("bwrap is not installed\t0\tx");
    }

    let begun = Instant::now();
    let runs = (0..AT_ONCE).map(|_| {
        let (shell, inside, script) = (Arc::clone(&shell), inside.clone(), script.clone());
        tokio::spawn(async move { shell.run(&inside, &script).await.unwrap().exit })
    });
    for run in runs.collect::<Vec<_>>() {
        assert_eq!(run.await.unwrap(), Some(0));
    }
    println!("{AT_ONCE} in the kernel sandbox at once, none lost\t{:.0}\tms", millis(begun));
}

fn context(workspace: &Path, sandboxed: bool) -> RunContext {
    RunContext { sandboxed, ..RunContext::new(workspace, "bench") }
}

fn bare(place: &Path) {
    let out = Command::new("/bin/bash").args(["-c", "true"]).current_dir(place).output().unwrap();
    assert!(out.status.success());
}

/// Runs `bwrap` with the same tree, namespaces and dropped capabilities, but without our system call filter
/// and file rules.
fn bubblewrap(place: &Path) {
    let mut command = Command::new("bwrap");
    command.args(["--ro-bind", "/usr", "/usr"]);
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        let path = Path::new("/").join(name);
        if let Ok(to) = std::fs::read_link(&path) {
            command.arg("--symlink").arg(to).arg(&path);
        }
    }
    for path in
        ["/etc/alternatives", "/etc/ssl/certs", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/ld.so.cache"]
    {
        command.args(["--ro-bind-try", path, path]);
    }
    command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind"]).arg(place).arg(place);
    command.arg("--chdir").arg(place);
    command.args([
        "--unshare-all",
        "--unshare-user",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]);
    command.args(["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "/bin/bash", "-c", "true"]);
    assert!(command.output().unwrap().status.success());
}

fn millis(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
