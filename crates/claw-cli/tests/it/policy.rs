//! Explaining, checking and comparing policies.

use std::path::Path;

use serde_json::{Value, json};

use crate::gateway::{ECHO, Gateway};
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

/// Makes a call that is recorded, whether it is refused or not.
fn call(home: &Home, tool: &str, args: &Value) {
    home.run(&["tools", "call", tool, "--args", &args.to_string()]);
}

/// Replays a change, and returns the outcome with the differences as `tool before after calls`, sorted.
#[track_caller]
fn replayed(home: &Home, change: &str) -> (Value, Vec<String>) {
    let change = home.write("change.toml", change);
    let ran = home.run(&["policy", "replay", "--change", change.to_str().unwrap(), "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let found = ran.json();
    let line = |change: &Value| {
        let word = |key: &str| change[key].as_str().unwrap().to_owned();
        format!("{} {} {} {}", word("tool"), word("before"), word("after"), change["calls"])
    };
    let mut lines: Vec<String> = found["changes"].as_array().unwrap().iter().map(line).collect();
    lines.sort();
    (found, lines)
}

#[test]
fn a_replay_judges_by_every_rule_of_approvals() {
    let home = Home::new();
    call(&home, "datetime", &json!({}));
    call(&home, "write_file", &json!({ "path": "a.txt", "content": "x" }));
    call(&home, "exec", &json!({ "command": "ls" }));
    // These two are refused, since nobody is there to answer.
    call(&home, "web_fetch", &json!({ "url": format!("https://a.invalid/{}", "word/".repeat(80)) }));
    call(&home, "publish_skill", &json!({ "path": "skills/none" }));
    let table: [(&str, &[&str]); 10] = [
        ("security = \"deny\"", &["exec allow deny 1"]),
        ("security = \"allowlist\"", &["exec allow ask 1"]),
        ("ask = \"off\"", &["publish_skill ask deny 1", "web_fetch ask deny 1"]),
        ("ask = \"always\"", &["exec allow ask 1", "write_file allow ask 1"]),
        ("web.telling_query = \"deny\"", &["web_fetch ask deny 1"]),
        ("web.long_query = 8192", &["web_fetch ask allow 1"]),
        ("publish = \"allow\"", &["publish_skill ask allow 1"]),
        ("publish = \"deny\"", &["publish_skill ask deny 1"]),
        ("effects.write = \"deny\"", &["publish_skill ask deny 1", "write_file allow deny 1"]),
        ("wait_secs = 5", &[]),
    ];
    for (change, expected) in table {
        let (found, lines) = replayed(&home, &format!("[approvals]\n{change}\n"));
        assert_eq!(lines, expected, "{change}: {found}");
        assert_eq!((&found["calls"], &found["skipped"]), (&5.into(), &0.into()), "{change}: {found}");
    }
    // Whether a host was new is not in the ledger.
    let (found, lines) = replayed(&home, "[approvals]\nweb.new_host = \"deny\"\n");
    assert!(lines.is_empty() && found["skipped"] == 1, "{found}");
    let reason = found["skips"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("whether the session had fetched from the host before"), "{found}");
    let change = home.path().join("change.toml");
    let shown = home.run(&["policy", "replay", "--change", change.to_str().unwrap()]);
    assert!(shown.stdout.contains(&format!("  1 not judged: {reason}")), "{}", shown.shown());
}

#[test]
fn a_replay_shows_refused_calls_that_would_be_let_through() {
    let home = Home::with_config("[tools]\ndeny = [\"exec\"]\n\n[approvals]\neffects.write = \"deny\"\n");
    call(&home, "exec", &json!({ "command": "ls" }));
    call(&home, "exec", &json!({ "command": "rm -r build" }));
    call(&home, "write_file", &json!({ "path": "a.txt", "content": "x" }));
    let (_, lines) = replayed(&home, "[approvals]\neffects.write = \"allow\"\n");
    assert_eq!(lines, ["write_file deny allow 1"]);
    let change = "[tools]\ndeny = []\n\n[approvals]\neffects.write = \"allow\"\n";
    let (found, lines) = replayed(&home, change);
    assert_eq!(lines, ["exec deny allow 1", "exec deny ask 1", "write_file deny allow 1"], "{found}");
    let change = home.write("change.toml", change);
    let shown = home.run(&["policy", "replay", "--change", change.to_str().unwrap()]);
    for word in ["default", "exec", "write_file", "rm -r build"] {
        assert!(shown.stdout.contains(word), "{word}: {}", shown.shown());
    }
}

#[test]
fn a_change_is_merged_over_the_current_configuration() {
    let home = Home::with_config("[tools]\ndeny = [\"weather\"]\n\n[approvals]\nsecurity = \"deny\"\n");
    call(&home, "datetime", &json!({}));
    call(&home, "datetime", &json!({}));
    call(&home, "list_files", &json!({}));
    call(&home, "exec", &json!({ "command": "ls" }));
    let (found, lines) = replayed(&home, "[tools]\ndeny = [\"datetime\"]\n");
    assert_eq!(lines, ["datetime allow deny 2"], "{found}");
    assert_eq!((&found["calls"], &found["same"]), (&4.into(), &2.into()), "{found}");
    // The calls are later than the end of this range.
    let change = home.path().join("change.toml");
    let range = ["--since", "2d", "--until", "1d", "--json"];
    let words = [&["policy", "replay", "--change", change.to_str().unwrap()][..], &range].concat();
    assert_eq!(home.run(&words).json()["calls"], 0);
}

#[test]
fn a_replay_names_what_is_wrong_with_its_input() {
    let home = Home::new();
    call(&home, "datetime", &json!({}));
    let fault = |words: &[&str], says: &str| {
        let ran = home.run(&[&["policy", "replay"][..], words].concat());
        assert!(ran.code == 2 && ran.stderr.contains(says), "{words:?}: {}", ran.shown());
    };
    let change = |text: &str| home.write("change.toml", text).to_str().unwrap().to_owned();
    fault(&["--change", &change("[tools]\ndny = []")], "did you mean `deny`?");
    fault(&["--change", &change("[tools]\ndeny = [\"datetme\"]")], "did you mean `datetime`?");
    fault(&["--change", &change("[tools")], "change.toml:1");
    fault(&["--change", "none.toml"], "`none.toml` cannot be read");
    let directory = home.path().to_str().unwrap();
    for words in [&[directory][..], &["--change", directory]] {
        fault(words, "is a directory");
        fault(words, "try: name a file");
    }
    let change = change("");
    fault(&["--change", &change, "--since", "1d", "--until", "2d"], "before it begins");
    fault(&["--change", &change, "--until", "soon"], "use days or hours");
    fault(&["--change", &change, &change], "cannot be used with");
    fault(&[], "required");
    assert!(Path::new(&change).is_file());
}

#[test]
fn an_administrator_of_a_tenant_replays_its_calls_by_its_own_rules() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    assert_eq!(home.run(&["tenants", "add", "other"]).code, 0);
    let own = gateway.key("ann", &["--role", "admin", "--scope", "settings:read,tools:call"]);
    let scopes = "settings:read,settings:write,tools:call";
    let other = gateway.key("eve", &["--tenant", "other", "--role", "admin", "--scope", scopes]);
    let rules = json!({ "deny": ["datetime"] }).to_string();
    gateway.send("PUT /v1/tenant/rules", &other, &[], &rules).check(200, "datetime");
    for (key, tool) in
        [(&own, "list_files"), (&own, "datetime"), (&other, "list_files"), (&other, "datetime")]
    {
        gateway.invoke(key, &json!({ "tool": tool }));
    }
    let replay = |key: &str, body: Value| gateway.post("/v1/policy/replay", key, &body);
    let changes = |key: &str, body: Value| {
        let found = replay(key, body).check(200, "").json();
        let line = |change: &Value| format!("{} {} {}", change["tool"], change["before"], change["after"]);
        let mut lines: Vec<String> = found["changes"].as_array().unwrap().iter().map(line).collect();
        lines.sort();
        (found["calls"].clone(), lines.join(", ").replace('"', ""))
    };
    assert_eq!(
        changes(&other, json!({ "change": "deny = []" })),
        (2.into(), "datetime deny allow".to_owned())
    );
    assert_eq!(
        changes(&other, json!({ "config": "allow = [\"datetime\"]" })),
        (2.into(), "datetime deny allow, list_files allow deny".to_owned())
    );
    assert_eq!(
        changes(&own, json!({ "change": "tools.deny = [\"datetime\"]" })),
        (2.into(), "datetime allow deny".to_owned())
    );
    replay(&other, json!({ "change": "tools.deny = []" })).check(400, "a tenant has the lists");
    replay(&other, json!({ "change": "deny = [\"datetme\"]" })).check(400, "datetime");
    replay(&own, json!({ "change": "", "config": "" })).check(400, "either `config`");
    replay(&own, json!({})).check(400, "either `config`");
    replay(&own, json!({ "change": "", "since": "1d", "until": "3d" })).check(400, "before it begins");
    let user = gateway.key("ben", &["--tenant", "other", "--scope", "settings:read"]);
    replay(&user, json!({ "change": "" })).check(403, "role `admin`");
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
