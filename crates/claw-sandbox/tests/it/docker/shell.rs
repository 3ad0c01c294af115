//! Commands in ordinary use.

use claw_core::port::{ShellHost as _, WorkspaceAccess};
use claw_core::tool::{ErrorKind, Script, Target};
use claw_sandbox::docker;

use super::kit::DockerKit;
use crate::sandboxes::{self, Sandbox as _, argv, script, start};

#[tokio::test]
async fn exit_code_and_signal_are_always_reported() {
    let Some(kit) = DockerKit::new() else { return };
    let shell = kit.shell();
    let ran = shell.run(&kit.context, &script("echo out; echo err >&2; echo out; exit 7")).await.unwrap();
    assert_eq!((ran.exit, ran.signal, ran.output.as_str()), (Some(7), None, "out\nerr\nout\n"));
    assert_eq!(ran.place, "a Docker container");
    // The engine's own exit codes cannot distinguish these.
    let ran = shell.run(&kit.context, &script("kill -USR1 $$")).await.unwrap();
    assert_eq!((ran.exit, ran.signal), (None, Some(10)));
    let ran = shell.run(&kit.context, &script("exit 138")).await.unwrap();
    assert_eq!((ran.exit, ran.signal), (Some(138), None));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let Some(kit) = DockerKit::new() else { return };
    sandboxes::names_a_missing_program(&kit).await;
}

#[tokio::test]
async fn directory_variables_and_workspace_are_those_of_the_script() {
    let Some(kit) = DockerKit::new() else { return };
    std::fs::create_dir(kit.workspace.path().join("sub")).unwrap();
    let script = Script {
        directory: "sub".into(),
        env: vec![("WORD".into(), "given".into())],
        ..script("pwd; echo $WORD $HOME; echo made > file")
    };
    let ran = kit.shell().run(&kit.context, &script).await.unwrap();
    assert_eq!(ran.output, "/workspace/sub\ngiven /workspace\n");
    assert_eq!(std::fs::read_to_string(kit.workspace.path().join("sub/file")).unwrap(), "made\n");
    let absolute =
        Script { directory: kit.context.workspace.join("sub").display().to_string(), ..self::script("pwd") };
    assert_eq!(kit.shell().run(&kit.context, &absolute).await.unwrap().output, "/workspace/sub\n");
}

#[tokio::test]
async fn input_streams_and_time_are_those_of_the_script() {
    let Some(kit) = DockerKit::new() else { return };
    let shell = kit.shell();
    let wished = Script { input: Some("read\n".into()), apart: true, ..script("cat; echo wrong >&2") };
    let ran = shell.run(&kit.context, &wished).await.unwrap();
    assert_eq!((ran.output.as_str(), ran.errors.as_str()), ("read\n", "wrong\n"));
    let large = Script { input: Some("x".repeat(3_000_000)), ..script("wc -c") };
    assert_eq!(shell.run(&kit.context, &large).await.unwrap().output, "3000000\n");
    // One that does not read its input ends all the same, and one without any sees the end of it.
    let unread = Script { input: Some("x".repeat(3_000_000)), ..script("true") };
    assert_eq!(shell.run(&kit.context, &unread).await.unwrap().exit, Some(0));
    assert_eq!(shell.run(&kit.context, &script("cat; echo end")).await.unwrap().output, "end\n");
}

#[tokio::test]
async fn output_streams_while_it_runs() {
    let Some(kit) = DockerKit::new() else { return };
    sandboxes::streams_output_while_it_runs(kit).await;
}

#[tokio::test]
async fn a_long_output_keeps_its_ends() {
    let Some(kit) = DockerKit::new() else { return };
    sandboxes::keeps_the_ends_of_a_long_output(&kit).await;
}

#[tokio::test]
async fn time_runs_out_for_the_whole_tree() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.script("true").await;
    kit.options.sandbox_timeout = std::time::Duration::from_millis(300);
    sandboxes::runs_out_of_time(&kit).await;
    let patient = Script { timeout_secs: Some(60), ..script("sleep 1; echo done") };
    assert_eq!(kit.shell().run(&kit.context, &patient).await.unwrap().output, "done\n");
}

#[tokio::test]
async fn stragglers_are_found_and_counted() {
    let Some(kit) = DockerKit::new() else { return };
    sandboxes::counts_stragglers(&kit).await;
}

#[tokio::test]
async fn what_was_judged_must_still_be_there() {
    let Some(mut kit) = DockerKit::new() else { return };
    let program = kit.workspace.path().join("tool");
    std::fs::write(&program, "#!/bin/sh\necho judged\n").unwrap();
    let named = |name: &str| Target::Program { name: name.into(), directory: String::new() };
    let shell = kit.shell();
    let targets = [named("./tool"), named("cat"), named("no-such-program"), Target::Sandbox];
    let sights = shell.look(&kit.context, &targets).await.unwrap();
    let image = shell.image().await.unwrap();
    assert_eq!(sights[0].path.as_deref(), Some("/workspace/tool"));
    assert_eq!(sights[1].path.as_deref(), Some("/bin/busybox"));
    assert_eq!(sights[1].identity, Some(format!("{image}:/bin/busybox")));
    assert_eq!((&sights[2].path, &sights[2].identity), (&None, &None));
    assert!(sights[3].path.as_deref().unwrap().contains(super::kit::IMAGE), "{:?}", sights[3]);
    assert!(sights[3].identity.as_deref().unwrap().contains(&image), "{:?}", sights[3]);
    kit.context.sights = sights;
    sandboxes::refuses_a_swapped_tool(&kit).await;
    // Another sandbox than the one that was judged is another place.
    kit.context.sights = shell.look(&kit.context, &[Target::Sandbox]).await.unwrap();
    kit.context.network = true;
    let error = shell.run(&kit.context, &script("true")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.contains("sandbox"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_run_at_once_and_none_is_lost() {
    let Some(kit) = DockerKit::new() else { return };
    let kit = std::sync::Arc::new(kit);
    let shell = std::sync::Arc::new(kit.shell());
    let runs: Vec<_> = (0..15)
        .map(|i| {
            let (kit, shell) = (std::sync::Arc::clone(&kit), std::sync::Arc::clone(&shell));
            tokio::spawn(async move { shell.run(&kit.context, &script(&format!("echo {i}"))).await })
        })
        .collect();
    for (i, run) in runs.into_iter().enumerate() {
        assert_eq!(run.await.unwrap().unwrap().output, format!("{i}\n"));
    }
    assert_eq!(kit.containers().await.len(), 1);
}

#[tokio::test]
async fn what_no_sandbox_holds_runs_on_the_host() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.context.sandboxed = false;
    // Off by configuration needs no engine.
    kit.docker.socket = "/nonexistent".into();
    let ran = kit.shell().run(&kit.context, &script("pwd")).await.unwrap();
    assert_eq!(ran.output, format!("{}\n", kit.context.workspace.display()));
    assert_eq!(ran.place, "the host");
}

#[tokio::test]
async fn refuses_control_files_of_git_planted_in_a_container() {
    let Some(kit) = DockerKit::new() else { return };
    sandboxes::plants_nothing_in_its_repository(&kit).await;
}

#[tokio::test]
async fn refuses_a_command_whose_changes_must_be_held_back() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.context.access = WorkspaceAccess::OnlyLayer;
    std::fs::write(kit.workspace.path().join("keep.txt"), "kept\n").unwrap();
    let (shell, attack) = (kit.shell(), "sort -o keep.txt /dev/null");
    let words = attack.split(' ').collect::<Vec<_>>();
    let errors = [
        shell.run(&kit.context, &script(attack)).await.map(drop).unwrap_err(),
        shell.spawn(&kit.context, &argv(&words)).await.map(drop).unwrap_err(),
        shell.start(&kit.context, &start(attack)).await.map(drop).unwrap_err(),
        shell.look(&kit.context, &[Target::Sandbox]).await.map(drop).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert!(
            error.message.contains("commands in containers write to the workspace directly"),
            "{error:?}"
        );
    }
    assert_eq!(std::fs::read_to_string(kit.workspace.path().join("keep.txt")).unwrap(), "kept\n");
    // Without the container's workspace there is nothing to hold back.
    kit.docker.workspace = docker::WorkspaceAccess::Ro;
    let ran = kit.shell().run(&kit.context, &script(&format!("{attack}; cat keep.txt"))).await.unwrap();
    assert!(ran.output.ends_with("kept\n"), "{}", ran.output);
}

#[tokio::test]
async fn a_command_that_was_judged_to_read_cannot_write_in_a_shared_container() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.context.access = WorkspaceAccess::Layer;
    std::fs::write(kit.workspace.path().join("keep.txt"), "kept\n").unwrap();
    let ran =
        kit.shell().run(&kit.context, &script("echo shared > /tmp/shared; echo $$ > made")).await.unwrap();
    assert_eq!(ran.unlayered.as_deref(), Some("there are no layers in containers"));
    let before = kit.containers().await;
    kit.context.access = WorkspaceAccess::ReadOnly;
    for attack in [
        "echo x > keep.txt",
        "echo x >> keep.txt",
        "sort -o keep.txt /dev/null",
        "rm keep.txt",
        "echo x > new",
    ] {
        let ran = kit.shell().run(&kit.context, &script(attack)).await.unwrap();
        assert!(ran.exit != Some(0) && ran.unlayered.is_none(), "{attack}: {ran:?}");
        let mut child = kit.shell().start(&kit.context, &start(attack)).await.unwrap();
        assert_ne!(child.control.ended().await.unwrap().exit, Some(0), "{attack}");
        assert_eq!(std::fs::read_to_string(kit.workspace.path().join("keep.txt")).unwrap(), "kept\n");
    }
    assert!(!kit.workspace.path().join("new").exists());
    // It reads what others left in `/tmp`, and can write there.
    let free = "cat keep.txt /tmp/shared; echo x > /tmp/own; echo x > /dev/null; cat /tmp/own; ls /bin/sh";
    let ran = kit.shell().run(&kit.context, &script(free)).await.unwrap();
    assert_eq!(ran.output, "kept\nshared\nx\n/bin/sh\n");
    assert_eq!(kit.containers().await, before);
}
