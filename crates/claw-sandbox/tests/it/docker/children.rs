//! Commands in containers that are not waited for: pipes, terminals, and their end.

use std::path::Path;
use std::time::Duration;

use claw_core::port::{Child, Program, ShellHost as _, Start};
use claw_core::tool::{Effect, ErrorKind, Target};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::files::namespace;
use super::kit::DockerKit;
use super::left_behind::{STOP_KEEPERS, STOPPER, until_nothing_is_left};
use crate::kit::processes_with;
use crate::sandboxes::{self, Sandbox as _, argv, on_a_terminal, rest, start, until, without};

impl DockerKit {
    async fn begin(&self, start: Start) -> Child {
        self.shell().start(&self.context, &start).await.unwrap()
    }
}

/// Returns the length of a file once it has stopped growing.
async fn settled(file: &Path) -> u64 {
    let length = || std::fs::metadata(file).map_or(0, |found| found.len());
    let (mut before, mut same) = (0, 0);
    while same < 20 || before == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = length();
        (before, same) = if now == before { (now, same + 1) } else { (now, 0) };
        assert!(now < 1000, "nothing holds it up");
    }
    before
}

#[tokio::test]
async fn what_is_written_is_read_and_the_end_of_it_ends_the_command() {
    let Some(kit) = DockerKit::new() else { return };
    let mut child = kit.begin(start("cat; echo over; exit 3")).await;
    assert!(child.pid > 1 && child.place == "a Docker container", "{child:?}");
    sandboxes::reads_what_is_written(&mut child).await;
    let ended = child.control.ended().await.unwrap();
    assert_eq!((ended.exit, ended.signal, ended.stragglers), (Some(3), None, 0));
    assert_eq!(child.control.ended().await.unwrap(), ended, "it is told again");
    child.control.kill().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let Some(kit) = DockerKit::new() else { return };
    let missing = Start::new(Program::Argv(argv(&["no-such-program"])));
    let error = kit.shell().start(&kit.context, &missing).await.unwrap_err();
    assert!(error.kind == ErrorKind::Failed && error.message.contains("no-such-program"), "{error:?}");
}

#[tokio::test]
async fn a_child_has_streams_and_paths_of_its_own() {
    let Some(kit) = DockerKit::new() else { return };
    kit.script("echo kept > /tmp/kept").await;
    let plain = kit.containers().await;
    let file = kit.outside.path().canonicalize().unwrap().join("granted");
    sandboxes::has_streams_and_paths_of_its_own(&kit, &file).await;
    // The container of those without is another one, and was not told to go.
    assert_eq!(kit.script("cat /tmp/kept").await.output, "kept\n");
    assert!(kit.containers().await.contains(&plain[0]));
}

#[tokio::test]
async fn refuses_a_network_that_the_policy_took_away() {
    let Some(kit) = DockerKit::new() else { return };
    let reach = Start { network: true, ..start("ls /sys/class/net") };
    let context = without(&kit.context, Effect::Network);
    let mut child = kit.shell().start(&context, &reach).await.unwrap();
    assert_eq!(rest(&mut child).await, "lo\n");
    let mut child = kit.begin(reach).await;
    assert!(rest(&mut child).await.contains("eth0"), "it is granted to this child alone");
    let mut child = kit.begin(start("ls /sys/class/net")).await;
    assert_eq!(rest(&mut child).await, "lo\n");
}

#[tokio::test]
async fn a_terminal_is_one_and_has_a_size() {
    let Some(kit) = DockerKit::new() else { return };
    sandboxes::gives_a_terminal_with_a_size(&kit).await;
}

#[tokio::test]
async fn a_key_interrupts_what_runs_on_a_terminal() {
    let Some(kit) = DockerKit::new() else { return };
    sandboxes::is_interrupted_by_a_key(&kit).await;
    // Dropping the input of a terminal does not end it; a key does.
    let mut child = kit.begin(on_a_terminal("echo ready; cat; echo over")).await;
    until(&mut child, "ready").await;
    child.input.write_all(b"typed\n\x04").await.unwrap();
    until(&mut child, "typed\r\ntyped\r\nover\r\n").await;
    assert_eq!(child.control.ended().await.unwrap().exit, Some(0));
}

#[tokio::test]
async fn a_script_that_is_waited_for_can_have_a_terminal() {
    let Some(kit) = DockerKit::new() else { return };
    sandboxes::gives_a_terminal_to_a_script(&kit).await;
}

#[tokio::test]
async fn refuses_to_type_into_its_own_terminal() {
    let Some(kit) = DockerKit::new() else { return };
    let own = "exec $(ls /.clawsmith/lib/ld-*) --library-path /.clawsmith/lib /.clawsmith/program";
    let mut child = kit.begin(on_a_terminal(&format!("{own} attack tiocsti none"))).await;
    assert_eq!(rest(&mut child).await, format!("refused {}\r\n", rustix::io::Errno::PERM.raw_os_error()));
}

#[tokio::test]
async fn what_nobody_reads_is_not_printed_and_holds_up_nothing_else() {
    let Some(kit) = DockerKit::new() else { return };
    let count = kit.workspace.path().join("count");
    // 64 KiB for each letter in the file, on one stream after the other.
    let text = "while :; do head -c 65536 /dev/zero; printf x >> count; head -c 1 /dev/zero >&2; done";
    for apart in [false, true] {
        std::fs::write(&count, "").unwrap();
        let mut child = kit.begin(Start { apart, ..start(text) }).await;
        let printed = settled(&count).await * 65536;
        assert!(printed < 1 << 20, "{printed} bytes are somewhere");
        // Its end is told though nobody has read anything.
        child.control.kill().await;
        assert_eq!(child.control.ended().await.unwrap().signal, Some(9));
        let unread = rest(&mut child).await.len() as u64;
        assert!(unread >= printed && unread < 1 << 20, "{unread} of {printed}");
    }
}

#[tokio::test]
async fn who_reads_late_reads_all() {
    let Some(kit) = DockerKit::new() else { return };
    let text = "i=0; while [ $i -lt 200 ]; do head -c 65536 /dev/zero; printf x >> count; i=$((i+1)); done; echo over";
    let mut child = kit.begin(start(text)).await;
    assert!(settled(&kit.workspace.path().join("count")).await < 200);
    let (mut total, mut buffer) = (0, vec![0; 100_000]);
    while let Ok(count @ 1..) = child.output.read(&mut buffer).await {
        total += count;
    }
    assert_eq!(total, 200 * 65536 + "over\n".len());
    assert_eq!(child.control.ended().await.unwrap().exit, Some(0));
}

#[tokio::test]
async fn what_is_not_read_inside_is_not_taken_outside() {
    let Some(kit) = DockerKit::new() else { return };
    let mut child = kit.begin(start("mkfifo go; echo ready; cat go; wc -c")).await;
    until(&mut child, "ready\n").await;
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (mut input, counted) =
        (std::mem::replace(&mut child.input, Box::new(tokio::io::sink())), sent.clone());
    let writing = tokio::spawn(async move {
        for piece in vec![b'x'; 3_000_000].chunks(1000) {
            input.write_all(piece).await.unwrap();
            counted.fetch_add(piece.len(), std::sync::atomic::Ordering::Relaxed);
        }
    });
    let (mut before, mut same) = (0, 0);
    while same < 20 || before == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = sent.load(std::sync::atomic::Ordering::Relaxed);
        (before, same) = if now == before { (now, same + 1) } else { (now, 0) };
    }
    assert!(before <= 256 << 10, "{before} bytes were taken");
    let fifo = kit.workspace.path().join("go");
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "")).await.unwrap().unwrap();
    writing.await.unwrap();
    assert_eq!(rest(&mut child).await, "3000000\n");
}

#[tokio::test]
async fn who_reads_nothing_any_more_is_not_written_to() {
    let Some(kit) = DockerKit::new() else { return };
    let mut child = kit.begin(start("exec <&-; echo deaf; sleep 999")).await;
    until(&mut child, "deaf").await;
    let error = loop {
        match child.input.write_all(b"x").await {
            Ok(()) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    child.control.terminate().await;
    assert_eq!(child.control.ended().await.unwrap().signal, Some(15));
    assert!(child.input.write_all(b"x").await.is_err());
}

/// Returns a script whose processes all ignore requests to end.
fn stubborn(word: &str) -> String {
    format!(
        "MARK={word} sh -c 'trap \"\" HUP TERM; sleep 999 & setsid sleep 999 & (sleep 999 &); echo ready; wait; sleep 999'"
    )
}

#[tokio::test]
async fn nothing_is_left_of_one_that_is_killed_or_dropped() {
    let Some(kit) = DockerKit::new() else { return };
    let bystander = format!("docker-child-beside-{}", std::process::id());
    let mut beside = kit.begin(start(&format!("MARK={bystander} sh -c 'echo ready; cat'"))).await;
    until(&mut beside, "ready").await;
    let word = format!("docker-child-ended-{}", std::process::id());
    for begin in [start, on_a_terminal] {
        let mut child = kit.begin(begin(&stubborn(&word))).await;
        until(&mut child, "ready").await;
        // A process that is just being replaced by its program shows neither words nor environment.
        for _ in 0..600 {
            if processes_with(&word).len() > 3 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(processes_with(&word).len() > 3);
        child.control.kill().await;
        assert_eq!(child.control.ended().await.unwrap().signal, Some(9));
        assert_eq!(processes_with(&word), [0; 0]);
        let mut child = kit.begin(begin(&stubborn(&word))).await;
        until(&mut child, "ready").await;
        drop(child);
        until_nothing_is_left(&word).await;
    }
    // Processes left running after its own end are counted.
    let mut child = kit.begin(start("setsid sleep 999 >/dev/null & (sleep 999 &); exit 3")).await;
    let ended = child.control.ended().await.unwrap();
    assert_eq!((ended.exit, ended.stragglers), (Some(3), 2));
    // Another command of the same container did not notice.
    assert_eq!(kit.containers().await.len(), 1);
    beside.input.write_all(b"undisturbed\n").await.unwrap();
    until(&mut beside, "undisturbed").await;
}

#[tokio::test]
async fn one_that_ends_its_keeper_is_ended_with_all_that_it_started() {
    let Some(kit) = DockerKit::new() else { return };
    let word = format!("docker-child-keeper-{}", std::process::id());
    let text = format!(
        "(env -i MARK={word} setsid sleep 9999 &); for p in /proc/[0-9]*; do p=${{p#/proc/}}; \
         case $(tr '\\0' ' ' < /proc/$p/cmdline) in /.clawsmith/*take-an-order*) all=\"$p $all\";; esac; done; \
         kill -9 $all; sleep 9999"
    );
    let mut child = kit.begin(start(&text)).await;
    assert_eq!(child.control.ended().await.unwrap().signal, Some(9));
    assert_eq!(processes_with(&word), [0; 0]);
}

#[tokio::test]
async fn one_that_stops_its_keeper_is_ended_and_its_container_removed() {
    let Some(kit) = DockerKit::new() else { return };
    let soon = Duration::from_secs(30);
    for with_bystander in [false, true] {
        kit.script("true").await;
        let [id] = kit.containers().await.try_into().unwrap();
        let word = format!("docker-child-stopper-{with_bystander}-{}", std::process::id());
        let mut bystander = match with_bystander {
            true => Some(kit.begin(start(&format!("MARK={word} sh -c 'echo ready; cat'"))).await),
            false => None,
        };
        if let Some(bystander) = &mut bystander {
            until(bystander, "ready").await;
        }
        let mut child = kit.begin(start(&format!(": {word}; {STOPPER}"))).await;
        let ended = tokio::time::timeout(soon, child.control.ended()).await;
        assert_eq!(ended.expect("it is ended by the container").unwrap().signal, Some(9));
        if let Some(bystander) = &mut bystander {
            let ended = tokio::time::timeout(soon, bystander.control.ended()).await;
            assert_eq!(ended.expect("its end is told").unwrap().signal, Some(9));
        }
        until_nothing_is_left(&word).await;
        // The next one finds a container that works, and it is not the old one.
        assert_eq!(kit.script("echo fine").await.output, "fine\n");
        assert!(!kit.containers().await.contains(&id));
    }
}

/// Waits for a file that a command makes once it has done something that it can no longer print.
async fn made(path: &Path) {
    let made = async {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), made).await;
    assert!(in_time.is_ok(), "the command did not get there");
}

/// The first process of a container, which ends it; stopped from the machine until this is dropped. No signal from inside
/// reaches it.
struct FirstProcess(Pid);

impl FirstProcess {
    /// Stops the first process of the container in which a process with this word runs.
    fn stop(word: &str) -> Self {
        let inside = namespace(processes_with(word)[0]);
        let is_first = |process: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            let mut ids =
                status.lines().find(|line| line.starts_with("NSpid:")).unwrap_or_default().split('\t');
            ids.next_back() == Some("1") && namespace(*process) == inside
        };
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let mut processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let first = processes.find(is_first).unwrap();
        let first = Pid::from_raw(first.try_into().unwrap()).unwrap();
        kill_process(first, Signal::STOP).unwrap();
        Self(first)
    }
}

impl Drop for FirstProcess {
    fn drop(&mut self) {
        // It is gone where its container was removed.
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[tokio::test]
async fn refuses_to_outlive_a_kill_by_stopping_its_keepers() {
    let Some(kit) = DockerKit::new() else { return };
    // Each keeper of the container, and every process that it may signal.
    for (at, stop) in [STOP_KEEPERS, "kill -STOP -1"].into_iter().enumerate() {
        for begin in [start, on_a_terminal] {
            kit.script("true").await;
            let [id] = kit.containers().await.try_into().unwrap();
            let word = format!("docker-child-frozen-{at}-{}", std::process::id());
            let stopped = kit.workspace.path().join("stopped");
            // It cannot be told from outside when: what it prints goes through its keeper.
            let text = format!(
                "MARK={word} sh -c 'echo ready; read go; {stop}; touch stopped; while :; do sleep 1; done'"
            );
            let mut child = kit.begin(begin(&text)).await;
            until(&mut child, "ready").await;
            // Nobody in the container ends it: it has to be removed.
            let first = FirstProcess::stop(&word);
            child.input.write_all(b"go\n").await.unwrap();
            made(&stopped).await;
            child.control.kill().await;
            let ended = tokio::time::timeout(Duration::from_secs(30), child.control.ended()).await;
            assert_eq!(ended.expect("it is killed").unwrap().signal, Some(9), "{stop}");
            until_nothing_is_left(&word).await;
            assert!(!kit.containers().await.contains(&id), "{stop}");
            drop(first);
            std::fs::remove_file(stopped).unwrap();
            assert_eq!(kit.script("echo fine").await.output, "fine\n");
        }
    }
}

#[tokio::test]
async fn refuses_to_outlive_a_kill_by_stopping_its_supervisor() {
    let Some(kit) = DockerKit::new() else { return };
    let word = format!("docker-child-supervisor-{}", std::process::id());
    let bystander = format!("docker-child-spared-{}", std::process::id());
    let mut beside = kit.begin(start(&format!("MARK={bystander} sh -c 'echo ready; cat'"))).await;
    until(&mut beside, "ready").await;
    for begin in [start, on_a_terminal] {
        let text =
            format!(": {word}; kill -STOP $PPID; trap '' HUP TERM; echo stopped; while :; do sleep 1; done");
        let mut child = kit.begin(begin(&text)).await;
        until(&mut child, "stopped").await;
        child.control.kill().await;
        let ended = tokio::time::timeout(Duration::from_secs(30), child.control.ended()).await;
        assert_eq!(ended.expect("its keeper ends it").unwrap().signal, Some(9));
        until_nothing_is_left(&word).await;
    }
    // Another command of the same container did not notice.
    beside.input.write_all(b"undisturbed\n").await.unwrap();
    until(&mut beside, "undisturbed").await;
    assert_eq!(kit.containers().await.len(), 1);
}

#[tokio::test]
async fn cancelling_holds_until_it_runs_and_no_longer() {
    let Some(kit) = DockerKit::new() else { return };
    let mut child = kit.begin(start("echo ready; cat")).await;
    until(&mut child, "ready").await;
    kit.context.cancel.cancel();
    let made = kit.workspace.path().join("made");
    let error = kit.shell().start(&kit.context, &start("sleep 1; touch made")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    child.input.write_all(b"goes on\n").await.unwrap();
    until(&mut child, "goes on").await;
    assert!(!made.exists());
}

#[tokio::test]
async fn a_container_stays_while_something_runs_in_the_background() {
    let Some(mut kit) = DockerKit::new() else { return };
    (kit.docker.idle, kit.docker.age) = (Duration::from_secs(1), Duration::from_secs(1));
    let mut child = kit.begin(start("echo ready; cat")).await;
    until(&mut child, "ready\n").await;
    // A container of the same limits without a command is gone before.
    kit.context.sandbox_key = format!("{} beside", kit.context.sandbox_key).into();
    kit.script("true").await;
    while !kit.containers().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    child.input.write_all(b"still here\n").await.unwrap();
    until(&mut child, "still here\n").await;
}

#[tokio::test]
async fn refuses_to_start_what_is_not_what_was_judged() {
    let Some(mut kit) = DockerKit::new() else { return };
    let program = kit.workspace.path().join("tool");
    std::fs::write(&program, "#!/bin/sh\necho judged\n").unwrap();
    let shell = kit.shell();
    let tool = Target::Program { name: "./tool".into(), directory: String::new() };
    kit.context.sights = shell.look(&kit.context, &[Target::Sandbox, tool]).await.unwrap();
    let tool = start("sh ./tool");
    let mut child = shell.start(&kit.context, &tool).await.unwrap();
    assert_eq!(rest(&mut child).await, "judged\n");
    // An extra grant does not make it another sandbox than the judged one.
    let granted = Start { network: true, ..tool.clone() };
    let mut child = shell.start(&kit.context, &granted).await.unwrap();
    assert_eq!(rest(&mut child).await, "judged\n");
    std::fs::write(&program, "#!/bin/sh\necho swapped afterwards\n").unwrap();
    let error = shell.start(&kit.context, &tool).await.unwrap_err();
    assert!(error.kind == ErrorKind::Conflict && error.message.contains("./tool"), "{error:?}");
    kit.context.sights.truncate(1);
    kit.context.network = true;
    let error = shell.start(&kit.context, &tool).await.unwrap_err();
    assert!(error.kind == ErrorKind::Conflict && error.message.contains("sandbox"), "{error:?}");
}

#[tokio::test]
async fn what_no_sandbox_holds_starts_on_the_host() {
    let Some(mut kit) = DockerKit::new() else { return };
    (kit.context.sandboxed, kit.docker.socket) = (false, "/nonexistent".into());
    let mut child = kit.begin(start("pwd")).await;
    assert_eq!(rest(&mut child).await, format!("{}\n", kit.context.workspace.display()));
    assert_eq!(child.place, "the host");
}
