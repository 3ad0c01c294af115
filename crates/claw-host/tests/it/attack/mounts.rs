//! Attacks by mounts, run in a child with mounts of its own, so that nothing outlives the test.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use claw_core::port::{Expect, FilePlace, FsBridge as _, Scope};
use claw_core::tool::ErrorKind;
use claw_host::files::LocalFiles;
use claw_testkit::fixture::caller;
use tempfile::TempDir;

use super::{CANARY, KERNELS};

const ROOT: &str = "CLAWSMITH_MOUNTS_ROOT";

/// Runs a test of this program after these commands, as root of its own namespaces. Prints and returns
/// `false` if this machine does not allow it.
fn run(test: &str, root: &Path, commands: &str) -> bool {
    let user: &[&str] =
        if rustix::process::geteuid().is_root() { &[] } else { &["--user", "--map-root-user"] };
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(user).args(["--mount", "sh", "-euc", script]).env(ROOT, root).current_dir(root);
        command
    };
    let can = unshared(commands).output();
    if !can.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: {test}: this machine does not let us mount: {can:?}");
        return false;
    }
    let script = format!("{commands}\nexec \"$0\" \"$@\"");
    let status =
        unshared(&script).arg(env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]).status();
    assert!(status.unwrap().success(), "{test} failed");
    true
}

fn workspace() -> TempDir {
    let directory = TempDir::new().unwrap();
    for path in ["ws/own/deep", "ws/bound", "ws/bound-outside", "ws/proc", "outside"] {
        fs::create_dir_all(directory.path().join(path)).unwrap();
    }
    fs::write(directory.path().join("ws/bound-file"), "").unwrap();
    for path in ["ws/own/canary", "ws/own/deep/canary", "outside/canary"] {
        fs::write(directory.path().join(path), CANARY).unwrap();
    }
    directory
}

#[test]
fn a_denied_directory_is_absent_behind_a_bind_mount() {
    let directory = workspace();
    let commands = "mount --bind ws/own ws/bound\nmount --bind outside ws/bound-outside\n\
                    mount --bind ws/own/canary ws/bound-file\nmount -t proc proc ws/proc || true";
    run("attack::mounts::within_bind_mounts", directory.path(), commands);
}

/// Not a test: the child that sees the mounts.
#[tokio::test]
async fn within_bind_mounts() {
    let Ok(around) = env::var(ROOT) else { return };
    let root = PathBuf::from(around).join("ws");
    let (caller, mut scope) = (caller(), Scope::workspace(&root));
    scope.denied = vec![root.join("own"), root.join("own/canary")];
    for kernel in KERNELS {
        let files = LocalFiles::with(kernel);
        let place = FilePlace { caller: &caller, directory: &root, scope: &scope, expect: Expect::Anything };
        let paths = [
            "bound",
            "bound/canary",
            "bound/deep/canary",
            "bound/../bound/canary",
            "bound-file",
            "own/canary",
        ];
        for path in paths {
            let told = files.read(&place, path).await.unwrap_err();
            assert_eq!(told.message, format!("`{path}` does not exist"));
            assert_eq!(files.stat(&place, path).await.unwrap(), None, "{path}");
            let told = files.write(&place, path, b"attacker").await.unwrap_err();
            assert_eq!(told.kind, ErrorKind::NotFound, "{path}");
        }
        // A mount that the operator made inside is inside.
        assert_eq!(files.read(&place, "bound-outside/canary").await.unwrap().0, CANARY.as_bytes());
        for path in ["proc/self/environ", "proc/self/root/etc/passwd", "proc/self/cwd", "proc/version"] {
            let told = files.read(&place, path).await.unwrap_err();
            assert!(matches!(told.kind, ErrorKind::Forbidden | ErrorKind::NotFound), "{path}: {told:?}");
        }
    }
    assert_eq!(fs::read_to_string(root.join("own/canary")).unwrap(), CANARY);
}

#[test]
fn a_denied_directory_is_absent_where_case_does_not_count() {
    let directory = workspace();
    let commands = "mount -t tmpfs -o casefold=utf8-12.1.0 tmpfs ws\nmkdir ws/folded\nchattr +F ws/folded\n\
                    mkdir ws/folded/Own\nprintf canary > ws/folded/Own/canary\ntest -e ws/folded/oWN/CANARY";
    run("attack::mounts::where_case_does_not_count", directory.path(), commands);
}

/// Not a test: the child that sees a directory that ignores case.
#[tokio::test]
async fn where_case_does_not_count() {
    let Ok(around) = env::var(ROOT) else { return };
    let root = PathBuf::from(around).join("ws");
    let (caller, mut scope) = (caller(), Scope::workspace(&root));
    scope.denied = vec![root.join("folded/Own"), root.join("folded/later")];
    for kernel in KERNELS {
        let files = LocalFiles::with(kernel);
        let place = FilePlace { caller: &caller, directory: &root, scope: &scope, expect: Expect::Anything };
        for path in
            ["folded/Own/canary", "folded/own/canary", "folded/OWN/CANARY", "folded/oWn", "folded/./OwN/x"]
        {
            let told = files.read(&place, path).await.unwrap_err();
            assert_eq!(told.message, format!("`{path}` does not exist"));
            assert_eq!(
                files.write(&place, path, b"x").await.unwrap_err().kind,
                ErrorKind::NotFound,
                "{path}"
            );
        }
        for path in ["folded/later", "folded/LATER", "folded/Later/x"] {
            assert_eq!(
                files.write(&place, path, b"x").await.unwrap_err().kind,
                ErrorKind::NotFound,
                "{path}"
            );
            assert_eq!(files.mkdirp(&place, path).await.unwrap_err().kind, ErrorKind::NotFound, "{path}");
        }
        assert!(!root.join("folded/later").exists());
    }
}

#[test]
fn a_disk_without_room_keeps_the_old_content() {
    let directory = workspace();
    run("attack::mounts::on_a_full_disk", directory.path(), "mount -t tmpfs -o size=256k tmpfs ws");
}

/// Not a test: the child on the full disk.
#[tokio::test]
async fn on_a_full_disk() {
    let Ok(around) = env::var(ROOT) else { return };
    let root = PathBuf::from(around).join("ws");
    let (caller, scope) = (caller(), Scope::workspace(&root));
    let place = FilePlace { caller: &caller, directory: &root, scope: &scope, expect: Expect::Anything };
    let files = LocalFiles::new();
    let old = vec![b'o'; 150_000];
    let stat = files.write(&place, "file", &old).await.unwrap();
    for expect in [Expect::Anything, Expect::Version(&stat.version)] {
        let told =
            files.write(&FilePlace { expect, ..place }, "file", &vec![b'n'; 200_000]).await.unwrap_err();
        assert_eq!(told.message, "no space is left to write `file`; its old content is unchanged");
        assert_eq!(files.read(&place, "file").await.unwrap(), (old.clone(), stat.clone()));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1, "nothing half written is left");
    }
    files
        .write(&FilePlace { expect: Expect::Version(&stat.version), ..place }, "file", b"small")
        .await
        .unwrap();
}
