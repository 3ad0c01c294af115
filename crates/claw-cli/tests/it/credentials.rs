//! Programs with credentials: added, listed, checked, removed, and never shown.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{Home, Ran};

const TOKEN: &str = "hunter2-and-more-than-that";

/// A home with a program called `gh`.
fn home() -> Home {
    let home = Home::new();
    fs::create_dir(home.path().join("bin")).unwrap();
    let program = home.write("bin/gh", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(program, Permissions::from_mode(0o755)).unwrap();
    home
}

fn run(home: &Home, words: &[&str], input: &str) -> Ran {
    let mut command = home.command(&[&["credentials"], words].concat());
    let ran = home.ran(command.env("PATH", home.path().join("bin")).env("GH_HOST", TOKEN).write_stdin(input));
    assert!(!ran.shown().contains("hunter2"), "{}", ran.shown());
    ran
}

#[test]
fn a_known_program_is_added_checked_and_removed() {
    let home = home();
    assert_eq!(run(&home, &["list"], "").stdout, "no program of tenant `main` has credentials\n");
    let added = run(&home, &["add", "gh"], TOKEN);
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert_eq!(added.stdout, "program `gh`: `~/bin/gh` is given GH_TOKEN\n");
    let listed = run(&home, &["list", "--json"], "").json();
    assert_eq!(listed[0]["variables"][0], "GH_TOKEN");
    assert!(listed[0]["deny_args"].as_array().unwrap().len() > 3, "what is known of it came along");

    assert_eq!(run(&home, &["test", "gh", "--", "pr", "list"], "").code, 0);
    let refused = run(&home, &["test", "gh", "--", "auth", "token"], "");
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("`deny_args` matches from argument 1"), "{}", refused.stderr);

    assert_eq!(run(&home, &["remove", "gh"], "").code, 0);
    let gone = run(&home, &["test", "gh"], "");
    assert_eq!(gone.code, 2);
    assert!(gone.stderr.contains("there is no program `gh`"), "{}", gone.stderr);
}

#[test]
fn values_come_from_lines_and_from_the_environment() {
    let home = home();
    let words = ["add", "gh", "--env", "GH_TOKEN", "--env", "OTHER", "--from-env", "GH_HOST"];
    let ran = run(&home, &words, &format!("GH_TOKEN={TOKEN}\nOTHER=x=y\n"));
    assert_eq!(ran.stdout, "program `gh`: `~/bin/gh` is given GH_HOST, GH_TOKEN, OTHER\n", "{}", ran.stderr);
    let ran = run(&home, &words, &format!("GH_TOKEN={TOKEN}\n"));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("no line `OTHER=...`"), "{}", ran.stderr);
    assert_eq!(run(&home, &["add", "gh", "--from-env", "NOT_SET"], "").code, 2);
}

#[test]
fn rows_of_other_systems_are_loaded_as_they_are() {
    let home = home();
    let row = format!(
        r#"{{"binary_name": "gh", "encrypted_env": {{"GH_TOKEN": "{TOKEN}"}}, "deny_args": ["auth\\s+", "ssh-key"],
            "deny_verbose": ["--verbose", "-v"], "timeout_seconds": 30,
            "tips": "GitHub CLI. Available: gh api, gh repo, gh issue, etc."}}"#
    );
    home.run(&["agent", "add", "ada"]);
    home.write("project/one.json", &row);
    home.write("project/many.json", format!("[{row}]"));
    for file in ["one.json", "many.json"] {
        let ran = run(&home, &["add", "--file", file, "--agent", "ada"], "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let listed = run(&home, &["list", "--json"], "").json();
    assert_eq!((listed[0]["agent"].as_str(), listed[0]["timeout_secs"].as_u64()), (Some("ada"), Some(30)));
    assert_eq!(run(&home, &["test", "gh", "--agent", "ada", "--", "auth", "login"], "").code, 3);
    // The row says nothing of it; what is known of the program does, unless that is left out.
    assert_eq!(run(&home, &["test", "gh", "--agent", "ada", "--", "secret", "list"], "").code, 3);
    assert_eq!(listed[0]["tips"], "GitHub CLI. Available: gh api, gh repo, gh issue, etc.");
    assert_eq!(run(&home, &["add", "--file", "one.json", "--agent", "ada", "--bare"], "").code, 0);
    assert_eq!(run(&home, &["test", "gh", "--agent", "ada", "--", "secret", "list"], "").code, 0);

    home.write("project/bad.json", row.replace("auth\\\\s+", "("));
    let bad = run(&home, &["add", "--file", "bad.json"], "");
    assert_eq!(bad.code, 2);
    assert!(bad.stderr.contains("pattern 1 of `deny_args`"), "{}", bad.stderr);
    home.write("project/torn.json", &row[..row.len() - 20]);
    let torn = run(&home, &["add", "--file", "torn.json"], "");
    assert_eq!(torn.code, 2);
    assert!(torn.stderr.contains("line 3"), "{}", torn.stderr);
}

#[test]
fn a_program_that_others_can_change_is_refused() {
    let home = home();
    fs::set_permissions(home.path().join("bin/gh"), Permissions::from_mode(0o777)).unwrap();
    let ran = run(&home, &["add", "gh", "--binary", "../bin/gh"], TOKEN);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("can be written by others"), "{}", ran.stderr);
    assert_eq!(run(&home, &["add", "gh"], TOKEN).code, 2, "it is not taken from `$PATH` either");
    fs::set_permissions(home.path().join("bin/gh"), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(home.path().join("bin"), Permissions::from_mode(0o777)).unwrap();
    let ran = run(&home, &["add", "gh", "--binary", "../bin/gh"], TOKEN);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("`~/bin` can be written by others"), "{}", ran.stderr);
    fs::set_permissions(home.path().join("bin"), Permissions::from_mode(0o755)).unwrap();
    let ran = run(&home, &["add", "gh"], "");
    assert!(ran.code == 2 && ran.stderr.contains("--from-env"), "{}", ran.stderr);
    assert_eq!(run(&home, &["add", "unheard-of"], TOKEN).code, 2);
}
