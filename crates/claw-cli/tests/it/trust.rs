//! A configuration that nobody named is used only as a person accepted it.

use serde_json::json;

use crate::harness::{Home, Ran};
use crate::terminal::Terminal;

const OPEN: &str = "[sandbox]\nmode = \"off\"\n";

fn call(home: &Home) -> Ran {
    home.run(&["tools", "call", "workspace_dir"])
}

#[track_caller]
fn refused(ran: &Ran, why: &str) {
    assert!(ran.code == 2 && ran.stderr.contains(why), "{}", ran.shown());
    assert!(ran.stderr.contains("clawsmith config trust"), "{}", ran.shown());
}

#[test]
fn a_file_that_was_found_holds_once_it_is_accepted_and_until_it_changes() {
    let home = Home::new();
    home.write("project/clawsmith.toml", OPEN);
    refused(&call(&home), "`~/project/clawsmith.toml` was found here but has not been accepted");
    let check = home.run(&["config", "check"]);
    assert!(check.code == 0 && check.stdout.contains("does not apply"), "{}", check.shown());
    assert_eq!(home.run(&["config", "show", "--json"]).json()["accepted"], false);

    let trusted = home.run(&["config", "trust"]);
    assert!(trusted.stdout.contains("sandbox.mode"), "{}", trusted.shown());
    assert!(!trusted.stdout.contains("approvals"), "what it leaves alone is not shown: {}", trusted.shown());
    assert_eq!(call(&home).code, 0);
    assert_eq!(home.run(&["config", "show", "--json"]).json()["accepted"], true);

    home.write("project/clawsmith.toml", format!("{OPEN} "));
    refused(&call(&home), "has changed since it was accepted");
    home.write("project/clawsmith.toml", OPEN);
    assert_eq!(call(&home).code, 0, "it is again what was accepted");
}

#[test]
fn what_a_person_named_and_the_users_own_need_no_accepting() {
    let home = Home::new();
    let named = home.write("project/clawsmith.toml", OPEN);
    assert_eq!(home.run(&["--config", "clawsmith.toml", "tools", "call", "workspace_dir"]).code, 0);
    let variable = [("CLAWSMITH_CONFIG", "clawsmith.toml")];
    assert_eq!(home.run_with(&variable, &["tools", "call", "workspace_dir"]).code, 0);
    refused(&call(&home), "has not been accepted");
    std::fs::remove_file(named).unwrap();
    let nothing = home.run(&["config", "trust"]);
    assert!(nothing.code == 2 && nothing.stderr.contains("nothing to accept"), "{}", nothing.shown());
    std::fs::create_dir_all(home.path().join(".config/clawsmith")).unwrap();
    home.write(".config/clawsmith/clawsmith.toml", OPEN);
    assert_eq!(call(&home).code, 0);
}

#[test]
fn what_was_accepted_is_one_file_in_one_place() {
    let home = Home::with_config(OPEN);
    std::fs::create_dir(home.path().join("project/sub")).unwrap();
    // A copy elsewhere.
    home.write("project/sub/clawsmith.toml", OPEN);
    let below = |home: &Home| {
        let mut command = home.command(&["tools", "call", "workspace_dir"]);
        home.ran(command.current_dir(home.path().join("project/sub")))
    };
    refused(&below(&home), "has not been accepted");
    std::fs::remove_file(home.path().join("project/sub/clawsmith.toml")).unwrap();
    assert_eq!(below(&home).code, 0, "the one above holds, and it was accepted");
    // A link to another file that says something else, in its place.
    home.write("other.toml", "[scrub]\noutput = false\n");
    std::fs::remove_file(home.path().join("project/clawsmith.toml")).unwrap();
    std::os::unix::fs::symlink("../other.toml", home.path().join("project/clawsmith.toml")).unwrap();
    refused(&call(&home), "has changed since it was accepted");
}

#[test]
fn without_a_home_nothing_was_accepted() {
    let home = Home::with_config(OPEN);
    let mut command = home.command(&["config", "trust"]);
    let ran = home.ran(command.env_remove("HOME"));
    assert!(ran.code == 1 && ran.stderr.contains("--config"), "{}", ran.shown());
    let mut command = home.command(&["tools", "list"]);
    refused(&home.ran(command.env_remove("HOME")), "has not been accepted");
}

#[test]
fn an_agent_cannot_say_what_holds() {
    let home = Home::new();
    // The worst place: what a person says lies in the workspace.
    let within = |name: &str| home.path().join("project").join(name).to_str().unwrap().to_owned();
    let (config, state) = (within(".config"), within("state"));
    let variables = [("XDG_CONFIG_HOME", config.as_str()), ("XDG_STATE_HOME", state.as_str())];
    let run = |command: &str| {
        let args = json!({ "command": command }).to_string();
        home.run_with(&variables, &["tools", "call", "exec", &args])
    };
    let call = |home: &Home| home.run_with(&variables, &["tools", "call", "workspace_dir"]);
    // A command makes a configuration where there is none, beside it and below.
    let made = run(
        "printf '[sandbox]\\nmode = \"off\"\\n' | tee clawsmith.toml > x; mkdir d; cp x d/clawsmith.toml",
    );
    assert!(made.stdout.contains("[exit code 0]"), "{}", made.shown());
    for file in ["clawsmith.toml", "d/clawsmith.toml"] {
        assert!(made.stdout.contains(&format!("[held back: {file} ")), "{}", made.shown());
        assert!(!home.path().join("project").join(file).exists());
        // However it came there, it is not used.
        home.write(&format!("project/{file}"), "[sandbox]\nmode = \"off\"\n");
    }
    refused(&call(&home), "has not been accepted");
    let mut below = home.command(&["tools", "list"]);
    refused(&home.ran(below.current_dir(home.path().join("project/d"))), "has not been accepted");
    for file in ["clawsmith.toml", "d/clawsmith.toml"] {
        std::fs::remove_file(home.path().join("project").join(file)).unwrap();
    }
    // It reaches neither the user's configuration nor what was accepted, there or not.
    for command in [
        "mkdir -p .config/clawsmith; echo > .config/clawsmith/clawsmith.toml",
        "mv .config elsewhere",
        "ls state/clawsmith/trusted",
        "echo x > state/clawsmith/trusted/x",
        "mv state elsewhere",
        "rmdir state/clawsmith/trusted",
    ] {
        let ran = run(command);
        assert!(ran.stdout.contains("[exit code "), "{command}: {}", ran.shown());
        for directory in [".config/clawsmith", "state/clawsmith/trusted"] {
            let path = home.path().join("project").join(directory);
            let entries = std::fs::read_dir(&path).map(Iterator::count).ok();
            assert_eq!(entries, Some(0), "{command}: {directory}: {}", ran.shown());
        }
    }
    assert_eq!(call(&home).code, 0);
}

#[test]
fn an_accepted_file_that_is_gone_is_missed() {
    let home = Home::with_config("[tools]\ndeny = [\"exec\"]\n");
    std::fs::remove_file(home.path().join("project/clawsmith.toml")).unwrap();
    let ran = call(&home);
    assert!(ran.code == 2 && ran.stderr.contains("was accepted and is gone"), "{}", ran.shown());
    let check = home.run(&["config", "check"]);
    assert!(check.code == 2 && check.stdout.contains("was accepted and is gone"), "{}", check.shown());
    assert!(!check.stdout.contains("nobody has accepted"), "{}", check.shown());
    let check = home.run(&["config", "check", "--json"]).json();
    assert_eq!(check["ok"], false, "{check}");
    let shown = home.run(&["config", "show"]);
    assert!(shown.stdout.contains("was accepted and is gone"), "{}", shown.shown());
    // The one above does not stand in for it either.
    home.write("clawsmith.toml", OPEN);
    let ran = call(&home);
    assert!(ran.code == 2 && ran.stderr.contains("was accepted and is gone"), "{}", ran.shown());
    std::fs::remove_file(home.path().join("clawsmith.toml")).unwrap();
    assert_eq!(home.run(&["config", "trust", "--forget"]).stdout, "forgotten: 1\n");
    assert_eq!(call(&home).code, 0);
}

#[test]
fn what_is_accepted_is_shown_as_the_file_has_it() {
    let home = Home::new();
    home.write("project/clawsmith.toml", OPEN);
    let ran = home.run_with(&[("CLAWSMITH_SANDBOX__MODE", "all")], &["config", "trust"]);
    assert!(ran.stdout.contains("sandbox.mode") && ran.stdout.contains("off"), "{}", ran.shown());
    home.write("project/clawsmith.toml", "[tools]\ndeny = [\"weather\"]\n");
    let ran = home.run(&["config", "trust"]);
    assert!(ran.stdout.contains("warning:") && ran.stdout.contains("weather"), "{}", ran.shown());
}

#[test]
fn at_a_terminal_a_person_sees_it_before_they_accept() {
    let home = Home::new();
    home.write("project/clawsmith.toml", "[sandbox]\nmode = \"off\"\n");
    for (typed, code, then) in [("n\r", 2, 2), ("\r", 2, 2), ("y\r", 0, 0)] {
        let mut terminal = Terminal::run(&home, &["config", "trust"]);
        let seen = terminal.wait_for("[n]o: ");
        assert!(seen.contains("sandbox.mode"), "{seen}");
        terminal.type_in(typed);
        let (ended, seen) = terminal.ended();
        assert_eq!(ended, Some(code), "{seen}");
        let ran = call(&home);
        assert_eq!(ran.code, then, "{}", ran.shown());
    }
    // An accepted file is not asked about again.
    assert_eq!(Terminal::run(&home, &["config", "trust"]).ended().0, Some(0));
}
