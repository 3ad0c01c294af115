//! The files of a container, put through the suite that every bridge passes.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{Expect, FilePlace, FsBridge as _, Scope, ShellHost as _};
use claw_core::tool::ErrorKind;
use claw_host::files::LocalFiles;
use claw_sandbox::docker::{DockerFiles, WorkspaceAccess};
use claw_testkit::conformance;
use claw_testkit::fixture::caller;

use super::kit::DockerKit;
use super::left_behind::ask_engine;
use crate::kit::processes_with;
use crate::sandboxes::{Sandbox as _, start, until};

#[tokio::test(flavor = "multi_thread")]
async fn conforms() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.docker.workspace = WorkspaceAccess::None;
    // Every order takes two processes, and the suite has many at once.
    kit.docker.processes = 400;
    let count = Cell::new(0);
    conformance::bridge(async || {
        count.set(count.get() + 1);
        let files = DockerFiles::new(Arc::new(kit.shell()), Arc::new(LocalFiles::new()));
        (files, PathBuf::from(format!("/workspace/deep/{}", count.get())))
    })
    .await;
}

#[tokio::test]
async fn refuses_what_is_not_the_workspace_inside() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.docker.workspace = WorkspaceAccess::None;
    let files = DockerFiles::new(Arc::new(kit.shell()), Arc::new(LocalFiles::new()));
    let mut caller = caller();
    (caller.workspace, caller.sandbox_key) = (kit.context.workspace.clone(), kit.context.sandbox_key.clone());
    let scope = Scope::workspace(&caller.workspace);
    let place =
        FilePlace { caller: &caller, directory: &caller.workspace, scope: &scope, expect: Expect::Anything };
    // By the path that it has on the machine, and by a relative one.
    let absolute = caller.workspace.join("made").display().to_string();
    files.write(&place, &absolute, b"made").await.unwrap();
    assert_eq!(files.read(&place, "made").await.unwrap().0, b"made");
    assert!(!caller.workspace.join("made").exists());
    assert_eq!(kit.script("cat made").await.output, "made");
    // Links that a command puts there lead nowhere, inside or out.
    kit.script("ln -s /etc/passwd passwd; ln -s /.clawsmith/program program; ln -s / root").await;
    for path in ["passwd", "program", "root/etc/passwd", "/etc/passwd", "../etc/passwd"] {
        let error = files.read(&place, path).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Forbidden, "{path}: {error:?}");
    }
    // A caller whom no sandbox holds has the files of the machine.
    caller.sandboxed = false;
    let place =
        FilePlace { caller: &caller, directory: &caller.workspace, scope: &scope, expect: Expect::Anything };
    assert_eq!(files.stat(&place, "made").await.unwrap(), None);
}

/// The container that a process is in, seen from the machine.
pub(crate) fn namespace(process: u32) -> PathBuf {
    std::fs::read_link(format!("/proc/{process}/ns/pid")).unwrap_or_default()
}

fn keepers(container: &Path) -> impl Iterator<Item = u32> {
    let keepers = processes_with("take-an-order-from-standard-input").into_iter();
    keepers.filter(move |keeper| namespace(*keeper) == container)
}

/// The memory of a process, in pages.
fn pages(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_paused_in_the_middle_of_a_write_is_told_and_removed() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.docker.workspace = WorkspaceAccess::None;
    (kit.docker.memory, kit.docker.temporary) = (1 << 30, 512 << 20);
    kit.script("true").await;
    let [id] = kit.containers().await.try_into().unwrap();
    let files = DockerFiles::new(Arc::new(kit.shell()), Arc::new(LocalFiles::new()));
    let mut caller = caller();
    (caller.workspace, caller.sandbox_key) = (kit.context.workspace.clone(), kit.context.sandbox_key.clone());
    let scope = Scope::workspace(&caller.workspace);
    let place =
        FilePlace { caller: &caller, directory: &caller.workspace, scope: &scope, expect: Expect::Anything };
    files.write(&place, "small", b"small").await.unwrap();
    let (large, socket) = (vec![b'x'; 300 << 20], kit.docker.socket.clone());
    let pause = format!("/containers/{id}/pause");
    // The keeper of the write holds a part of the bytes.
    let word = format!("docker-files-beside-{}", std::process::id());
    let mut beside = kit
        .shell()
        .start(&kit.context, &start(&format!("MARK={word} sh -c 'echo ready; cat'")))
        .await
        .unwrap();
    until(&mut beside, "ready").await;
    let inside = namespace(processes_with(&word)[0]);
    let pausing = tokio::task::spawn_blocking(move || {
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while !keepers(&inside).any(|keeper| pages(keeper) > 8192) {
            assert!(std::time::Instant::now() < until, "no keeper took a part of the bytes");
            std::thread::sleep(Duration::from_millis(1));
        }
        ask_engine(&socket, &pause);
    });
    let written = tokio::time::timeout(Duration::from_secs(30), files.write(&place, "large", &large)).await;
    let error = written.expect("within seconds").unwrap_err();
    assert!(error.message.contains("did not answer within 15 s during a file operation"), "{error:?}");
    pausing.await.unwrap();
    files.write(&place, "small", b"again").await.unwrap();
    assert!(!kit.containers().await.contains(&id), "it would go on when it is resumed");
}
