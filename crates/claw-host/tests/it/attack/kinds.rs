//! Attacks by things that are not files.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use claw_core::port::{Access, Root, Scope};
use claw_core::tool::ErrorKind;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{Target, is_administrator};

const REFUSED: &[ErrorKind] = &[ErrorKind::Forbidden, ErrorKind::Invalid];

/// Fails if an attack hangs. The timeout is only for that.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.unwrap()
}

#[tokio::test]
async fn refuses_a_pipe_that_would_block_for_ever() {
    for target in Target::disks() {
        let path = target.root.join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        symlink("pipe", target.root.join("link")).unwrap();
        for path in ["pipe", "link", "./dir/../pipe"] {
            in_time(target.refused(path, REFUSED)).await;
        }
        let told = target.text("pipe").await.unwrap_err();
        assert_eq!(told.message, "`pipe` is a pipe, not a file");
        assert!(path.symlink_metadata().is_ok(), "it was not replaced");
    }
}

#[tokio::test]
async fn refuses_a_socket() {
    for target in Target::disks() {
        let _listener = UnixListener::bind(target.root.join("socket")).unwrap();
        in_time(target.refused("socket", REFUSED)).await;
    }
}

#[tokio::test]
async fn refuses_devices_in_the_workspace() {
    if !is_administrator("refuses_devices_in_the_workspace") {
        return;
    }
    for target in Target::disks() {
        // `/dev/zero`, which never ends.
        let device = rustix::fs::makedev(1, 5);
        let made = mknodat(
            CWD,
            target.root.join("zero"),
            FileType::CharacterDevice,
            Mode::from_raw_mode(0o666),
            device,
        );
        if let Err(error) = made {
            eprintln!("SKIPPED: refuses_devices_in_the_workspace cannot make a device: {error}");
            return;
        }
        in_time(target.refused("zero", REFUSED)).await;
    }
}

#[tokio::test]
async fn refuses_links_to_what_the_system_shows() {
    for target in Target::disks() {
        let targets = [
            "/proc/self/environ",
            "/proc/self/root",
            "/proc/self/cwd",
            "/proc/self/fd/0",
            "/proc/self/exe",
            "/proc/1/root",
            "/proc/thread-self/root",
            "/dev/stdin",
            "/dev/zero",
            "/dev/fd/0",
            "/sys/kernel",
        ];
        for (index, to) in targets.iter().enumerate() {
            let name = format!("link{index}");
            symlink(to, target.root.join(&name)).unwrap();
            in_time(target.refused(&name, &[ErrorKind::Forbidden])).await;
            in_time(target.refused(&format!("{name}/etc/passwd"), &[ErrorKind::Forbidden])).await;
            in_time(target.refused(to, &[ErrorKind::Forbidden])).await;
        }
    }
}

#[tokio::test]
async fn refuses_what_the_system_shows_though_everything_may_be_read() {
    for mut target in Target::disks() {
        target.scope =
            Scope { roots: vec![Root { path: "/".into(), access: Access::Read }], ..Scope::default() };
        let paths = [
            "/proc/self/environ",
            "/proc/self/root/proc/self/environ",
            "/proc/self/cwd",
            "/proc/self/fd/0",
            "/proc/self/mem",
            "/proc/1/cmdline",
            "/proc",
            "/dev/zero",
            "/dev/null",
            "../../../../../../../proc/self/environ",
        ];
        for path in paths {
            let told = in_time(target.text(path)).await.unwrap_err();
            assert!(REFUSED.contains(&told.kind), "{path}: {told:?}");
        }
        let canary = target.around.join("outside/canary");
        assert_eq!(
            target.text(canary.to_str().unwrap()).await.unwrap(),
            fs::read_to_string(&canary).unwrap()
        );
        let told = target.files.write(&target.place(), canary.to_str().unwrap(), b"x").await.unwrap_err();
        assert_eq!(told.message, format!("`{}` is read-only", canary.display()));
    }
}

#[tokio::test]
async fn refuses_a_workspace_in_what_the_system_shows() {
    for mut target in Target::disks() {
        target.root = "/proc/self".into();
        target.scope = Scope::workspace("/proc/self");
        for path in ["environ", "root/etc/passwd", "cwd", "status"] {
            assert!(in_time(target.text(path)).await.is_err(), "{path}");
        }
    }
}
