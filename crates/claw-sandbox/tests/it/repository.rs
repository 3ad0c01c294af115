//! Git's control files where commands write to the workspace directly.

use std::fs;

use claw_core::port::{ShellHost as _, WorkspaceAccess};
use claw_core::tool::ErrorKind;

use crate::kit::Kit;
use crate::sandboxes::{self, Sandbox as _, git, on_a_terminal, rest, start};

#[tokio::test]
async fn refuses_control_files_of_git_planted_without_a_layer() {
    let kit = Kit::new();
    sandboxes::plants_nothing_in_its_repository(&kit).await;
}

#[tokio::test]
async fn refuses_a_hook_planted_by_a_command_in_the_background_and_on_a_terminal() {
    let kit = Kit::new();
    git(kit.workspace(), &["init", "-q"]);
    fs::remove_dir_all(kit.workspace().join(".git/hooks")).unwrap();
    for start in [start, on_a_terminal] {
        let plant = "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo free > file; cat file";
        let mut child = kit.shell().start(&kit.context, &start(plant)).await.unwrap();
        assert!(rest(&mut child).await.trim_end().ends_with("free"));
        assert!(!kit.workspace().join(".git/hooks/pre-commit").exists());
    }
}

#[tokio::test]
async fn a_command_in_the_background_commits() {
    let kit = Kit::new();
    let workspace = kit.workspace();
    git(workspace, &["init", "-q"]);
    git(workspace, &["config", "user.name", "A"]);
    git(workspace, &["config", "user.email", "a@example.com"]);
    fs::write(workspace.join(".git/hooks/pre-commit"), "#!/bin/sh\necho hooked\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(workspace.join(".git/hooks/pre-commit"), mode).unwrap();
    let commit =
        "echo x > file && git add file && git commit -qm one && git branch next && git checkout -q next";
    let mut child = kit.shell().start(&kit.context, &start(commit)).await.unwrap();
    assert_eq!(rest(&mut child).await, "hooked\n", "hooks of before still run");
    assert_eq!(child.control.ended().await.unwrap().exit, Some(0));
    assert_eq!(git(workspace, &["log", "--format=%s", "next"]), "one\n");
}

#[tokio::test]
async fn the_file_that_names_a_worktree_s_repository_is_held() {
    let kit = Kit::new();
    fs::write(kit.workspace().join(".git"), "gitdir: /elsewhere\n").unwrap();
    kit.script("echo 'gitdir: planted' > .git; mv .git x; rm -f .git; mkdir .git").await;
    assert_eq!(fs::read_to_string(kit.workspace().join(".git")).unwrap(), "gitdir: /elsewhere\n");
}

#[tokio::test]
async fn refuses_a_background_command_whose_changes_must_be_held_back() {
    let mut kit = Kit::new();
    kit.context.access = WorkspaceAccess::OnlyLayer;
    let error = kit.shell().start(&kit.context, &start("sort -o out /dev/null")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("no layer can be created"), "{error:?}");
    assert!(!kit.workspace().join("out").exists());
}
