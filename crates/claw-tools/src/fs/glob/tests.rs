use claw_core::tool::ErrorKind;
use serde_json::json;

use crate::fs::tests::{Road, done, failed};

fn road() -> Road {
    Road::new(&[
        ("b.rs", b"oldest"),
        (".gitignore", b"target\n"),
        ("target/c.rs", b"x"),
        ("src/a.rs", b"x"),
        ("src/deep/z.rs", b"newest"),
        ("src/a.py", b"x"),
    ])
}

#[tokio::test]
async fn the_newest_comes_first() {
    insta::assert_snapshot!(done(&road().call("glob", json!({ "pattern": "*.rs" })).await), @"
    3 files match `*.rs`
    src/deep/z.rs
    src/a.rs
    b.rs
    ");
    insta::assert_snapshot!(done(&road().call("Glob", json!({ "pattern": "**/*.rs", "path": "./src/", "limit": 1 })).await), @"
    2 files match `**/*.rs`
    src/deep/z.rs
    (1 older one is not shown; use a narrower pattern or path)
    ");
    insta::assert_snapshot!(done(&road().call("glob", json!({ "pattern": "*.go" })).await), @"
    no file in `.` matches `*.go`
    (hidden and ignored files are left out; `all` includes them)
    ");
    let all = done(&road().call("glob", json!({ "pattern": "*.rs", "all": true })).await);
    assert!(all.contains("target/c.rs"), "{all}");
}

#[tokio::test]
async fn says_what_is_wrong() {
    let said = failed(&road().call("glob", json!({ "pattern": "a[" })).await, ErrorKind::Invalid);
    assert!(said.starts_with("`a[` is not a glob: "), "{said}");
    let said = failed(&road().call("glob", json!({ "pattern": "" })).await, ErrorKind::Invalid);
    assert_eq!(said, "the pattern is empty; use one such as `*.rs`");
}
