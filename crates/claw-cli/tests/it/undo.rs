//! Changes are recorded and undone: in examples, and as a property.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use claw_core::port::{
    Change, Contents, Expect, FilePlace, FsBridge as _, Scope, UndoJournal as _, UnixMillis, World,
};
use claw_core::store::{EntryEvent, Ledger as _, NewUndo, Record, Undo, UndoFilter, UndoIndex as _};
use claw_core::tool::{Caller, Digest, Effect, ErrorKind};
use claw_core::{AgentId, CallId, JobId, NodeId, SessionKey, TenantId, ToolName, UndoId};
use claw_host::SystemClock;
use claw_host::files::{LocalFiles, Restoring, StoredUndo, UndoLimits, Verdict};
use claw_store::{Backend as _, SqliteStore};
use claw_testkit::ManualClock;
use clawsmith::{Request, Toolbox};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Home, Ran};

fn call(home: &Home, tool: &str, args: Value) -> Ran {
    let ran = home.run(&["tools", "call", tool, "--args", &args.to_string()]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    ran
}

fn listed(home: &Home) -> Vec<Value> {
    let ran = home.run(&["undo", "list", "--json"]);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn all_changes_of_a_session_are_shown_and_undone() {
    let home = Home::new();
    let in_session = |key: &str, command: &str| {
        let args = json!({ "command": command }).to_string();
        let ran = home.run(&["tools", "call", "--session", key, "exec", &args]);
        assert_eq!(ran.code, 0, "{}", ran.shown());
    };
    let project = |name: &str| home.path().join("project").join(name);
    in_session("cli:one", "echo 1 > one");
    in_session("cli:two", "echo 2 > two");
    in_session("cli:one", "echo 3 > three");
    let shown = home.run(&["undo", "show", "--session", "cli:one"]);
    assert!(shown.stdout.contains("+1") && shown.stdout.contains("+3"), "{}", shown.shown());
    assert!(!shown.stdout.contains("+2"), "{}", shown.shown());
    let last = home.run(&["undo", "apply", "--session", "cli:one", "--last"]);
    assert!(last.code == 0 && !project("three").exists() && project("one").exists(), "{}", last.shown());
    let all = home.run(&["undo", "apply", "--session", "cli:one"]);
    assert!(all.code == 0 && !project("one").exists() && project("two").exists(), "{}", all.shown());
    let none = home.run(&["undo", "apply", "--session", "cli:one"]);
    assert!(none.code != 0 && none.stderr.contains("session `cli:one` has no change"), "{}", none.shown());
}

#[test]
fn a_change_is_listed_shown_and_undone_and_that_too() {
    let home = Home::new();
    let file = home.write("project/a.txt", "one\ntwo");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    call(&home, "edit", json!({ "path": "a.txt", "old_string": "two", "new_string": "2" }));
    call(&home, "write_file", json!({ "path": "new.txt", "content": "x" }));
    let rows = listed(&home);
    let (new, edit) = (&rows[0], &rows[1]);
    assert_eq!(
        (&new["change"], &new["state"], &new["tool"]),
        (&json!("created"), &json!("in place"), &json!("write_file"))
    );
    let shown = home.run(&["undo", "show", edit["id"].as_str().unwrap()]);
    assert!(shown.stdout.contains("-two") && shown.stdout.contains("+2"), "{}", shown.shown());

    let undone = home.run(&["undo", "apply", "--last"]);
    assert!(undone.code == 0 && undone.stdout.starts_with("removed `new.txt`"), "{}", undone.shown());
    assert!(!home.path().join("project/new.txt").exists());
    // By the call's id, as well as by the change's.
    assert_eq!(home.run(&["undo", "apply", edit["call"].as_str().unwrap()]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\ntwo");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    let again = home.run(&["undo", "apply", "--last"]);
    assert!(again.code == 1 && again.stderr.contains("no change is left to undo"), "{}", again.shown());

    let undoing = listed(&home).into_iter().next().unwrap();
    assert_eq!((&undoing["tool"], &undoing["change"]), (&json!("undo"), &json!("undo")));
    assert!(home.run(&["undo", "list"]).stdout.contains("undo"));
    assert_eq!(home.run(&["undo", "apply", undoing["id"].as_str().unwrap()]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n2");
    let ledger = home.run(&["ledger", "show"]);
    assert!(ledger.stdout.contains("undo"), "{}", ledger.shown());
    assert_eq!(home.run(&["ledger", "verify"]).code, 0);
}

#[test]
fn what_somebody_else_changed_stays_unless_forced() {
    let home = Home::new();
    let file = home.write("project/a.txt", "before\n");
    call(&home, "edit", json!({ "path": "a.txt", "old_string": "before", "new_string": "after" }));
    fs::write(&file, "theirs\n").unwrap();
    assert_eq!(listed(&home)[0]["state"], "changed since");
    let ran = home.run(&["undo", "apply", "--last"]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    for says in ["-before\n+after\n", "-after\n+theirs\n"] {
        assert!(ran.stdout.contains(says), "{}", ran.shown());
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "theirs\n");
    assert_eq!(home.run(&["undo", "apply", "--last", "--force"]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "before\n");
    let undoing = listed(&home)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(home.run(&["undo", "apply", &undoing]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "theirs\n", "what was overwritten is kept");
}

#[test]
fn what_is_shown_is_scrubbed_and_what_is_put_back_is_not() {
    let home = Home::new();
    let text = "a = 1\npassword = \"hunter2-but-longer\"\n";
    let file = home.write("project/a.txt", text);
    call(&home, "edit", json!({ "path": "a.txt", "old_string": "a = 1", "new_string": "a = 2" }));
    for words in [&["undo", "show", "--last"][..], &["undo", "show", "--last", "--json"]] {
        let ran = home.run(words);
        assert!(ran.stdout.contains("[REDACTED]") && !ran.stdout.contains("hunter2"), "{}", ran.shown());
    }
    assert_eq!(home.run(&["undo", "apply", "--last"]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn the_last_change_is_one_of_this_workspace() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("other")).unwrap();
    let file = home.path().join("project/precious.txt");
    assert_eq!(call(&home, "write_file", json!({ "path": "precious.txt", "content": "a" })).code, 0);
    let elsewhere =
        home.ran(home.command(&["undo", "apply", "--last"]).current_dir(home.path().join("other")));
    assert_eq!(elsewhere.code, 1, "{}", elsewhere.shown());
    assert!(file.exists(), "what was done in another directory stays");
    assert_eq!(home.run(&["undo", "apply", "--last"]).code, 0);
    assert!(!file.exists());
}

#[test]
fn the_last_change_is_one_that_can_be_undone() {
    let home = Home::new();
    let file = home.write("project/a.txt", "one\n");
    call(&home, "edit", json!({ "path": "a.txt", "old_string": "one", "new_string": "two" }));
    for n in 0..7 {
        call(&home, "write_file", json!({ "path": format!("tmp{n}"), "content": "x" }));
        fs::remove_file(home.path().join(format!("project/tmp{n}"))).unwrap();
    }
    let shown = home.run(&["undo", "show", "--last"]);
    assert!(shown.code == 0 && shown.stdout.contains("-one\n+two\n"), "{}", shown.shown());
    let undone = home.run(&["undo", "apply", "--last"]);
    assert!(undone.code == 0 && undone.stdout.starts_with("put back `a.txt`"), "{}", undone.shown());
    for told in ["skipped `tmp6` (", "skipped `tmp2` (", "skipped 2 more"] {
        assert!(undone.stderr.contains(told), "{}", undone.shown());
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
    let none = home.run(&["undo", "apply", "--last"]);
    assert!(none.code == 1 && none.stderr.contains("no change is left to undo here"), "{}", none.shown());
}

#[test]
fn the_last_change_of_a_workspace_that_clawsmith_made_is_none_of_another_directory() {
    let home = Home::new();
    let args = json!({ "path": "notes", "content": "x" }).to_string();
    assert_eq!(home.run(&["tools", "call", "write_file", "--managed", "--args", &args]).code, 0);
    let made = home.data().join("workspaces/main/default/user-tester");
    let elsewhere = home.run(&["undo", "apply", "--last"]);
    assert_eq!(elsewhere.code, 1, "{}", elsewhere.shown());
    assert!(made.join("notes").exists());
    let row = listed(&home).remove(0);
    let (workspace, id) = (row["workspace"].as_str().unwrap(), row["call"].as_str().unwrap());
    assert!(workspace.ends_with("/user-tester"), "{workspace}");
    for told in ["`notes` in `~", "/user-tester`", &format!("clawsmith undo apply {id}")] {
        assert!(elsewhere.stderr.contains(told), "{told}: {}", elsewhere.shown());
    }
    let within = home.ran(home.command(&["undo", "apply", "--last"]).current_dir(&made));
    assert_eq!(within.code, 0, "{}", within.shown());
    assert!(!made.join("notes").exists());
    assert_eq!(home.run(&["tools", "call", "write_file", "--managed", "--args", &args]).code, 0);
    let id = listed(&home)[0]["call"].as_str().unwrap().to_owned();
    assert_eq!(home.run(&["undo", "apply", &id]).code, 0);
    assert!(!made.join("notes").exists());
}

/// A chat undoes the changes of its session, whichever directory it was started in.
#[test]
fn a_conversation_undoes_its_own_changes_and_passes_over_what_is_gone() {
    let home = Home::new();
    let args = json!({ "path": "kept", "content": "x" }).to_string();
    let of_chat = ["--session", "cli:talk"];
    let managed = ["tools", "call", "write_file", "--managed", "--args", &args];
    assert_eq!(home.run(&[&managed[..], &of_chat].concat()).code, 0);
    let args = json!({ "path": "gone", "content": "x" }).to_string();
    let here = ["tools", "call", "write_file", "--args", &args];
    assert_eq!(home.run(&[&here[..], &of_chat].concat()).code, 0);
    fs::remove_file(home.path().join("project/gone")).unwrap();
    let undone = home.run(&[&["chat", "-m", "/undo"], &of_chat[..]].concat());
    assert!(undone.code == 0 && undone.stdout.contains("removed `kept`"), "{}", undone.shown());
    assert!(undone.stderr.contains("skipped `gone`"), "{}", undone.shown());
}

#[test]
fn commands_that_only_read_are_no_changes() {
    let home = Home::new();
    call(&home, "exec", json!({ "command": "ls -l" }));
    call(&home, "exec", json!({ "command": "touch made" }));
    let list = home.run(&["undo", "list"]).stdout;
    assert!(list.contains("touch made") && !list.contains("ls -l"), "{list}");
    let all = home.run(&["undo", "list", "--all"]).stdout;
    assert!(all.contains("touch made") && all.contains("ls -l"), "{all}");
}

#[test]
fn a_command_that_changed_nothing_is_not_called_one_that_cannot_be_undone() {
    let home = Home::new();
    // Its text says that it may write, and it does not.
    call(&home, "exec", json!({ "command": "sh -c 'true; exit 3'" }));
    call(&home, "exec", json!({ "command": "touch made", "dry_run": true }));
    let ran = home.run(&["undo", "list"]);
    assert!(!ran.shown().contains("not covered"), "{}", ran.shown());
    assert_eq!(ran.stdout, "no changes of files are recorded\n", "{}", ran.shown());
    let ledger = home.run(&["ledger", "show"]).stdout;
    assert!(!ledger.contains("0 changes"), "{ledger}");
    // A command that could write to a place without a layer may have changed it.
    std::fs::create_dir(home.path().join("shared")).unwrap();
    let shared = home.path().join("shared").display().to_string();
    home.configure(&format!("[files]\nwrite = [\"{shared}\"]\n"));
    call(&home, "exec", json!({ "command": format!("echo x > {shared}/x") }));
    let ran = home.run(&["undo", "list"]);
    assert!(ran.stdout.contains("not covered") && ran.stderr.contains("cannot be undone"), "{}", ran.shown());
}

#[test]
fn changes_of_another_workspace_are_listed_with_it_and_without_secrets_or_escapes() {
    let home = Home::new();
    let secret = "hunter2-and-more";
    let workspace = home.path().join(format!("of-{secret}\u{1b}[2J"));
    std::fs::create_dir(&workspace).unwrap();
    let set = home.ran(home.command(&["secrets", "set", "KEY"]).write_stdin(secret));
    assert_eq!(set.code, 0, "{}", set.shown());
    let in_workspace = |tool: &str, args: Value| {
        let args = args.to_string();
        let words = ["tools", "call", tool, "--args", &args];
        let ran = home.ran(home.command(&words).current_dir(&workspace));
        assert_eq!(ran.code, 0, "{}", ran.shown());
    };
    in_workspace("exec", json!({ "command": "echo x > made" }));
    in_workspace("write_file", json!({ "path": "b.txt", "content": "x" }));
    for words in [&["undo", "list"][..], &["undo", "list", "--wide"], &["undo", "list", "--json"]] {
        let ran = home.run(words);
        assert!(!ran.stdout.contains(secret) && !ran.stdout.contains('\u{1b}'), "{}", ran.shown());
        assert!(ran.stdout.contains("/of-[REDACTED]"), "{}", ran.shown());
    }
    let list = home.run(&["undo", "list"]).stdout;
    let line = |text: &str| list.lines().find(|line| line.contains(text)).unwrap_or_default().to_owned();
    let of_command = line("echo x > made");
    assert!(of_command.contains(" in ") && of_command.contains("/of-[REDACTED]"), "{list}");
    assert!(line("b.txt").contains("/of-[REDACTED]"), "{list}");
    // In the workspace itself it goes without saying.
    let inside = home.ran(home.command(&["undo", "list"]).current_dir(&workspace)).stdout;
    assert!(inside.contains("echo x > made (1 file") && !inside.contains("/of-"), "{inside}");
    let last = home.run(&["undo", "apply", "--last"]);
    assert!(last.code == 1 && last.stderr.contains("of-[REDACTED]"), "{}", last.shown());
    assert!(!last.stderr.contains(secret), "{}", last.shown());
}

#[test]
fn a_secret_in_the_name_of_a_file_or_in_a_command_is_not_listed() {
    let home = Home::new();
    let secret = "hunter2-and-more";
    call(&home, "write_file", json!({ "path": format!("notes-{secret}.txt"), "content": "x" }));
    call(&home, "exec", json!({ "command": format!("echo {secret} > made") }));
    // It was none when the changes were made.
    let before = home.run(&["undo", "list", "--wide"]).stdout;
    assert!(before.contains(&format!("notes-{secret}.txt")), "{before}");
    let set = home.ran(home.command(&["secrets", "set", "KEY"]).write_stdin(secret));
    assert_eq!(set.code, 0, "{}", set.shown());
    for words in [&["undo", "list"][..], &["undo", "list", "--wide"], &["undo", "list", "--json"]] {
        let ran = home.run(words);
        assert!(!ran.shown().contains(secret), "{}", ran.shown());
        assert!(ran.stdout.contains("notes-[REDACTED].txt"), "{}", ran.shown());
    }
    let list = home.run(&["undo", "list", "--wide"]).stdout;
    assert!(list.contains("echo [REDACTED] > made"), "{list}");
}

#[test]
fn what_is_not_there_is_said() {
    let home = Home::new();
    let ran = home.run(&["undo", "list"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "no changes are recorded yet\n"), "{}", ran.shown());
    call(&home, "write_file", json!({ "path": "a", "content": "x" }));
    let ran = home.run(&["undo", "apply"]);
    assert!(ran.code == 2 && ran.stderr.contains("`--last`"), "{}", ran.shown());
    for id in ["nonsense", "019b7611-3c00-7b4e-9b0a-52a4c3f1d7e8"] {
        let ran = home.run(&["undo", "apply", id]);
        assert!(ran.code == 2 && ran.stderr.contains("there is no saved change"), "{}", ran.shown());
    }
    // The program was killed between the journal and the change.
    fs::remove_file(home.path().join("project/a")).unwrap();
    assert_eq!(listed(&home)[0]["state"], "already reverted");
    let ran = home.run(&["undo", "apply", "--last"]);
    assert!(ran.code == 1 && ran.stderr.contains("no change is left to undo"), "{}", ran.shown());
    assert_eq!(home.run(&["undo", "show"]).code, 2);
}

/// Files in a directory, and the journal of their changes.
struct Desk {
    place: TempDir,
    store: Arc<SqliteStore>,
    journal: Arc<StoredUndo>,
    files: LocalFiles,
    caller: Caller,
}

impl Desk {
    async fn new(limits: UndoLimits) -> Self {
        let place = TempDir::new().unwrap();
        let root = place.path().join("w");
        fs::create_dir(&root).unwrap();
        let store = Arc::new(SqliteStore::memory(NodeId::local()).await.unwrap());
        let clock = Arc::new(SystemClock);
        let journal = StoredUndo::new(Arc::clone(&store) as _, place.path().join("data"), clock, limits);
        let caller = Caller::new(AgentId::new("main").unwrap(), SessionKey::new("cli:me").unwrap(), root);
        Self { place, store, journal: Arc::new(journal), files: LocalFiles::new(), caller }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.caller.workspace.join(name)
    }

    /// Changes a file as the guard does.
    async fn change(&self, call: CallId, name: &str, bytes: Option<&[u8]>) {
        let scope = Scope::workspace(&self.caller.workspace);
        let any = FilePlace {
            caller: &self.caller,
            directory: &self.caller.workspace,
            scope: &scope,
            expect: Expect::Anything,
        };
        let now = match self.files.stat(&any, name).await.unwrap() {
            Some(_) => Some(self.files.read(&any, name).await.unwrap()),
            None => None,
        };
        let mode = now.as_ref().and_then(|(_, stat)| stat.mode);
        let path = self.path(name);
        let change = Change {
            caller: &self.caller,
            call,
            run: None,
            tool: &ToolName::literal("write_file"),
            place: path.to_str().unwrap(),
            sandbox: None,
            shown: name,
            before: now.as_ref().map(|(bytes, _)| Contents { bytes, mode }),
            after: bytes.map(|bytes| Contents { bytes, mode }),
        };
        self.journal.record(&change).await.unwrap();
        match bytes {
            Some(bytes) => drop(self.files.write(&any, name, bytes).await.unwrap()),
            None if now.is_some() => self.files.remove(&any, name).await.unwrap(),
            None => {}
        }
    }

    async fn changes(&self, filter: &UndoFilter) -> Vec<Undo> {
        self.store.undos(&TenantId::main(), filter, 1000).await.unwrap()
    }

    async fn undo(&self, changes: Vec<Undo>, force: bool) -> Result<usize, claw_core::tool::ToolError> {
        let scope = |caller: &Caller| Scope::workspace(&caller.workspace);
        let restoring = Restoring { journal: &self.journal, bridge: &self.files, scope: &scope };
        let steps = restoring.look(changes).await?;
        Ok(restoring.restore(CallId::new(), steps, force).await?.len())
    }
}

/// Returns the entries of a directory: names, bytes and permissions.
fn held(directory: &Path) -> Vec<(String, Vec<u8>, u32)> {
    let mut held: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap(), mode)
        })
        .collect();
    held.sort();
    held
}

fn limits() -> UndoLimits {
    UndoLimits::default()
}

fn runner(cases: u32) -> TestRunner {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..200), "([a-z]{0,5}(\r\n|\n)){0,8}[a-z]{0,5}".prop_map(String::into_bytes),]
}

#[test]
fn any_changes_then_undo_is_the_identity() {
    let runtime = runtime();
    let modes = prop_oneof![Just(0o644), Just(0o600), Just(0o755), Just(0o640), Just(0o400)];
    let files = vec(option::of((content(), modes)), 3);
    let changes = vec((0..3_usize, option::of(content())), 1..8);
    let law = (files, changes, any::<bool>());
    runner(48)
        .run(&law, |(files, changes, one_call)| {
            runtime.block_on(async {
                let desk = Desk::new(limits()).await;
                for (name, file) in files.iter().enumerate() {
                    let Some((bytes, mode)) = file else { continue };
                    let path = desk.path(&name.to_string());
                    fs::write(&path, bytes).unwrap();
                    fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
                }
                let before = held(&desk.caller.workspace);
                let call = CallId::new();
                for (name, bytes) in &changes {
                    let call = if one_call { call } else { CallId::new() };
                    desk.change(call, &name.to_string(), bytes.as_deref()).await;
                }
                let all = desk.changes(&UndoFilter::default()).await;
                if one_call {
                    desk.undo(all, false).await.unwrap();
                } else {
                    for change in all {
                        desk.undo(vec![change], false).await.unwrap();
                    }
                }
                prop_assert_eq!(before, held(&desk.caller.workspace));
                Ok(())
            })
        })
        .unwrap();
}

#[test]
fn edit_then_undo_is_the_identity() {
    let runtime = runtime();
    let text = "(\u{feff})?([a-zä]{0,5}(\r\n|\n)){0,6}KEY([a-z]{0,5}(\r\n|\n)){0,3}[a-z]{0,5}";
    runner(24)
        .run(
            &(text, "[a-zü\n]{0,20}", prop_oneof![Just(0o644), Just(0o600), Just(0o755)]),
            |(text, new, mode)| {
                runtime.block_on(async {
                    let desk = Desk::new(limits()).await;
                    fs::write(desk.path("a"), &text).unwrap();
                    fs::set_permissions(desk.path("a"), fs::Permissions::from_mode(mode)).unwrap();
                    let before = held(&desk.caller.workspace);
                    let mut world = World::new(Arc::new(SystemClock));
                    world.bridge = Some(Arc::new(desk.files.clone()));
                    world.undo = Some(Arc::clone(&desk.journal) as _);
                    let toolbox = Toolbox::builder().world(world).build().unwrap();
                    let offer = toolbox.offer(desk.caller.clone()).await;
                    let args = json!({ "path": "a", "old_string": "KEY", "new_string": new });
                    let reply = toolbox.execute(&offer, Request::new("edit", args)).await;
                    prop_assert!(reply.outcome.is_ok(), "{}", reply.model_text());
                    prop_assert_ne!(&before, &held(&desk.caller.workspace));
                    desk.undo(desk.changes(&UndoFilter::default()).await, false).await.unwrap();
                    prop_assert_eq!(before, held(&desk.caller.workspace));
                    Ok(())
                })
            },
        )
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_one_call_all_is_undone_or_nothing() {
    let desk = Desk::new(limits()).await;
    fs::write(desk.path("a"), "a").unwrap();
    let call = CallId::new();
    desk.change(call, "a", Some(b"A")).await;
    desk.change(call, "b", Some(b"B")).await;
    fs::write(desk.path("b"), "theirs").unwrap();
    let all = desk.changes(&UndoFilter::default()).await;
    let before = held(&desk.caller.workspace);
    assert_eq!(desk.undo(all.clone(), false).await.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(held(&desk.caller.workspace), before);
    // One whose bytes are gone is found out before anything is changed.
    fs::write(desk.path("b"), "B").unwrap();
    fs::remove_dir_all(desk.place.path().join("data/undo")).unwrap();
    let before = held(&desk.caller.workspace);
    let error = desk.undo(all, false).await.unwrap_err();
    assert!(error.message.contains("no longer kept"), "{error:?}");
    assert_eq!(held(&desk.caller.workspace), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_reaches_nothing_outside_the_workspace() {
    let desk = Desk::new(limits()).await;
    desk.change(CallId::new(), "d/a", Some(b"new")).await;
    let outside = desk.place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "new").unwrap();
    fs::remove_dir_all(desk.path("d")).unwrap();
    std::os::unix::fs::symlink(&outside, desk.path("d")).unwrap();
    let error = desk.undo(desk.changes(&UndoFilter::default()).await, true).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Forbidden, "{error:?}");
    assert_eq!(fs::read(outside.join("a")).unwrap(), b"new");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_changes_and_their_bytes_are_forgotten_beyond_the_limit() {
    let desk = Desk::new(UndoLimits { bytes: 100, ..limits() }).await;
    for n in 0_u8..20 {
        desk.change(CallId::new(), "a", Some(&[n; 30])).await;
    }
    desk.journal.prune().await.unwrap();
    let left = desk.changes(&UndoFilter::default()).await;
    assert!((1..=3).contains(&left.len()), "{}", left.len());
    let blobs = walk(&desk.place.path().join("data/undo"));
    assert!(blobs.len() <= 4, "the lock and what is named: {blobs:?}");
    for state in left.iter().flat_map(|undo| [&undo.new.before, &undo.new.after]).flatten() {
        desk.journal.bytes(state).await.unwrap();
    }
    let scope = |caller: &Caller| Scope::workspace(&caller.workspace);
    let restoring = Restoring { journal: &desk.journal, bridge: &desk.files, scope: &scope };
    assert_eq!(restoring.look(left).await.unwrap()[0].verdict, Verdict::Ready);
}

/// The bytes are those of a program that was killed between keeping them and recording the change.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_no_change_names_are_swept_once_a_day() {
    let place = TempDir::new().unwrap();
    let undo = place.path().join("undo");
    let store = Arc::new(SqliteStore::memory(NodeId::local()).await.unwrap());
    let clock = Arc::new(ManualClock::default());
    clock.set(UnixMillis(1_700_000_000_000));
    let journal =
        |place: &Path| StoredUndo::new(Arc::clone(&store) as _, place, Arc::clone(&clock) as _, limits());
    let caller = Caller::new(AgentId::new("main").unwrap(), SessionKey::new("cli:me").unwrap(), "/w");
    let change = Change {
        caller: &caller,
        call: CallId::new(),
        run: None,
        tool: &ToolName::literal("write_file"),
        place: "/w/a",
        sandbox: None,
        shown: "a",
        before: None,
        after: Some(Contents { bytes: b"named", mode: None }),
    };
    journal(place.path()).record(&change).await.unwrap();
    let orphan = undo.join("00").join("0".repeat(62));
    let leave = || {
        fs::create_dir_all(undo.join("00")).unwrap();
        fs::write(&orphan, "left behind").unwrap();
        fs::write(undo.join("x.part"), "half").unwrap();
    };
    leave();
    journal(place.path()).prune().await.unwrap();
    assert!(orphan.exists(), "an index that may not be the only one removes nothing");
    let sweeping = journal(place.path()).sweeping();
    sweeping.prune().await.unwrap();
    assert!(!orphan.exists() && !undo.join("x.part").exists());
    leave();
    sweeping.prune().await.unwrap();
    assert!(orphan.exists(), "not again on the same day");
    clock.advance(std::time::Duration::from_secs(25 * 60 * 60));
    sweeping.prune().await.unwrap();
    assert!(!orphan.exists());
    let kept = store.undos(&TenantId::main(), &UndoFilter::default(), 10).await.unwrap();
    assert_eq!(sweeping.bytes(kept[0].new.after.as_ref().unwrap()).await.unwrap(), b"named");
}

#[tokio::test]
async fn runs_and_commands_are_listed_among_the_changes() {
    let home = Home::new();
    call(&home, "write_file", json!({ "path": "a", "content": "x" }));
    let store = SqliteStore::open(&home.data().join("clawsmith.db"), NodeId::local()).await.unwrap();
    let made = store.undos(&TenantId::main(), &UndoFilter::default(), 1).await.unwrap().remove(0);
    let (run, other) = (JobId::new(), SessionKey::new("cli:other").unwrap());
    let after = made.new.at;
    let of_run =
        NewUndo { id: UndoId::new(), run: Some(run), shown: "of-the-run".into(), ..made.new.clone() };
    store.record_undo(of_run).await.unwrap();
    const WRITES: &[Effect] = &[Effect::Execute, Effect::Write];
    for (session, tool, effects) in [
        (made.new.session.clone(), "exec", WRITES),
        (made.new.session.clone(), "exec", &[Effect::Execute, Effect::Read]),
        (made.new.session.clone(), "writer", &[Effect::Write]),
        (other, "exec", WRITES),
    ] {
        let args = json!({ "command": "touch b" });
        let effects = effects.iter().copied().collect();
        let event = EntryEvent::Intent { digest: Digest::of(&args), effects, args, approval: None };
        let record = Record {
            context: None,
            at: UnixMillis(after.0 + 1),
            tenant: TenantId::main(),
            session,
            agent: made.new.agent.clone(),
            user: None,
            call: CallId::new(),
            tool: tool.to_owned(),
            event,
        };
        store.begin_call(record).await.unwrap();
    }
    store.disconnect().await;
    let list = home.run(&["undo", "list"]);
    assert!(!list.stdout.contains(&run.to_string()), "a terminal is narrow: {}", list.shown());
    let list = home.run(&["undo", "list", "--wide"]);
    assert!(
        list.stdout.contains(&run.to_string()) && list.stdout.contains("not covered"),
        "{}",
        list.shown()
    );
    let rows = listed(&home);
    let states: Vec<_> = rows.iter().map(|row| row["state"].as_str().unwrap()).collect();
    assert_eq!(states.iter().filter(|state| **state == "not covered").count(), 2, "{rows:?}");
    assert_eq!((&states[..2], rows.len()), (&["not covered"; 2][..], 4), "the newest first");
    let key = made.new.session.as_str();
    let ran = home.run(&["undo", "list", "--session", key, "--json"]);
    assert_eq!(ran.json().as_array().unwrap().len(), 3);
    let ran = home.run(&["undo", "list", "--last", "2", "--json"]);
    assert_eq!(ran.json().as_array().unwrap().len(), 2);
    // A run's changes by the run's id.
    let shown = home.run(&["undo", "show", &run.to_string(), "--json"]);
    assert_eq!(shown.json()[0]["shown"], "of-the-run", "{}", shown.shown());
}

fn walk(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
