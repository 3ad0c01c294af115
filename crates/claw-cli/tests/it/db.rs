//! The store: its status, its schema, its owner, and the errors of an unusable one.

use std::os::unix::fs::PermissionsExt as _;

use crate::harness::Home;

fn with_store() -> Home {
    let home = Home::new();
    assert_eq!(home.run(&["tools", "call", "workspace_dir"]).code, 0);
    home
}

#[test]
fn what_needs_no_store_makes_none() {
    let home = Home::new();
    for words in [
        &["tools", "list"][..],
        &["tools", "show", "datetime"],
        &["policy", "explain", "datetime"],
        &["config", "show"],
        &["db", "status"],
        &["--version"],
    ] {
        assert_eq!(home.run(words).code, 0, "{words:?}");
    }
    assert!(!home.data().exists());
    let status = home.run(&["db", "status", "--json"]).json();
    assert_eq!((&status["exists"], status.get("status")), (&false.into(), None));
}

#[test]
fn tells_how_the_store_stands() {
    let home = with_store();
    let status = home.run(&["db", "status", "--json"]).json();
    assert_eq!(status["store"], "sqlite:~/.local/share/clawsmith/clawsmith.db");
    let status = &status["status"];
    assert_eq!((&status["backend"], &status["journal"]["mode"]), (&"sqlite".into(), &"wal".into()));
    assert_eq!(status["schema"]["applied"], status["schema"]["known"]);
    let rows = |name: &str| {
        let tables = status["tables"].as_array().unwrap();
        tables.iter().find(|table| table["name"] == name).unwrap()["rows"].clone()
    };
    assert_eq!((rows("ledger"), rows("approvals")), (2.into(), 0.into()));
    let shown = home.run(&["db", "status"]).stdout;
    let id = std::fs::read_to_string(home.data().join("installation")).unwrap();
    assert!(shown.contains(", up to date\n") && shown.contains(id.trim()), "{shown}");
}

#[test]
fn a_migration_says_what_it_applied() {
    let home = Home::new();
    let first = home.run(&["db", "migrate"]);
    assert_eq!(first.code, 0, "{}", first.shown());
    assert!(first.stdout.contains("applied: 0001 calls\n"), "{}", first.stdout);
    let again = home.run(&["db", "migrate"]).stdout;
    assert!(again.ends_with("nothing to apply: the schema is up to date\n"), "{again}");
    assert_eq!(home.run(&["db", "migrate", "--json"]).json()["applied"], serde_json::json!([]));
}

#[test]
fn the_data_directory_carries_the_installation() {
    let home = with_store();
    let path = home.data().join("installation");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let id = std::fs::read_to_string(&path).unwrap();
    assert_eq!(home.run(&["db", "status", "--json"]).json()["status"]["installation"], id.trim());
    // Beside its own store, the file is written again.
    std::fs::remove_file(&path).unwrap();
    assert_eq!(home.run(&["tools", "call", "workspace_dir"]).code, 0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), id);
    let mut left: Vec<_> =
        std::fs::read_dir(home.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["clawsmith.db", "clawsmith.db-mark", "installation"]);
}

#[test]
fn the_store_of_another_installation_is_refused() {
    let (ours, other) = (with_store(), with_store());
    let id = |home: &Home| {
        let id = std::fs::read_to_string(home.data().join("installation")).unwrap();
        id.trim().to_owned()
    };
    let url = format!("sqlite:{}", other.data().join("clawsmith.db").display());
    let variables = [("CLAWSMITH_STORE__URL", url.as_str())];
    let refused = ours.run_with(&variables, &["tools", "call", "workspace_dir"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{}", refused.shown());
    for said in [&id(&ours), &id(&other), "`store.url`", "`data_dir`", "/installation`"] {
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    for words in [["ledger", "show"], ["ledger", "verify"], ["db", "migrate"], ["approvals", "list"]] {
        assert_eq!(ours.run_with(&variables, &words).code, 1, "{words:?}");
    }
    assert_eq!(other.run(&["ledger", "show", "--json"]).json().as_array().unwrap().len(), 2);
}

#[test]
fn a_store_that_is_lost_is_not_made_anew() {
    let home = with_store();
    std::fs::remove_file(home.data().join("clawsmith.db")).unwrap();
    let refused = home.run(&["tools", "call", "workspace_dir"]);
    assert_eq!(refused.code, 3, "{}", refused.shown());
    assert!(refused.stderr.contains("the store is empty or not there"), "{}", refused.stderr);
    assert!(!home.data().join("clawsmith.db").exists());
    std::fs::remove_file(home.data().join("installation")).unwrap();
    assert_eq!(home.run(&["tools", "call", "workspace_dir"]).code, 0, "it was said to begin anew");
}

#[test]
fn a_node_joins_with_an_empty_data_directory_and_not_with_a_full_one() {
    let first = with_store();
    let url = format!("sqlite:{}", first.data().join("clawsmith.db").display());
    let variables = [("CLAWSMITH_STORE__URL", url.as_str())];
    let id = std::fs::read_to_string(first.data().join("installation")).unwrap();

    let joining = Home::new();
    assert_eq!(joining.run_with(&variables, &["tools", "call", "workspace_dir"]).code, 0);
    assert_eq!(std::fs::read_to_string(joining.data().join("installation")).unwrap(), id);

    let full = Home::new();
    std::fs::create_dir_all(full.data().join("artifacts/main")).unwrap();
    let refused = full.run_with(&variables, &["tools", "call", "workspace_dir"]);
    assert_eq!(refused.code, 3, "{}", refused.shown());
    assert!(refused.stderr.contains("contains files but no installation id"), "{}", refused.stderr);
    assert!(refused.stderr.contains(id.trim()), "{}", refused.stderr);
    assert!(!full.data().join("installation").exists());
}

#[test]
fn an_installation_that_does_not_read_is_said() {
    let home = with_store();
    std::fs::write(home.data().join("installation"), "mine\n").unwrap();
    let ran = home.run(&["ledger", "show"]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert!(ran.stderr.contains("contains no installation id"), "{}", ran.stderr);
}

#[test]
fn a_file_that_is_no_database_is_said_and_left_alone() {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    let text = "remember the milk\n".repeat(100);
    std::fs::write(home.data().join("clawsmith.db"), &text).unwrap();
    for (words, code) in [
        (&["tools", "call", "workspace_dir"][..], 3),
        (&["ledger", "show"], 1),
        (&["ledger", "verify"], 1),
        (&["approvals", "list"], 1),
        (&["db", "status"], 1),
        (&["db", "migrate"], 1),
    ] {
        let ran = home.run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{words:?}: {}", ran.shown());
        assert!(ran.stderr.contains("is not a SQLite database"), "{words:?}: {}", ran.stderr);
    }
    assert_eq!(std::fs::read_to_string(home.data().join("clawsmith.db")).unwrap(), text);
}

#[test]
fn a_damaged_database_is_said() {
    let home = with_store();
    let path = home.data().join("clawsmith.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let ran = home.run(&["tools", "call", "workspace_dir"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{}", ran.shown());
    assert!(ran.stderr.contains("restore a backup"), "{}", ran.stderr);
    assert_eq!(home.run(&["ledger", "verify"]).code, 1);
}

#[test]
fn a_server_that_is_not_there_is_said() {
    let home = Home::new();
    let variables = [("CLAWSMITH_STORE__URL", "postgres://me:hunter2@127.0.0.1:1/claw")];
    let ran = home.run_with(&variables, &["tools", "call", "workspace_dir"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{}", ran.shown());
    assert!(
        ran.stderr.contains("the store at postgres://me@127.0.0.1:1/claw cannot be opened"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
}

#[test]
fn a_store_that_is_not_there_is_named() {
    let home = Home::new();
    for words in [
        &["db", "backup", "new.db", "--from", "sqlite:nope.db"][..],
        &["db", "copy", "--from", "sqlite:nope.db", "--to", "sqlite:new.db"],
    ] {
        let ran = home.run(words);
        assert!(ran.code == 1 && ran.stderr.contains("there is no store at"), "{}", ran.shown());
        assert!(ran.stderr.contains("nope.db`") && !home.path().join("project/new.db").exists());
    }
}
