use claw_core::SessionKey;
use claw_core::port::Access;
use serde_json::json;

use super::*;

fn check(rules: &FileRules, settings: Value, path: &str, reached: bool) {
    let agent = AgentId::new("main").unwrap();
    let mut caller = Caller::new(agent, SessionKey::new("a:1").unwrap(), "/w");
    caller.team_workspace = Some("/team".into());
    caller.config = std::sync::Arc::new(json!({ "edit": settings }));
    let tool = ToolName::new("edit").unwrap();
    let scope = scope(rules, &caller, &tool, &caller.facts("edit"), Beside::default());
    let got = scope.resolve_text(Path::new("/w"), path, Access::Read);
    assert_eq!(got.is_ok(), reached, "{path}: {got:?}");
}

#[test]
fn what_is_denied_is_out_of_reach_in_every_root() {
    let mut rules = FileRules::default();
    rules.denied.push("/w/private".into());
    rules.tools.insert(ToolName::new("edit").unwrap(), vec!["locked".into()]);
    rules.tools.insert(ToolName::new("other").unwrap(), vec!["others".into()]);
    let key = (TenantId::main(), AgentId::new("main").unwrap());
    let root = Root { path: "/skills".into(), access: Access::Read };
    rules.agents.insert(key, AgentFiles { roots: vec![root], denied: vec!["agents".into()], quota: None });
    let settings = json!({ "deny_paths": ["set"] });
    for path in ["a", "/team/a", "/skills/a", "others/a", ".clawsmith-notes", "/team/private"] {
        check(&rules, settings.clone(), path, true);
    }
    for path in [
        ".clawsmith",
        "/team/.clawsmith/x",
        "private/x",
        "locked",
        "/team/locked",
        "agents/x",
        "/skills/set/x",
        "/elsewhere",
    ] {
        check(&rules, settings.clone(), path, false);
    }
}

#[test]
fn configuration_files_are_denied_in_every_root() {
    let configuration = vec!["clawsmith.toml".into(), "/w/sub/other.toml".into()];
    let rules = FileRules { configuration, ..FileRules::default() };
    for path in ["clawsmith.toml", "/team/clawsmith.toml", "sub/other.toml"] {
        check(&rules, Value::Null, path, false);
    }
    for path in ["sub/clawsmith.toml", "other.toml", "/team/sub/other.toml"] {
        check(&rules, Value::Null, path, true);
    }
    let caller = Caller::new(AgentId::new("main").unwrap(), SessionKey::new("a:1").unwrap(), "/w");
    let scope = rules.scope(&caller, &ToolName::new("edit").unwrap());
    assert!(scope.configuration.iter().all(|file| scope.denied.contains(file)), "bridges deny them too");
}

#[test]
fn settings_that_cannot_be_read_deny_everything() {
    for wrong in [json!({ "deny_paths": "x" }), json!({ "deny_paths": ["x", 1] })] {
        check(&FileRules::default(), wrong, "a", false);
    }
    check(&FileRules::default(), Value::Null, "a", true);
}

#[test]
fn of_the_data_directory_only_the_own_workspace_is_there() {
    let rules = FileRules { data_dir: Some("/w/data".into()), ..FileRules::default() };
    check(&rules, Value::Null, "data", false);
    check(&rules, Value::Null, "data/keys/ring", false);
    check(&rules, Value::Null, "data/workspaces/main/a/shared/x", false);
    check(&rules, Value::Null, "database", true);
    let denied = |root: &str| rules.denied_data(&[Root { path: root.into(), access: Access::Write }]);
    let inside = denied("/w/data/workspaces/main/a/shared");
    assert!(inside.contains(&"/w/data/keys".into()) && inside.contains(&"/w/data/undo".into()));
    assert!(!inside.iter().any(|path| Path::new("/w/data/workspaces").starts_with(path)), "{inside:?}");
    for root in ["/w/data", "/w/data/workspaces", "/w/data/workspaces-evil/x", "/w"] {
        assert_eq!(denied(root), [PathBuf::from("/w/data")], "{root}");
    }
}
