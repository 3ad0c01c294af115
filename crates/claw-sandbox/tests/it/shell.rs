//! Commands in ordinary use.

use claw_core::port::ShellHost as _;
use claw_core::tool::{Script, Target};

use claw_sandbox::Grant;

use crate::kit::Kit;
use crate::sandboxes::{self, script};

#[tokio::test]
async fn exit_code_and_signal_are_always_reported() {
    for kit in [Kit::new(), Kit::on_the_host()] {
        let shell = kit.shell();
        let ran = shell.run(&kit.context, &script("echo out; echo err >&2; echo out; exit 7")).await.unwrap();
        assert_eq!((ran.exit, ran.signal, ran.output.as_str()), (Some(7), None, "out\nerr\nout\n"));
        let ran = shell.run(&kit.context, &script("kill -USR1 $$")).await.unwrap();
        assert_eq!((ran.exit, ran.signal), (None, Some(10)));
    }
}

#[tokio::test]
async fn refuses_to_take_a_program_that_an_agent_can_swap_for_a_fixed_one() {
    let mut kit = Kit::new();
    let granted = kit.outside.path().canonicalize().unwrap();
    kit.options.grants.push(Grant { path: granted.clone(), write: true });
    std::fs::copy("/bin/true", kit.workspace.path().join("tool")).unwrap();
    std::fs::copy("/bin/true", granted.join("tool")).unwrap();
    std::os::unix::fs::symlink("/bin/true", kit.workspace.path().join("link")).unwrap();
    let in_workspace = kit.context.workspace.join("tool").display().to_string();
    let in_grant = granted.join("tool").display().to_string();
    for (name, writable) in [
        ("true", false),
        ("/bin/true", false),
        ("./tool", true),
        (in_workspace.as_str(), true),
        (in_grant.as_str(), true),
        // The program is the system's, and who can change the link decides which one it is.
        ("./link", true),
        // Inside it is the session's, whatever lies there outside.
        ("/tmp/tool", true),
        ("/dev/shm/tool", true),
    ] {
        let target = Target::Program { name: name.to_owned(), directory: ".".to_owned() };
        let seen = kit.shell().look(&kit.context, &[target]).await.unwrap();
        assert_eq!(seen[0].writable, writable, "{name}: {seen:?}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    for kit in [Kit::new(), Kit::on_the_host()] {
        sandboxes::names_a_missing_program(&kit).await;
    }
}

#[tokio::test]
async fn directory_and_variables_are_those_of_the_script() {
    let kit = Kit::new();
    std::fs::create_dir(kit.workspace.path().join("sub")).unwrap();
    let script = Script {
        text: "pwd; echo $WORD".into(),
        directory: "sub".into(),
        env: vec![("WORD".into(), "given".into())],
        ..Script::default()
    };
    let ran = kit.shell().run(&kit.context, &script).await.unwrap();
    let expected = format!("{}/sub\ngiven\n", kit.context.workspace.display());
    assert_eq!(ran.output, expected);
}

#[tokio::test]
async fn input_streams_and_time_are_those_of_the_script() {
    let kit = Kit::new();
    let script = Script { input: Some("read\n".into()), apart: true, ..script("cat; echo wrong >&2") };
    let ran = kit.shell().run(&kit.context, &script).await.unwrap();
    assert_eq!((ran.output.as_str(), ran.errors.as_str(), ran.place), ("read\n", "wrong\n", "the sandbox"));
    let script = Script { timeout_secs: Some(1), ..self::script("sleep 600") };
    let ran = kit.shell().run(&kit.context, &script).await.unwrap();
    assert_eq!(ran.stopped, Some(claw_core::port::Stopped::Time));
}

#[tokio::test]
async fn output_streams_while_it_runs() {
    sandboxes::streams_output_while_it_runs(Kit::new()).await;
}

#[tokio::test]
async fn a_long_output_keeps_its_ends() {
    sandboxes::keeps_the_ends_of_a_long_output(&Kit::new()).await;
}

#[tokio::test]
async fn time_runs_out_for_the_whole_tree() {
    for mut kit in [Kit::new(), Kit::on_the_host()] {
        kit.options.sandbox_timeout = std::time::Duration::from_millis(200);
        kit.options.host_timeout = kit.options.sandbox_timeout;
        sandboxes::runs_out_of_time(&kit).await;
    }
}

#[tokio::test]
async fn stragglers_are_found_and_counted() {
    for kit in [Kit::new(), Kit::on_the_host()] {
        sandboxes::counts_stragglers(&kit).await;
    }
}

#[tokio::test]
async fn what_was_judged_must_still_be_there() {
    let mut kit = Kit::new();
    let program = kit.workspace.path().join("tool");
    std::fs::write(&program, "#!/bin/sh\necho judged\n").unwrap();
    let target = Target::Program { name: "./tool".into(), directory: String::new() };
    let shell = kit.shell();
    kit.context.sights = shell.look(&kit.context, &[target, Target::Sandbox]).await.unwrap();
    sandboxes::refuses_a_swapped_tool(&kit).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_run_at_once_and_none_is_lost() {
    let kit = std::sync::Arc::new(Kit::new());
    let runs = (0..100).map(|i| {
        let kit = std::sync::Arc::clone(&kit);
        tokio::spawn(async move { kit.shell().run(&kit.context, &script(&format!("echo {i}"))).await })
    });
    let runs: Vec<_> = runs.collect();
    for (i, run) in runs.into_iter().enumerate() {
        assert_eq!(run.await.unwrap().unwrap().output, format!("{i}\n"));
    }
}
