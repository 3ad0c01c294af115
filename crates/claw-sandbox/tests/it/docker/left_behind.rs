//! Nothing is left behind in a container, however a command or its program ended; and no other command is
//! killed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{Program, ShellHost as _, Size, Start};
use claw_core::tool::{ErrorKind, Progress, Script, Target};

use super::kit::DockerKit;
use crate::kit::{context, processes_with};
use crate::sandboxes::{Sandbox as _, kill_owner, until};

fn word(name: &str) -> String {
    format!("docker-left-{name}-{}", std::process::id())
}

/// Returns a script that starts processes of every sort, some with an empty environment, prints that it is
/// ready, and stays.
fn busy(word: &str) -> Script {
    let text = "sleep 9999 & setsid sleep 9999 & (sleep 9999 &); (env -i MARK=$MARK setsid sh -c 'sleep 9999 & wait' &); \
                trap '' TERM; echo ready; while :; do sleep 1; done";
    Script { text: text.to_owned(), env: vec![("MARK".into(), word.to_owned())], ..Script::default() }
}

pub(crate) async fn until_nothing_is_left(word: &str) {
    for _ in 0..600 {
        if processes_with(word).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("processes: {:?}", processes_with(word));
}

#[tokio::test]
async fn after_a_timeout_and_others_go_on() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.script("true").await;
    // Another command of the same container, which must not notice.
    let (other, bystander) = (kit.shell(), word("bystander"));
    let beside = Script {
        text: "mkfifo go; (sleep 9998 &); cat go; echo undisturbed".into(),
        env: vec![("MARK".into(), bystander.clone())],
        ..Script::default()
    };
    let (context, fifo) = (kit.context.clone(), kit.workspace.path().join("go"));
    let running = tokio::spawn(async move { other.run(&context, &beside).await });
    while processes_with(&bystander).len() < 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    kit.options.sandbox_timeout = Duration::from_millis(700);
    let ran = kit.shell().run(&kit.context, &busy(&word("timeout"))).await.unwrap();
    assert_eq!(ran.output, "ready\n");
    assert_eq!(processes_with(&word("timeout")), [0; 0]);
    assert_eq!(kit.containers().await.len(), 1);
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "")).await.unwrap().unwrap();
    let ran = running.await.unwrap().unwrap();
    assert_eq!((ran.output.as_str(), ran.stragglers), ("undisturbed\n", 1));
}

#[tokio::test]
async fn after_cancelling() {
    let Some(mut kit) = DockerKit::new() else { return };
    let cancel = kit.context.cancel.clone();
    kit.context.progress = Progress::to(move |_| cancel.cancel());
    let error = kit.shell().run(&kit.context, &busy(&word("cancel"))).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert_eq!(processes_with(&word("cancel")), [0; 0]);
}

#[tokio::test]
async fn after_the_call_is_dropped() {
    let Some(mut kit) = DockerKit::new() else { return };
    let started = Arc::new(tokio::sync::Notify::new());
    let heard = Arc::clone(&started);
    kit.context.progress = Progress::to(move |_| heard.notify_one());
    let (shell, script) = (kit.shell(), busy(&word("drop")));
    tokio::select! {
        ran = shell.run(&kit.context, &script) => panic!("{ran:?}"),
        () = started.notified() => {}
    }
    until_nothing_is_left(&word("drop")).await;
}

/// A command that kills its own keepers is killed with all its children, however it hides.
#[tokio::test]
async fn after_the_keeper_is_killed_from_inside() {
    let Some(kit) = DockerKit::new() else { return };
    let hidden = word("hidden");
    // Both at once, so that neither can see to what the other leaves.
    let text = format!(
        "(env -i setsid sh -c 'sleep 9999; : {hidden}' &); (env -i setsid sh -c 'exec sleep 9997' &); sleep 0.2; \
         for p in /proc/[0-9]*; do p=${{p#/proc/}}; case $(tr '\\0' ' ' < /proc/$p/cmdline) in \
         /.clawsmith/*take-an-order*) all=\"$p $all\";; esac; done; kill -9 $all; sleep 9999"
    );
    let finished = kit.script(&text).await;
    assert_eq!(finished.ended.signal, Some(9), "{finished:?}");
    assert_eq!(processes_with(&hidden), [0; 0]);
    let left = kit.script("ps | grep -c '[s]leep 999'").await;
    assert_eq!(left.output, "0\n");
}

/// Sends the engine a request that only a test sends.
pub(crate) fn ask_engine(socket: &Path, path: &str) {
    use std::io::{Read as _, Write as _};
    let mut engine = std::os::unix::net::UnixStream::connect(socket).unwrap();
    write!(engine, "POST {path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n").unwrap();
    let mut answer = String::new();
    engine.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" 204 "), "{answer}");
}

#[tokio::test]
async fn a_paused_container_and_a_hung_engine_are_told_as_what_they_are() {
    let Some(mut kit) = DockerKit::new() else { return };
    assert_eq!(kit.script("echo fine").await.output, "fine\n");
    let [id] = kit.containers().await.try_into().unwrap();
    ask_engine(&kit.docker.socket, &format!("/containers/{id}/pause"));
    let soon = Duration::from_secs(25);
    let paused = tokio::time::timeout(soon, kit.try_script("echo fine")).await.expect("within seconds");
    assert!(paused.as_ref().is_err_and(|error| error.to_string().contains("is paused")), "{paused:?}");
    ask_engine(&kit.docker.socket, &format!("/containers/{id}/unpause"));
    assert_eq!(kit.script("echo fine").await.output, "fine\n");
    // Somebody takes connections and says nothing.
    let socket = kit.outside.path().join("engine.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    kit.docker.socket = socket;
    let hung = tokio::time::timeout(soon, kit.try_script("echo fine")).await.expect("within seconds");
    assert!(
        hung.as_ref().is_err_and(|error| error.to_string().contains("did not answer in time")),
        "{hung:?}"
    );
}

/// Looking changes nothing: it never leaves anybody in doubt.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_ends_while_it_is_looked_at_is_replaced() {
    let Some(kit) = DockerKit::new() else { return };
    let target = Target::Program { name: "sh".into(), directory: String::new() };
    for pause in 0..20 {
        kit.script("true").await;
        let ids = kit.containers().await;
        let socket = kit.docker.socket.clone();
        let removing = tokio::task::spawn_blocking(move || {
            std::thread::sleep(Duration::from_millis(pause * 5));
            for id in ids {
                ask_engine(&socket, &format!("/containers/{id}/kill"));
            }
        });
        let seen = kit.shell().look(&kit.context, std::slice::from_ref(&target)).await;
        removing.await.unwrap();
        assert!(seen.as_ref().is_ok_and(|seen| seen[0].path.is_some()), "{pause}: {seen:?}");
    }
}

/// A script that stops every keeper, once.
pub(crate) const STOP_KEEPERS: &str = "for p in /proc/[0-9]*; do p=${p#/proc/}; \
    case $(tr \"\\0\" \" \" < /proc/$p/cmdline 2>/dev/null) in \
    /.clawsmith/*take-an-order*) kill -STOP $p;; esac; done";

/// A script that stops every keeper, later ones too, and stays.
pub(crate) const STOPPER: &str = "while true; do for p in /proc/[0-9]*; do p=${p#/proc/}; \
    case \"$(tr '\\0' ' ' < /proc/$p/cmdline 2>/dev/null)\" in \
    /.clawsmith/*take-an-order*) kill -STOP $p;; esac; done; done";

#[tokio::test]
async fn after_a_command_stops_its_keepers() {
    let Some(mut kit) = DockerKit::new() else { return };
    let word = word("stopped");
    kit.options.sandbox_timeout = Duration::from_secs(60);
    // The container ends, and whoever waits hears that it was killed: long before its time is up.
    let begun =
        tokio::time::timeout(Duration::from_secs(30), kit.script(&format!(": {word}; {STOPPER}"))).await;
    let finished = begun.expect("it ends by itself");
    assert_eq!(finished.ended.signal, Some(libc::SIGKILL), "{finished:?}");
    until_nothing_is_left(&word).await;
    // The next one finds a container that works.
    assert_eq!(kit.script("echo fine").await.output, "fine\n");
}

#[tokio::test]
async fn after_its_container_is_paused_while_it_runs() {
    let Some(mut kit) = DockerKit::new() else { return };
    let word = word("paused");
    kit.script("true").await;
    let [id] = kit.containers().await.try_into().unwrap();
    kit.options.sandbox_timeout = Duration::from_secs(1);
    let (socket, pause) = (kit.docker.socket.clone(), format!("/containers/{id}/pause"));
    kit.context.progress = Progress::to(move |_| ask_engine(&socket, &pause));
    let (script, shell, context) = (busy(&word), kit.shell(), kit.context.clone());
    let ran = tokio::time::timeout(Duration::from_secs(30), shell.run(&context, &script)).await;
    let ran = ran.expect("its time is up").unwrap();
    assert_eq!((ran.signal, ran.output.as_str()), (Some(libc::SIGKILL), "ready\n"), "{ran:?}");
    until_nothing_is_left(&word).await;
    kit.context.progress = Progress::silent();
    assert_eq!(kit.script("echo fine").await.output, "fine\n");
    assert!(!kit.containers().await.contains(&id), "a paused container would keep it");
    // A child that is killed ends too.
    let [id] = kit.containers().await.try_into().unwrap();
    let start = Start::new(Program::Script(busy(&word)));
    let mut child = kit.shell().start(&kit.context, &start).await.unwrap();
    until(&mut child, "ready").await;
    ask_engine(&kit.docker.socket, &format!("/containers/{id}/pause"));
    child.control.kill().await;
    let ended = tokio::time::timeout(Duration::from_secs(30), child.control.ended()).await;
    assert_eq!(ended.expect("it was killed").unwrap().signal, Some(libc::SIGKILL));
    until_nothing_is_left(&word).await;
    assert_eq!(kit.script("echo fine").await.output, "fine\n");
    assert!(!kit.containers().await.contains(&id));
}

#[tokio::test]
async fn after_a_command_stops_its_supervisor() {
    let Some(mut kit) = DockerKit::new() else { return };
    let word = word("supervisor");
    kit.options.sandbox_timeout = Duration::from_secs(2);
    let text = format!(": {word}; kill -STOP $PPID; trap '' TERM; while :; do sleep 1; done");
    let finished = tokio::time::timeout(Duration::from_secs(30), kit.script(&text)).await;
    let finished = finished.expect("its keeper ends it, though nobody asks it to");
    assert_eq!(finished.ended.signal, Some(libc::SIGKILL), "{finished:?}");
    until_nothing_is_left(&word).await;
    assert_eq!(kit.script("echo fine").await.output, "fine\n");
}

/// A program that owns a command in a container, and is killed by the test below.
pub(crate) fn own_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, role, word, workspace] = arguments.as_slice() else { return };
    if !matches!(role.as_str(), "own-a-container" | "own-a-child" | "own-a-terminal" | "race-for-a-container")
    {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut kit = DockerKit::new().unwrap();
        kit.context = context(Path::new(workspace), true);
        kit.context.sandbox_key = workspace.as_str().into();
        kit.docker.installation = word.clone();
        if role == "race-for-a-container" {
            let finished = kit.try_script("cat /proc/sys/kernel/random/boot_id >/dev/null; echo ran").await;
            print!("{}", finished.unwrap().output);
            std::process::exit(0);
        }
        if role != "own-a-container" {
            let terminal = (role == "own-a-terminal").then(Size::default);
            let start = Start { terminal, ..Start::new(Program::Script(busy(word))) };
            let mut child = kit.shell().start(&kit.context, &start).await.unwrap();
            until(&mut child, "ready").await;
            println!("ready");
            panic!("it was to be killed: {:?}", child.control.ended().await);
        }
        kit.context.progress = Progress::to(|text| print!("{text}"));
        let ran = kit.shell().run(&kit.context, &busy(word)).await;
        panic!("it was to be killed: {ran:?}");
    });
}

#[tokio::test]
async fn after_the_death_of_the_owning_program() {
    for role in ["own-a-container", "own-a-child", "own-a-terminal"] {
        let Some(kit) = DockerKit::new() else { return };
        after_the_death(kit, role).await;
    }
}

async fn after_the_death(mut kit: DockerKit, role: &str) {
    let word = word(role);
    kill_owner(&[role, &word], &word, &kit.context.workspace);
    until_nothing_is_left(&word).await;
    // The container itself is found again by the next program, and used.
    kit.docker.installation = word;
    kit.context.sandbox_key = kit.context.workspace.to_str().unwrap().into();
    let before = kit.containers().await;
    assert_eq!(before.len(), 1);
    kit.script("true").await;
    assert_eq!(kit.containers().await, before);
}

#[tokio::test]
async fn secrets_are_on_no_command_line() {
    let Some(kit) = DockerKit::new() else { return };
    let secret = word("secret");
    let script = Script {
        text: "mkfifo go; echo \"$TOKEN\" > go".into(),
        env: vec![("TOKEN".into(), secret.clone())],
        input: Some(secret.clone()),
        ..Script::default()
    };
    let (shell, context, fifo) = (kit.shell(), kit.context.clone(), kit.workspace.path().join("go"));
    let running = tokio::spawn(async move { shell.run(&context, &script).await });
    while processes_with(&secret).is_empty() || !fifo.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    for entry in entries {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        assert!(!line.windows(secret.len()).any(|window| window == secret.as_bytes()), "{entry:?}");
    }
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(fifo)).await.unwrap().unwrap();
    assert_eq!(read, format!("{secret}\n"));
    running.await.unwrap().unwrap();
}
