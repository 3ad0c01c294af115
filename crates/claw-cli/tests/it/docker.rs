//! `exec` by the real road, in containers of a real engine. `scripts/with-docker.sh` brings it.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Home, Ran};
use crate::processes::processes_with;

/// The image that `scripts/docker.sh` makes.
pub(crate) const IMAGE: &str = "clawsmith-test/busybox:latest";

/// A home whose commands run in containers.
pub(crate) fn home(more: &str) -> Option<Home> {
    Some(Home::with_config(&config(&socket()?, more)))
}

/// Returns the engine's socket; prints a note and returns `None` if there is none.
pub(crate) fn socket() -> Option<String> {
    match std::env::var("CLAWSMITH_TEST_DOCKER") {
        Ok(promised) if promised == "required" => {
            panic!("an engine was promised and is not there; run `scripts/with-docker.sh cargo test`")
        }
        Ok(socket) => Some(socket),
        Err(_) => {
            eprintln!("skipped: no engine; run `scripts/with-docker.sh cargo test` as root");
            None
        }
    }
}

fn config(socket: &str, more: &str) -> String {
    format!(
        "[sandbox]\nbackend = \"docker\"\n[sandbox.docker]\nsocket = \"{socket}\"\n\
         image = \"{IMAGE}\"\nmemory_mib = 64\nidle_secs = 10\n{more}"
    )
}

fn sh(home: &Home, command: &str) -> Ran {
    home.run(&["tools", "call", "exec", &json!({ "command": command }).to_string()])
}

#[test]
fn a_command_runs_in_a_container_and_its_end_is_told() {
    let Some(home) = home("") else { return };
    let ran = sh(&home, "pwd; echo wrong >&2; echo made > file; exit 7");
    let told = "/workspace\nwrong\n[exit code 7]\n[its changes went to the workspace directly and cannot be \
                undone: there are no layers in containers]\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (0, told), "{}", ran.shown());
    assert_eq!(std::fs::read_to_string(home.path().join("project/file")).unwrap(), "made\n");
    // Commands of one conversation share what a container keeps; those of another do not.
    assert_eq!(sh(&home, "echo kept > /tmp/kept").code, 0);
    assert_eq!(sh(&home, "cat /tmp/kept").stdout, "kept\n[exit code 0]\n");
    let args = json!({ "command": "cat /tmp/kept" }).to_string();
    let other = home.run(&["tools", "call", "--session", "cli:other", "exec", &args]);
    assert!(other.stdout.contains("exit code 1"), "{}", other.shown());
}

#[test]
fn refuses_the_configuration_that_lies_in_the_workspace() {
    let Some(home) = home("") else { return };
    let config = home.path().join("project/clawsmith.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let attack = "cat clawsmith.toml; echo x > clawsmith.toml; rm clawsmith.toml; mv clawsmith.toml y; cp clawsmith.toml z";
    let ran = sh(&home, attack);
    assert!(ran.code == 0 && !ran.stdout.contains("backend"), "{}", ran.shown());
    assert_eq!(std::fs::read_to_string(&config).unwrap(), text);
    // Saved anew by an editor, it is another file, and hidden all the same.
    std::fs::write(home.path().join("project/new"), &text).unwrap();
    std::fs::rename(home.path().join("project/new"), &config).unwrap();
    let ran = sh(&home, "cat clawsmith.toml");
    assert!(ran.code == 0 && !ran.stdout.contains("backend"), "{}", ran.shown());
}

#[test]
fn who_may_not_write_cannot_in_a_container_either() {
    let Some(home) = home("[tools]\ndeny = [\"effect:write\"]\n") else { return };
    home.write("project/in", "read me\n");
    let ran = sh(&home, "cat in; echo changed > in; true");
    assert!(ran.stdout.starts_with("read me\n"), "{}", ran.shown());
    assert_eq!(std::fs::read_to_string(home.path().join("project/in")).unwrap(), "read me\n");
}

/// Where changes must be looked at before they are made, a command that may write is refused.
#[test]
fn refuses_a_writer_in_a_container_whose_changes_must_be_held_back() {
    let cases = [
        ("", "plan"),
        ("", "ask"),
        ("[approvals.effects]\nwrite = \"ask\"\n", "configured"),
        ("[approvals.effects]\nwrite = \"deny\"\n", "configured"),
        ("[shell]\napply = \"review\"\n", "configured"),
        ("[shell]\napply = \"on_success\"\n", "configured"),
    ];
    for (more, mode) in cases {
        let Some(home) = home(more) else { return };
        home.write("project/keep.txt", "kept\n");
        let script = home.write(
            "plan.toml",
            r#"
[[turn]]
when.round = 0
do = [{ call = "exec", args = { command = "sort -o keep.txt /dev/null" } }]
[[turn]]
when.round = 1
do = [{ say = "Result: {{result}}" }, { call = "exec", args = { command = "cat keep.txt" } }]
[[turn]]
do = [{ say = "Result: {{result}}" }]
"#,
        );
        let ran = home.run(&["chat", "--mode", mode, "--script", script.to_str().unwrap(), "-m", "tidy"]);
        let refused = "commands in containers write to the workspace directly";
        assert!(ran.stdout.contains(refused), "{more} {mode}: {}", ran.shown());
        assert!(ran.stdout.contains("kept"), "reading is free: {more} {mode}: {}", ran.shown());
        assert_eq!(std::fs::read_to_string(home.path().join("project/keep.txt")).unwrap(), "kept\n");
    }
}

#[test]
fn status_run_and_probe_speak_of_containers() {
    let Some(home) = home("") else { return };
    let ran = home.run(&["sandbox", "run", "--", "sh", "-c", "pwd; exit 5"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (5, "/workspace\n"), "{}", ran.shown());
    let status = home.run(&["sandbox", "status", "--json"]).json();
    assert_eq!((&status["backend"], &status["usable"]), (&json!("docker"), &json!(true)), "{status}");
    assert_eq!(status["containers"].as_array().unwrap().len(), 1, "{status}");
    let ran = home.run(&["sandbox", "status"]);
    for word in ["engine", "clawsmith-test/busybox", "/workspace", "64 MiB", "Containers"] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    let probe = home.run(&["sandbox", "probe", "--json"]);
    assert_eq!((probe.code, &probe.json()["held"]), (0, &json!(true)), "{}", probe.shown());
    let directly = "commands in containers write to the workspace directly";
    assert_eq!(probe.json()["not_undoable"], directly, "{}", probe.shown());
    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains(directly), "{}", doctor.shown());
    assert!(doctor.stdout.contains("the Docker engine answers"), "{}", doctor.shown());
}

#[test]
fn without_an_engine_or_an_image_nothing_runs() {
    let home = Home::with_config(&config("/nonexistent/docker.sock", ""));
    let ran = sh(&home, "touch made");
    assert!(ran.code != 0 && ran.stderr.contains("no Docker engine answers"), "{}", ran.shown());
    let ran = home.run(&["sandbox", "run", "--", "touch", "made"]);
    assert!(ran.code == 3 && ran.stderr.contains("no Docker engine answers"), "{}", ran.shown());
    assert!(!home.path().join("project/made").exists());
    let status = home.run(&["sandbox", "status", "--json"]).json();
    assert_eq!(status["usable"], false, "{status}");
    assert!(home.run(&["doctor"]).stdout.contains("no command runs"));
    // Off is off, whatever it would be made of.
    let off = Home::with_config("[sandbox]\nbackend = \"docker\"\nmode = \"off\"\n");
    assert_eq!(sh(&off, "echo on the host").stdout, "on the host\n[exit code 0]\n");
}

/// Runs a command that must end by itself within seconds.
fn soon(home: &Home, words: &[&str]) -> Ran {
    home.ran(home.command(words).timeout(Duration::from_secs(18)))
}

const EXEC: [&str; 4] = ["tools", "call", "exec", r#"{"command": "true"}"#];

#[test]
fn a_hung_engine_is_told_within_seconds_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("engine.sock");
    // Takes connections and says nothing.
    let _listener = UnixListener::bind(&socket).unwrap();
    let home = Home::with_config(&config(socket.to_str().unwrap(), ""));
    // Nobody has to create the store.
    home.run(&["tools", "list"]);
    let asked: [&[&str]; 5] = [
        &EXEC,
        &["sandbox", "run", "--", "true"],
        &["sandbox", "status"],
        &["sandbox", "status", "--json"],
        &["doctor"],
    ];
    thread::scope(|scope| {
        for words in asked {
            let home = &home;
            scope.spawn(move || {
                let ran = soon(home, words);
                assert!(ran.shown().contains("did not answer in time"), "{words:?}: {}", ran.shown());
            });
        }
    });
}

/// Passes requests on to an engine, until one of them is about a command: that one is never answered.
fn freezing_at_commands(engine: &Path, at: &Path) {
    let (engine, listener) = (engine.to_owned(), UnixListener::bind(at).unwrap());
    thread::spawn(move || {
        for mut client in listener.incoming().map(Result::unwrap) {
            let mut engine = UnixStream::connect(&engine).unwrap();
            thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n") && client.read(&mut byte).unwrap() == 1 {
                    head.extend(byte);
                }
                while String::from_utf8_lossy(&head).contains("/exec") {
                    thread::park();
                }
                engine.write_all(&head).unwrap();
                let (mut from, mut to) = (client.try_clone().unwrap(), engine.try_clone().unwrap());
                thread::spawn(move || std::io::copy(&mut from, &mut to));
                let _ = std::io::copy(&mut engine, &mut client);
                let _ = client.shutdown(Shutdown::Both);
            });
        }
    });
}

/// Passes everything on to an engine, and nothing while the returned value is true.
fn freezing_on_demand(engine: &Path, at: &Path) -> Arc<AtomicBool> {
    let (engine, listener) = (engine.to_owned(), UnixListener::bind(at).unwrap());
    let frozen = Arc::new(AtomicBool::new(false));
    let is_frozen = Arc::clone(&frozen);
    let pass_on = move |mut from: UnixStream, mut to: UnixStream| {
        let is_frozen = Arc::clone(&is_frozen);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                while is_frozen.load(Ordering::Acquire) {
                    thread::sleep(Duration::from_millis(10));
                }
                if to.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
        });
    };
    thread::spawn(move || {
        for client in listener.incoming().map(Result::unwrap) {
            let engine = UnixStream::connect(&engine).unwrap();
            pass_on(client.try_clone().unwrap(), engine.try_clone().unwrap());
            pass_on(engine, client);
        }
    });
    frozen
}

#[test]
fn an_engine_that_hangs_at_the_first_command_is_told_as_that() {
    let Some(socket) = socket() else { return };
    let directory = tempfile::tempdir().unwrap();
    let proxy = directory.path().join("engine.sock");
    freezing_at_commands(Path::new(&socket), &proxy);
    let home = Home::with_config(&config(proxy.to_str().unwrap(), ""));
    for words in [&EXEC[..], &["sandbox", "run", "--", "true"]] {
        let ran = soon(&home, words);
        assert!(ran.stderr.contains("did not answer in time"), "{words:?}: {}", ran.shown());
    }
}

/// Sends the engine a request about the home's only container that only a test sends.
fn ask_engine(home: &Home, socket: &str, what: &str) {
    let listed = home.run(&["sandbox", "status", "--json"]).json();
    let [container] = listed["containers"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    let path = format!("/containers/{}/{what}", container["id"].as_str().unwrap());
    let mut engine = UnixStream::connect(socket).unwrap();
    write!(engine, "POST {path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n").unwrap();
    let mut answer = String::new();
    engine.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" 204 "), "{path}: {answer}");
}

#[test]
fn a_paused_container_is_told_within_seconds() {
    let Some(socket) = socket() else { return };
    let home = Home::with_config(&config(&socket, "workspace = \"none\"\n"));
    assert_eq!(sh(&home, "echo fine").stdout, "fine\n[exit code 0]\n");
    ask_engine(&home, &socket, "pause");
    let write = json!({ "path": "made.txt", "content": "made\n" }).to_string();
    let calls: [&[&str]; 3] = [
        &EXEC,
        &["tools", "call", "write_file", &write],
        &["tools", "call", "read_file", r#"{"path": "made.txt"}"#],
    ];
    for words in calls {
        let ran = soon(&home, words);
        assert!(ran.code != 0 && ran.stderr.contains("is paused"), "{words:?}: {}", ran.shown());
    }
    ask_engine(&home, &socket, "unpause");
    assert_eq!(sh(&home, "ls; echo fine").stdout, "fine\n[exit code 0]\n", "nothing was done later");
}

/// Runs a call in a process of its own, does something once the command has begun, and waits for its end.
fn meanwhile(home: &Home, command: &str, act: impl FnOnce()) -> Ran {
    let begun = home.path().join("project/begun");
    let args = json!({ "command": format!("touch begun; {command}"), "timeout_seconds": 2 }).to_string();
    let mut call = home.process(&["tools", "call", "exec", &args]);
    call.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut call = call.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !begun.exists() {
        assert!(Instant::now() < until && call.try_wait().unwrap().is_none(), "it did not begin");
        thread::sleep(Duration::from_millis(10));
    }
    act();
    let until = Instant::now() + Duration::from_secs(60);
    while call.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            call.kill().unwrap();
            panic!("it waits for what never answers");
        }
        thread::sleep(Duration::from_millis(50));
    }
    let Output { status, stdout, stderr } = call.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
}

#[test]
fn a_command_whose_container_is_paused_ends_at_its_time_limit() {
    let Some(socket) = socket() else { return };
    let home = Home::with_config(&config(&socket, ""));
    assert_eq!(sh(&home, "true").code, 0);
    let word = format!("docker-paused-{}", std::process::id());
    let command = format!("MARK={word} sh -c 'while :; do sleep 1; done'");
    let ran = meanwhile(&home, &command, || ask_engine(&home, &socket, "pause"));
    assert!(ran.stdout.contains("time limit"), "{}", ran.shown());
    assert_eq!(processes_with(&word), 0);
    // The next one does not find it paused.
    assert_eq!(sh(&home, "echo fine").stdout, "fine\n[exit code 0]\n");
}

#[test]
fn an_engine_that_hangs_while_a_command_runs_is_told_in_time() {
    let Some(socket) = socket() else { return };
    let directory = tempfile::tempdir().unwrap();
    let proxy = directory.path().join("engine.sock");
    let frozen = freezing_on_demand(Path::new(&socket), &proxy);
    let home = Home::with_config(&config(proxy.to_str().unwrap(), ""));
    assert_eq!(sh(&home, "true").code, 0);
    let word = format!("docker-hung-{}", std::process::id());
    let command = format!("MARK={word} sh -c 'while :; do sleep 1; done'");
    let ran = meanwhile(&home, &command, || frozen.store(true, Ordering::Release));
    assert!(ran.code != 0 && ran.stderr.contains("did not answer in time"), "{}", ran.shown());
    // Nothing of it runs on once the engine answers again.
    frozen.store(false, Ordering::Release);
    let until = Instant::now() + Duration::from_secs(60);
    while processes_with(&word) > 0 {
        assert!(Instant::now() < until, "nobody waits for it any more");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn files_of_a_workspace_that_is_not_shown_are_the_container_s() {
    let Some(home) = home("workspace = \"none\"\n") else { return };
    home.write("project/secret.txt", "secret-content\n");
    let call = |tool: &str, args: serde_json::Value| home.run(&["tools", "call", tool, &args.to_string()]);
    let ran = call("read_file", json!({ "path": "secret.txt" }));
    assert!(ran.code != 0 && !ran.shown().contains("secret-content"), "{}", ran.shown());
    let ran = call("write_file", json!({ "path": "made.txt", "content": "made by a tool\n" }));
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(!home.path().join("project/made.txt").exists());
    assert_eq!(sh(&home, "cat made.txt; ls").stdout, "made by a tool\nmade.txt\n[exit code 0]\n");
    assert_eq!(sh(&home, "echo 'by a command' > other.txt").code, 0);
    let ran = call("read_file", json!({ "path": "other.txt" }));
    assert!(ran.stdout.contains("by a command"), "{}", ran.shown());
}

#[test]
fn undo_works_in_the_container_that_the_agent_used_and_nowhere_else() {
    let Some(socket) = socket() else { return };
    let more = "workspace = \"none\"\n[agents.other]\n";
    let home = Home::with_config(&format!("tenant = \"acme\"\n{}", config(&socket, more)));
    for caller in [&[][..], &["--agent", "other", "--session", "cli:theirs"]] {
        let call = |tool: &str, args: serde_json::Value| {
            let ran =
                home.run(&[&["tools", "call"][..], caller, &[tool, "--args", &args.to_string()]].concat());
            assert_eq!(ran.code, 0, "{}", ran.shown());
            ran
        };
        let shown = || call("exec", json!({ "command": "cat file.txt" })).stdout;
        let undo = || {
            let ran = home.run(&["undo", "apply", "--last"]);
            assert_eq!(ran.code, 0, "{}", ran.shown());
        };
        call("write_file", json!({ "path": "file.txt", "content": "one\n" }));
        call("edit", json!({ "path": "file.txt", "old_string": "one", "new_string": "two" }));
        assert_eq!(shown(), "two\n[exit code 0]\n");
        undo();
        assert_eq!(shown(), "one\n[exit code 0]\n");
        // Undone too, the file is as the edit left it; and what was created is removed.
        let rows: serde_json::Value = home.run(&["undo", "list", "--json"]).json();
        assert_eq!(home.run(&["undo", "apply", rows[0]["id"].as_str().unwrap()]).code, 0, "{rows}");
        assert_eq!(shown(), "two\n[exit code 0]\n");
        call("write_file", json!({ "path": "made.txt", "content": "made\n" }));
        undo();
        let there = call("exec", json!({ "command": "ls" })).stdout;
        assert_eq!(there, "file.txt\n[exit code 0]\n");
    }
    assert!(!home.path().join("project/file.txt").exists(), "nothing of it is on the host");
    // With another sandbox the container's files are out of reach: the host's are not changed instead.
    home.configure("tenant = \"acme\"\n[agents.other]\n");
    home.write("project/file.txt", "the host's\n");
    let ran = home.run(&["undo", "apply", "--last", "--force"]);
    assert!(
        ran.code == 1 && ran.stderr.contains("workspace of the container `acme/session/"),
        "{}",
        ran.shown()
    );
    assert_eq!(std::fs::read_to_string(home.path().join("project/file.txt")).unwrap(), "the host's\n");
}

#[test]
fn a_change_without_a_sandbox_is_undone_on_the_host() {
    let Some(socket) = socket() else { return };
    let config =
        config(&socket, "workspace = \"none\"\n").replace("[sandbox]", "[sandbox]\nmode = \"non-main\"");
    let home = Home::with_config(&config);
    let file = home.write("project/file.txt", "one\n");
    let edit = json!({ "path": "file.txt", "old_string": "one", "new_string": "two" }).to_string();
    let ran = home.run(&["tools", "call", "edit", "--args", &edit]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
    let ran = home.run(&["undo", "apply", "--last"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
}

#[test]
fn the_container_s_own_workspace_has_one_name_for_commands_and_tools() {
    let Some(home) = home("workspace = \"none\"\n") else { return };
    let call = |tool: &str, args: serde_json::Value| {
        let ran = home.run(&["tools", "call", tool, "--args", &args.to_string()]);
        assert_eq!(ran.code, 0, "{}", ran.shown());
        ran.stdout
    };
    assert_eq!(call("workspace_dir", json!({})).trim(), "/workspace");
    assert_eq!(call("exec", json!({ "command": "pwd" })), "/workspace\n[exit code 0]\n");
    call("write_file", json!({ "path": "/workspace/a/made.txt", "content": "made\n" }));
    let there = json!({ "command": "cat made.txt", "directory": "/workspace/a" });
    assert!(call("exec", there).contains("made\n[exit code 0]"));
    assert!(!home.path().join("project/a").exists());
}
