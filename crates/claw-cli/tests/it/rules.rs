//! Rules given with an approval, from one process to the next.

use serde_json::json;

use crate::approvals::Waiting;
use crate::harness::{Home, Ran};

/// Returns a home where every command without a rule needs approval.
fn strict() -> Home {
    Home::with_config("[approvals]\nsecurity = \"allowlist\"\n\n[agents.another]\n")
}

fn sh_as(home: &Home, command: &str, words: &[&str]) -> Ran {
    let args = json!({ "command": command }).to_string();
    // The user of `Waiting`, and so its session.
    let words = [&["tools", "call", "exec", "--user", "asker", &args], words].concat();
    home.run(&words)
}

fn sh(home: &Home, command: &str) -> Ran {
    sh_as(home, command, &[])
}

/// Runs a command and approves it permanently; returns the output of the approval.
#[track_caller]
fn approve(home: &Home, command: &str, words: &[&str]) -> Ran {
    let args = json!({ "command": command }).to_string();
    let call = Waiting::start(home, &["exec", &args]);
    let approved = home.run(&[&["approvals", "approve", &call.id, "--always"], words].concat());
    assert_eq!(approved.code, 0, "{}", approved.shown());
    let ended = call.end();
    assert_eq!(ended.code, 0, "{}", ended.shown());
    approved
}

#[track_caller]
fn asks(home: &Home, command: &str) {
    let ran = sh(home, command);
    assert!(ran.code == 3 && ran.stderr.contains("needs an approval"), "{command}: {}", ran.shown());
}

#[test]
fn a_yes_for_good_covers_the_same_command_and_nothing_beside_it() {
    let home = strict();
    asks(&home, "ls -l");
    assert_eq!(sh(&home, "echo free").code, 0, "what changes nothing needs no rule");
    let approved = approve(&home, "ls -l", &[]);
    assert!(
        approved.stdout.contains("remembered for agent `default` in `cli:asker`: `/usr/bin/ls -l`"),
        "{}",
        approved.shown()
    );
    assert_eq!(sh(&home, "ls -l").code, 0);
    assert_eq!(sh(&home, "ls -l && echo done").code, 0);
    for command in
        ["ls -la", "ls -l && id", "ls -l > made", "X=1 ls -l", "ls -l $(id)", "./ls -l", "bash -c 'ls -l'"]
    {
        asks(&home, command);
    }
    assert_eq!(sh(&home, "rm -rf x").code, 3);
    let rules = home.run(&["approvals", "rules", "--json"]).json();
    assert_eq!((&rules[0]["uses"], &rules[0]["state"]), (&2.into(), &"live".into()), "{rules}");

    let id = rules[0]["id"].as_str().unwrap();
    let revoked = home.run(&["approvals", "revoke", id]);
    let sandbox = "the kernel sandbox: workspace read only, no network";
    assert_eq!(revoked.stdout, format!("revoked: `/usr/bin/ls -l`; in {sandbox} ({id})\n"));
    asks(&home, "ls -l");
    assert_eq!(home.run(&["approvals", "rules"]).stdout, "no remembered rules\n");
    assert!(home.run(&["approvals", "rules", "--all"]).stdout.contains("revoked"));
    assert_eq!(home.run(&["approvals", "revoke", "0000"]).code, 2);
}

#[test]
fn a_rule_holds_for_its_scope_and_its_time() {
    let home = strict();
    approve(&home, "ls -l", &[]);
    let elsewhere = ["--session", "cli:other"];
    assert_eq!(sh_as(&home, "ls -l", &elsewhere).code, 3);
    approve(&home, "pwd -P; ls -a", &["--scope", "agent", "--expires", "7d"]);
    assert_eq!(sh_as(&home, "ls -a", &elsewhere).code, 0);
    assert_eq!(sh_as(&home, "ls -a", &["--agent", "another"]).code, 3);
    approve(&home, "ls -1", &["--scope", "tenant"]);
    assert_eq!(sh_as(&home, "ls -1", &["--agent", "another", "--session", "cli:other"]).code, 0);
    let rules = home.run(&["approvals", "rules", "--json"]).json();
    let day = 24 * 60 * 60 * 1000;
    let (created, expires) = (rules[1]["created"].as_i64().unwrap(), rules[1]["expires"].as_i64().unwrap());
    assert_eq!(expires - created, 7 * day);
    for wrong in ["0d", "7", "x", "-1h", "99999d", ""] {
        assert_eq!(
            home.run(&["approvals", "approve", "0", "--always", "--expires", wrong]).code,
            2,
            "{wrong}"
        );
    }
}

#[test]
fn what_asked_once_need_not_ask_again() {
    let home = Home::new();
    let command = "python3 -c 'import subprocess; print(7)'";
    asks(&home, command);
    approve(&home, command, &[]);
    assert_eq!(sh(&home, command).stdout, "7\n[exit code 0]\n");
    asks(&home, "python3 -c 'import subprocess; print(8)'");
    asks(&home, "PATH=/x python3 -c 'import subprocess; print(7)'");
}

#[test]
fn refuses_a_rule_for_a_program_that_could_be_swapped_before_it_runs() {
    let home = strict();
    let run = home.write("project/run", "#!/bin/sh\necho one\n");
    let mode = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    mode(&run);
    // It could be swapped at any moment, so that a yes holds once.
    let call = Waiting::start(&home, &["exec", &json!({ "command": "./run a" }).to_string()]);
    let shown = home.run(&["approvals", "show", &call.id]).stdout;
    assert!(
        shown.contains("always     not possible: the agent can change the program that it runs"),
        "{shown}"
    );
    let refused = home.run(&["approvals", "approve", &call.id, "--always"]);
    assert!(refused.code == 1 && refused.stderr.contains("no rule can be remembered"), "{}", refused.shown());
    assert_eq!(home.run(&["approvals", "approve", &call.id]).code, 0);
    assert_eq!(call.end().stdout, "one\n[exit code 0]\n");
    asks(&home, "./run a");
}

#[test]
fn a_question_shows_what_would_be_remembered() {
    let home = strict();
    let waiting =
        |command: &str| Waiting::start(&home, &["exec", &json!({ "command": command }).to_string()]);
    let call = waiting("cat src/a.txt; true");
    assert_eq!(home.run(&["approvals", "approve", &call.id]).code, 0);
    call.end();
    let call = waiting("cat src/b.txt");
    let shown = home.run(&["approvals", "show", &call.id]).stdout;
    let sandbox = "in the kernel sandbox: workspace read only, no network";
    let exact = format!("always     --width exact would cover `/usr/bin/cat src/b.txt`; {sandbox}\n");
    let paths = format!("--width paths would cover `/usr/bin/cat <any path of the workspace>`; {sandbox}\n");
    assert!(shown.contains(&exact) && shown.contains(&paths), "{shown}");
    assert!(shown.contains("it would have covered `cat src/a.txt; true`, which ran before\n"), "{shown}");
    let wrong = home.run(&["approvals", "approve", &call.id, "--always", "--width", "host"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("exact, paths"), "{}", wrong.shown());
    let wide = home.run(&["approvals", "approve", &call.id, "--always", "--width", "paths"]);
    assert_eq!(wide.code, 0, "{}", wide.shown());
    call.end();
    assert_eq!(sh(&home, "cat src/c.txt").code, 0, "any path of the workspace");
    asks(&home, "cat ../c.txt");
    asks(&home, "cat -n src/c.txt");
    let call = waiting("python3");
    let shown = home.run(&["approvals", "show", &call.id]).stdout;
    assert!(shown.contains("always     not possible: it starts an interpreter"), "{shown}");
    let refused = home.run(&["approvals", "approve", &call.id, "--always"]);
    assert!(refused.code == 1 && refused.stderr.contains("no rule can be remembered"), "{}", refused.shown());
    assert_eq!(home.run(&["approvals", "show", &call.id, "--json"]).json()["state"], "pending");
    assert_eq!(home.run(&["approvals", "deny", &call.id]).code, 0);
    call.end();
    let call = waiting("curl -H 'Authorization: Bearer abcdefgh12345678' https://example.com");
    let shown = home.run(&["approvals", "show", &call.id]).stdout;
    assert!(shown.contains("the rule would hold a secret") && !shown.contains("abcdefgh12345678"), "{shown}");
    assert_eq!(home.run(&["approvals", "deny", &call.id]).code, 0);
    call.end();
}

#[test]
fn checking_a_command_shows_the_rules_that_cover_it() {
    let home = strict();
    approve(&home, "ls -l", &[]);
    let shown = home.run(&["shell", "check", "--", "ls -l"]).stdout;
    assert!(shown.contains("covered by remembered rules") && shown.contains("`/usr/bin/ls -l`"), "{shown}");
    let json = home.run(&["shell", "check", "--json", "--", "ls -l && ls -a"]).json();
    assert_eq!(json["remembered"], json!([]));
}

#[test]
fn no_rule_is_offered_that_would_not_hold() {
    let home = Home::with_config("[approvals.effects]\nexecute = \"ask\"\n");
    let waiting = Waiting::start(&home, &["exec", r#"{"command": "ls -l"}"#]);
    let shown = home.run(&["approvals", "show", &waiting.id]);
    assert!(shown.stdout.contains("not possible: the configuration asks each time"), "{}", shown.shown());
    assert_ne!(home.run(&["approvals", "approve", &waiting.id, "--always"]).code, 0);
    assert_eq!(home.run(&["approvals", "approve", &waiting.id]).code, 0);
    assert_eq!(waiting.end().code, 0);
}
