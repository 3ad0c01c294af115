//! Commands as transactions, through the real program.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Home, Ran};

fn exec(home: &Home, command: &str) -> Ran {
    home.run(&["tools", "call", "exec", &json!({ "command": command }).to_string()])
}

fn details(home: &Home, args: &Value) -> Value {
    home.run(&["tools", "call", "exec", "--json", "--args", &args.to_string()]).json()["output"]["details"]
        .clone()
}

fn project(home: &Home, path: &str) -> PathBuf {
    home.path().join("project").join(path)
}

fn git(home: &Home, words: &[&str]) {
    let mut command = std::process::Command::new("git");
    let ran = command.args(words).current_dir(project(home, "")).env("HOME", home.path()).output().unwrap();
    assert!(ran.status.success(), "{words:?}: {ran:?}");
}

#[test]
fn writers_do_not_get_past_a_rule_that_asks_about_writing() {
    let home = Home::with_config("[approvals.effects]\nwrite = \"ask\"\n");
    home.write("project/in", "b\na\n");
    home.write("project/script.sh", "echo x > by-script\n");
    for command in [
        "sort -o written in",
        "awk '{print > \"written\"}' in",
        "sed -n 'w written' in",
        "find . -name in -fprint written",
        "sh script.sh",
        "python3 -c \"open('written', 'w')\"",
        "perl -e 'open(F, \">written\")'",
        "tee written < in",
        "cp in written",
        "echo x > written",
        "git init -q repository",
    ] {
        let ran = exec(&home, command);
        let asked = ran.code == 3 && ran.stderr.contains("needs an approval");
        let could_not = ran.stdout.contains("Read-only file system");
        let left: Vec<_> =
            ["written", "by-script", "repository"].map(|path| project(&home, path).exists()).to_vec();
        assert!(asked || could_not || ran.stdout.contains("[exit code "), "{command}: {}", ran.shown());
        assert_eq!(left, [false; 3], "{command}: {}", ran.shown());
    }
}

/// The quota of a workspace counts what commands write, as it counts what file tools write.
#[test]
fn refuses_changes_that_exceed_the_quota_of_the_workspace() {
    for (config, command, told) in [
        ("quota_bytes = 20000", "head -c 30000 /dev/zero > big; echo x > small", "its quota is 20000 bytes"),
        (
            "quota_files = 8",
            "mkdir d; touch d/1 d/2 d/3 d/4 d/5 d/6 d/7 d/8",
            "its quota is 8 files and directories",
        ),
    ] {
        let home = Home::with_config(&format!("[files]\n{config}\n"));
        let ran = exec(&home, command);
        assert!(ran.stdout.contains("[held back: "), "{}", ran.shown());
        assert!(
            ran.stdout.contains("the workspace would hold") && ran.stdout.contains(told),
            "{}",
            ran.shown()
        );
        for path in ["big", "small", "d"] {
            assert!(!project(&home, path).exists(), "{}", ran.shown());
        }
        let ran = exec(&home, "echo fits > fits; rm fits; echo fits > fits");
        assert!(ran.stdout.contains("[1 file changed, +1 -0]"), "{}", ran.shown());
        assert!(project(&home, "fits").exists());
    }
}

#[test]
fn files_that_make_git_run_programs_are_held_back_however_they_are_spelled() {
    let home = Home::new();
    git(&home, &["init", "-q", "."]);
    home.write("project/evil", "[core]\n\tfsmonitor = touch /tmp/evil\n");
    let before = fs::read(project(&home, ".git/config")).unwrap();
    for command in [
        "cd .git && cp ../evil config",
        "cp evil .git/config",
        "cat evil > .git/../.git/config",
        "g=.git; cp evil $g/config",
        "ln -s .git link && cp evil link/config",
        "python3 -c \"open('.git/config', 'w').write(open('evil').read())\"",
        "mv .git moved && cp evil moved/config && mv moved .git",
        "git config core.fsmonitor 'touch /tmp/evil'",
        "cd .git && printf '#!/bin/sh\\n' > hooks/post-commit",
        "sh -c 'echo \"* filter=x\" > .git/info/attributes'",
    ] {
        let ran = exec(&home, command);
        assert!(
            ran.code == 3
                || ran.stdout.contains("[held back: .git/")
                || !ran.stdout.contains("[exit code 0]"),
            "{command}: {}",
            ran.shown()
        );
        assert_eq!(fs::read(project(&home, ".git/config")).unwrap(), before, "{command}: {}", ran.shown());
        for file in [".git/hooks/post-commit", ".git/info/attributes"] {
            assert!(!project(&home, file).exists(), "{command}: {}", ran.shown());
        }
    }
}

#[test]
fn a_planted_repository_does_not_arrive_with_its_configuration() {
    let home = Home::new();
    let ran = exec(
        &home,
        "mkdir -p docs/objects docs/refs; echo 'ref: refs/heads/main' > docs/HEAD; \
         printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = touch /tmp/evil\\n' > docs/config",
    );
    assert!(ran.stdout.contains("[held back: docs/config "), "{}", ran.shown());
    assert!(!project(&home, "docs/config").exists());
}

#[test]
fn a_repository_planted_in_two_calls_or_by_links_is_held_back() {
    let home = Home::new();
    let write = |command: &str| {
        home.write("project/e.py", command);
        exec(&home, "python3 e.py")
    };
    write(
        "import os; os.mkdir('sub'); open('sub/config', 'w').write('[core]\\nbare=false\\nfsmonitor=touch x\\n')",
    );
    let ran = write(
        "import os\n[os.mkdir('sub/' + d) for d in ('objects', 'refs')]\nopen('sub/HEAD', 'w').write('ref: refs/heads/main')",
    );
    assert!(ran.stdout.contains("[held back: sub/HEAD "), "{}", ran.shown());
    assert!(!project(&home, "sub/HEAD").exists());
    let ran = write("open('sub/commondir', 'w').write('../c')");
    assert!(ran.stdout.contains("[held back: sub/commondir "), "{}", ran.shown());

    git(&home, &["init", "-q", "."]);
    let ran = write(
        "import os, shutil; os.mkdir('h'); open('h/pre-commit', 'w').write('x')\n\
         shutil.rmtree('.git/hooks'); os.symlink('../h', '.git/hooks')",
    );
    assert!(ran.stdout.contains("[held back: .git/hooks "), "{}", ran.shown());
    assert!(!project(&home, ".git/hooks").is_symlink());
    let ran = write("open('.git/config', 'a').write('[core] fsmonitor = \"touch x\" #]\\n')");
    assert!(ran.stdout.contains("[held back: .git/config "), "{}", ran.shown());
}

#[test]
fn what_is_held_back_is_shown_to_a_person_and_applied_if_they_agree() {
    let home = Home::with_config("[shell]\napply = \"review\"\n");
    let args = json!({ "command": "echo one > a.txt; ln -s /etc/passwd link" }).to_string();
    for agrees in [false, true] {
        let call = crate::approvals::Waiting::start(&home, &["exec", &args]);
        assert!(!project(&home, "a.txt").exists());
        let shown = home.run(&["approvals", "show", &call.id]);
        for part in ["`shell.apply` is `review`", "+one", "link: changed (symbolic link"] {
            assert!(shown.stdout.contains(part), "{part}: {}", shown.shown());
        }
        let answer = if agrees { "approve" } else { "deny" };
        assert_eq!(home.run(&["approvals", answer, &call.id]).code, 0);
        let ended = call.end();
        assert_eq!(ended.code, 0, "{}", ended.shown());
        assert_eq!(project(&home, "a.txt").exists(), agrees, "{}", ended.shown());
        assert_eq!(ended.stdout.contains("held back"), !agrees, "{}", ended.shown());
    }
}

#[test]
fn everyday_git_works_on_a_layer() {
    let home = Home::new();
    let commands = "git init -q -b main . && git config user.name A && git config user.email a@example.com && \
        echo one > a && mkdir d && echo two > d/b && git add . && git commit -qm first && \
        git checkout -q -b other && git mv d e && git commit -qam moved && git checkout -q main && \
        echo more >> a && git commit -qam second && git merge -q -m merged other && \
        git checkout -q -b third HEAD~1 && echo 3 > c && git add c && git commit -qm third && git rebase -q main && \
        echo stashed >> a && git stash -q && git stash pop -q && git checkout -q a && git fsck --strict";
    let ran = exec(&home, commands);
    assert!(ran.stdout.contains("[exit code 0]") && !ran.stdout.contains("held back"), "{}", ran.shown());
    git(&home, &["fsck", "--strict"]);
    let log = std::process::Command::new("git")
        .args(["log", "--format=%s"])
        .current_dir(project(&home, ""))
        .output();
    assert_eq!(String::from_utf8_lossy(&log.unwrap().stdout).lines().next(), Some("third"));
    assert_eq!(fs::read_to_string(project(&home, "e/b")).unwrap(), "two\n");
    assert!(!project(&home, "d").exists());
    let ran = home.run(&["undo", "apply", "--last"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(!project(&home, ".git").exists() && !project(&home, "e").exists());
}

#[test]
fn edits_and_commands_are_undone_in_their_order() {
    let home = Home::new();
    home.write("project/a.txt", "one\n");
    let edit = |old: &str, new: &str| {
        home.run(&["tools", "call", "read_file", &json!({ "path": "a.txt" }).to_string()]);
        let args = json!({ "path": "a.txt", "old_string": old, "new_string": new }).to_string();
        let ran = home.run(&["tools", "call", "edit", &args]);
        assert_eq!(ran.code, 0, "{}", ran.shown());
    };
    edit("one", "two");
    assert_eq!(exec(&home, "echo three >> a.txt; echo x > b.txt").code, 0);
    edit("three", "four");
    assert_eq!(fs::read_to_string(project(&home, "a.txt")).unwrap(), "two\nfour\n");
    for expected in ["two\nthree\n", "two\n", "one\n"] {
        let ran = home.run(&["undo", "apply", "--last"]);
        assert_eq!(ran.code, 0, "{}", ran.shown());
        assert_eq!(fs::read_to_string(project(&home, "a.txt")).unwrap(), expected);
    }
    assert!(!project(&home, "b.txt").exists());
}

#[test]
fn a_change_since_is_named_and_nothing_is_undone() {
    let home = Home::new();
    home.write("project/a.txt", "one\n");
    assert_eq!(exec(&home, "echo two >> a.txt; echo x > b.txt").code, 0);
    home.write("project/a.txt", "theirs\n");
    let ran = home.run(&["undo", "apply", "--last"]);
    assert!(ran.code == 1 && ran.stdout.contains("a.txt changed"), "{}", ran.shown());
    assert_eq!(fs::read_to_string(project(&home, "a.txt")).unwrap(), "theirs\n");
    assert!(project(&home, "b.txt").exists());
    assert_eq!(home.run(&["undo", "apply", "--last", "--force"]).code, 0);
    assert_eq!(fs::read_to_string(project(&home, "a.txt")).unwrap(), "one\n");
    assert!(!project(&home, "b.txt").exists());
}

#[test]
fn a_dry_run_shows_and_changes_nothing() {
    let home = Home::new();
    home.write("project/a.txt", "one\n");
    let told = details(&home, &json!({ "command": "echo two >> a.txt; cat a.txt", "dry_run": true }));
    assert_eq!(told["changes"]["applied"][0]["path"], "a.txt", "{told}");
    assert!(told["changes"]["diff"].as_str().unwrap().contains("+two"), "{told}");
    assert_eq!(fs::read_to_string(project(&home, "a.txt")).unwrap(), "one\n");
    // A home that can be used, and is as it was afterwards.
    let args = json!({ "command": "echo dry > ~/note; cat ~/note; echo x > b", "dry_run": true }).to_string();
    let ran = home.run(&["tools", "call", "exec", &args]);
    assert!(ran.stdout.starts_with("dry\n"), "{}", ran.shown());
    let ran = exec(&home, "ls -A ~");
    assert!(!ran.stdout.contains("note"), "{}", ran.shown());
    let home = Home::with_config("[sandbox]\nmode = \"off\"\n");
    let args = json!({ "command": "echo two > a.txt", "dry_run": true }).to_string();
    let ran = home.run(&["tools", "call", "exec", &args]);
    assert!(ran.code != 0 && !project(&home, "a.txt").exists(), "{}", ran.shown());
}

#[test]
fn changes_of_a_command_that_failed_are_kept_out_if_that_is_said() {
    let home = Home::with_config("[shell]\napply = \"on_success\"\n");
    let ran = exec(&home, "echo x > a.txt; false");
    assert!(ran.stdout.contains("[held back: a.txt") && !project(&home, "a.txt").exists(), "{}", ran.shown());
    assert_eq!(exec(&home, "echo x > a.txt").code, 0);
    assert!(project(&home, "a.txt").exists());
    let home = Home::with_config("[shell]\napply = \"review\"\n");
    let ran = exec(&home, "echo x > a.txt");
    assert!(ran.stdout.contains("`shell.apply` is `review`"), "{}", ran.shown());
    assert!(!project(&home, "a.txt").exists(), "nobody could be asked");
}

#[test]
fn an_agents_own_way_of_applying_holds_for_it_alone() {
    let home =
        Home::with_config("[agents.careful.shell]\napply = \"on_success\"\n[agents.builder]\nname = \"B\"\n");
    for (agent, kept) in [("careful", false), ("builder", true)] {
        let args = json!({ "command": format!("echo x > {agent}; false") }).to_string();
        let ran = home.run(&["tools", "call", "--agent", agent, "exec", &args]);
        assert_eq!(home.path().join("project").join(agent).exists(), kept, "{agent}: {}", ran.shown());
        assert_eq!(ran.stdout.contains("`shell.apply` is `on_success`"), !kept, "{agent}: {}", ran.shown());
    }
}

#[test]
fn what_is_changed_is_scrubbed_in_results_and_the_journal() {
    let home = Home::new();
    let ran = exec(&home, "echo 'password = \"hunter2-but-longer\"' > config.py; rm -f nothing");
    assert!(!ran.stdout.contains("hunter2"), "{}", ran.shown());
    for words in [&["undo", "show", "--last"][..], &["undo", "list"], &["undo", "show", "--last", "--json"]] {
        let ran = home.run(words);
        assert!(!ran.stdout.contains("hunter2"), "{words:?}: {}", ran.shown());
    }
}

#[test]
fn names_that_are_not_text_do_no_harm() {
    let home = Home::new();
    let ran = exec(&home, "touch \"$(printf 'a\\377b')\" \"$(printf 'c\\nd')\" \"$(printf 'e\\033[31mf')\"");
    assert!(ran.code == 0 && ran.stdout.contains("[3 files changed"), "{}", ran.shown());
    assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.shown());
    assert_eq!(fs::read_dir(project(&home, "")).unwrap().count(), 3);
    for words in
        [&["undo", "show", "--last"][..], &["undo", "show", "--last", "--json"], &["undo", "apply", "--last"]]
    {
        let ran = home.run(words);
        assert!(ran.code == 0 && !ran.stdout.contains('\u{1b}'), "{words:?}: {}", ran.shown());
    }
    assert_eq!(fs::read_dir(project(&home, "")).unwrap().count(), 0);
}

#[test]
fn the_ledger_has_what_a_command_changed() {
    let home = Home::new();
    assert_eq!(exec(&home, "echo x > a.txt").code, 0);
    let ledger = home.run(&["ledger", "show", "--json"]).json();
    let changes = &ledger[1]["changes"];
    assert_eq!((&changes["count"], &changes["paths"]), (&json!(1), &json!(["a.txt"])), "{ledger}");
    assert_eq!(home.run(&["ledger", "verify"]).code, 0);
}

#[test]
fn a_command_by_hand_can_be_discarded() {
    let home = Home::new();
    let ran = home.run(&["sandbox", "run", "--discard", "--", "sh", "-c", "echo x > a.txt; cat a.txt"]);
    assert!(
        ran.code == 0 && ran.stdout == "x\n" && ran.stderr.contains("discarded: a.txt"),
        "{}",
        ran.shown()
    );
    assert!(!project(&home, "a.txt").exists());
}
