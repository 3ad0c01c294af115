//! Bad input gives a clear error and loses nothing.

use crate::harness::{Home, Ran};

fn call(home: &Home, args: &str) -> Ran {
    home.write("project/args.json", args);
    home.run(&["tools", "call", "datetime", "--args", "@args.json"])
}

#[track_caller]
fn check(args: &str, expected: &str) {
    let home = Home::new();
    let ran = call(&home, args);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    assert!(ran.stderr.contains(expected), "{}", ran.shown());
    assert!(ran.stderr.len() < 8192, "{} bytes of error", ran.stderr.len());
    // The refusal was written down, and the ledger still holds.
    let entries = home.run(&["ledger", "show", "--json"]).json();
    assert_eq!(entries[0]["event"], "refused");
    assert_eq!(home.run(&["ledger", "verify"]).code, 0);
}

#[test]
fn malformed_json() {
    check(r#"{"action": "now""#, "ends too early");
    check(r#"{"action": now}"#, "line 1 column");
    check("'now'", "line 1 column");
    check("[1, 2]", "object");
}

#[test]
fn ten_megabytes_of_arguments() {
    let args = format!(r#"{{"action": "now", "format": "{}"}}"#, "x".repeat(10 * 1024 * 1024));
    check(&args, "bytes");
}

#[test]
fn two_thousand_levels_of_nesting() {
    let args = format!(r#"{{"action": {}{}}}"#, "[".repeat(2_000), "]".repeat(2_000));
    check(&args, "line 1 column");
}

#[test]
fn arguments_that_are_no_utf8() {
    let home = Home::new();
    home.write("project/args.json", b"{\"action\": \"\xff\"}");
    let ran = home.run(&["tools", "call", "datetime", "--args", "@args.json"]);
    assert_eq!(ran.code, 2, "{}", ran.shown());
    assert!(ran.stderr.contains("not UTF-8 from byte 12 on"), "{}", ran.stderr);
}

#[test]
fn a_configuration_that_is_no_text() {
    let home = Home::new();
    home.write("project/clawsmith.toml", b"[tools]\nprofile = \"\xff\"\n");
    let ran = home.run(&["tools", "list"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("line 2 is not UTF-8"), "{}", ran.stderr);
}

#[test]
fn a_configuration_that_nests_without_end() {
    let home = Home::with_config(&format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000)));
    assert_eq!(home.run(&["tools", "list"]).code, 2);
}

#[test]
fn a_tool_name_of_a_megabyte_or_of_control_characters() {
    let home = Home::new();
    let long = home.run(&["tools", "call", &"x".repeat(100_000)]);
    assert_eq!(long.code, 3);
    assert!(long.stderr.len() < 1024, "{} bytes", long.stderr.len());
    let odd = home.run(&["tools", "call", "\u{1b}[2Jname"]);
    assert_eq!(odd.code, 3);
    assert!(!odd.stderr.contains('\u{1b}'), "{:?}", odd.stderr);
}

#[test]
fn a_reader_that_goes_away() {
    use std::process::{Command, Stdio};
    let home = Home::new();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"))
        .args(["config", "schema"])
        .env_clear()
        .env("HOME", home.path())
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn errors_are_json_where_json_is_asked_for() {
    let home = Home::with_config("nonsense = 1\n");
    let ran = home.run(&["tools", "list", "--json"]);
    assert_eq!(ran.code, 2);
    let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert!(error["error"].as_str().unwrap().contains("unknown key `nonsense`"));
}

#[test]
fn what_is_wrong_with_the_command_line_is_json_too() {
    let home = Home::new();
    let error = |words: &[&str]| -> serde_json::Value {
        let ran = home.run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.shown());
        serde_json::from_str(&ran.stderr).unwrap()
    };
    let misspelt = error(&["tools", "lst", "--json"]);
    assert_eq!(misspelt["error"], "unrecognized subcommand 'lst'");
    assert!(misspelt["hint"].as_str().unwrap().contains("'list'"), "{misspelt}");
    let missing = error(&["--json", "tools", "call"]);
    assert!(missing["error"].as_str().unwrap().contains("<NAME>"), "{missing}");
    assert!(missing["hint"].as_str().unwrap().contains("clawsmith tools call"), "{missing}");
    let unknown = error(&["agent", "show", "nobody", "--json", "--nonsense"]);
    assert!(unknown["error"].as_str().unwrap().contains("'--nonsense'"), "{unknown}");
    // Ours have their hint apart as well.
    let ours = error(&["tools", "list", "--agent", "nobody", "--json"]);
    assert_eq!(ours["error"], "agent `nobody` is not set up");
    assert!(ours["hint"].as_str().unwrap().contains("clawsmith agent add nobody"), "{ours}");
    // Behind `--` it is the command's.
    let ran = home.run(&["sandbox", "run", "--nonsense", "--", "echo", "--json"]);
    assert!(ran.stderr.starts_with("error: unexpected argument"), "{}", ran.shown());
    assert_eq!(home.run(&["tools", "--help", "--json"]).code, 0);
}
