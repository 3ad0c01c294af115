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
    assert_eq!(home.run(&["ledger", "show"]).stdout, "no entries in ~/.local/share/clawsmith/ledger\n");
    let verified = home.run(&["ledger", "verify"]);
    assert_eq!(verified.code, 0, "{}", verified.shown());
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

#[test]
fn finds_a_last_entry_that_was_removed() {
    let home = with_calls();
    let path = home.data().join("ledger/main@local.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let cut = text.trim_end().rfind('\n').unwrap();
    std::fs::write(&path, &text[..=cut]).unwrap();
    insta::assert_snapshot!("verify_cut_off", home.run(&["ledger", "verify"]).shown());
    assert_eq!(home.run(&["ledger", "verify", "--json"]).json()["ok"], false);
    let call = home.run(&["tools", "call", "workspace_dir"]);
    assert_eq!((call.code, call.stdout.as_str()), (3, ""), "a damaged ledger is not added to");
}

#[test]
fn finds_an_entry_that_was_changed() {
    let home = with_calls();
    let path = home.data().join("ledger/main@local.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"read\"", "\"exec\"", 1)).unwrap();
    let ran = home.run(&["ledger", "verify"]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert!(ran.stdout.starts_with("damaged: main@local: entry 1 "), "{}", ran.stdout);
}
