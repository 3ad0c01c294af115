//! The filter.

use crate::harness::Home;

#[test]
fn removes_secrets_and_reports_kinds() {
    let home = Home::new();
    let input = "password: \"hunter2-but-longer\"\nmax_tokens: 4096\n";
    let ran = home.ran(home.command(&["scrub", "--report"]).write_stdin(input));
    insta::assert_snapshot!("scrub", ran.shown());
    let json = home.ran(home.command(&["scrub", "--report", "--json"]).write_stdin(input));
    let report: serde_json::Value = serde_json::from_str(&json.stderr).unwrap();
    assert_eq!(report["redacted"], 1);
}

#[test]
fn passes_clean_text_and_bytes_that_are_no_utf8_as_they_are() {
    let home = Home::new();
    let mut input = b"plain \xff\xfe\x00 text \xc3".to_vec();
    input.extend((0..200_000u32).map(|i| (i * 7 % 251) as u8));
    let output = home.command(&["scrub"]).write_stdin(input.clone()).output().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == input, "bytes changed on the way");
}

#[test]
fn finds_a_secret_across_pieces_and_configured_values() {
    let home = Home::new();
    let mut input = "x".repeat(64 * 1024 - 10) + "\n";
    input.push_str("ghp_16C7e42F292c6912E7710c838347Ae178B4a\nkey is topsecretvalue\n");
    let variables = [("KEY", "topsecretvalue"), ("CLAWSMITH_SCRUB__VALUES_FROM_ENV", "KEY")];
    let ran = home.ran(home.command(&["scrub"]).envs(variables).write_stdin(input));
    assert!(ran.stdout.ends_with("\n[REDACTED]\nkey is [REDACTED]\n"), "{}", ran.stdout);
}

#[test]
fn what_the_store_keeps_sealed_is_removed_too() {
    let home = Home::new();
    let set = home.ran(home.command(&["secrets", "set", "one"]).write_stdin("correct-horse-battery"));
    assert_eq!(set.code, 0, "{}", set.shown());
    let ran = home.ran(home.command(&["scrub"]).write_stdin("a correct-horse-battery b\n"));
    assert_eq!(ran.stdout, "a [REDACTED] b\n", "{}", ran.shown());
}

#[test]
fn a_conversation_shows_no_sealed_value_in_pieces_or_arguments() {
    let home = Home::new();
    home.ran(home.command(&["secrets", "set", "one"]).write_stdin("correct-horse-battery"));
    let script = home.write(
        "script.toml",
        r#"
[[turn]]
when.round = 0
do = [
    { say = "and corr" },
    { say = "ect-horse-battery in pieces" },
    { call = "write_file", args = { path = "x.txt", content = "a correct-horse-battery" } },
]

[[turn]]
when.result_of = "write_file"
do = [{ say = "Written." }]
"#,
    );
    let script = script.to_str().unwrap();
    let ran = home.run(&["chat", "--script", script, "-m", "go"]);
    assert!(ran.code == 0 && ran.stdout.contains("and [REDACTED] in pieces"), "{}", ran.shown());
    assert!(ran.stderr.contains("→ write_file") && !ran.shown().contains("horse"), "{}", ran.shown());
    let ran = home.run(&["chat", "--json", "--script", script, "-m", "again"]);
    let said = ran.stdout.lines().filter(|line| line.contains("in pieces"));
    assert!(
        said.clone().count() > 0 && said.clone().all(|line| !line.contains("ect-horse")),
        "{}",
        ran.shown()
    );
}
