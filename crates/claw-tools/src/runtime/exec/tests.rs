use std::sync::Mutex;

use async_trait::async_trait;
use claw_core::port::{FullPlace, MissingProgram, Shell};
use claw_core::tool::{Argv, ErrorKind};
use serde_json::Value;

use super::*;
use crate::fixture::{Fixture, failure, schema, text};

/// A shell that records the command and gives a fixed answer.
struct Answers(Ran, Mutex<Option<Script>>);

#[async_trait]
impl Shell for Answers {
    async fn run(&self, script: &Script) -> Result<Ran, ToolError> {
        *self.1.lock().unwrap() = Some(script.clone());
        Ok(self.0.clone())
    }
    async fn spawn(&self, _: &Argv) -> Result<Ran, ToolError> {
        Err(ToolError::failed("it spawns nothing"))
    }
}

async fn call(ran: Ran, args: Value) -> Result<Output, ToolError> {
    let mut fixture = Fixture::new();
    fixture.ports.shell = Some(std::sync::Arc::new(Answers(ran, Mutex::default())));
    fixture.run::<Exec>(args).await
}

#[track_caller]
fn check(ran: Ran, expected: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let args = json!({ "command": "x", "timeout_seconds": 5 });
    assert_eq!(text(runtime.block_on(call(ran, args))), expected);
}

#[test]
fn the_end_is_always_told() {
    let ran = |output: &str| Ran { exit: Some(0), output: output.into(), ..Ran::default() };
    check(ran(""), "[exit code 0]");
    check(ran("a\nb"), "a\nb\n[exit code 0]");
    check(Ran { exit: Some(3), ..ran("a\n") }, "a\n[exit code 3]");
    check(Ran { exit: None, signal: Some(9), ..ran("") }, "[ended by signal 9 (SIGKILL)]");
    check(
        Ran { exit: None, signal: Some(15), stopped: Some(Stopped::Time), ..ran("a\n") },
        "a\n[stopped: its time limit of 5 s was reached; `timeout_seconds` gives it more]\n[ended by signal 15 (SIGTERM)]",
    );
    check(
        Ran { stopped: Some(Stopped::Memory), stragglers: 2, dropped: 7, ..ran("") },
        "[stopped: it reached its memory limit]\n[exit code 0]\n[killed 2 processes that it left \
         running]\n[7 bytes are left out of the middle]",
    );
}

#[test]
fn a_full_place_is_told_with_its_size_and_its_setting() {
    let full = |path: &str, setting: Option<&str>| FullPlace {
        path: path.into(),
        bytes: 64 << 20,
        setting: setting.map(Into::into),
    };
    let full = vec![full("/tmp", Some("sandbox.docker.tmp_mib")), full("/dev/shm", None)];
    check(
        Ran { exit: Some(1), full, ..Ran::default() },
        "[exit code 1]\n[`/tmp` was full: it holds 64 MiB; delete files there, or ask a person to raise \
         `sandbox.docker.tmp_mib`]\n[`/dev/shm` was full: it holds 64 MiB; delete files there, or write to the workspace]",
    );
}

#[test]
fn a_program_that_a_grant_would_show_is_told_with_its_setting() {
    let missing = MissingProgram {
        program: "cargo".into(),
        directory: "/home/ada/.cargo/bin".into(),
        setting: "`files.read = [\"~/.cargo/bin\"]` in `clawsmith.toml`".into(),
    };
    check(
        Ran { exit: Some(127), missing: Some(missing), ..Ran::default() },
        "[exit code 127]\n[`cargo` is in `/home/ada/.cargo/bin`, which commands may not read; to allow it: \
         `files.read = [\"~/.cargo/bin\"]` in `clawsmith.toml`]",
    );
}

#[tokio::test]
async fn streams_are_apart_where_that_is_wished() {
    let ran = Ran { exit: Some(0), output: "out".into(), errors: "err\n".into(), ..Ran::default() };
    let output = call(ran, json!({ "command": "x", "split_output": true })).await.unwrap();
    assert_eq!(output.model_text(), "standard output:\nout\nstandard error:\nerr\n[exit code 0]");
    let details = output.details.unwrap();
    assert_eq!((&details["stdout"], &details["stderr"]), (&json!("out"), &json!("err\n")));
}

#[tokio::test]
async fn refuses_a_variable_without_a_value() {
    let result = call(Ran::default(), json!({ "command": "x", "env": ["A"] })).await;
    assert!(failure(result, ErrorKind::Invalid).contains("`NAME=value`"));
}

#[test]
fn the_plan_names_everything_that_decides() {
    let args: Args = serde_json::from_value(json!({
        "command": "make", "directory": "sub", "env": ["B=2=3", "A=1"], "stdin": "in", "timeout_seconds": 9,
        "network": true, "split_output": true, "pty": true, "dry_run": true,
    }))
    .unwrap();
    let plan = Exec.plan(&Facts::default(), &args);
    let script = Script {
        text: "make".into(),
        directory: "sub".into(),
        env: vec![("A".into(), "1".into()), ("B".into(), "2=3".into())],
        input: Some("in".into()),
        network: true,
        apart: true,
        timeout_secs: Some(9),
        terminal: true,
        dry_run: true,
    };
    assert_eq!(plan.asks, [claw_core::tool::Ask::Script(script)]);
    assert!(plan.effects.has(Effect::Network) && !plan.effects.has(Effect::Write));
}

#[test]
fn the_schema() {
    insta::assert_snapshot!(schema::<Exec>(), @r#"
    {
      "additionalProperties": false,
      "properties": {
        "background": {
          "default": false,
          "description": "Start the command and return at once. Use `process` to read its output, type into it and end it.",
          "type": "boolean"
        },
        "command": {
          "description": "The command, as bash reads it.",
          "minLength": 1,
          "type": "string"
        },
        "directory": {
          "default": ".",
          "description": "Directory to start in, relative to the workspace.",
          "type": "string"
        },
        "dry_run": {
          "default": false,
          "description": "Run the command, show what it changed, and discard the changes.",
          "type": "boolean"
        },
        "env": {
          "default": [],
          "description": "Variables to set, each as `NAME=value`.",
          "items": {
            "type": "string"
          },
          "type": "array"
        },
        "network": {
          "default": false,
          "description": "Allow network access. Needs a person's approval.",
          "type": "boolean"
        },
        "pty": {
          "default": false,
          "description": "Run on a terminal, for programs that need one.",
          "type": "boolean"
        },
        "read_paths": {
          "default": [],
          "description": "Paths outside the workspace that the command reads. Needs a person's approval.",
          "items": {
            "type": "string"
          },
          "type": "array"
        },
        "split_output": {
          "default": false,
          "description": "Return standard error separately, instead of both streams in order.",
          "type": "boolean"
        },
        "stdin": {
          "description": "Text for standard input; empty if left out.",
          "type": [
            "string",
            "null"
          ]
        },
        "timeout_seconds": {
          "description": "Time limit; if not given, 300 in the sandbox, 60 on the host, and none in the background.",
          "format": "uint32",
          "maximum": 3600,
          "minimum": 1,
          "type": [
            "integer",
            "null"
          ]
        },
        "write_paths": {
          "default": [],
          "description": "Paths outside the workspace that the command changes. Needs a person's approval.",
          "items": {
            "type": "string"
          },
          "type": "array"
        }
      },
      "required": [
        "command"
      ],
      "type": "object"
    }
    "#);
}

#[test]
fn a_new_directory_of_many_files_is_one_line() {
    let change = |path: &str, kind, entry| FileChange {
        path: path.into(),
        kind,
        entry,
        bytes_before: None,
        bytes_after: None,
        mode: None,
    };
    let mut changes = vec![change("src/main.rs", ChangeKind::Changed, ChangedEntry::File)];
    changes.push(change("target", ChangeKind::Created, ChangedEntry::Directory));
    changes.push(change("target/debug", ChangeKind::Created, ChangedEntry::Directory));
    for number in 0..9 {
        changes.push(change(&format!("target/debug/{number}.o"), ChangeKind::Created, ChangedEntry::File));
    }
    changes.push(change("tests", ChangeKind::Created, ChangedEntry::Directory));
    changes.push(change("tests/a.rs", ChangeKind::Created, ChangedEntry::File));
    assert_eq!(listed(&changes), ["~ src/main.rs", "+ target/ (new, 9 files)", "+ tests/a.rs"]);
    let only = [change("empty", ChangeKind::Created, ChangedEntry::Directory)];
    assert_eq!(listed(&only), ["+ empty"]);
}
