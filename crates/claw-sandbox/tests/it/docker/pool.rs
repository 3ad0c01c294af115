//! The container that a command gets: shared, found again, replaced, removed when nobody uses it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use claw_core::port::{Program, ShellHost as _, Start};
use claw_core::tool::{ErrorKind, Script, Target};
use claw_sandbox::docker::WorkspaceAccess;

use super::kit::{DockerKit, socket};
use crate::sandboxes::Sandbox as _;

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not come about");
}

#[tokio::test]
async fn a_container_is_used_again_by_its_key_and_by_no_other() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.script("echo kept > /tmp/kept").await;
    // Another shell: as after a restart.
    assert_eq!(kit.script("cat /tmp/kept").await.output, "kept\n");
    assert_eq!(kit.containers().await.len(), 1);
    kit.context.sandbox_key = format!("{}-other", kit.context.sandbox_key).into();
    assert_ne!(kit.script("cat /tmp/kept").await.ended.exit, Some(0));
}

#[tokio::test]
async fn another_configuration_replaces_a_container() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.script("true").await;
    let before = kit.containers().await;
    kit.docker.memory += 1 << 20;
    kit.script("true").await;
    until("the old one's end", async || kit.containers().await.iter().all(|id| !before.contains(id))).await;
    assert_eq!(kit.containers().await.len(), 1);
}

#[tokio::test]
async fn one_that_is_in_use_is_replaced_when_it_is_not() {
    let Some(mut kit) = DockerKit::new() else { return };
    let (shell, context) = (kit.shell(), kit.context.clone());
    let waiting = Script { text: "mkfifo go; cat go; echo whole".into(), ..Script::default() };
    let running = tokio::spawn(async move { shell.run(&context, &waiting).await });
    let fifo = kit.workspace.path().join("go");
    until("the command", async || fifo.exists()).await;
    let before = kit.containers().await;
    kit.docker.memory += 1 << 20;
    kit.script("true").await;
    assert_eq!(kit.containers().await.len(), 2);
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "")).await.unwrap().unwrap();
    assert_eq!(running.await.unwrap().unwrap().output, "whole\n");
    until("the old one's end", async || kit.containers().await.iter().all(|id| !before.contains(id))).await;
}

#[tokio::test]
async fn idle_and_old_ones_end_by_themselves() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.docker.idle = Duration::from_secs(1);
    kit.script("true").await;
    until("the end of the idle one", async || kit.containers().await.is_empty()).await;
    // It is made again when it is wanted again; one that is old ends although it is used now and then.
    (kit.docker.idle, kit.docker.age) = (Duration::from_secs(60), Duration::from_secs(1));
    kit.script("sleep 1.5; echo goes on").await;
    until("the end of the old one", async || kit.containers().await.is_empty()).await;
    assert_eq!(kit.script("echo again").await.output, "again\n");
}

#[tokio::test]
async fn programs_that_race_for_a_container_share_one() {
    let Some(mut kit) = DockerKit::new() else { return };
    let installation = format!("race-{}", std::process::id());
    let racer = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["race-for-a-container", &installation])
            .arg(&kit.context.workspace)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let racers: Vec<_> = (0..4).map(|_| racer()).collect();
    for racer in racers {
        let ran = racer.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "ran\n");
    }
    kit.context.sandbox_key = kit.context.workspace.to_str().unwrap().into();
    kit.docker.installation = installation;
    assert_eq!(kit.containers().await.len(), 1);
}

#[tokio::test]
async fn what_is_missing_is_refused_with_what_to_do() {
    let Some(mut kit) = DockerKit::new() else { return };
    let script = Script { text: "true".into(), ..Script::default() };
    kit.docker.image = "no/such:image".into();
    let error = kit.shell().run(&kit.context, &script).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("no/such:image") && error.message.contains("pull"), "{error:?}");
    let error = kit.shell().look(&kit.context, &[Target::Sandbox]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    kit.docker.image = super::kit::IMAGE.into();
    (kit.context.network, kit.docker.network) = (true, "no-such-network".into());
    let error = kit.shell().run(&kit.context, &script).await.unwrap_err();
    assert!(error.message.contains("no-such-network"), "{error:?}");
    kit.docker.socket = kit.outside.path().join("nobody.sock");
    let error = kit.shell().run(&kit.context, &script).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("nobody.sock") && error.message.contains("start one"), "{error:?}");
}

#[tokio::test]
async fn a_workspace_that_is_not_shown_is_not_there() {
    let Some(mut kit) = DockerKit::new() else { return };
    std::fs::write(kit.workspace.path().join("secret"), "secret-content").unwrap();
    kit.docker.workspace = WorkspaceAccess::None;
    let finished = kit.script("pwd; ls -a; echo own > file; cat file").await;
    assert_eq!(finished.output, "/workspace\n.\n..\nown\n");
    assert_eq!(kit.script("cat file").await.output, "own\n");
    assert!(!kit.workspace.path().join("file").exists());
}

/// Runs `scripts/docker.sh` on an engine of this test's own.
fn engine(word: &str, directory: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/docker.sh");
    let ran = Command::new(script).arg(word).arg(directory).stdout(Stdio::null()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[tokio::test]
async fn an_engine_that_dies_and_comes_back_is_used_again() {
    let (Some(mut kit), Some(_)) = (DockerKit::new(), socket()) else { return };
    let directory = tempfile::Builder::new().prefix("claw-dies").tempdir_in("/var/tmp").unwrap();
    engine("up", directory.path());
    kit.docker.socket = directory.path().join("docker.sock");
    let (shell, context) = (kit.shell(), kit.context.clone());
    let waiting = Script { text: "echo ready > begun; sleep 600".into(), ..Script::default() };
    let running = tokio::spawn(async move { shell.run(&context, &waiting).await });
    let begun = kit.workspace.path().join("begun");
    until("the command", async || begun.exists()).await;
    let background = Script { text: "sleep 600".into(), ..Script::default() };
    let background = Start::new(Program::Script(background));
    let mut child = kit.shell().start(&kit.context, &background).await.unwrap();
    let pid: i32 = std::fs::read_to_string(directory.path().join("pid")).unwrap().trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
    assert!(error.message.contains("it is unknown what the command did"), "{error:?}");
    let error = child.control.ended().await.unwrap_err();
    assert!(error.message.contains("it is unknown what the command did"), "{error:?}");
    let error = kit
        .shell()
        .run(&kit.context, &Script { text: "true".into(), ..Script::default() })
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
    engine("again", directory.path());
    assert_eq!(kit.script("echo back").await.output, "back\n");
    engine("down", directory.path());
}
