use claw_core::tool::ErrorKind;
use serde_json::{Value, json};

use crate::fs::tests::{Road, done, failed};

fn road() -> Road {
    Road::new(&[
        ("README.md", b"# Parser\nThe parser parses.\n"),
        (".gitignore", b"target\n"),
        ("target/parser.rs", b"fn parser() {}\n"),
        (
            "src/parser.rs",
            b"use std::fmt;\n\npub fn parser() {\n    todo!()\n}\n\nfn other() {}\n// parser\n",
        ),
        ("src/logo.png", b"\x89PNG\r\n\x1a\n\0parser"),
    ])
}

async fn search(args: Value) -> String {
    done(&road().call("search", args).await)
}

#[tokio::test]
async fn shows_lines_under_their_files() {
    insta::assert_snapshot!(search(json!({ "pattern": "parser" })).await, @"
    4 lines match `parser`, in 2 of 2 files
    README.md
         1: # Parser
         2: The parser parses.
    src/parser.rs
         3: pub fn parser() {
         8: // parser
    (1 file left out: not text)
    ");
    insta::assert_snapshot!(search(json!({ "pattern": r"fn \w+", "path": "src", "context": 1 })).await, @r#"
    2 lines match `fn \w+`, in 1 of 1 file
    src/parser.rs
         2- 
         3: pub fn parser() {
         4-     todo!()
       ...
         6- 
         7: fn other() {}
         8- // parser
    (1 file left out: not text)
    "#);
    insta::assert_snapshot!(search(json!({ "pattern": "parser", "limit": 1 })).await, @"
    4 lines match `parser`, in 2 of 2 files
    README.md
         1: # Parser
    (3 more matching lines; narrow it down with `path`, `globs`, `types` or a longer pattern, or see where they are with mode `count`)
    (1 file left out: not text)
    ");
    insta::assert_snapshot!(search(json!({ "pattern": "nowhere" })).await, @"
    nothing matches `nowhere` in `.`; 2 files searched
    (1 file left out: not text; hidden and ignored files are left out; `all` includes them)
    ");
}

#[tokio::test]
async fn shows_files_or_counts_alone() {
    insta::assert_snapshot!(search(json!({ "pattern": "parser", "mode": "files" })).await, @"
    4 lines match `parser`, in 2 of 2 files
    README.md
    src/parser.rs
    (1 file left out: not text)
    ");
    insta::assert_snapshot!(search(json!({ "pattern": "parser", "mode": "count", "types": ["rust"] })).await, @"
    2 lines match `parser`, in 1 of 1 file
    src/parser.rs: 2
    ");
}

#[tokio::test]
async fn takes_what_is_asked_for() {
    let hits = async |args: Value| {
        let said = search(args).await;
        said.split(' ').next().unwrap().parse().unwrap_or(0)
    };
    assert_eq!(hits(json!({ "pattern": "Parser" })).await, 1);
    assert_eq!(hits(json!({ "pattern": "Parser", "case": false })).await, 4);
    assert_eq!(hits(json!({ "pattern": "parse", "word": true })).await, 0);
    assert_eq!(hits(json!({ "pattern": "parser()", "literal": true })).await, 1);
    assert_eq!(hits(json!({ "pattern": r"fmt;\n\npub", "multiline": true })).await, 3);
    assert_eq!(hits(json!({ "pattern": "parser", "globs": ["!*.md"] })).await, 2);
    assert_eq!(hits(json!({ "pattern": "parser", "all": true })).await, 5);
    assert_eq!(hits(json!({ "pattern": "parser", "path": "README.md" })).await, 2);
}

#[tokio::test]
async fn says_what_is_wrong() {
    let said = async |args: Value| failed(&road().call("grep", args).await, ErrorKind::Invalid);
    insta::assert_snapshot!(said(json!({ "pattern": "a(b" })).await, @"`a(b` is not a regular expression: unclosed group, at character 2; fix it, or search for the text itself with `literal`");
    insta::assert_snapshot!(said(json!({ "pattern": "a", "types": ["rst2"] })).await, @"`rst2` is not a file type; similar types are rst; or use a glob such as `*.rst2`");
    insta::assert_snapshot!(said(json!({ "pattern": r"a\nb" })).await, @r#"`a\nb` contains a line break, but files are searched line by line; search with `multiline`"#);
}

#[tokio::test]
async fn an_answer_is_never_too_long() {
    let long = format!("needle {}\n", "x".repeat(5_000)).repeat(300);
    let road = Road::new(&[("a.txt", long.as_bytes()), ("b.txt", long.as_bytes())]);
    let said = done(&road.call("search", json!({ "pattern": "needle", "limit": 1000 })).await);
    assert!(said.len() < 25_000, "{}", said.len());
    assert!(
        said.starts_with("600 lines match") && said.contains(" more matching lines; "),
        "{}",
        &said[..100]
    );
}

#[tokio::test]
async fn no_guess_tells_of_a_secret() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----";
    let text = format!("name = \"x\"\nremote = {secret}\n{pem}\nend\n");
    let road = Road::new(&[("config", text.as_bytes()), ("other", b"nothing\n")]);
    let guesses =
        ["ghp_", "0123", "ghp_0.*", "= g", "g[h]p", "MIIEvQ", "BKcw", "^MII", "ASC$", "(?i)GHP_", "J012345"];
    for guess in guesses {
        for mode in ["lines", "files", "count"] {
            for multiline in [false, true] {
                let args = json!({ "pattern": guess, "mode": mode, "multiline": multiline, "context": 5, "case": true });
                let said = done(&road.call("search", args).await);
                assert!(said.starts_with("nothing matches"), "{guess}: {said}");
            }
        }
    }
    // A right guess and a wrong one get the same answer.
    let answer = async |guess: &str| {
        let pattern = format!("remote.*{guess}|remote|^{guess}.*|end");
        done(&road.call("search", json!({ "pattern": pattern, "context": 3 })).await).replace(guess, "GUESS")
    };
    assert_eq!(answer("ghp_0123").await, answer("ghp_9876").await);
    assert_eq!(answer("MIIE").await, answer("MIIF").await);
    let said = done(&road.call("search", json!({ "pattern": "end", "context": 9 })).await);
    for part in [secret, "MIIE", "BKcw"] {
        assert!(!said.contains(part), "{said}");
    }
}
