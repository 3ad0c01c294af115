//! Rules of administrators, and switched-off rules.

use super::*;

fn config(toml: &str) -> ShellConfig {
    serde_json::from_str(toml).unwrap()
}

const RULE: &str = r#"{"rules": {"no-prod": {"verdict": "deny", "reason": "production is off limits", "programs": ["kubectl"],
    "arguments": ["--context=prod.*"], "matches": ["kubectl --context=prod-eu get pods"], "passes": ["kubectl get pods"]}}}"#;

#[test]
fn a_rule_of_an_administrator_is_found_behind_wrappers() {
    let rules = Rules::compile(&config(RULE)).unwrap();
    for command in [
        "kubectl --context=prod get x",
        "env nice kubectl '--context=prod' x",
        "sh -c 'ls; kubectl --context=prod'",
    ] {
        let verdict = analyse(command, &rules);
        assert_eq!(verdict.decision, Decision::Deny, "{command}");
        assert_eq!(verdict.finding().unwrap().rule, "no-prod");
    }
    assert_eq!(analyse("kubectl --context=dev get x", &rules).decision, Decision::Allow);
    assert_eq!(analyse("echo kubectl --context=prod", &rules).decision, Decision::Allow);
}

#[test]
fn a_broken_rule_refuses_to_load() {
    let broken =
        |from: &str, to: &str| Rules::compile(&config(&RULE.replace(from, to))).unwrap_err().to_string();
    assert_eq!(
        broken("kubectl get pods\"]", "kubectl --context=prod x\"]"),
        "`rules.no-prod.passes`: the rule matches `kubectl --context=prod x`, which it must not"
    );
    assert_eq!(broken("prod-eu get", "dev get").split(':').next(), Some("`rules.no-prod.matches`"));
    assert!(broken("prod.*", "prod(").contains("is not a regular expression"));
    assert!(broken("[\"kubectl get pods\"]", "[]").contains("no example"));
    assert!(broken("no-prod", "disk").contains("choose another"));
}

#[test]
fn rules_with_paths_and_effects_match() {
    let rules = config(
        r#"{"rules": {"data": {"verdict": "ask", "reason": "shared data", "paths": ["/srv/data/"], "effects": ["write"],
        "matches": ["rm /srv/data/x", "echo x > /srv/data/y"], "passes": ["cat /srv/data/x", "rm /srv/database"]}}}"#,
    );
    let rules = Rules::compile(&rules).unwrap();
    assert_eq!(analyse("cp x /srv/data", &rules).decision, Decision::Ask);
}

#[test]
fn rules_and_groups_are_switched_off_with_a_reason() {
    let rules =
        Rules::compile(&config(r#"{"off": {"destructive.rm-recursive": "a throw-away box"}}"#)).unwrap();
    assert_eq!(analyse("rm -rf build", &rules).decision, Decision::Allow);
    assert_eq!(analyse("rm -rf /", &rules).finding().unwrap().rule, "destructive.rm-root");
    let rules = Rules::compile(&config(r#"{"off": {"privilege": "root in a container"}}"#)).unwrap();
    assert_eq!(analyse("sudo ls", &rules).decision, Decision::Allow);
    let error = |text| Rules::compile(&config(text)).unwrap_err().to_string();
    assert!(error(r#"{"off": {"privileg": "x"}}"#).contains("did you mean `privilege`?"));
    assert!(error(r#"{"off": {"unknown.syntax": "x"}}"#).contains("no rule that can be changed"));
    assert!(error(r#"{"off": {"privilege": " "}}"#).contains("a reason is missing"));
}
