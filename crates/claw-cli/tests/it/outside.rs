//! Paths outside the workspace: a person is asked, and the answer holds once, for the session, or until it is revoked.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::approvals::Waiting;
use crate::harness::{Home, Ran};
use crate::terminal::Terminal;

/// A directory beside the workspace, with a file and a secret in it.
fn other(home: &Home) -> PathBuf {
    let other = home.path().canonicalize().unwrap().join("other");
    fs::create_dir_all(other.join("sub")).unwrap();
    fs::write(other.join("notes.txt"), "forty-two\n").unwrap();
    fs::write(other.join("sub/.env"), "TOKEN=plain-words\n").unwrap();
    other
}

fn call(home: &Home, tool: &str, args: &Value) -> Ran {
    home.run(&["tools", "call", tool, "--user", "tester", &args.to_string()])
}

/// Makes a call at a terminal, and answers its question.
#[track_caller]
fn answered(home: &Home, tool: &str, args: &Value, answer: &str) -> (Option<i32>, String, String) {
    let mut terminal = Terminal::run(home, &["tools", "call", tool, &args.to_string()]);
    let asked = terminal.wait_for("within 120 s: ");
    terminal.type_in(&format!("{answer}\r"));
    let (code, seen) = terminal.ended();
    (code, asked, seen)
}

#[test]
fn a_person_grants_a_directory_once_for_the_session_or_for_good() {
    let home = Home::new();
    let other = other(&home);
    let file = other.join("notes.txt");
    let read = json!({ "path": file });
    // Nobody is here: it is refused, and the person is told which setting would allow it.
    let refused = call(&home, "read_file", &read);
    assert_eq!(refused.code, 1, "{}", refused.shown());
    assert!(refused.stderr.contains("is outside the workspace"), "{}", refused.shown());
    assert!(refused.stderr.contains("to allow it: `files.read` grants a directory"), "{}", refused.shown());

    let (code, asked, seen) = answered(&home, "read_file", &read, "n");
    assert_eq!(code, Some(3), "{seen}");
    assert!(asked.contains("is outside the workspace; approving lets the call read"), "{asked}");
    let (code, _, seen) = answered(&home, "read_file", &read, "y");
    assert!(code == Some(0) && seen.contains("forty-two"), "{seen}");
    assert_eq!(call(&home, "read_file", &read).code, 1, "a yes covers one call");

    let (code, asked, seen) = answered(&home, "read_file", &read, "s");
    assert!(
        code == Some(0) && asked.contains("everything below it, except files whose names"),
        "{asked}{seen}"
    );
    assert_eq!(call(&home, "read_file", &read).code, 0, "the session has it");
    let listed = call(&home, "list_files", &json!({ "path": other, "depth": 3, "all": true }));
    assert!(listed.stdout.contains("notes.txt") && !listed.stdout.contains(".env"), "{}", listed.shown());
    let secret = call(&home, "read_file", &json!({ "path": other.join("sub/.env") }));
    assert!(secret.code == 1 && secret.stderr.contains("does not exist"), "{}", secret.shown());
    let written = call(&home, "write_file", &json!({ "path": other.join("new.txt"), "content": "x" }));
    assert!(written.code != 0 && !other.join("new.txt").exists(), "{}", written.shown());
    let elsewhere = home.run(&["tools", "call", "read_file", "--session", "cli:other", &read.to_string()]);
    assert_eq!(elsewhere.code, 1, "another session has it not: {}", elsewhere.shown());

    let rules = home.run(&["approvals", "rules", "--json"]).json();
    assert!(rules[0]["text"].as_str().unwrap().starts_with("reading `~/other`"), "{rules}");
    assert!(rules[0]["uses"].as_u64().unwrap() >= 2, "{rules}");
    let revoked = home.run(&["approvals", "revoke", rules[0]["id"].as_str().unwrap()]);
    assert_eq!(revoked.code, 0, "{}", revoked.shown());
    assert_eq!(call(&home, "read_file", &read).code, 1, "what is revoked is asked again");
}

#[test]
fn a_command_asks_for_the_paths_that_it_needs() {
    let home = Home::new();
    let other = other(&home);
    let file = other.join("notes.txt");
    let shown = file.display();
    let exec = |command: String, more: Value| {
        let mut args = json!({ "command": command });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    let plain = exec(format!("cat {shown}"), json!({}));
    let without = call(&home, "exec", &plain);
    assert!(without.stdout.contains("No such file"), "{}", without.shown());
    let waiting = Waiting::start(
        &home,
        &["exec", &exec(format!("cat {shown}"), json!({ "read_paths": [other] })).to_string()],
    );
    let question = home.run(&["approvals", "show", &waiting.id]);
    assert!(
        question.stdout.contains("--width directory would cover reading `~/other`"),
        "{}",
        question.shown()
    );
    let given = home.run(&["approvals", "approve", &waiting.id, "--always", "--scope", "agent"]);
    assert_eq!(given.code, 0, "{}", given.shown());
    let ran = waiting.end();
    assert!(ran.code == 0 && ran.stdout.contains("forty-two"), "{}", ran.shown());
    // It is remembered: for file tools, and for commands that do not ask for it.
    let again = call(&home, "exec", &plain);
    assert!(again.stdout.contains("forty-two"), "{}", again.shown());
    assert_eq!(call(&home, "read_file", &json!({ "path": file })).code, 0);
    let secret = call(&home, "exec", &exec(format!("cat {}", other.join("sub/.env").display()), json!({})));
    assert!(!secret.stdout.contains("plain-words"), "{}", secret.shown());
    let write = exec(format!("echo more >> {shown}"), json!({}));
    let ran = call(&home, "exec", &write);
    assert!(!ran.stdout.contains("[exit code 0]"), "{}", ran.shown());
    assert_eq!(fs::read_to_string(&file).unwrap(), "forty-two\n", "it may be read, not changed");
    // More than was granted is asked for.
    let (code, asked, seen) = answered(
        &home,
        "exec",
        &exec(format!("echo more >> {shown}"), json!({ "write_paths": [other] })),
        "y",
    );
    assert!(code == Some(0) && asked.contains("lets the call change"), "{asked}{seen}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "forty-two\nmore\n");
}

#[test]
fn refuses_to_ask_for_the_home_our_own_files_and_secrets() {
    let home = Home::new();
    other(&home);
    let real = home.path().canonicalize().unwrap();
    fs::create_dir_all(real.join(".ssh")).unwrap();
    fs::write(real.join(".ssh/config"), "Host x\n").unwrap();
    std::os::unix::fs::symlink(real.join(".ssh"), real.join("other/link")).unwrap();
    home.run(&["sessions", "list"]);
    for path in [
        "",
        ".ssh/config",
        ".local/share/clawsmith",
        ".config/clawsmith",
        "other/link/config",
        "other/sub/.env",
    ] {
        let args = json!({ "path": real.join(path) }).to_string();
        let ran = home.run(&["tools", "call", "--wait", "read_file", &args]);
        assert_eq!(ran.code, 1, "{path}: {}", ran.shown());
        assert!(!ran.stderr.contains("waits for approval"), "{path}: {}", ran.shown());
    }
    let denied = Home::with_config("[approvals]\noutside = \"deny\"\n");
    let args = json!({ "path": other(&denied).join("notes.txt") }).to_string();
    let ran = denied.run(&["tools", "call", "--wait", "read_file", &args]);
    assert!(ran.code == 1 && ran.stderr.contains("outside the workspace"), "{}", ran.shown());
}

#[test]
fn a_grant_with_hundreds_of_covered_names_stops_no_command() {
    let home = Home::new();
    let other = other(&home);
    for at in 0..250 {
        let directory = other.join(format!("versions/{}/lib/test/{at}", at % 7));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("id_rsa_{at}")), "-----BEGIN PRIVATE KEY-----\n").unwrap();
    }
    for access in ["read", "write"] {
        fs::create_dir_all(home.path().join(".config/clawsmith")).unwrap();
        home.write(".config/clawsmith/clawsmith.toml", format!("[files]\n{access} = [\"~/other\"]\n"));
        let command = format!("cat {0}/notes.txt; cat {0}/versions/3/lib/test/3/id_rsa_3", other.display());
        let ran = call(&home, "exec", &json!({ "command": command }));
        assert!(ran.stdout.contains("forty-two"), "{access}: {}", ran.shown());
        assert!(!ran.stdout.contains("PRIVATE KEY"), "{access}: {}", ran.shown());
    }
}

#[test]
fn a_refusal_names_the_setting_that_would_allow_it() {
    let home = Home::new();
    let delete = json!({ "command": "rm -rf build" });
    let ran = call(&home, "exec", &delete);
    let setting = "`shell.ask.\"destructive.rm-recursive\" = \"a reason\"` asks you instead";
    assert!(ran.code == 3 && ran.stderr.contains(&format!("to allow it: {setting}")), "{}", ran.shown());
    let json = home.run(&["tools", "call", "exec", "--json", &delete.to_string()]).json();
    assert_eq!(json["refusal"]["setting"], setting, "{json}");
    // And so it does.
    home.configure("[shell.ask]\n\"destructive.rm-recursive\" = \"my own machine\"\n");
    fs::create_dir_all(home.path().join("project/build/deep")).unwrap();
    let (code, asked, seen) = answered(&home, "exec", &delete, "y");
    assert!(code == Some(0) && asked.contains("destructive.rm-recursive"), "{asked}{seen}");
    assert!(!home.path().join("project/build").exists());
    let root = call(&home, "exec", &json!({ "command": "rm -rf /" }));
    assert!(root.code == 3 && root.stderr.contains("destructive.rm-root"), "{}", root.shown());

    let home = Home::with_config("[approvals.effects]\nwrite = \"deny\"\n");
    let ran = call(&home, "write_file", &json!({ "path": "a.txt", "content": "x" }));
    assert!(ran.stderr.contains("to allow it: `approvals.effects.write` = \"ask\""), "{}", ran.shown());
}
