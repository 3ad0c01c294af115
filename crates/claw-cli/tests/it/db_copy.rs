//! Copying, backing up and restoring the store.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use claw_core::NodeId;
use claw_core::store::{Ledger as _, SessionLog as _};
use claw_store::SqliteStore;
use claw_testkit::fixture::{job_of, message, refused};

use crate::harness::Home;

/// A home whose store holds this many messages of 100 kB.
fn with_store(messages: usize) -> Home {
    let home = Home::new();
    block_on(async {
        let store = open(&home.data().join("clawsmith.db")).await.unwrap();
        store.refuse(refused(claw_core::CallId::new())).await.unwrap();
        for _ in 0..messages {
            let said = message("cli:me", &"x".repeat(100_000));
            store.accept_message(said, job_of("cli:me")).await.unwrap();
        }
    });
    home
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

async fn open(path: &Path) -> Result<SqliteStore, claw_core::store::StoreError> {
    SqliteStore::open(path, NodeId::local()).await
}

#[test]
fn backs_up_and_restores() {
    let home = with_store(2);
    let made = home.run(&["db", "backup", "kept.db"]);
    insta::assert_snapshot!("backup", without_numbers(&made.shown()));
    let again = home.run(&["db", "backup", "kept.db", "--json"]);
    assert_eq!((again.code, again.stdout.as_str()), (1, ""));
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
    assert_eq!(home.run(&["db", "backup", "kept.db", "--force", "--json"]).json()["chains"][0]["entries"], 1);

    insta::assert_snapshot!("restore_refused", home.run(&["db", "restore", "kept.db"]).shown());
    let restored = home.run(&["db", "restore", "kept.db", "--force"]);
    insta::assert_snapshot!("restore", without_numbers(&restored.shown()));
    assert!(home.data().join("clawsmith.db.before-restore-1").exists());
    let json = home.run(&["db", "restore", "kept.db", "--to", "sqlite:new.db", "--json"]);
    assert_eq!((json.code, json.stderr.as_str()), (0, ""), "{}", json.shown());
    assert_eq!(json.json()["aside"], serde_json::Value::Null);
    assert!(json.json()["not_included"].as_array().unwrap().len() == 3);
}

/// Replaces numbers: sizes depend on the version of SQLite.
fn without_numbers(shown: &str) -> String {
    let words = shown.split(' ').map(|word| match word.chars().all(|c| c.is_ascii_digit()) {
        true if word.len() > 3 => "N",
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn copies_and_says_so() {
    let home = with_store(2);
    let from = format!("sqlite:{}", home.data().join("clawsmith.db").display());
    let ran = home.run(&["db", "copy", "--from", &from, "--to", "sqlite:new.db"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stdout.ends_with("; compared 10, all equal; chains of the ledger: 1\n"), "{}", ran.stdout);
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("messages")).collect();
    let expected =
        ["copying messages: 0 of 2 rows", "copying messages: 2 of 2 rows", "comparing messages: 2 of 2 rows"];
    assert_eq!(lines, expected);
    assert!(ran.stderr.contains("\nnote: not included: kept results"), "{}", ran.stderr);
    let full = home.run(&["db", "copy", "--from", &from, "--to", "sqlite:new.db"]);
    assert_eq!(full.code, 1);
    assert!(full.stderr.contains("is not empty: `"), "{}", full.stderr);
    let json = home.run(&["db", "copy", "--from", &from, "--to", "sqlite:json.db", "--json"]);
    assert_eq!((json.code, json.stderr.as_str()), (0, ""), "{}", json.shown());
    assert_eq!((&json.json()["rows"], &json.json()["resumed"]), (&json.json()["verified"], &false.into()));
}

#[test]
fn a_copy_goes_with_the_data_directory_of_its_source() {
    let (home, other) = (Home::new(), Home::new());
    for home in [&home, &other] {
        assert_eq!(home.run(&["tools", "call", "workspace_dir"]).code, 0);
    }
    let from = format!("sqlite:{}", home.data().join("clawsmith.db").display());
    let to = format!("sqlite:{}", home.path().join("project/new.db").display());
    assert_eq!(home.run(&["db", "copy", "--from", &from, "--to", &to]).code, 0);
    let variables = [("CLAWSMITH_STORE__URL", to.as_str())];
    let called = home.run_with(&variables, &["tools", "call", "workspace_dir"]);
    assert_eq!(called.code, 0, "{}", called.shown());
    let shown = home.run_with(&variables, &["ledger", "show", "--json"]).json();
    assert_eq!(shown.as_array().unwrap().len(), 4, "it goes on with what was copied");
    let refused = other.run_with(&variables, &["tools", "call", "workspace_dir"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{}", refused.shown());
    let id = std::fs::read_to_string(home.data().join("installation")).unwrap();
    assert!(refused.stderr.contains(id.trim()), "{}", refused.stderr);
}

#[test]
fn backs_up_and_restores_the_store_that_is_configured() {
    let home = Home::with_config("[store]\nurl = \"sqlite:kept/here.db\"\n");
    assert_eq!(home.run(&["tools", "call", "workspace_dir"]).code, 0);
    let made = home.run(&["db", "backup", "copy.db", "--json"]);
    assert_eq!(made.code, 0, "{}", made.shown());
    assert_eq!(made.json()["from"], "sqlite:~/project/kept/here.db");
    std::fs::remove_file(home.path().join("project/kept/here.db")).unwrap();
    let restored = home.run(&["db", "restore", "copy.db", "--json"]);
    assert_eq!(restored.code, 0, "{}", restored.shown());
    assert_eq!(home.run(&["ledger", "show", "--json"]).json().as_array().unwrap().len(), 2);
    assert!(!home.data().join("clawsmith.db").exists());
    let memory = [("CLAWSMITH_STORE__URL", "sqlite::memory:")];
    let none = home.run_with(&memory, &["db", "backup", "none.db"]);
    assert!(
        none.code == 1 && none.stderr.contains("a store in memory cannot be backed up"),
        "{}",
        none.shown()
    );
}

#[test]
fn goes_on_after_kill_9() {
    let home = with_store(200);
    let from = format!("sqlite:{}", home.data().join("clawsmith.db").display());
    let words = ["db", "copy", "--from", &from, "--to", "sqlite:new.db"];
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"));
    command.env_clear().env("HOME", home.path()).current_dir(home.path().join("project")).args(words);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let begun = said.map(|line| line.unwrap()).find(|line| line.starts_with("copying messages: 0 of 200"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(begun.is_some());
    let error = block_on(open(&home.path().join("project/new.db"))).unwrap_err().to_string();
    assert!(error.contains("is not finished"), "{error}");
    let half = home.ran(home.command(&["db", "status"]).env("CLAWSMITH_STORE__URL", "sqlite:new.db"));
    assert!(half.shown().contains("not finished"), "{}", half.shown());
    let ran = home.run(&[&words[..], &["--json"]].concat());
    assert_eq!((ran.code, &ran.json()["resumed"]), (0, &true.into()), "{}", ran.shown());
    block_on(open(&home.path().join("project/new.db"))).unwrap();
}

#[test]
fn prints_no_password() {
    let home = with_store(1);
    for url in
        ["postgres://me:hunter2@127.0.0.1:1/claw", "mysql://me:hunter2@host/claw", "postgres://[hunter2"]
    {
        for words in [
            ["db", "copy", "--from", url, "--to", "sqlite:new.db"].as_slice(),
            &["db", "copy", "--from", "sqlite:new.db", "--to", url],
            &["db", "backup", "kept.db", "--from", url],
            &["db", "restore", "kept.db", "--to", url],
        ] {
            let ran = home.run(words);
            let expected = if url.starts_with("mysql") { 2 } else { 1 };
            assert_eq!(ran.code, expected, "{words:?}: {}", ran.shown());
            assert!(!ran.shown().contains("hunter2"), "{}", ran.shown());
        }
    }
}
