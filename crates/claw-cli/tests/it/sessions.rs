//! Sessions: found again, continued, named, forked and removed.

use serde_json::Value;

use crate::harness::{Home, Ran};
use crate::terminal::Terminal;

const SCRIPT: &str = r#"
[[turn]]
when.said = "how many"
do = [{ say = "You said: {{said}}" }]

[[turn]]
do = [{ say = "Noted: {{said}}" }]
"#;

fn chat(home: &Home, words: &[&str]) -> Ran {
    let script = home.write("script.toml", SCRIPT);
    let ran = home.run(&[&["chat", "--script", script.to_str().unwrap()], words].concat());
    assert_eq!(ran.code, 0, "{}", ran.shown());
    ran
}

fn listed(home: &Home) -> Vec<Value> {
    home.run(&["sessions", "list", "--json"]).json().as_array().unwrap().clone()
}

#[test]
fn a_session_is_found_again_named_forked_and_removed() {
    let home = Home::new();
    chat(&home, &["the kettle is on"]);
    chat(&home, &["-m", "another matter"]);
    let list = listed(&home);
    let about: Vec<&str> = list.iter().map(|view| view["about"].as_str().unwrap()).collect();
    assert_eq!(about, ["another matter", "the kettle is on"], "each message began one, the latest first");
    let id = list[1]["id"].as_str().unwrap();

    let renamed = home.run(&["sessions", "rename", &id[..4], "tea"]);
    assert_eq!(renamed.code, 0, "{}", renamed.shown());
    chat(&home, &["--resume", "tea", "-m", "and the cups?"]);
    let shown = home.run(&["sessions", "show", "tea"]);
    for words in ["the kettle is on", "Noted: the kettle is on", "and the cups?"] {
        assert!(shown.stdout.contains(words), "{}", shown.shown());
    }

    let forked = home.run(&["sessions", "fork", "tea", "--json"]).json();
    let fork = forked["id"].as_str().unwrap();
    assert_eq!((&forked["title"], &forked["messages"]), (&"tea".into(), &4.into()));
    chat(&home, &["--resume", fork, "-m", "in the fork"]);
    assert!(!home.run(&["sessions", "show", id]).stdout.contains("in the fork"));

    let removed = home.run(&["sessions", "remove", id]);
    assert_eq!(removed.code, 0, "{}", removed.shown());
    let gone = home.run(&["sessions", "show", id]);
    assert!(gone.code == 2 && gone.stderr.contains("there is no session"), "{}", gone.shown());
    assert!(home.run(&["sessions", "show", fork]).stdout.contains("the kettle is on"), "the fork stays");
    let list = home.run(&["sessions", "list"]);
    assert!(list.stdout.contains("another matter") && list.stdout.contains("project"), "{}", list.shown());
}

#[test]
fn the_latest_session_of_the_directory_is_continued() {
    let home = Home::new();
    let none = home.run(&["chat", "--continue", "-m", "hello"]);
    assert!(none.code == 2 && none.stderr.contains("there is no session in"), "{}", none.shown());
    chat(&home, &["the kettle is on"]);
    chat(&home, &["--continue", "-m", "and the cups?"]);
    let list = listed(&home);
    assert_eq!((list.len(), &list[0]["messages"]), (1, &4.into()));
    std::fs::create_dir(home.path().join("elsewhere")).unwrap();
    let mut other = home.command(&["chat", "--continue", "-m", "hello"]);
    let other = home.ran(other.current_dir(home.path().join("elsewhere")));
    assert_eq!(other.code, 2, "another directory has none: {}", other.shown());
    let strange = home.run(&["sessions", "list", "--user", "ben", "--json"]);
    assert_eq!(strange.json(), serde_json::json!([]), "nor has another user");
}

#[test]
fn what_is_piped_in_goes_with_the_message() {
    let home = Home::new();
    let script = home.write("script.toml", SCRIPT);
    let words = ["chat", "--script", script.to_str().unwrap(), "-m", "how many lines?"];
    let ran = home.ran(home.command(&words).write_stdin("print(6 * 7)\n"));
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stdout.contains("how many lines?") && ran.stdout.contains("print(6 * 7)"), "{}", ran.shown());
}

#[test]
fn a_second_terminal_gets_a_session_of_its_own() {
    let home = Home::new();
    let script = home.write("script.toml", SCRIPT);
    let words = ["chat", "--script", script.to_str().unwrap()];
    chat(&home, &["the kettle is on"]);
    let mut first = Terminal::run(&home, &words);
    first.wait_for("resumed: the kettle is on");
    let recap = first.wait_for("default> ");
    assert!(recap.contains("you    the kettle is on") && recap.contains("agent  Noted:"), "{recap}");
    let mut second = Terminal::run(&home, &words);
    let opening = second.wait_for("default> ");
    assert!(!opening.contains("resumed"), "{opening}");
    second.type_in("of the second\r");
    second.wait_for("Noted: of the second");
    first.type_in("of the first\r");
    first.wait_for("Noted: of the first");
    let list = listed(&home);
    assert_eq!(list.len(), 2, "{list:?}");
    assert!(list.iter().all(|view| view["open"] == true), "{list:?}");
    let id = list[0]["id"].as_str().unwrap();
    let held = home.run(&["sessions", "remove", id]);
    assert!(held.code == 2 && held.stderr.contains("open in another terminal"), "{}", held.shown());
    for mut terminal in [first, second] {
        terminal.wait_for("default> ");
        terminal.type_in("\u{4}");
        assert_eq!(terminal.ended().0, Some(0));
    }
    assert!(listed(&home).iter().all(|view| view["open"] == false));
}

#[test]
fn a_session_is_begun_anew_or_chosen_from_the_list() {
    let home = Home::new();
    let script = home.write("script.toml", SCRIPT);
    let script = script.to_str().unwrap();
    chat(&home, &["the kettle is on"]);
    let mut fresh = Terminal::run(&home, &["chat", "--new", "--script", script]);
    let opening = fresh.wait_for("default> ");
    assert!(!opening.contains("resumed"), "{opening}");
    fresh.type_in("another matter\r");
    fresh.wait_for("Noted: another matter");
    fresh.end();
    let list = listed(&home);
    assert_eq!(list.len(), 2);
    let id = list[1]["id"].as_str().unwrap();
    let mut chosen = Terminal::run(&home, &["chat", "--resume", "--script", script]);
    let table = chosen.wait_for("Session id");
    assert!(table.contains("the kettle is on") && table.contains("another matter"), "{table}");
    chosen.type_in(&format!("{id}\r"));
    chosen.wait_for("resumed: the kettle is on");
    chosen.end();
    let nobody = home.run(&["chat", "--resume", "-m", "hello"]);
    assert!(nobody.code == 2 && nobody.stderr.contains("which session?"), "{}", nobody.shown());
}
