//! Listing, showing, exporting and calling tools.

use crate::harness::Home;

#[test]
fn lists_tools_in_columns_and_makes_nothing() {
    let home = Home::with_config("[tools]\ndeny = [\"agents_list\"]\n");
    let list = home.run(&["tools", "list"]).stdout;
    // However wide the columns are.
    let columns: Vec<String> =
        list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let row = |words: &str| columns.iter().any(|line| line.starts_with(words));
    assert_eq!(columns[0], "TOOL SECTION STATUS ALLOWED COST TOKENS EFFECTS ABOUT");
    assert!(row("datetime automation ready yes light "), "{list}");
    assert!(row("agents_list agents ready no light "), "{list}");
    assert!(
        list.contains("\nagents_list is not allowed: `tools.deny` entry `agents_list` denies it\n"),
        "{list}"
    );
    assert!(list.contains("known tools; `clawsmith tools list --all`"), "{list}");
    assert!(!home.data().exists());
    assert!(!home.data().exists());
}

#[test]
fn a_missing_home_is_named_and_not_created() {
    let home = Home::new();
    let absent = home.path().join("absent");
    let variables = [("HOME", absent.to_str().unwrap())];
    for words in [
        &["tools", "call", "datetime"][..],
        &["tools", "call", "exec", r#"{"command": "true"}"#],
        &["chat", "-m", "hello"],
    ] {
        let ran = home.run_with(&variables, words);
        assert!(
            ran.code > 1 && ran.stderr.contains("the home directory `~/absent` does not exist"),
            "{}",
            ran.shown()
        );
        assert!(!absent.exists(), "{words:?}");
    }
}

#[test]
fn lists_what_this_build_lacks_when_asked() {
    let home = Home::new();
    let all = home.run(&["tools", "list", "--all", "--json"]).json();
    let few = home.run(&["tools", "list", "--json"]).json();
    assert!(all.as_array().unwrap().len() > few.as_array().unwrap().len());
    let absent = all.as_array().unwrap().iter().find(|tool| tool["name"] == "browser").unwrap();
    assert_eq!(absent["status"]["status"], "not_in_build");
    insta::assert_snapshot!("list_section", home.run(&["tools", "list", "--all", "--section", "fs"]).shown());
    insta::assert_snapshot!("list_no_section", home.run(&["tools", "list", "--section", "sesions"]).shown());
}

#[test]
fn shows_a_tool_by_name_and_by_alias() {
    let home = Home::new();
    let show = home.run(&["tools", "show", "workspace_dir"]).shown();
    // Counted anew whenever a description changes.
    let show: Vec<&str> = show.lines().filter(|line| !line.starts_with("tokens ")).collect();
    insta::assert_snapshot!("show", show.join("\n"));
    insta::assert_snapshot!("show_alias", home.run(&["tools", "show", "Edit"]).shown());
    insta::assert_snapshot!("show_unknown", home.run(&["tools", "show", "datetme"]).shown());
    let shown = home.run(&["tools", "show", "datetime", "--json"]).json();
    assert_eq!(shown["name"], "datetime");
    assert!(shown["parameters"]["properties"]["timezone"].is_object());
    assert_eq!(shown["verdict"]["allowed"], true);
}

#[test]
fn prints_schemas_as_each_provider_takes_them() {
    let home = Home::new();
    for provider in ["default", "openai", "openai-strict", "anthropic", "gemini", "xai"] {
        let schemas = home.run(&["tools", "schema", "--provider", provider]).json();
        assert_eq!(schemas.as_array().unwrap().len(), 27, "{provider}");
    }
    let strict = home.run(&["tools", "schema", "workspace_dir", "--provider", "openai-strict"]).json();
    assert_eq!(strict[0]["function"]["strict"], true);
    let absent = home.run(&["tools", "schema", "browser"]);
    assert_eq!(absent.code, 2);
    assert!(absent.stderr.contains("not in this build"), "{}", absent.stderr);
}

#[test]
fn a_call_prints_its_output_and_is_recorded() {
    let home = Home::new();
    let ran = home.run(&["tools", "call", "workspace_dir"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "~/project\n", ""));
    let json = home.run(&["tools", "call", "workspace_dir", "--json"]).json();
    assert_eq!(json["status"], "done");
    assert_eq!(json["tool"], "workspace_dir");
    assert!(json["took_ms"].is_number() && json["call"].is_string() && json["output"]["content"].is_array());
    let entries = home.run(&["ledger", "show", "--json"]).json();
    assert_eq!(entries.as_array().unwrap().len(), 4);
}

#[test]
fn the_caller_can_be_played() {
    let home = Home::with_config("[agents.ada]\nname = \"Ada\"\nabout = \"Looks things up.\"\n");
    let caller = ["--agent", "ada", "--user", "bob", "--session", "http:key-7", "--channel", "web"];
    let ran = home.run(&[&["tools", "call", "session_status", "--provider", "openai"], &caller[..]].concat());
    let facts: Vec<&str> = ran.stdout.lines().take(4).collect();
    assert_eq!(
        facts,
        ["session: http:key-7", "agent: ada, for bob", "channel: web, one person", "model: one of openai"]
    );
    let agents = home.run(&["tools", "call", "agents_list", "--agent", "ada"]);
    assert_eq!(agents.stdout, "ada (Ada, you): Looks things up.\n");
    let minimal = home.run(&["tools", "call", "datetime", "--profile", "minimal"]);
    insta::assert_snapshot!("call_minimal", minimal.shown());
}

#[test]
fn arguments_come_from_a_file_or_standard_input() {
    let home = Home::new();
    let text = r#"{"action": "convert", "time": "2026-03-29T12:00:00Z", "format": "unix"}"#;
    home.write("project/args.json", text);
    let file = home.run(&["tools", "call", "datetime", "--args", "@args.json"]);
    let stdin = home.ran(home.command(&["tools", "call", "datetime", "--args", "-"]).write_stdin(text));
    assert_eq!(file.stdout.lines().next(), Some("1774785600"), "{}", file.shown());
    assert_eq!(file.stdout, stdin.stdout);
}

#[test]
fn each_end_has_its_exit_code() {
    let home = Home::with_config("[tools]\ndeny = [\"agents_list\"]\n");
    #[track_caller]
    fn check(home: &Home, words: &[&str], code: i32, says: &str) {
        let ran = home.run(&[&["tools", "call"], words].concat());
        assert_eq!(ran.code, code, "{}", ran.shown());
        assert!(ran.stdout.contains(says) || ran.stderr.contains(says), "{}", ran.shown());
    }
    check(&home, &["datetime", "--args", r#"{"action": "now", "format": "%Y"}"#], 0, "UTC");
    check(
        &home,
        &["datetime", "--args", r#"{"action": "now", "timezone": "Mars/Base"}"#],
        1,
        "is not a time zone",
    );
    check(
        &home,
        &["datetime", "--args", r#"{"action": "now", "timezone": "Mars/Base"}"#, "--json"],
        1,
        "\"failed\"",
    );
    check(&home, &["datetime", "--timeout", "0"], 2, "more than 0");
    check(&home, &["datetime", "--agent", "a b"], 2, "--agent <ID>");
    check(&home, &["datetime", "--session", "nocolon"], 2, "--session <KEY>");
    check(&home, &["datetime", "--args", "@none.json"], 2, "`none.json` cannot be read");
    check(&home, &["datetime", "--workspace", "none"], 2, "cannot be used");
    check(&home, &["datetime", "--workspace", "/"], 2, "never a workspace");
    check(&home, &["datetime", "--workspace", ".."], 2, "the home directory itself");
    check(&home, &["agents_list"], 3, "`tools.deny` entry `agents_list` denies it");
    check(&home, &["agents_list", "--json"], 3, "\"authorise\"");
    check(&home, &["datetme"], 3, "did you mean `datetime`?");
    check(&home, &["browser"], 3, "known but not in this build");
    check(&home, &["datetime", "--args", r#"{"action": "tomorrow"}"#], 3, "expected one of");
}

#[test]
fn a_slip_is_repaired_and_told() {
    let home = Home::new();
    let args = r#"{"action": "convert", "time": 1774785600, "toTimezone": "Europe/Paris"}"#;
    insta::assert_snapshot!(
        "call_repaired",
        home.run(&["tools", "call", "datetime", "--args", args]).shown()
    );
}

#[test]
fn what_needs_an_approval_is_refused_where_nobody_can_be_asked() {
    let home = Home::with_config("[approvals.effects]\nread = \"ask\"\n");
    insta::assert_snapshot!("call_unasked", home.run(&["tools", "call", "workspace_dir"]).shown());
}

#[test]
fn a_long_result_is_kept_and_read_in_parts() {
    let home = Home::with_config("[limits]\noutput_bytes = 256\n");
    let format = "line %n".repeat(200);
    let args = serde_json::json!({ "action": "now", "format": format }).to_string();
    let ran = home.run(&["tools", "call", "datetime", "--args", &args]);
    assert!(ran.stdout.contains("is kept as artifact"), "{}", ran.shown());
    assert!(ran.stdout.len() < 1024);
    let list = home.run(&["tools", "call", "result_read"]);
    assert_eq!(list.code, 0, "{}", list.shown());
    let id = ran.stdout.split("kept as artifact ").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    let args = serde_json::json!({ "artifact": id, "first": 2, "count": 1 }).to_string();
    let read = home.run(&["tools", "call", "result_read", "--args", &args]);
    assert!(read.stdout.contains("line"), "{}", read.shown());
    // Another session has nothing to read.
    let other = home.run(&["tools", "call", "result_read", "--session", "cli:other"]);
    assert_eq!(other.code, 3, "{}", other.shown());
}

#[test]
fn a_secret_reaches_neither_output_nor_ledger() {
    let home = Home::with_config("[scrub]\nvalues_from_env = [\"SERVICE_KEY\"]\n");
    let args =
        r#"{"action": "now", "format": "%Y v-e-r-y-secret and ghp_16C7e42F292c6912E7710c838347Ae178B4a"}"#;
    let variables = [("SERVICE_KEY", "v-e-r-y-secret")];
    let ran = home.run_with(&variables, &["tools", "call", "datetime", "--args", args]);
    let line = ran.stdout.lines().next().unwrap_or_default();
    assert!(line.ends_with(" [REDACTED] and [REDACTED]"), "{}", ran.shown());
    let kept = std::fs::read(home.data().join("clawsmith.db")).unwrap();
    let kept = String::from_utf8_lossy(&kept);
    assert!(
        kept.contains("[REDACTED] and [REDACTED]") && !kept.contains("v-e-r-y") && !kept.contains("ghp_")
    );
    let short = home.run_with(&[("SERVICE_KEY", "abc")], &["tools", "call", "datetime", "--args", args]);
    assert_eq!(short.code, 2);
    assert!(short.stderr.contains("`SERVICE_KEY`") && !short.stderr.contains("abc"), "{}", short.stderr);
}

#[test]
fn an_empty_allow_list_from_the_environment_keeps_nothing() {
    let home = Home::new();
    let ran = home.run_with(
        &[("CLAWSMITH_TOOLS__ALLOW", "[]")],
        &["tools", "call", "datetime", "--args", r#"{"action": "now"}"#],
    );
    assert_eq!(ran.code, 3, "{}", ran.shown());
    assert!(ran.stderr.contains("`tools.allow` does not name it"), "{}", ran.stderr);
}

#[test]
fn an_unwritable_store_means_that_nothing_runs() {
    let home = Home::new();
    home.write("file", "");
    let data = home.path().join("file/data");
    let variables = [("CLAWSMITH_DATA_DIR", data.to_str().unwrap())];
    let ran = home.run_with(&variables, &["tools", "call", "workspace_dir"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{}", ran.shown());
    assert!(
        ran.stderr.contains("the store at sqlite:~/file/data/clawsmith.db cannot be opened"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_data_directory_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    home.run(&["tools", "call", "workspace_dir"]);
    let mode = home.data().metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "{mode:o}");
}
