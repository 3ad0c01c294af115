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
