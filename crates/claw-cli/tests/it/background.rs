//! Background commands of the real binary: they end with it, and it reports them.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::Home;
use crate::processes::{processes_with, until_none_is_left};

/// Scripts an agent that starts a background command, does something else and then answers.
fn script(home: &Home, word: &str, then: &str) -> String {
    let text = format!(
        r#"
        [[turn]]
        when.said = "was lost"
        do = [{{ say = "I heard: {{{{said}}}}" }}]

        [[turn]]
        when.result_of = "exec"
        do = [{{ say = "Started." }}]

        [[turn]]
        when.said = "start"
        do = [
            {{ call = "exec", args = {{ command = "sleep 999", background = true, env = ["MARK={word}"] }} }},
            {then}
        ]

        [[turn]]
        do = [{{ say = "You said: {{{{said}}}}" }}]
        "#
    );
    home.write("script.toml", text).to_str().unwrap().to_owned()
}

#[test]
fn chat_ends_what_runs_and_says_how_much() {
    let word = format!("chat-ends-{}", std::process::id());
    chat_ends_what_runs(&Home::new(), &word);
}

#[test]
fn chat_ends_what_runs_in_containers_too() {
    let Some(home) = crate::docker::home("") else { return };
    let word = format!("chat-ends-container-{}", std::process::id());
    chat_ends_what_runs(&home, &word);
}

fn chat_ends_what_runs(home: &Home, word: &str) {
    let script = script(home, word, "");
    let ran = home.run(&["chat", "-m", "start", "--script", &script]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stdout.contains("Started."), "{}", ran.shown());
    assert!(ran.stderr.contains("ended 1 background command\n"), "{}", ran.shown());
    assert_eq!(processes_with(word), 0);
    let undone = home.run(&["undo", "list", "--all"]);
    assert!(undone.stdout.contains("not covered"), "{}", undone.shown());
    // The agent hears of it when it is spoken to again.
    let ran = home.run(&["chat", "--continue", "-m", "hello", "--script", &script]);
    assert!(ran.stdout.contains("was killed. Command: sleep 999]"), "{}", ran.shown());
    assert!(!ran.stderr.contains("lost"), "{}", ran.shown());
}

#[test]
fn the_limits_of_the_configuration_hold() {
    let home = Home::with_config("[limits]\nbackground_commands = 1\nbackground_bytes = 1024\n");
    let script = r#"
        [[turn]]
        when.result = "which is the limit"
        do = [{ say = "{{result_of.process}} / {{result}}" }]

        [[turn]]
        when.result_matches = 'background as `(?<id>[0-9a-f]{8})`'
        do = [
            { call = "process", args = { action = "wait", id = "{{result.id}}", pattern = "1999" } },
            { call = "process", args = { action = "poll", id = "{{result.id}}", offset = 0 } },
            { call = "exec", args = { command = "touch made", background = true } }
        ]

        [[turn]]
        do = [{ call = "exec", args = { command = "seq 1000 1999; sleep 999", background = true } }]
        "#;
    let script = home.write("script.toml", script).to_str().unwrap().to_owned();
    let ran = home.run(&["chat", "-m", "start", "--script", &script]);
    assert!(ran.stdout.contains("this session has 1 command in the background"), "{}", ran.shown());
    assert!(ran.stdout.contains("[3976 bytes before this are no longer kept]"), "{}", ran.shown());
    assert!(!home.path().join("project/made").exists());
    let bad = ["background_commands = 257", "background_commands = -1", "background_bytes = 1023"];
    for bad in bad.into_iter().chain(["background_bytes = 67108865"]) {
        let home = Home::with_config(&format!("[limits]\n{bad}\n"));
        let ran = home.run(&["config", "check"]);
        assert!(ran.code == 2 && ran.stderr.contains("background_"), "{}", ran.shown());
    }
}

#[tokio::test]
async fn what_a_killed_chat_ran_is_gone_and_reported_as_lost() {
    let home = Home::new();
    let word = format!("chat-killed-{}", std::process::id());
    let script = script(&home, &word, r#"{ call = "exec", args = { command = "sleep 998" } }"#);
    let mut chat = Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"))
        .env_clear()
        .env("HOME", home.path())
        .env("USER", "tester")
        .current_dir(home.path().join("project"))
        .args(["chat", "-m", "start", "--session", "cli:own", "--script", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The second call begins when the first has its result.
    let lines = BufReader::new(chat.stderr.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line.contains("sleep 998")));
    assert!(processes_with(&word) > 0);
    // Another chat beside it takes nothing away from it.
    let beside = home.run(&["chat", "-m", "hello", "--session", "cli:other", "--script", &script]);
    assert!(beside.code == 0 && !beside.stderr.contains("lost"), "{}", beside.shown());
    assert!(processes_with(&word) > 0);
    chat.kill().unwrap();
    chat.wait().unwrap();
    until_none_is_left(&word).await;

    let next = home.run(&["chat", "-m", "hello", "--session", "cli:other", "--script", &script]);
    assert!(next.stderr.contains("also lost: 1 background command of other sessions"), "{}", next.shown());
    let again = home.run(&["chat", "-m", "hello", "--session", "cli:other", "--script", &script]);
    assert!(!again.stderr.contains("lost"), "it is reported once: {}", again.shown());
    assert!(std::fs::read_dir(home.data().join("owners")).unwrap().next().is_none());
    // Its own agent hears of it too, once the run that was cut off is over.
    let args = ["chat", "-m", "hello", "--session", "cli:own", "--script", &script];
    let own = home.ran(home.command(&args).timeout(Duration::from_secs(120)));
    assert!(own.stdout.contains("was lost: the program that ran it ended"), "{}", own.shown());
}

#[test]
fn refuses_a_command_in_the_background_of_one_call() {
    let home = Home::new();
    let ran = home.run(&["tools", "call", "exec", r#"{"command": "sleep 1", "background": true}"#]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert!(ran.stderr.contains("this program exits after the call"), "{}", ran.shown());
    let ran = home.run(&["tools", "call", "process", r#"{"action": "list"}"#]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "nothing runs in the background\n"), "{}", ran.shown());
    let ran = home.run(&["tools", "call", "exec", r#"{"command": "test -t 1 && echo yes", "pty": true}"#]);
    assert!(ran.stdout.contains("yes"), "{}", ran.shown());
}
