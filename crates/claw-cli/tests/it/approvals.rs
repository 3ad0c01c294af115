//! Approvals asked in one process and answered in another.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use crate::harness::{Home, Ran};

/// Returns a home where every reading call needs approval.
fn asking() -> Home {
    Home::with_config("[approvals.effects]\nread = \"ask\"\n")
}

/// A call that waits in a process of its own.
pub(crate) struct Waiting {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    pub(crate) id: String,
}

impl Waiting {
    /// Starts it, and reads the id of its approval from its output.
    pub(crate) fn start(home: &Home, words: &[&str]) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"))
            .env_clear()
            .env("HOME", home.path())
            .env("USER", "asker")
            .current_dir(home.path().join("project"))
            .args(["tools", "call", "--wait"])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let id = line.split("waits for approval `").nth(1).and_then(|rest| rest.split('`').next());
        let id = id.unwrap_or_else(|| panic!("it did not wait: {line}")).to_owned();
        Self { child, stderr, id }
    }

    pub(crate) fn end(mut self) -> Ran {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        Ran { code: self.child.wait().unwrap().code().unwrap_or(-1), stdout, stderr }
    }

    /// Kills it as `kill -9` does.
    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.id
    }
}

#[test]
fn another_process_approves_and_the_call_runs() {
    let home = asking();
    let call = Waiting::start(&home, &["workspace_dir"]);
    let list = home.run(&["approvals", "list", "--json"]).json();
    assert_eq!((&list[0]["id"], &list[0]["tool"]), (&call.id.clone().into(), &"workspace_dir".into()));
    assert!(home.run(&["approvals", "list"]).stdout.contains(&call.id));
    let shown = home.run(&["approvals", "show", &call.id]);
    assert!(shown.stdout.contains("for asker, in cli:asker"), "{}", shown.shown());

    let approved = home.run(&["approvals", "approve", &call.id]);
    let told = format!("approved: `workspace_dir` ({})\n  ", call.id);
    assert!(approved.stdout.starts_with(&told), "{}", approved.shown());
    let id = call.id.clone();
    let ended = call.end();
    assert_eq!(ended.code, 0, "{}", ended.shown());
    assert!(ended.stdout.contains("project"), "{}", ended.shown());

    assert_eq!(home.run(&["approvals", "list"]).stdout, "No approvals pending.\n");
    let shown = home.run(&["approvals", "show", &id, "--json"]).json();
    assert_eq!((&shown["state"], &shown["answered_by"]), (&"used".into(), &"tester".into()));
    let again = home.run(&["approvals", "deny", &id]);
    assert_eq!(again.code, 1, "{}", again.shown());
    assert!(again.stderr.contains("is already used; an answer is final"), "{}", again.stderr);
    assert_eq!(home.run(&["ledger", "verify"]).code, 0);
}

#[test]
fn another_process_denies_and_the_call_is_refused() {
    let home = asking();
    let call = Waiting::start(&home, &["workspace_dir"]);
    let denied = home.run(&["approvals", "deny", &call.id, "--json"]).json();
    assert_eq!((&denied["id"], &denied["state"]), (&call.id.clone().into(), &"denied".into()));
    let ended = call.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{}", ended.shown());
    let entries = home.run(&["ledger", "show", "--json"]).json();
    assert_eq!(entries.as_array().unwrap().len(), 1, "{entries}");
    assert_eq!(entries[0]["event"], "refused");
}

#[test]
fn a_question_outlives_the_process_that_asked_and_covers_no_other_call() {
    let home = asking();
    let id = Waiting::start(&home, &["workspace_dir"]).kill();
    assert_eq!(home.run(&["approvals", "list", "--json"]).json()[0]["id"], *id);
    assert_eq!(home.run(&["approvals", "approve", &id]).code, 0);
    // The same call made again is another call: the yes was for the one that is gone.
    let again = Waiting::start(&home, &["workspace_dir"]);
    assert_ne!(again.id, id);
    assert_eq!(home.run(&["approvals", "deny", &again.id]).code, 0);
    assert_eq!(again.end().code, 3);
    assert_eq!(home.run(&["approvals", "show", &id, "--json"]).json()["state"], "approved");
}

#[test]
fn the_beginning_of_an_id_is_enough_where_it_is_clear() {
    let home = asking();
    let (one, other) = (
        Waiting::start(&home, &["workspace_dir"]),
        Waiting::start(&home, &["workspace_dir", "--session", "cli:other"]),
    );
    // Both were made in the same minute, so their first digits agree.
    let common = one.id.bytes().zip(other.id.bytes()).take_while(|(a, b)| a == b).count();
    let unclear = home.run(&["approvals", "deny", &one.id[..common]]);
    assert_eq!(unclear.code, 2, "{}", unclear.shown());
    assert!(unclear.stderr.contains("matches 2 approvals"), "{}", unclear.stderr);
    for (unknown, code) in [("zzz", 2), ("", 2), ("019b7611-3c00-7b4e-9b0a-52a4c3f1d7e8", 2)] {
        assert_eq!(home.run(&["approvals", "approve", unknown]).code, code, "{unknown:?}");
    }
    assert_eq!(home.run(&["approvals", "list", "--json"]).json().as_array().unwrap().len(), 2);
    let shown = home.run(&["approvals", "show", &one.id[..=common]]);
    assert!(shown.code == 0 && shown.stdout.contains(&one.id), "{}", shown.shown());
    assert_eq!(home.run(&["approvals", "approve", &one.id[..13]]).code, 0);
    assert_eq!(one.end().code, 0);
    assert_eq!(home.run(&["approvals", "deny", &other.id.to_uppercase()]).code, 0);
    assert_eq!(other.end().code, 3);
}

/// The first eight characters are shared by all approvals of about a minute.
#[test]
fn a_yes_needs_enough_of_an_id_to_be_for_the_question_that_was_seen() {
    let home = asking();
    let call = Waiting::start(&home, &["workspace_dir"]);
    for short in [&call.id[..1], &call.id[..8], &call.id[..12]] {
        for more in [&[][..], &["--always"]] {
            let refused = home.run(&[&["approvals", "approve", short], more].concat());
            assert_eq!(refused.code, 2, "{}", refused.shown());
            for told in ["at least 13 characters", &call.id, "`workspace_dir`"] {
                assert!(refused.stderr.contains(told), "{told}: {}", refused.shown());
            }
        }
    }
    assert_eq!(home.run(&["approvals", "list", "--json"]).json()[0]["state"], "pending");
    assert_eq!(home.run(&["approvals", "deny", &call.id[..8]]).code, 0);
    assert_eq!(call.end().code, 3);
}

#[test]
fn a_command_that_needs_no_rule_is_covered_by_none() {
    let home = Home::with_config("[approvals]\nsecurity = \"allowlist\"\n");
    assert_eq!(home.run(&["tools", "call", "exec", r#"{"command": "echo hello"}"#]).code, 0);
    let call = Waiting::start(&home, &["exec", r#"{"command": "touch made"}"#]);
    let shown = home.run(&["approvals", "show", &call.id]);
    assert!(shown.stdout.contains("covered none of the commands that ran before"), "{}", shown.shown());
    assert_eq!(home.run(&["approvals", "deny", &call.id]).code, 0);
    assert_eq!(call.end().code, 3);
}

#[test]
fn says_what_was_approved() {
    let home = Home::with_config("[approvals]\nask = \"always\"\n");
    let call = Waiting::start(&home, &["exec", r#"{"command": "echo hello there"}"#]);
    let approved = home.run(&["approvals", "approve", &call.id]);
    let told = format!("approved: `exec` ({})\n  run in .: echo hello there", call.id);
    assert!(approved.stdout.starts_with(&told), "{}", approved.shown());
    assert_eq!(call.end().code, 0);
}

#[test]
fn another_tenant_sees_and_answers_nothing() {
    let home = asking();
    let call = Waiting::start(&home, &["workspace_dir"]);
    let acme = [("CLAWSMITH_TENANT", "acme")];
    assert_eq!(home.run_with(&acme, &["approvals", "list"]).stdout, "No approvals pending.\n");
    for words in [["approvals", "show", &call.id], ["approvals", "approve", &call.id]] {
        assert_eq!(home.run_with(&acme, &words).code, 2, "{words:?}");
    }
    assert_eq!(home.run(&["approvals", "deny", &call.id]).code, 0);
    assert_eq!(call.end().code, 3);
}

#[test]
fn a_secret_that_became_known_later_is_not_shown() {
    // Tools are left out to save tokens, so that there is something to search.
    let home = Home::with_config("[approvals.effects]\nread = \"ask\"\n\n[limits]\ntool_tokens = 1\n");
    let args = r#"{"query": "v-e-r-y-secret"}"#;
    let call = Waiting::start(&home, &["tool_search", "--args", args]);
    home.configure("[approvals.effects]\nread = \"ask\"\n\n[scrub]\nvalues_from_env = [\"SERVICE_KEY\"]\n");
    let variables = [("SERVICE_KEY", "v-e-r-y-secret")];
    for words in [
        &["approvals", "list"][..],
        &["approvals", "list", "--json"],
        &["approvals", "show", &call.id],
        &["approvals", "show", &call.id, "--json"],
    ] {
        let ran = home.run_with(&variables, words);
        assert!(ran.stdout.contains("[REDACTED]") && !ran.stdout.contains("v-e-r-y"), "{}", ran.shown());
    }
    assert_eq!(home.run(&["approvals", "deny", &call.id]).code, 0);
    call.end();
}

#[test]
fn without_a_store_nothing_waits_and_none_is_made() {
    let home = Home::new();
    assert_eq!(home.run(&["approvals", "list"]).stdout, "No approvals pending.\n");
    assert_eq!(home.run(&["approvals", "approve", "019b"]).code, 2);
    assert!(!home.data().exists());
}

#[test]
fn a_reason_of_a_no_reaches_the_model_and_a_watcher_answers() {
    let home = Home::with_config("[approvals.effects]\nwrite = \"ask\"\n");
    let script = home.write(
        "script.toml",
        "[[turn]]\nwhen.result_of = \"write_file\"\ndo = [{ say = \"The tool said: {{result}}\" }]\n\n\
         [[turn]]\ndo = [{ call = \"write_file\", args = { path = \"a.txt\", content = \"x\" } }]\n",
    );
    let chat = || {
        Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"))
            .env_clear()
            .env("HOME", home.path())
            .env("USER", "tester")
            .current_dir(home.path().join("project"))
            .args(["chat", "-m", "go", "--wait", "--script", script.to_str().unwrap()])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let said =
        |chat: std::process::Child| String::from_utf8(chat.wait_with_output().unwrap().stdout).unwrap();
    let first = chat();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let id = loop {
        let waiting = home.run(&["approvals", "list", "--json"]).json();
        if let Some(id) = waiting[0]["id"].as_str() {
            break id.to_owned();
        }
        assert!(std::time::Instant::now() < until, "no question came");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let denied = home.run(&["approvals", "deny", &id, "--reason", "not on the main branch"]);
    assert_eq!(denied.code, 0, "{}", denied.shown());
    let said_first = said(first);
    assert!(said_first.contains("tester denied this call: not on the main branch"), "{said_first}");
    let shown = home.run(&["approvals", "show", &id]);
    assert!(shown.stdout.contains("not on the main branch"), "{}", shown.shown());

    let mut watcher = crate::terminal::Terminal::run(&home, &["approvals", "watch"]);
    watcher.wait_for("Waiting for approvals");
    let second = chat();
    watcher.wait_for("`write_file` needs your approval");
    watcher.wait_for("no and why");
    watcher.type_in("y\r");
    let said_second = said(second);
    assert!(said_second.contains("created `a.txt`"), "{said_second}");
    watcher.type_in("\u{3}");
    assert_eq!(watcher.ended().0, Some(0));
}
