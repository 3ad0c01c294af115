//! Attacks on other processes: seeing them, killing them, reading their secrets.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::kit::Kit;
use crate::sandboxes::Sandbox as _;

#[tokio::test]
async fn refuses_to_see_processes_of_others() {
    let kit = Kit::new();
    let finished =
        kit.script("ls -d /proc/[0-9]*; cat /proc/1/environ; ls /proc/1/fd; cat /proc/1/maps").await;
    let seen = finished.output.lines().filter(|line| line.starts_with("/proc/")).count();
    assert!((2..=4).contains(&seen), "{finished:?}");
    assert!(finished.output.contains("denied"), "{finished:?}");
    let own = format!("/proc/{}", std::process::id());
    assert!(!finished.output.contains("clawsmith"), "{own}: {finished:?}");
}

#[tokio::test]
async fn refuses_signals_to_the_program() {
    let kit = Kit::new();
    for pid in [std::process::id().to_string(), std::os::unix::process::parent_id().to_string()] {
        kit.refuses("signal", &pid, &[libc::ESRCH, libc::EPERM]).await;
    }
    let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
    kit.refuses("signal", &bystander.id().to_string(), &[libc::ESRCH, libc::EPERM]).await;
    // All that can be reached are its own.
    let finished = kit.script("kill -9 -1").await;
    assert!(finished.ended.signal == Some(9) || finished.ended.exit.is_some(), "{finished:?}");
    assert!(bystander.try_wait().unwrap().is_none());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn refuses_inherited_descriptors() {
    // One that is not closed by executing, as a careless program would have it.
    let file = File::open("/etc/passwd").unwrap();
    let kept = rustix::io::dup(&file).unwrap();
    rustix::io::fcntl_setfd(&kept, rustix::io::FdFlags::empty()).unwrap();
    Kit::new().refuses("descriptors", "", &[libc::EBADF]).await;
    let mut host = Kit::new();
    host.context.sandboxed = false;
    host.refuses("descriptors", "", &[libc::EBADF]).await;
}

#[tokio::test]
async fn refuses_the_environment_of_the_program() {
    let exe = std::env::current_exe().unwrap();
    let ran = Command::new(exe)
        .args(["--exact", "escape::processes::shows_its_environment", "--nocapture"])
        .env("CLAWSMITH_KEYS", "leaked-value")
        .env("ANTHROPIC_API_KEY", "leaked-value")
        .env("PATH", "/leaked-value:/usr/bin:/bin")
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(said.contains("HOME=") && said.contains("LANG="), "{said}");
    assert!(!said.contains("leaked-value"), "{said}");
}

/// The child of the test above; by itself it checks that the variables are few.
#[tokio::test]
async fn shows_its_environment() {
    for kit in [Kit::new(), Kit::on_the_host()] {
        let finished = kit.script("env; cat /proc/self/environ | tr '\\0' '\\n'").await;
        println!("{}", finished.output);
        assert!(finished.output.lines().count() < 30, "{finished:?}");
    }
}

#[tokio::test]
async fn refuses_the_terminal_of_the_program() {
    let kit = Kit::new();
    let finished = kit.script("echo typed > /dev/tty").await;
    assert_ne!(finished.ended.exit, Some(0), "{finished:?}");
    // In a session of its own, and not the leader's group of another.
    let finished = kit.script("cut -d' ' -f1,5,6,7 /proc/self/stat; cut -d' ' -f1 /proc/$$/stat").await;
    let numbers: Vec<_> = finished.output.split_whitespace().collect();
    assert_eq!(numbers[3], "0", "no terminal: {finished:?}");
    assert_eq!(numbers[2], numbers[4], "{finished:?}");
}

#[tokio::test]
async fn the_supervisor_cannot_be_blinded() {
    let kit = Kit::new();
    for attack in ["limit_first", "priority_first"] {
        kit.refuses(attack, "", &[libc::EPERM]).await;
    }
    let finished = kit.script("prlimit --pid 1 --nofile=0:0; echo ran").await;
    assert!(finished.output.ends_with("ran\n") && finished.ended.exit == Some(0), "{finished:?}");
}
