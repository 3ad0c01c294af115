use claw_core::tool::ErrorKind;
use serde_json::json;

use crate::fs::tests::{Road, done, failed};

fn road() -> Road {
    Road::new(&[
        ("README.md", b"hello"),
        (".env", b"x"),
        (".gitignore", b"target\n"),
        ("target/out", b"x"),
        ("src/main.rs", &[b'a'; 2000]),
        ("src/deep/er/x.rs", b"x"),
    ])
}

#[tokio::test]
async fn shows_names_sizes_and_times() {
    insta::assert_snapshot!(done(&road().call("list_files", json!({})).await), @"
    `.`: 1 file, 1 directory
         5  1970-01-01 00:00  README.md
         -  1970-01-01 00:00  src/
    (without hidden and ignored ones; `all` lists them too)
    ");
    insta::assert_snapshot!(done(&road().call("list_files", json!({ "path": "src", "depth": 3 })).await), @"
    `src`: 2 files, 2 directories down to level 3
         -  1970-01-01 00:00  deep/
         -  1970-01-01 00:00  deep/er/
         1  1970-01-01 00:00  deep/er/x.rs
      2.0K  1970-01-01 00:00  main.rs
    (without hidden and ignored ones; `all` lists them too)
    ");
    insta::assert_snapshot!(done(&road().call("list_files", json!({ "path": ".", "all": true, "limit": 3 })).await), @"
    `.`: 3 files, 2 directories
         1  1970-01-01 00:00  .env
         7  1970-01-01 00:00  .gitignore
         5  1970-01-01 00:00  README.md
    (2 more; list a directory below, or use `glob` for files by name)
    ");
    insta::assert_snapshot!(done(&road().call("list_files", json!({ "path": "src/main.rs" })).await), @"
    `src/main.rs`: 1 file, 0 directories
      2.0K  1970-01-01 00:00  src/main.rs
    ");
}

#[tokio::test]
async fn says_what_is_wrong() {
    let said = failed(&road().call("list_files", json!({ "path": "no" })).await, ErrorKind::NotFound);
    assert_eq!(said, "`no` does not exist");
    failed(&road().call("list_files", json!({ "path": "../x" })).await, ErrorKind::Forbidden);
}

#[tokio::test]
async fn an_answer_is_never_too_long() {
    let names: Vec<_> = (0..1500).map(|index| format!("a-rather-long-name-{index:04}")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    let said = done(&Road::new(&files).call("ls", json!({ "limit": 2000 })).await);
    assert!(said.len() < 25_000, "{}", said.len());
    assert!(
        said.contains("1500 files") && said.contains(" more; list a directory below"),
        "{}",
        &said[..100]
    );
}

#[tokio::test]
async fn a_name_with_a_line_break_is_one_line() {
    let road = Road::new(&[("a\n     9  1970-01-01 00:00  forged", b"x"), ("b\u{1b}[2J", b"x")]);
    for (tool, args) in [("list_files", json!({})), ("glob", json!({ "pattern": "*" }))] {
        let listed = done(&road.call(tool, args).await);
        assert!(listed.contains(r"a\n     9  1970-01-01 00:00  forged"), "{tool}: {listed}");
        assert!(listed.contains(r"b\u{1b}[2J"), "{tool}: {listed}");
    }
}
