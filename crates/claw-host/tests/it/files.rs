//! The files of this machine, put through the suite that every bridge passes, with each way to use the kernel.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use claw_core::port::{Expect, FilePlace, FsBridge as _, Scope};
use claw_core::tool::ErrorKind;
use claw_host::files::{Kernel, LocalFiles};
use claw_testkit::conformance;
use claw_testkit::fixture::caller;
use tempfile::TempDir;

async fn conforms(kernel: Kernel) {
    let directory = TempDir::new().unwrap();
    let count = Cell::new(0);
    conformance::bridge(async || {
        count.set(count.get() + 1);
        (LocalFiles::with(kernel), directory.path().join(format!("deep/{}", count.get())))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms_with_the_kernel_resolving() {
    conforms(Kernel::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms_step_by_step() {
    conforms(Kernel { openat2: false, ..Kernel::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms_with_locks_in_place_of_exchanging() {
    conforms(Kernel { renameat2: false, ..Kernel::default() }).await;
}

#[tokio::test]
async fn makes_the_workspace_for_its_owner_alone() {
    let directory = TempDir::new().unwrap();
    let root = directory.path().join("tenants/a/b");
    let (caller, scope) = (caller(), Scope::workspace(&root));
    let place = FilePlace { caller: &caller, directory: &root, scope: &scope, expect: Expect::Anything };
    let files = LocalFiles::new();
    assert_eq!(files.stat(&place, "x").await.unwrap(), None);
    assert_eq!(files.read(&place, "x").await.unwrap_err().kind, ErrorKind::NotFound);
    assert!(!root.exists(), "looking makes nothing");
    files.write(&place, "x", b"1").await.unwrap();
    for made in [&root, &directory.path().join("tenants")] {
        assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o7777, 0o700);
    }
    // A workspace that was replaced is another one.
    fs::rename(&root, directory.path().join("moved")).unwrap();
    assert_eq!(files.stat(&place, "x").await.unwrap(), None);
}

#[tokio::test]
async fn keeps_permissions_but_no_power() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    let (caller, scope) = (caller(), Scope::workspace(root));
    let place = FilePlace { caller: &caller, directory: root, scope: &scope, expect: Expect::Anything };
    let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777;
    for (before, after) in [(0o755, 0o755), (0o600, 0o600), (0o6755, 0o755), (0o444, 0o444)] {
        fs::write(root.join("file"), "old").unwrap();
        fs::set_permissions(root.join("file"), fs::Permissions::from_mode(before)).unwrap();
        let stat = LocalFiles::new().write(&place, "file", b"new").await.unwrap();
        assert_eq!((mode("file"), stat.mode), (after, Some(after)));
        fs::remove_file(root.join("file")).unwrap();
    }
    fs::write(root.join("plain"), "").unwrap();
    let usual = mode("plain") & 0o644;
    LocalFiles::new().write(&place, "new", b"new").await.unwrap();
    assert_eq!(mode("new"), usual, "as the user's mask says");
}

#[tokio::test]
async fn removes_what_killed_programs_left_when_it_is_old() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    let (caller, scope) = (caller(), Scope::workspace(root));
    let place = FilePlace { caller: &caller, directory: root, scope: &scope, expect: Expect::Anything };
    let left = root.join(".clawsmith-tmp-0123");
    fs::write(&left, "half").unwrap();
    let files = LocalFiles::new();
    for path in [".clawsmith-tmp-0123", ".clawsmith-tmp-new"] {
        assert_eq!(files.read(&place, path).await.unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(files.write(&place, path, b"x").await.unwrap_err().kind, ErrorKind::NotFound);
    }
    files.write(&place, "a", b"a").await.unwrap();
    assert!(left.exists(), "it is young: its writer may be alive");
    assert_eq!(names(root), [".clawsmith-tmp-0123", "a"], "nothing of our own is left");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Entered directories are kept open for a moment; their names are looked up each time.
#[tokio::test]
async fn a_directory_that_was_replaced_is_another_one_at_once() {
    let directory = TempDir::new().unwrap();
    let (root, outside) = (directory.path().join("w"), directory.path().join("outside"));
    for made in ["w/a/b", "outside/b"] {
        fs::create_dir_all(directory.path().join(made)).unwrap();
    }
    fs::write(root.join("a/b/x"), "first").unwrap();
    fs::write(outside.join("b/x"), "of others").unwrap();
    let caller = caller();
    let scope = Scope { denied: vec![root.join("own")], ..Scope::workspace(&root) };
    let place = FilePlace { caller: &caller, directory: &root, scope: &scope, expect: Expect::Anything };
    let files = LocalFiles::new();
    let read = async || files.read(&place, "a/b/x").await.map(|(bytes, _)| bytes);
    for _ in 0..3 {
        assert_eq!(read().await.unwrap(), b"first");
    }
    fs::rename(root.join("a/b"), root.join("moved")).unwrap();
    assert_eq!(read().await.unwrap_err().kind, ErrorKind::NotFound);
    fs::create_dir(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/x"), "second").unwrap();
    assert_eq!(read().await.unwrap(), b"second");
    fs::rename(root.join("a"), root.join("away")).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("a")).unwrap();
    assert_eq!(read().await.unwrap_err().kind, ErrorKind::Forbidden);
    fs::remove_file(root.join("a")).unwrap();
    // A denied directory is denied even if it was entered before.
    fs::rename(root.join("away"), root.join("own")).unwrap();
    assert_eq!(files.read(&place, "own/b/x").await.unwrap_err().kind, ErrorKind::NotFound);
}
