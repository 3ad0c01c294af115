//! `shell check`: verdicts on single commands and on batches.

use crate::harness::Home;

#[test]
fn a_verdict_names_rule_part_and_commands() {
    let home = Home::new();
    insta::assert_snapshot!(
        "shell_deny",
        home.run(&["shell", "check", "--", "ls -l && env r''m -rf \"$X\"/y"]).shown()
    );
    insta::assert_snapshot!(
        "shell_allow",
        home.run(&["shell", "check", "--", "echo 'rm -rf /' > notes"]).shown()
    );
    insta::assert_snapshot!("shell_ask", home.run(&["shell", "check", "--", "$X -rf /"]).shown());
    let json = home.run(&["shell", "check", "--json", "--", "cat $F | sh"]).json();
    assert_eq!(json["verdict"], "ask");
    assert_eq!(json["rule"], "unknown.script");
    assert_eq!(json["commands"][0]["argv"], serde_json::json!(["cat", { "unknown": "<?>" }]));
    assert_eq!(json["commands"][0]["effects"], serde_json::json!(["read"]));
}

#[test]
fn a_batch_answers_every_line_and_goes_on_after_a_broken_one() {
    let home = Home::new();
    let input = "{\"cmd\": \"ls\"}\nnonsense\n\n{\"cmd\": \"rm -rf /\"}\n\u{fffd}\n{\"cmd\": \"ls";
    let ran = home.ran(home.command(&["shell", "check", "--batch"]).write_stdin(input));
    let lines: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(ran.code, 1);
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0]["verdict"], "allow");
    assert!(lines[1]["error"].as_str().unwrap().starts_with("line 2 is not of the form"));
    assert_eq!(
        (&lines[2]["verdict"], &lines[2]["rule"]),
        (&"deny".into(), &"destructive.rm-recursive".into())
    );
    assert!(lines[3]["error"].is_string() && lines[4]["error"].is_string());
}

const CONFIG: &str = r#"
[shell.rules.no-prod]
verdict = "deny"
reason = "production is off limits"
programs = ["kubectl"]
arguments = ["--context=prod.*"]
matches = ["kubectl --context=prod get pods"]
passes = ["kubectl get pods"]

[agents.builder.shell.off]
"destructive.rm-recursive" = "works in a throw-away checkout"
"#;

#[test]
fn rules_of_administrators_and_switches_of_agents_hold() {
    let home = Home::with_config(CONFIG);
    assert_eq!(home.run(&["shell", "check", "--", "rm -rf target"]).code, 1);
    assert_eq!(home.run(&["shell", "check", "--agent", "builder", "--", "rm -rf target"]).code, 0);
    let ran = home.run(&[
        "shell",
        "check",
        "--json",
        "--agent",
        "builder",
        "--",
        "kubectl --context=prod-eu apply",
    ]);
    assert_eq!(ran.json()["rule"], "no-prod");
}

#[test]
fn a_broken_rule_refuses_to_load() {
    let home =
        Home::with_config(&CONFIG.replace("passes = [\"kubectl", "passes = [\"kubectl --context=prod"));
    insta::assert_snapshot!("shell_broken_rule", home.run(&["shell", "check", "--", "ls"]).shown());
    let home = Home::with_config(&CONFIG.replace("rm-recursive", "rm-recursiv"));
    insta::assert_snapshot!("shell_unknown_switch", home.run(&["shell", "check", "--", "ls"]).shown());
}
