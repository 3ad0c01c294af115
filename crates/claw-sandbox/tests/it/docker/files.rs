//! The files of a container, put through the suite that every bridge passes.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

use claw_core::port::{Expect, FilePlace, FsBridge as _, Scope};
use claw_core::tool::ErrorKind;
use claw_host::files::LocalFiles;
use claw_sandbox::docker::{DockerFiles, WorkspaceAccess};
use claw_testkit::conformance;
use claw_testkit::fixture::caller;

use super::kit::DockerKit;
use crate::sandboxes::Sandbox as _;

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
