//! Explaining, checking and comparing policies.

use crate::harness::Home;

const POLICY: &str = "\
[tools]
profile = \"minimal\"
also_allow = [\"datetime\"]
deny = [\"weather\"]

[agents.ada]
deny = [\"datetime\"]
";

#[test]
fn explains_one_tool_and_all_of_them() {
    let home = Home::with_config(POLICY);
    insta::assert_snapshot!("explain", home.run(&["policy", "explain", "workspace_dir"]).shown());
    insta::assert_snapshot!("explain_all", home.run(&["policy", "explain", "--agent", "ada"]).shown());
    insta::assert_snapshot!("explain_unknown", home.run(&["policy", "explain", "datetim"]).shown());
    let subagent = home.run(&["policy", "explain", "session_status", "--subagent", "leaf", "--json"]).json();
    assert_eq!(subagent["verdict"]["allowed"], false);
    assert_eq!(subagent["verdict"]["trace"]["decided_by"], "subagent_deny");
}

#[test]
fn a_group_chat_with_a_negative_id_is_named_as_it_is() {
    let home = Home::with_config("[tools.groups.\"-100\"]\nallow = [\"read_file\"]\n");
    let explained = home.run(&["policy", "explain", "exec", "--channel", "telegram", "--chat", "-100"]);
    assert!(explained.stdout.contains("-100"), "{}", explained.shown());
    for (chat, code) in [("-100", 3), ("-200", 0)] {
        let words =
            ["tools", "call", "--channel", "telegram", "--chat", chat, "exec", r#"{"command":"true"}"#];
        let ran = home.run(&words);
        assert_eq!(ran.code, code, "{chat}: {}", ran.shown());
    }
}

#[test]
fn a_misspelt_agent_is_refused() {
    let home = Home::with_config(POLICY);
    let ran = home.run(&["policy", "explain", "datetime", "--agent", "adda"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            2,
            "error: agent `adda` is not set up\n  try: did you mean `ada`? `clawsmith agent list` lists all \
             agents\n"
        )
    );
    assert_eq!(home.run(&["policy", "explain", "datetime", "--agent", "ada"]).stderr, "");
}

#[test]
fn explanation_and_call_agree() {
    let home = Home::with_config(POLICY);
    for tool in ["session_status", "datetime", "agents_list", "workspace_dir"] {
        let explained = home.run(&["policy", "explain", tool, "--json"]).json();
        let called = home.run(&["tools", "call", tool, "--json"]).json();
        let refused_by_policy = called["refusal"]["step"] == "authorise";
        assert_eq!(explained["verdict"]["allowed"], !refused_by_policy, "{tool}: {called}");
    }
}

#[test]
fn lint_fails_on_an_error_and_on_anything_when_strict() {
    let home = Home::new();
    home.write("project/clawsmith.toml", POLICY.replace("weather", "agents_lst"));
    insta::assert_snapshot!("lint", home.run(&["policy", "lint"]).shown());
    let clean = Home::new().run(&["policy", "lint", "--strict"]);
    assert_eq!((clean.code, clean.stdout.as_str()), (0, "No problems found.\n"));
    let findings = home.run(&["policy", "lint", "--json"]).json();
    assert_eq!(findings[0]["severity"], "error");
}

#[test]
fn diff_says_what_each_agent_gains_and_loses() {
    let home = Home::new();
    home.write("project/a.toml", "");
    home.write("project/b.toml", POLICY);
    insta::assert_snapshot!("diff", home.run(&["policy", "diff", "a.toml", "b.toml"]).shown());
    let same = home.run(&["policy", "diff", "a.toml", "a.toml"]);
    assert_eq!((same.code, same.stdout.as_str()), (0, "no agent gains or loses a tool\n"));
    assert_eq!(home.run(&["policy", "diff", "a.toml", "none.toml"]).code, 2);
}

#[test]
fn a_replay_shows_which_recorded_calls_another_configuration_decides_otherwise() {
    let home = Home::new();
    for command in ["ls", "ls", "echo hi", "git status"] {
        let args = serde_json::json!({ "command": command }).to_string();
        home.run(&["tools", "call", "exec", "--args", &args]);
    }
    home.run(&["tools", "call", "datetime"]);
    let other = home.write(
        "other.toml",
        r#"
        [tools]
        deny = ["datetime"]

        [shell.rules.listing]
        verdict = "ask"
        reason = "listings are private"
        programs = ["ls"]
        matches = ["ls"]
        passes = ["echo hi"]
        "#,
    );
    let other = other.to_str().unwrap();
    let ran = home.run(&["policy", "replay", other, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let found = ran.json();
    assert_eq!(found["calls"], 5, "{found}");
    let changes = found["changes"].as_array().unwrap();
    let denied = changes.iter().find(|change| change["tool"] == "datetime").unwrap();
    assert_eq!((&denied["before"], &denied["after"]), (&"allow".into(), &"deny".into()));
    assert!(denied["reason"].as_str().unwrap().contains("`tools.deny`"), "{denied}");
    let asked = changes.iter().find(|change| change["tool"] == "exec").unwrap();
    assert_eq!(
        (&asked["after"], &asked["calls"], &asked["example"]),
        (&"ask".into(), &2.into(), &"ls".into())
    );
    assert_eq!(found["same"], 2);
    let shown = home.run(&["policy", "replay", other, "--since", "1h"]);
    assert!(shown.stdout.contains("5 recorded calls"), "{}", shown.shown());
    let ran = home.run(&["policy", "replay", other, "--since", "soon"]);
    assert!(ran.code == 2 && ran.stderr.contains("use days or hours"), "{}", ran.shown());
}

#[test]
fn a_replay_judges_recorded_calls_by_their_effects() {
    let home = Home::new();
    let written = r#"{"path":"a.txt","content":"x"}"#;
    home.run(&["tools", "call", "write_file", "--args", written]);
    home.run(&["tools", "call", "datetime"]);
    for (rule, verdict) in [("ask", "ask"), ("deny", "deny")] {
        let other = home.write("other.toml", format!("[approvals.effects]\nwrite = \"{rule}\"\n"));
        let found = home.run(&["policy", "replay", other.to_str().unwrap(), "--json"]).json();
        assert_eq!(
            (&found["calls"], &found["same"], &found["truncated"]),
            (&2.into(), &1.into(), &false.into())
        );
        let change = &found["changes"][0];
        assert_eq!((&change["tool"], &change["after"]), (&"write_file".into(), &verdict.into()), "{found}");
        assert!(change["reason"].as_str().unwrap().contains("`approvals.effects.write`"), "{found}");
    }
}

const TESTS: &str = r#"
[[test]]
name = "everybody reads files"
tool = "read_file"
args = { path = "a.txt" }
expect = "allow"

[[test]]
name = "a removal is asked about"
tool = "exec"
args = { command = "rm -r build" }
expect = "ask"

[[test]]
name = "ada runs nothing"
agent = "ada"
tool = "exec"
args = { command = "ls" }
expect = "deny"
because = "agents.ada"

[[test]]
tool = "exec"
args = { comand = "ls" }
expect = "deny"
because = "comand"
"#;

#[test]
fn policy_tests_hold_or_fail_the_build() {
    let home = Home::with_config("[agents.ada]\ndeny = [\"exec\"]\n");
    home.write("project/a.txt", "x");
    let file = home.write("policy.test.toml", TESTS);
    let ran = home.run(&["policy", "test", file.to_str().unwrap()]);
    assert!(ran.code == 0 && ran.stdout.contains("4 of 4 hold"), "{}", ran.shown());
    // The verdict is the road's own, and nothing ran and nothing is left behind.
    assert!(!home.data().join("clawsmith.db").exists());
    let wrong = TESTS.replace("expect = \"ask\"", "expect = \"allow\"");
    let wrong = home.write("wrong.toml", &wrong);
    let ran = home.run(&["policy", "test", wrong.to_str().unwrap(), "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    let outcomes = ran.json();
    let failed = outcomes.as_array().unwrap().iter().filter(|one| one["passed"] == false);
    let failed: Vec<&serde_json::Value> = failed.collect();
    assert!(failed.len() == 1 && failed[0]["found"] == "ask", "{outcomes}");
    for (text, says) in [
        ("", "nothing would be tested"),
        ("[[test]]\ntool = 1", "tool"),
        ("[[test]]\nagent = \"nobody\"\ntool = \"exec\"\nexpect = \"deny\"", "`nobody` is not set up"),
        ("\u{0}", "the policy tests are invalid"),
    ] {
        let file = home.write("bad.toml", text);
        let ran = home.run(&["policy", "test", file.to_str().unwrap()]);
        assert!(ran.code == 2 && ran.stderr.contains(says), "{text:?}: {}", ran.shown());
    }
}
