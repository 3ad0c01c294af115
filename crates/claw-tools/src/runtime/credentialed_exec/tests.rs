use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use claw_core::port::{CommandChanges, HeldChange, Shell};
use claw_core::tool::{Ask, ErrorKind, Script};
use serde_json::Value;

use super::*;
use crate::fixture::{Fixture, failure, text};

/// A shell that records the commands it is given.
struct Keeps(Ran, Arc<Mutex<Vec<Argv>>>);

#[async_trait]
impl Shell for Keeps {
    async fn run(&self, _: &Script) -> Result<Ran, ToolError> {
        Err(ToolError::failed("it runs no scripts"))
    }
    async fn spawn(&self, argv: &Argv) -> Result<Ran, ToolError> {
        self.1.lock().unwrap().push(argv.clone());
        Ok(self.0.clone())
    }
}

async fn call(ran: Ran, args: Value) -> (Result<Output, ToolError>, Vec<Argv>) {
    let given = Arc::default();
    let mut fixture = Fixture::new();
    fixture.ports.shell = Some(Arc::new(Keeps(ran, Arc::clone(&given))));
    let result = fixture.run::<CredentialedExec>(args).await;
    let given = given.lock().unwrap().clone();
    (result, given)
}

#[tokio::test]
async fn words_and_further_arguments_are_passed_as_they_are() {
    let ran = Ran { exit: Some(0), output: "done".into(), ..Ran::default() };
    let args = json!({ "command": "gh pr create --title 'a b'", "arguments": ["--body", "x; | $(y)\n"] });
    let (result, given) = call(ran, args.clone()).await;
    assert_eq!(text(result), "done\n[exit code 0]");
    let argv = ["gh", "pr", "create", "--title", "a b", "--body", "x; | $(y)\n"].map(str::to_owned).to_vec();
    let argv = Argv { argv, directory: ".".into(), env: Vec::new(), credentials: true };
    assert_eq!(given, std::slice::from_ref(&argv));
    let args: Args = serde_json::from_value(args).unwrap();
    let plan = CredentialedExec.plan(&Facts::default(), &args);
    assert_eq!(plan.asks, [Ask::Argv(argv)], "the plan names what runs");
    assert_eq!(plan.effects, CredentialedExec::META.effects);
}

#[tokio::test]
async fn refuses_operators_and_runs_nothing() {
    for command in ["gh pr list | cat", "gh; id", "gh $(id)", " ", "gh 'x"] {
        let (result, given) = call(Ran::default(), json!({ "command": command })).await;
        assert!(failure(result, ErrorKind::Invalid).contains("`command`"), "{command}");
        assert_eq!(given, [], "{command}");
        let args: Args = serde_json::from_value(json!({ "command": command })).unwrap();
        assert_eq!(CredentialedExec.plan(&Facts::default(), &args), Plan::read());
        assert!(CredentialedExec.refusal(&args).is_some(), "{command}");
    }
}

#[tokio::test]
async fn the_end_is_always_told() {
    let ran = Ran { signal: Some(9), stopped: Some(Stopped::Time), dropped: 3, ..Ran::default() };
    let (result, _) = call(ran, json!({ "command": "gh" })).await;
    insta::assert_snapshot!(text(result), @r"
    [stopped: its registered time limit was reached]
    [ended by signal 9 (SIGKILL)]
    [3 bytes are left out of the middle]
    ");
}

#[tokio::test]
async fn changes_that_were_held_back_are_told() {
    let held =
        HeldChange { path: "copy/.git/config".into(), reason: "it can make git run programs".to_owned() };
    let changes = CommandChanges { held: vec![held], ..CommandChanges::default() };
    let ran = Ran { exit: Some(0), changes: Some(changes), ..Ran::default() };
    let (result, _) = call(ran, json!({ "command": "git clone https://example.com/a copy" })).await;
    insta::assert_snapshot!(text(result), @r"
    [exit code 0]
    [held back: copy/.git/config (it can make git run programs)]
    ");
}
