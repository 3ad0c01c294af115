//! A machine that gives no user namespaces, for real: the kernel refuses them to the program and to its children.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::json;

use crate::harness::{Home, Ran};

/// Enters a user namespace that may make no others, gives every capability up, and runs the rest of its words.
const WITHOUT: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
                       exec setpriv --inh-caps=-all --bounding-set=-all --no-new-privs \"$@\"";
const OPTED_OUT: &str = "[sandbox]\nallow_missing = [\"mounts\", \"processes\"]\n";

fn without(home: &Home, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.env_clear().env("HOME", home.path()).env("USER", "tester").env("PATH", "/usr/bin:/bin");
    command.args(["--user", "--map-root-user", "sh", "-c", WITHOUT, "sh"]);
    command.arg(assert_cmd::cargo::cargo_bin!("clawsmith")).args(words);
    command.current_dir(home.path().join("project"));
    command
}

fn exec(home: &Home, command: &str) -> Ran {
    let args = json!({ "command": command }).to_string();
    home.ran(&mut without(home, &["tools", "call", "exec", &args]))
}

/// Runs a command that needs an approval, and gives it.
fn approved(home: &Home, command: &str) -> Ran {
    let args = json!({ "command": command }).to_string();
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| home.ran(&mut without(home, &["tools", "call", "--wait", "exec", &args])));
        let begun = Instant::now();
        let id = loop {
            let listed = home.run(&["approvals", "list", "--json"]);
            let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
            if let Some(id) = listed.pointer("/approvals/0/id").or_else(|| listed.pointer("/0/id")) {
                break id.as_str().unwrap().to_owned();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing was asked: {listed}");
            std::thread::sleep(Duration::from_millis(100));
        };
        let answered = home.run(&["approvals", "approve", &id]);
        assert_eq!(answered.code, 0, "{}", answered.shown());
        ran.join().unwrap()
    })
}

fn opted_out() -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join(".config/clawsmith")).unwrap();
    home.write(".config/clawsmith/clawsmith.toml", OPTED_OUT);
    home
}

/// A key beside the project, which only its owner may read.
fn key(home: &Home) -> PathBuf {
    let key = home.write("key", "secret\n");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    key
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn no_command_runs_and_the_message_says_how_to_get_namespaces() {
    let home = Home::new();
    let ran = exec(&home, "echo hi");
    assert_ne!(ran.code, 0, "{}", ran.shown());
    for word in ["`mounts` is required", "user.max_user_namespaces", "docker", "sandbox.allow_missing"] {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.shown());
    }
    let status = home.ran(&mut without(&home, &["sandbox", "status"]));
    assert!(status.stdout.contains("No command runs: `mounts` is required."), "{}", status.shown());
}

#[test]
fn a_command_that_may_write_is_asked_about_and_its_result_says_that_it_cannot_be_undone() {
    let home = opted_out();
    let key = key(&home);
    // What only reads runs.
    let read = exec(&home, "echo hi");
    assert_eq!((read.code, read.stdout.contains("hi")), (0, true), "{}", read.shown());
    let asked = exec(&home, &format!("chmod 644 {}", key.display()));
    assert_ne!(asked.code, 0, "{}", asked.shown());
    assert!(asked.stderr.contains("approval"), "{}", asked.shown());
    assert_eq!(mode(&key), 0o600, "the mode of the key was changed unasked");
    let home = opted_out();
    let written = approved(&home, "echo x > made");
    assert!(written.stdout.contains("cannot be undone"), "{}", written.shown());
    assert!(home.path().join("project/made").exists());
    let listed = home.run(&["undo", "list"]);
    assert!(listed.stdout.contains("not covered"), "{}", listed.shown());
}

#[test]
fn a_server_behind_a_unix_socket_is_not_reached() {
    let home = opted_out();
    let socket = home.path().join("tmux.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let connect = format!(
        "/usr/bin/perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) or die \"refused: $!\\n\"; \
         connect(S, sockaddr_un(\"{}\")) or die \"closed: $!\\n\"; print \"reached\\n\"'",
        socket.display()
    );
    let ran = approved(&home, &connect);
    assert!(ran.stdout.contains("refused: Operation not permitted"), "{}", ran.shown());
    assert!(listener.accept().is_err(), "the server was reached");
}

#[test]
fn limits_and_priorities_of_other_processes_stay_as_they_are() {
    let home = opted_out();
    let ran = approved(
        &home,
        "prlimit --pid $PPID --nofile=3:3; renice 5 -p $PPID; taskset -p 1 $PPID; chrt -b -p 0 $PPID; true",
    );
    let refused = ran.stdout.matches("Operation not permitted").count();
    assert!(refused >= 3, "{}", ran.shown());
}

#[test]
fn status_does_not_promise_what_mounts_would_hold() {
    let home = opted_out();
    let status = home.ran(&mut without(&home, &["sandbox", "status"]));
    assert!(!status.stdout.contains("its own, gone with it"), "{}", status.shown());
    assert!(status.stdout.contains("cannot be undone"), "{}", status.shown());
}
