//! `exec` by the real road, in the real sandbox.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::approvals::Waiting;
use crate::harness::{Home, Ran};

fn exec(home: &Home, args: Value) -> Ran {
    home.run(&["tools", "call", "exec", &args.to_string()])
}

fn sh(home: &Home, command: &str) -> Ran {
    exec(home, json!({ "command": command }))
}

/// Returns a mark that no other command line on this machine has.
fn mark(name: &str) -> String {
    format!("{name}{}", std::process::id())
}

/// Returns whether a process with this word among its arguments runs.
fn runs(word: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes()))
}

/// Waits until a condition holds; fails if it never does.
#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_command_runs_in_the_workspace_and_its_end_is_told() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("project/sub")).unwrap();
    let ran = sh(&home, "echo one; echo two >&2; echo three; exit 7");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "one\ntwo\nthree\n[exit code 7]\n"), "{}", ran.shown());
    let args = json!({ "command": "pwd; cat; echo $A > made", "directory": "sub", "stdin": "read\n", "env": ["A=1 2"] });
    let ran = exec(&home, args);
    let (printed, changes) = ran.stdout.split_once("[1 file changed").unwrap();
    assert_eq!(printed, "~/project/sub\nread\n[exit code 0]\n", "{}", ran.shown());
    assert_eq!(changes, ", +1 -0]\n[+ sub/made]\n--- a/sub/made\n+++ b/sub/made\n@@ -0,0 +1 @@\n+1 2\n");
    assert_eq!(std::fs::read_to_string(home.path().join("project/sub/made")).unwrap(), "1 2\n");
    let ran = home.run(&[
        "tools",
        "call",
        "bash",
        "--json",
        "--args",
        r#"{"command": "echo a; echo b >&2; kill -9 $$", "split_output": true}"#,
    ]);
    let details = &ran.json()["output"]["details"];
    assert_eq!((&details["signal"], &details["exit"]), (&json!(9), &Value::Null), "{details}");
    assert_eq!((&details["stdout"], &details["stderr"]), (&json!("a\n"), &json!("b\n")));
}

/// The value is a plain word, which only the name of its file tells from code.
#[test]
fn hides_the_values_of_a_configuration_file_however_a_command_reads_it() {
    let home = Home::new();
    home.write("project/.env", "user=bob\npassword=password\n");
    home.write("project/main.py", "password = password\n");
    home.write("project/app.toml", "password = \"\"\"\nfirst\nsecond\n\"\"\"\nport = 1\n");
    let git =
        "git init -q . && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x && git add . ";
    let made =
        std::process::Command::new("sh").args(["-c", git]).current_dir(home.path().join("project")).status();
    let mut commands = vec![
        "cat .env",
        "cat < .env",
        "tee < .env",
        "while read line; do echo \"$line\"; done < .env",
        "grep -r password .",
        "grep -rn -A1 user . --include=.env",
        "find . -maxdepth 1 -name .env -exec cat {} +",
        "head -n 2 .e* main.py",
    ];
    if made.is_ok_and(|status| status.success()) {
        commands.extend(["git diff --cached", "git grep --cached password", "git show :.env"]);
    }
    for command in commands {
        let ran = sh(&home, command);
        let mut shown =
            ran.stdout.lines().filter(|line| line.contains("password=") && !line.contains("main.py"));
        assert!(shown.clone().count() > 0, "{command}: {}", ran.shown());
        assert!(shown.all(|line| line.ends_with("password=[REDACTED]")), "{command}: {}", ran.shown());
    }
    // Lines of code stay, also beside those of configuration.
    let mixed = sh(&home, "grep -r password .").stdout;
    assert!(mixed.contains("main.py:password = password"), "{mixed}");
    let toml = sh(&home, "cat < app.toml").stdout;
    assert!(!toml.contains("first") && !toml.contains("second") && toml.contains("port = 1"), "{toml}");
}

#[test]
fn a_verdict_names_rule_part_and_what_to_try() {
    let home = Home::new();
    insta::assert_snapshot!("exec_deny", sh(&home, "ls && rm -rf build").shown());
    insta::assert_snapshot!("exec_ask", sh(&home, "$X -rf /").shown());
    let ran = exec(&home, json!({ "command": "ls", "env": ["LD_PRELOAD=/tmp/x.so"] }));
    assert!(ran.code == 3 && ran.stderr.contains("environment.injection"), "{}", ran.shown());
    let ran = exec(&home, json!({ "command": "bash", "stdin": "rm -rf /" }));
    assert!(ran.code == 3 && ran.stderr.contains("destructive.rm-recursive"), "{}", ran.shown());
    let ran = exec(&home, json!({ "command": "python3", "stdin": "print(1)" }));
    assert!(ran.code == 3 && ran.stderr.contains("unknown.input"), "{}", ran.shown());
    let ran = exec(&home, json!({ "command": "ls", "network": true }));
    assert!(ran.code == 3 && ran.stderr.contains("requests network access"), "{}", ran.shown());
    let ran = exec(&home, json!({ "command": "ls", "directory": ".." }));
    assert!(ran.code == 3 && ran.stderr.contains("outside the workspace"), "{}", ran.shown());
}

#[test]
fn security_and_rules_of_the_configuration_hold() {
    let home = Home::with_config("[approvals]\nsecurity = \"deny\"\n");
    let ran = sh(&home, "ls");
    assert!(ran.code == 3 && ran.stderr.contains("`approvals.security` is `deny`"), "{}", ran.shown());
    let home = Home::with_config("[approvals]\nsecurity = \"allowlist\"\nask = \"off\"\n");
    let ran = sh(&home, "ls");
    assert!(ran.code == 3 && ran.stderr.contains("no rule covers"), "{}", ran.shown());
    let home = Home::with_config(
        "[agents.builder.shell.off]\n\"destructive.rm-recursive\" = \"a throw-away box\"\n",
    );
    std::fs::create_dir(home.path().join("project/build")).unwrap();
    assert_eq!(sh(&home, "rm -rf build").code, 3);
    let args = json!({ "command": "rm -rf build" }).to_string();
    let ran = home.run(&["tools", "call", "exec", "--agent", "builder", &args]);
    assert_eq!(ran.stdout, "[exit code 0]\n[1 directory changed]\n[- build]\n", "{}", ran.shown());
    assert!(!home.path().join("project/build").exists());
}

#[test]
fn who_may_not_write_gets_a_workspace_that_cannot_be_written() {
    let home = Home::with_config("[tools]\ndeny = [\"effect:write\", \"effect:network\"]\n");
    home.write("project/a", "kept\n");
    let ran = sh(&home, "cat a; touch b");
    assert!(ran.stdout.starts_with("kept\n") && ran.stdout.contains("[exit code 1]"), "{}", ran.shown());
    assert!(!home.path().join("project/b").exists());
    let ran = exec(&home, json!({ "command": "ls", "network": true }));
    assert!(ran.code == 3 && ran.stderr.contains("removes these effects"), "{}", ran.shown());
    // Without a sandbox nothing would hold it, so nothing runs.
    let off = "[tools]\ndeny = [\"effect:write\"]\n[sandbox]\nmode = \"off\"\n";
    let ran = sh(&Home::with_config(off), "ls");
    assert!(ran.code == 3 && ran.stderr.contains("the sandbox is off"), "{}", ran.shown());
}

#[test]
fn the_mode_decides_who_is_outside_of_the_sandbox() {
    let command = "test -e ../beside && echo outside || echo inside";
    for (mode, session, expected) in [
        ("all", "cli:me", "inside"),
        ("non-main", "cli:me", "outside"),
        ("non-main", "telegram:me", "inside"),
        ("off", "telegram:me", "outside"),
    ] {
        let home = Home::with_config(&format!("[sandbox]\nmode = \"{mode}\"\n"));
        home.write("beside", "");
        let args = json!({ "command": command }).to_string();
        let ran = home.run(&["tools", "call", "exec", "--session", session, &args]);
        assert_eq!(ran.stdout, format!("{expected}\n[exit code 0]\n"), "{mode} {session} {}", ran.shown());
    }
}

#[test]
fn the_mode_holds_in_a_conversation_too() {
    for (mode, outside) in [("all", false), ("non-main", true), ("off", true)] {
        let home = Home::with_config(&format!("[sandbox]\nmode = \"{mode}\"\n"));
        home.write("beside", "in the open");
        let ran = home.run(&["chat", "-m", "run cat ../beside"]);
        assert_eq!(ran.stdout.contains("in the open"), outside, "{mode} {}", ran.shown());
        let ran = home.run(&["doctor"]);
        assert_eq!(ran.stdout.contains("`sandbox.mode` is `off`"), mode == "off", "{}", ran.shown());
    }
}

#[test]
fn an_agent_cannot_read_or_change_the_store_and_the_keys() {
    // The worst place: the data directory and the configuration lie in the workspace.
    let home = Home::with_config("data_dir = \"data\"\n[approvals.effects]\nadmin = \"ask\"\n");
    home.run(&["tools", "call", "workspace_dir"]);
    std::fs::create_dir_all(home.path().join("project/data/keys")).unwrap();
    home.write("project/data/keys/ring", "secret-content");
    let before = std::fs::read(home.path().join("project/clawsmith.toml")).unwrap();
    for command in [
        "cat data/keys/ring",
        "cat data/clawsmith.db",
        "cat data/installation",
        "ls data/keys",
        "echo x >> data/clawsmith.db",
        "mv data elsewhere",
        "ln -s data/keys/ring link && cat link",
        "python3 -c \"print(open('data/keys/ring').read())\"",
        "cat clawsmith.toml",
        "echo '[approvals]' >> clawsmith.toml",
        "mv clawsmith.toml x; echo 'a' > clawsmith.toml",
        "cp /dev/null clawsmith.toml",
    ] {
        let ran = sh(&home, command);
        assert!(!ran.stdout.contains("secret-content") && !ran.stdout.contains("SQLite"), "{}", ran.shown());
        let failed = !ran.stdout.contains("[exit code 0]");
        assert!(failed || ran.stdout.contains("[held back: clawsmith.toml"), "{command}: {}", ran.shown());
    }
    assert_eq!(std::fs::read(home.path().join("project/clawsmith.toml")).unwrap(), before);
    assert_eq!(home.run(&["ledger", "verify"]).code, 0);
}

#[test]
fn a_workspace_in_the_data_directory_is_shown_and_nothing_beside_it() {
    let home = Home::with_config("data_dir = \"data\"\n");
    home.run(&["tools", "call", "workspace_dir"]);
    std::fs::create_dir_all(home.path().join("project/data/workspaces/main/a")).unwrap();
    let args = json!({ "command": "touch made; ls ../../../installation ../.." }).to_string();
    let ran = home.run(&["tools", "call", "exec", "--workspace", "data/workspaces/main/a", &args]);
    assert!(ran.code == 0 && !ran.stdout.contains("[exit code 0]"), "{}", ran.shown());
    assert!(home.path().join("project/data/workspaces/main/a/made").exists());
    // A store that lies openly in the workspace cannot be kept from commands, so there are none.
    let home = Home::with_config("[store]\nurl = \"sqlite:here.db\"\n");
    let ran = sh(&home, "ls");
    assert!(ran.code != 0 && ran.stderr.contains("here.db"), "{}", ran.shown());
}

#[test]
fn refuses_paths_that_are_denied_to_tools() {
    let home = Home::with_config("[files]\ndeny = [\"private\", \"missing\"]\n");
    std::fs::create_dir(home.path().join("project/private")).unwrap();
    home.write("project/private/note", "secret-content");
    let ran = sh(&home, "cat private/note; cp -r private copy; cat copy/note");
    assert!(ran.code == 0 && !ran.stdout.contains("secret-content"), "{}", ran.shown());
    assert!(!ran.stdout.contains("[exit code 0]"), "{}", ran.shown());
}

#[test]
fn an_agent_cannot_approve_itself() {
    let home = Home::with_config("[approvals.effects]\nread = \"ask\"\n");
    let mut waiting = std::process::Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"));
    waiting
        .env_clear()
        .env("HOME", home.path())
        .env("USER", "asker")
        .current_dir(home.path().join("project"));
    waiting.args(["tools", "call", "--wait", "workspace_dir"]);
    waiting.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut waiting = waiting.spawn().unwrap();
    wait_until("the question", || {
        !home.run(&["approvals", "list", "--json"]).json().as_array().unwrap().is_empty()
    });
    let id = home.run(&["approvals", "list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    // Our own program where the command can run it, with the data directory named as it is outside.
    std::fs::copy(assert_cmd::cargo::cargo_bin!("clawsmith"), home.path().join("project/tool")).unwrap();
    let data = home.data().display().to_string();
    let free = "CLAWSMITH_APPROVALS__EFFECTS__READ";
    for command in [
        format!("HOME={} ./tool approvals approve {id}", home.path().display()),
        format!("CLAWSMITH_DATA_DIR={data} ./tool approvals approve {id}"),
        format!("mkdir -p {data}; cp tool {data}/x; ./tool --version && false"),
    ] {
        let ran = home.ran(
            home.command(&["tools", "call", "exec", &json!({ "command": command }).to_string()])
                .env(free, "allow"),
        );
        assert!(!ran.stdout.contains("approved:"), "{command}: {}", ran.shown());
        assert_eq!(home.run(&["approvals", "show", &id, "--json"]).json()["state"], "pending", "{command}");
    }
    assert!(!home.data().join("x").exists());
    assert_eq!(home.run(&["approvals", "deny", &id]).code, 0);
    assert_eq!(waiting.wait().unwrap().code(), Some(3));
}

#[test]
fn no_variable_of_ours_reaches_a_command() {
    let home = Home::new();
    let variables =
        [("SECRET_TOKEN", "leaked-value"), ("CLAWSMITH_KEYS", "leaked-keys"), ("PATH", "/nowhere")];
    let args = json!({ "command": "env; cat /proc/self/environ; cat /proc/1/environ" }).to_string();
    let ran = home.run_with(&variables[..1], &["tools", "call", "exec", &args]);
    assert!(ran.stdout.contains("HOME=/run/home") && !ran.stdout.contains("leaked"), "{}", ran.shown());
    let ran = home.run_with(&variables[2..], &["tools", "call", "exec", &args]);
    assert!(
        !ran.stdout.contains("/nowhere") && ran.stdout.contains("PATH=/usr/local/sbin:"),
        "{}",
        ran.shown()
    );
}

#[test]
fn what_it_prints_is_scrubbed() {
    let home = Home::new();
    let ran = sh(&home, "echo ghp_$(printf 'a%.0s' $(seq 36))");
    assert!(!ran.stdout.contains("ghp_aaaa") && !ran.stderr.contains("ghp_aaaa"), "{}", ran.shown());
}

#[test]
fn a_timeout_ends_the_whole_tree() {
    let home = Home::new();
    let word = mark("7001");
    let command = format!("trap '' TERM; (setsid sleep {word} &) ; echo begun; sleep {word}");
    let ran = exec(&home, json!({ "command": command, "timeout_seconds": 1 }));
    assert!(ran.stdout.starts_with("begun\n[stopped: its time limit of 1 s was reached"), "{}", ran.shown());
    assert!(ran.stdout.contains("[ended by signal"), "{}", ran.shown());
    assert!(!runs(&word));
}

#[test]
fn what_a_command_leaves_running_is_ended_and_counted() {
    let home = Home::new();
    let word = mark("7002");
    let ran = sh(&home, &format!("sleep {word} & echo done"));
    assert!(ran.stdout.contains("[killed 1 process that it left running]"), "{}", ran.shown());
    assert!(!runs(&word));
}

#[test]
fn giving_up_ends_the_whole_tree() {
    let home = Home::new();
    let word = mark("7003");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"));
    child.env_clear().env("HOME", home.path()).env("USER", "tester").current_dir(home.path().join("project"));
    let args = json!({ "command": format!("(setsid sleep {word} &); sleep {word}") }).to_string();
    child
        .args(["tools", "call", "exec", &args])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    wait_until("the command", || runs(&word));
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!runs(&word));
    // And where the program itself is killed, its supervisors see it.
    let mut child = {
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"));
        child.env_clear().env("HOME", home.path()).current_dir(home.path().join("project"));
        child
            .args(["tools", "call", "exec", &args])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        child.spawn().unwrap()
    };
    wait_until("the command", || runs(&word));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the end of the command", || !runs(&word));
}

#[test]
fn a_question_shows_the_command_its_parts_and_its_sandbox() {
    let home = Home::new();
    let mut waiting = std::process::Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"));
    waiting
        .env_clear()
        .env("HOME", home.path())
        .env("USER", "asker")
        .current_dir(home.path().join("project"));
    let args = json!({ "command": "touch made && $EMPTY ls", "stdin": "typed" }).to_string();
    waiting.args(["tools", "call", "--wait", "exec", &args]);
    let mut waiting =
        waiting.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the question", || {
        !home.run(&["approvals", "list", "--json"]).json().as_array().unwrap().is_empty()
    });
    let question = home.run(&["approvals", "list", "--json"]).json()[0].clone();
    let (id, summary) = (question["id"].as_str().unwrap(), question["summary"].as_str().unwrap());
    for line in [
        "run in .:\n  touch made && $EMPTY ls",
        "with this standard input:\n  typed",
        "which would run:\n  touch made (read, write)",
        "in the kernel sandbox: workspace read and write, changes applied when the command has ended, no \
         network",
    ] {
        assert!(summary.contains(line), "{line}\n--\n{summary}");
    }
    assert!(question["reason"].as_str().unwrap().contains("rule `unknown.command`"), "{question}");
    assert!(!home.path().join("project/made").exists());
    assert_eq!(home.run(&["approvals", "approve", id]).code, 0);
    assert!(waiting.wait().unwrap().success());
    assert!(home.path().join("project/made").exists());
}

#[test]
fn a_question_shows_what_does_most_among_many_commands() {
    let home = Home::new();
    let many = |from: usize| (from..from + 60).map(|n| format!("echo {n}; ")).collect::<String>();
    let command = format!("{}{}touch made; {}$EMPTY ls", "echo same; ".repeat(30), many(0), many(60));
    let args = json!({ "command": command }).to_string();
    let waiting = Waiting::start(&home, &["exec", &args]);
    let question = home.run(&["approvals", "list", "--json"]).json()[0].clone();
    let summary = question["summary"].as_str().unwrap();
    let listed = summary.split("which would run:\n").nth(1).unwrap();
    assert!(listed.contains("  touch made (read, write)\n"), "{summary}");
    assert!(listed.contains("other commands, which are not shown"), "{summary}");
    home.run(&["approvals", "deny", &waiting.id]);
    assert_eq!(waiting.end().code, 3);
}

#[test]
fn a_secret_is_hidden_with_colours_in_it_and_where_output_is_cut() {
    let home = Home::new();
    home.ran(home.command(&["secrets", "set", "one"]).write_stdin("correct-horse-battery"));
    let run = |command: &str| {
        let args = json!({ "command": command }).to_string();
        home.run(&["tools", "call", "exec", "--json", &args])
    };
    let ran = run(r"printf 'a correct-\033[1;31mhorse\033[0m-battery \033[32mb\033[0m\n'");
    assert_eq!(
        ran.json()["output"]["content"][0]["text"],
        "a [REDACTED] b\n[exit code 0]",
        "{}",
        ran.shown()
    );
    // The middle is left out between the 262,144th byte and the last 786,432; the value stands across both edges.
    home.write("project/value", "correct-horse-battery");
    let ran =
        run("head -c 262130 /dev/zero | tr '\\0' x; cat value; head -c 2000000 /dev/zero | tr '\\0' y; \
                   cat value; head -c 786422 /dev/zero | tr '\\0' z");
    assert_eq!(ran.json()["output"]["details"]["exit"], 0, "{}", ran.shown());
    let kept = |text: &str| {
        let data = home.data();
        let found =
            std::process::Command::new("grep").args(["-rlaF", "--", text]).arg(data).output().unwrap();
        String::from_utf8(found.stdout).unwrap()
    };
    assert!(kept("bytes are left out here").contains("artifacts"), "{}", kept("bytes are left out here"));
    for part in ["correct-h", "horse", "se-battery"] {
        assert!(!ran.stdout.contains(part) && !kept(part).contains("artifacts"), "{part}: {}", kept(part));
    }
    assert!(ran.json()["output"]["details"]["left_out_bytes"].as_u64() > Some(1_000_000));
}
