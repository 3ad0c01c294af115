use std::path::Path;

use claw_core::port::{Access, Expect, FilePlace, FsBridge as _, Root, Scope};
use claw_core::tool::{ErrorKind, ToolError};

use super::*;
use crate::fixture::caller;

fn scope() -> Scope {
    let root = |path: &str, access| Root { path: path.into(), access };
    Scope {
        roots: vec![root("/ws", Access::Write), root("/ws/vendor", Access::Read)],
        denied: vec!["/ws/secret".into()],
        configuration: Vec::new(),
        covered: Vec::new(),
        quota: None,
    }
}

fn files() -> MemoryFiles {
    MemoryFiles::new().with("/ws/a.txt", "a").with("/ws/secret/key", "k").with("/etc/passwd", "p")
}

#[track_caller]
fn check(outcome: Result<impl std::fmt::Debug, ToolError>, kind: ErrorKind) {
    assert_eq!(outcome.unwrap_err().kind, kind);
}

#[tokio::test]
async fn refuses_paths_that_lead_out_of_the_scope() {
    let (files, scope, caller) = (files(), scope(), caller());
    let directory = Path::new("/ws");
    let place = FilePlace { caller: &caller, directory, scope: &scope, expect: Expect::Anything };
    for path in ["../etc/passwd", "/etc/passwd", "x/../../etc/passwd", "../../../../..", "/ws/../etc/passwd"]
    {
        check(files.read(&place, path).await, ErrorKind::Forbidden);
        check(files.stat(&place, path).await, ErrorKind::Forbidden);
        check(files.write(&place, path, b"x").await, ErrorKind::Forbidden);
        check(files.mkdirp(&place, path).await, ErrorKind::Forbidden);
        check(files.look(&place, path).await, ErrorKind::Forbidden);
    }
    assert_eq!(files.text("/etc/passwd").unwrap(), "p");
}

#[tokio::test]
async fn hides_denied_directories_and_keeps_read_only_ones() {
    let (files, scope, caller) = (files(), scope(), caller());
    let directory = Path::new("/ws");
    let place = FilePlace { caller: &caller, directory, scope: &scope, expect: Expect::Anything };
    assert_eq!(files.stat(&place, "secret/key").await.unwrap(), None);
    check(files.read(&place, "secret/key").await, ErrorKind::NotFound);
    check(files.write(&place, "secret/new", b"x").await, ErrorKind::NotFound);
    check(files.write(&place, "vendor/x", b"x").await, ErrorKind::Forbidden);
}

#[tokio::test]
async fn reads_what_was_written_and_sees_it_change() {
    let (files, scope, caller) = (files(), scope(), caller());
    let directory = Path::new("/ws");
    let place = FilePlace { caller: &caller, directory, scope: &scope, expect: Expect::Anything };
    files.write(&place, "deep/er/b.txt", b"b").await.unwrap();
    assert_eq!(files.read(&place, "./deep/../deep/er/b.txt").await.unwrap().0, b"b");
    assert!(files.stat(&place, "deep").await.unwrap().unwrap().directory);
    let before = files.look(&place, "a.txt").await.unwrap();
    files.write(&place, "a.txt", b"changed").await.unwrap();
    assert_ne!(files.look(&place, "a.txt").await.unwrap(), before);
    check(files.write(&place, "a.txt/below", b"x").await, ErrorKind::Invalid);
    check(files.read(&place, "deep").await, ErrorKind::Invalid);
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms() {
    crate::conformance::bridge(async || (MemoryFiles::new(), "/ws".into())).await;
}
