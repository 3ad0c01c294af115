//! Showing and verifying the ledger.

use crate::harness::Home;

fn with_calls() -> Home {
    let home = Home::new();
    home.run(&["tools", "call", "workspace_dir"]);
    home.run(&["tools", "call", "datetme", "--session", "cli:other"]);
    home
}

#[test]
fn an_empty_ledger_is_said_to_be_and_not_made() {
    let home = Home::new();
    for words in [["ledger", "show"], ["ledger", "verify"]] {
        let ran = home.run(&words);
        assert_eq!(ran.code, 0, "{}", ran.shown());
        assert_eq!(
            ran.stdout,
            "no store at sqlite:~/.local/share/clawsmith/clawsmith.db yet; the first call creates it\n"
        );
    }
    assert_eq!(home.run(&["ledger", "show", "--json"]).json(), serde_json::json!([]));
    assert!(!home.data().exists());
}

#[test]
fn shows_what_happened() {
    let home = with_calls();
    let shown = home.run(&["ledger", "show"]).stdout;
    let events: Vec<&str> = shown.lines().skip(1).filter_map(|line| line.split_whitespace().nth(5)).collect();
    assert_eq!(events, ["intent", "done", "refused"], "{shown}");
    assert_eq!(home.run(&["ledger", "show", "--last", "1", "--json"]).json().as_array().unwrap().len(), 1);
    let other = home.run(&["ledger", "show", "--session", "cli:other", "--json"]).json();
    assert_eq!(other.as_array().unwrap().len(), 1);
    assert_eq!(other[0]["tool"], "datetme");
}

#[test]
fn a_sound_ledger_verifies() {
    let ran = with_calls().run(&["ledger", "verify"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "ok: main@local: 3 entries, none changed or missing\n"));
}

/// Changes one entry in the file, byte by byte: no journal is left when the command has ended.
fn tamper(home: &Home, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    assert!(!home.data().join("clawsmith.db-wal").exists());
    let path = home.data().join("clawsmith.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn finds_an_entry_that_was_changed() {
    let home = with_calls();
    tamper(&home, r#""tool":"workspace_dir""#, r#""tool":"workspace_rid""#);
    insta::assert_snapshot!("verify_changed", home.run(&["ledger", "verify"]).shown());
    let ran = home.run(&["ledger", "verify", "--json"]);
    assert_eq!((ran.code, &ran.json()["ok"]), (1, &serde_json::json!(false)), "{}", ran.shown());
    assert_eq!(ran.json()["chains"][0]["fault"]["seq"], 2);
}

#[test]
fn verifies_the_chains_of_all_tenants_and_nodes() {
    let home = with_calls();
    for variables in [[("CLAWSMITH_TENANT", "acme")], [("CLAWSMITH_NODE", "second")]] {
        home.run_with(&variables, &["tools", "call", "workspace_dir"]);
    }
    let ran = home.run(&["ledger", "verify", "--json"]).json();
    let chains: Vec<_> = ran["chains"].as_array().unwrap().iter().map(|chain| &chain["chain"]).collect();
    assert_eq!(chains, ["acme@local", "main@local", "main@second"]);
}
