//! Nothing is left behind: no process, mount or control group, however a command or its program ended.

use std::path::{Path, PathBuf};
use std::process::Command;

use claw_core::port::{Program, ShellHost as _, Size, Start};
use claw_core::tool::{ErrorKind, Script};

use crate::kit::{Kit, context, processes_with};
use crate::sandboxes::{Sandbox as _, kill_owner};

/// Returns a word that marks the processes of one test.
fn word(name: &str) -> String {
    format!("left-behind-{name}-{}", std::process::id())
}

/// Returns a script that starts processes of every sort, prints that it is ready, and stays.
fn busy(word: &str) -> Script {
    let text = "sleep 9999 & setsid sleep 9999 & (sleep 9999 &); trap '' TERM; echo ready; while :; do sleep 1; done";
    Script {
        text: text.to_owned(),
        directory: String::new(),
        env: vec![("MARK".into(), word.to_owned())],
        ..Script::default()
    }
}

#[track_caller]
fn nothing_is_left(word: &str, workspace: &Path) {
    let left = processes_with(word);
    assert!(left.is_empty(), "processes: {left:?}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(workspace.to_str().unwrap()), "{mounts}");
    let groups = groups();
    let ours: Vec<_> = groups.iter().filter(|path| !owner_lives(path)).collect();
    assert!(ours.is_empty(), "control groups: {ours:?}");
}

/// The control groups of our commands, in every hierarchy: they are made in the group that this process is in
/// or, in version 2, above it. Groups elsewhere are those of other programs, which may have been killed.
fn groups() -> Vec<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let mut parents = Vec::new();
    for line in own.lines() {
        let parts: Vec<_> = line.splitn(3, ':').collect();
        let (controllers, path) = (parts[1], parts[2].trim_start_matches('/'));
        let top = Path::new("/sys/fs/cgroup");
        if controllers.is_empty() {
            parents
                .extend(top.join(path).ancestors().take_while(|it| it.starts_with(top)).map(PathBuf::from));
        } else {
            parents.push(top.join(controllers).join(path));
        }
    }
    let entries = parents.iter().flat_map(std::fs::read_dir).flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("clawsmith-"));
    ours.map(|entry| entry.path()).collect()
}

/// Other tests have commands of their own at this moment; theirs have supervisors.
fn owner_lives(group: &Path) -> bool {
    let name = group.file_name().unwrap().to_string_lossy().into_owned();
    let pid = name.split('-').nth(1).unwrap_or_default().to_owned();
    // It may have been removed since it was seen.
    Path::new("/proc").join(pid).exists() || !group.exists()
}

#[tokio::test]
async fn after_a_timeout() {
    for (name, mut kit) in [("timeout", Kit::new()), ("timeout-host", Kit::on_the_host())] {
        kit.options.sandbox_timeout = std::time::Duration::from_millis(300);
        kit.options.host_timeout = kit.options.sandbox_timeout;
        let ran = kit.shell().run(&kit.context, &busy(&word(name))).await.unwrap();
        assert_eq!(ran.output, "ready\n");
        nothing_is_left(&word(name), kit.workspace.path());
    }
}

#[tokio::test]
async fn after_cancelling() {
    for (name, mut kit) in [("cancel", Kit::new()), ("cancel-host", Kit::on_the_host())] {
        let cancel = kit.context.cancel.clone();
        kit.context.progress = claw_core::tool::Progress::to(move |_| cancel.cancel());
        let error = kit.shell().run(&kit.context, &busy(&word(name))).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Cancelled);
        nothing_is_left(&word(name), kit.workspace.path());
    }
}

#[tokio::test]
async fn after_the_call_is_dropped() {
    for (name, mut kit) in [("drop", Kit::new()), ("drop-host", Kit::on_the_host())] {
        let started = std::sync::Arc::new(tokio::sync::Notify::new());
        let heard = std::sync::Arc::clone(&started);
        kit.context.progress = claw_core::tool::Progress::to(move |_| heard.notify_one());
        let (shell, script) = (kit.shell(), busy(&word(name)));
        tokio::select! {
            ran = shell.run(&kit.context, &script) => panic!("{ran:?}"),
            () = started.notified() => {}
        }
        until_nothing_is_left(&word(name), kit.workspace.path()).await;
    }
}

/// Waits until another process has cleaned up.
async fn until_nothing_is_left(word: &str, workspace: &Path) {
    for _ in 0..600 {
        if processes_with(word).is_empty() && groups().iter().all(|group| owner_lives(group)) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    nothing_is_left(word, workspace);
}

/// A program that owns a command, and is killed by the test below.
pub(crate) fn own_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, role, place, word, workspace] = arguments.as_slice() else { return };
    if role != "own-a-command" {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut kit = Kit::new();
        if place == "idle" {
            leave_idle(kit).await;
            std::process::exit(0);
        }
        if place == "helper" {
            kill_the_helper(&kit).await;
            std::process::exit(0);
        }
        kit.context = context(Path::new(workspace), place != "host");
        if place == "started" {
            // Nobody waits for it; it has a terminal and is read until it is ready.
            let mut start = Start::new(Program::Script(busy(word)));
            start.terminal = Some(Size::default());
            let mut child = kit.shell().start(&kit.context, &start).await.unwrap();
            let mut line = [0; 7];
            tokio::io::AsyncReadExt::read_exact(&mut child.output, &mut line).await.unwrap();
            println!("{}", String::from_utf8_lossy(&line).trim_end());
            std::future::pending::<()>().await;
        }
        kit.context.progress = claw_core::tool::Progress::to(|text| print!("{text}"));
        let ran = kit.shell().run(&kit.context, &busy(word)).await;
        panic!("it was to be killed: {ran:?}");
    });
}

#[tokio::test]
async fn after_the_death_of_the_owning_program() {
    for place in ["sandbox", "host", "started"] {
        let (word, workspace) = (word(&format!("death-{place}")), tempfile::tempdir().unwrap());
        kill_owner(&["own-a-command", place, &word], &word, workspace.path());
        until_nothing_is_left(&word, workspace.path()).await;
    }
}

#[tokio::test]
async fn after_a_program_that_has_nothing_running() {
    let workspace = tempfile::tempdir().unwrap();
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["own-a-command", "idle", "none"])
        .arg(workspace.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let supervisors: Vec<u32> = said.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(supervisors.len(), 2, "{}", String::from_utf8_lossy(&ran.stderr));
    let left = || {
        let group = |path: &PathBuf| supervisors.iter().any(|pid| path.ends_with(format!("clawsmith-{pid}")));
        let lives = |pid: &&u32| Path::new("/proc").join(pid.to_string()).exists();
        (supervisors.iter().filter(lives).count(), groups().into_iter().filter(group).collect::<Vec<_>>())
    };
    for _ in 0..600 {
        if left() == (0, Vec::new()) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(left(), (0, Vec::new()));
}

/// Runs two commands at once, prints their supervisors, and ends.
async fn leave_idle(kit: Kit) {
    tokio::join!(kit.script("sleep 0.3"), kit.script("sleep 0.3"));
    for helper in children_named("clawsmith-sandbox-helper", std::process::id()) {
        for supervisor in children_named("clawsmith-sandbox-helper", helper) {
            println!("{supervisor}");
        }
    }
}

#[test]
fn after_the_death_of_the_helper_another_is_started() {
    // In a program of its own, since other tests have helpers too.
    let workspace = tempfile::tempdir().unwrap();
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["own-a-command", "helper", "none"])
        .arg(workspace.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(said, "Some(0) 1 Some(0) 1\n", "{}", String::from_utf8_lossy(&ran.stderr));
}

async fn kill_the_helper(kit: &Kit) {
    let helpers = || children_named("clawsmith-sandbox-helper", std::process::id());
    let before = kit.script("true").await.ended.exit;
    let first = helpers();
    for pid in &first {
        let pid = rustix::process::Pid::from_raw(*pid as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let file = format!("/proc/{}/stat", pid.as_raw_nonzero());
        let stat = || std::fs::read_to_string(&file).unwrap_or_default();
        while !stat().contains(") Z") {
            std::thread::yield_now();
        }
    }
    // The first is seen to by whoever saw to the one before; the second needs the helper.
    // Both last, so that they run at the same time on a busy machine too.
    let (after, also) = tokio::join!(kit.script("sleep 1"), kit.script("sleep 1"));
    let after = after.ended.exit.and(also.ended.exit);
    let second: Vec<_> = helpers().into_iter().filter(|pid| !first.contains(pid)).collect();
    println!("{before:?} {} {after:?} {}", first.len(), second.len());
}

fn children_named(name: &str, parent: u32) -> Vec<u32> {
    let of_parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    processes_with(name).into_iter().filter(of_parent).collect()
}
