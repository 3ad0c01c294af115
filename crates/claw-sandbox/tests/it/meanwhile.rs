//! Changes of others while a command runs or its changes wait, and entries that do not come with a new directory.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use claw_core::port::PendingChanges;
use claw_sandbox::Grant;

use super::transactions::Layered;

/// Time for the file system's clock to go on.
fn tick() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Applies the changes; returns the paths that somebody else changed.
async fn conflicts(pending: &mut dyn PendingChanges) -> Vec<PathBuf> {
    let conflicts = pending.apply(&[]).await.unwrap();
    conflicts.into_iter().map(|conflict| conflict.path).collect()
}

/// Runs a script, and does something in the workspace when the script has ended and before the command does.
async fn with_meanwhile(
    layered: &mut Layered,
    script: &str,
    meanwhile: impl FnOnce(&Path),
) -> Box<dyn PendingChanges> {
    let signal = layered.kit.outside.path().canonicalize().unwrap();
    layered.kit.options.grants.push(Grant { path: signal.clone(), write: true });
    let there = signal.display();
    let script = format!("{script}; touch {there}/begun; until [ -e {there}/go ]; do sleep 0.02; done");
    let others = async {
        while !signal.join("begun").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tick();
        meanwhile(&layered.workspace());
        fs::write(signal.join("go"), "").unwrap();
    };
    tokio::join!(layered.changes(&script), others).0
}

#[tokio::test]
async fn a_directory_moved_into_place_meanwhile_is_somebody_elses() {
    let mut layered = Layered::new();
    for path in
        ["d/changed", "d/deleted", "d/sub/deep", "theirs/changed", "theirs/deleted", "theirs/sub/deep"]
    {
        layered.write(path, path);
    }
    tick();
    let script = "echo ours > d/changed; rm d/deleted; echo ours >> d/sub/deep; echo ours > d/new";
    let mut pending = with_meanwhile(&mut layered, script, |workspace| {
        fs::rename(workspace.join("d"), workspace.join("before")).unwrap();
        fs::rename(workspace.join("theirs"), workspace.join("d")).unwrap();
    })
    .await;
    let paths = ["d/changed", "d/deleted", "d/sub/deep"].map(PathBuf::from);
    assert_eq!(conflicts(&mut *pending).await, paths);
    for path in ["changed", "deleted", "sub/deep"] {
        assert_eq!(layered.read(&format!("d/{path}")), format!("theirs/{path}"));
    }
    assert_eq!(layered.read("d/new"), "ours\n");
}

#[tokio::test]
async fn changes_of_another_command_meanwhile_are_no_conflict_with_other_files() {
    let mut layered = Layered::new();
    for path in ["d/ours", "d/theirs", "theirs"] {
        layered.write(path, "before");
    }
    let mut other = Layered::new();
    other.kit.context.workspace = layered.workspace();
    let mut theirs =
        other.changes("for f in d/theirs d/new theirs new; do echo theirs > $f; done; rm -f gone").await;
    let theirs = &mut theirs;
    let mut pending = with_meanwhile(&mut layered, "echo ours > d/ours", |_| {
        let handle = tokio::runtime::Handle::current();
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(handle.block_on(conflicts(&mut **theirs)), Vec::<PathBuf>::new()));
        });
    })
    .await;
    assert_eq!(conflicts(&mut *pending).await, Vec::<PathBuf>::new());
    let now = ["d/ours", "d/theirs", "d/new", "theirs", "new"].map(|path| layered.read(path));
    assert_eq!(now, ["ours\n", "theirs\n", "theirs\n", "theirs\n", "theirs\n"]);
}

#[tokio::test]
async fn what_others_write_below_a_deleted_directory_while_its_deletion_waits_stays() {
    for replaced in [false, true] {
        let layered = Layered::new();
        for path in ["d/sub/file", "e/sub/file", "f/sub/file"] {
            layered.write(path, "before");
        }
        let end = if replaced { "; echo ours > d; echo ours > e; echo ours > f" } else { "" };
        let mut pending = layered.changes(&format!("rm -r d e f{end}")).await;
        tick();
        // Neither changes the directory that is deleted itself.
        layered.write("d/sub/file", "theirs");
        layered.write("e/sub/new", "theirs");
        assert_eq!(conflicts(&mut *pending).await, ["d", "e"].map(PathBuf::from), "replaced: {replaced}");
        assert_eq!(
            (layered.read("d/sub/file"), layered.read("e/sub/new")),
            ("theirs".into(), "theirs".into())
        );
        assert_eq!(layered.read("e/sub/file"), "before");
        assert_eq!(layered.workspace().join("f").is_file(), replaced);
    }
}

#[tokio::test]
async fn what_others_write_in_a_new_directory_is_not_taken_back_with_it() {
    let layered = Layered::new();
    let mut pending = layered.changes("mkdir -p new/sub; echo ours > new/sub/file").await;
    assert_eq!(conflicts(&mut *pending).await, Vec::<PathBuf>::new());
    layered.write("new/sub/theirs", "theirs");
    let id = pending.id();
    let mut applied = layered.transactions().open(id).unwrap();
    assert_eq!(applied.revert(false).unwrap(), [Path::new("new")]);
    assert_eq!(layered.read("new/sub/theirs"), "theirs");
}

#[tokio::test]
async fn a_socket_does_not_come_with_a_new_directory_and_a_fifo_does() {
    let layered = Layered::new();
    let bind =
        "import socket\nfor path in ['socket', 'new/sub/socket']: socket.socket(socket.AF_UNIX).bind(path)";
    let script = format!("mkdir -p new/sub; mkfifo new/sub/fifo; echo x > new/file; python3 -c \"{bind}\"");
    let mut pending = layered.changes(&script).await;
    assert_eq!(pending.refused(), ["new/sub/socket", "socket"].map(PathBuf::from));
    assert!(!pending.list().iter().any(|change| change.path.ends_with("socket")), "{:?}", pending.list());
    assert_eq!(conflicts(&mut *pending).await, Vec::<PathBuf>::new());
    let at = |path: &str| layered.workspace().join(path);
    assert!(fs::symlink_metadata(at("new/sub/fifo")).unwrap().file_type().is_fifo());
    assert!(!at("new/sub/socket").exists() && !at("socket").exists());
    assert_eq!(layered.read("new/file"), "x\n");
}

/// Fails for an ordinary user only, since nothing is closed to root: `escape::user` runs it as one.
#[tokio::test]
async fn a_directory_that_cannot_be_read_is_held_back_by_itself() {
    let layered = Layered::new();
    let script = "mkdir -p new/closed/deep other; echo x > new/file; echo x > new/closed/file; mkdir alone; \
        chmod 0 new/closed alone";
    let mut pending = layered.changes(script).await;
    if !rustix::process::geteuid().is_root() {
        assert_eq!(pending.refused(), ["alone", "new/closed"].map(PathBuf::from));
    }
    assert_eq!(conflicts(&mut *pending).await, Vec::<PathBuf>::new());
    assert_eq!(layered.read("new/file"), "x\n");
    assert_eq!(layered.workspace().join("new/closed").exists(), rustix::process::geteuid().is_root());
    assert!(layered.workspace().join("other").is_dir());
}

#[tokio::test]
async fn a_deletion_held_back_leaves_its_directory_and_the_rest_is_applied() {
    let layered = Layered::new();
    for path in ["d/sub/held", "d/beside", "other/file"] {
        layered.write(path, path);
    }
    let mut pending = layered.changes("rm -r d other").await;
    let held = ["d", "d/beside", "d/sub", "d/sub/held"].map(PathBuf::from);
    assert_eq!(pending.apply(&held).await.unwrap(), []);
    assert_eq!(layered.read("d/sub/held"), "d/sub/held");
    assert_eq!(layered.read("d/beside"), "d/beside");
    assert!(!layered.workspace().join("other").exists());
}
