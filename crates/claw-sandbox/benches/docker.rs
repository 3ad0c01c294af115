//! The cost of running a command in a container, against the engine's own API running the same command in the
//! same container.
//!
//! `scripts/with-docker.sh` brings the engine. Prints `name<TAB>value<TAB>unit` lines; times are medians, and
//! the compared runs alternate.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::exec::{CreateExecOptions, StartExecResults};
use bollard::{API_DEFAULT_VERSION, Docker};
use claw_core::port::{Program, RunContext, ShellHost as _, Start};
use claw_core::tool::Script;
use claw_sandbox::Launcher;
use claw_sandbox::docker::{DockerOptions, DockerShell};
use claw_sandbox::shell::{LocalShell, ShellOptions};
use futures_util::StreamExt as _;

const RUNS: usize = 100;

fn main() {
    claw_sandbox::enter_if_asked();
    let Some(socket) = std::env::var_os("CLAWSMITH_TEST_DOCKER").filter(|socket| socket != "required") else {
        println!("no Docker engine: run this by scripts/with-docker.sh\t0\tx");
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(run(Path::new(&socket)));
}

async fn run(socket: &Path) {
    let workspace = tempfile::tempdir().unwrap();
    let context = context(&workspace.path().canonicalize().unwrap());
    let options = DockerOptions {
        socket: socket.to_owned(),
        image: "clawsmith-test/busybox:latest".to_owned(),
        idle: Duration::from_secs(60),
        installation: format!("bench-{}", std::process::id()),
        ..DockerOptions::default()
    };
    let local = LocalShell::new(Arc::new(Launcher::new()), ShellOptions::default());
    let shell = DockerShell::new(local, options);
    let script = Script { text: "true".into(), ..Script::default() };
    let start = Start::new(Program::Script(script.clone()));
    let begun = Instant::now();
    assert_eq!(shell.run(&context, &script).await.unwrap().exit, Some(0));
    println!("first command of a key, making its container included\t{:.2}\tms", millis(begun));

    let docker = Docker::connect_with_unix(socket.to_str().unwrap(), 60, API_DEFAULT_VERSION).unwrap();
    let container = shell.containers().await.unwrap().remove(0).id;
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..RUNS {
        let begun = Instant::now();
        raw(&docker, &container).await;
        times[0].push(millis(begun));
        let begun = Instant::now();
        assert_eq!(shell.run(&context, &script).await.unwrap().exit, Some(0));
        times[1].push(millis(begun));
        let begun = Instant::now();
        let mut child = shell.start(&context, &start).await.unwrap();
        assert_eq!(child.control.ended().await.unwrap().exit, Some(0));
        times[2].push(millis(begun));
    }
    let [raw, ours, child] = times.map(median);
    println!("the engine's API: create, start, read, inspect, sh -c true\t{raw:.2}\tms");
    println!("exec true in a container\t{ours:.2}\tms");
    println!("exec true in a container / the engine's API\t{:.2}\tx", ours / raw);
    println!("start true in a container, to its end\t{child:.2}\tms");
    // It would go by itself when it was idle; the engine may go before.
    let options = bollard::query_parameters::RemoveContainerOptionsBuilder::new().force(true).build();
    docker.remove_container(&container, Some(options)).await.unwrap();
}

/// Runs the command through the plain API: it cannot be killed, its signal is not reported, and the order of
/// its two streams is lost.
async fn raw(docker: &Docker, container: &str) {
    let exec = CreateExecOptions {
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(vec!["/bin/sh", "-c", "true"]),
        ..CreateExecOptions::default()
    };
    let exec = docker.create_exec(container, exec).await.unwrap();
    match docker.start_exec(&exec.id, None).await.unwrap() {
        StartExecResults::Attached { mut output, .. } => while output.next().await.is_some() {},
        StartExecResults::Detached => unreachable!("it was to be attached"),
    }
    assert_eq!(docker.inspect_exec(&exec.id).await.unwrap().exit_code, Some(0));
}

fn context(workspace: &Path) -> RunContext {
    RunContext::new(workspace, "bench")
}

fn millis(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
