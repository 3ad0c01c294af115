//! Findings, as people read them.

use claw_core::TenantId;
use serde_json::{Value, json};

use super::{Severity, errors, lint};
use crate::config::{AgentTools, PolicyConfig, TenantTools};
use crate::pipeline::sample;

#[track_caller]
fn linted(config: Value) -> String {
    let findings = lint(&sample::config(config), &sample::tools());
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn nothing_is_wrong_with_an_empty_policy_or_a_plain_one() {
    assert_eq!(linted(json!({})), "");
    let plain = json!({
        "tools": {"profile": "coding", "deny": ["group:runtime"], "also_allow": ["group:mcp"],
            "by_provider": {"ollama": {"profile": "minimal"}}, "groups": {"-100": {"allow": ["group:web"]}}},
        "agents": {"writer": {"allow": ["group:fs", "effect:read", "effect:network"], "deny": ["glob"]}},
    });
    assert_eq!(linted(plain), "");
}

#[test]
fn known_tools_that_this_build_is_without_are_fine() {
    assert_eq!(linted(json!({"tools": {"deny": ["canvas", "whatsapp_login"]}})), "");
}

#[test]
fn entries_that_cannot_be_read() {
    insta::assert_snapshot!(linted(json!({"tools": {"deny": ["effect:wirte"], "allow": [""]}})), @r"
    error: `tools.allow` cannot be read: an entry is empty; name a tool, a `group:` or an `effect:`, or remove it
    error: `tools.deny` entry `effect:wirte` cannot be read: `effect:wirte` is not an effect; did you mean `effect:write`?
    ");
}

#[test]
fn entries_that_name_nothing_known() {
    let config = json!({"tools": {
        "allow": ["raed_file", "zzz", "mcp", "group:runtme", "no_*", "group:x*", "group:workspace", "*"],
        "deny": ["exce", "group:mcp:githb"]}});
    insta::assert_snapshot!(linted(config.clone()), @r"
    error: `tools.allow` entry `raed_file` names no known tool; did you mean `read_file`?
    error: `tools.allow` entry `mcp` names no known tool; did you mean `group:mcp`?
    error: `tools.allow` entry `group:runtme` names no known group; did you mean `group:runtime`?
    error: `tools.deny` entry `exce` names no known tool; did you mean `exec`?
    error: `tools.deny` entry `group:mcp:githb` names no known group; did you mean `group:mcp:github`?
    warning: `tools.allow` entry `zzz` names no built-in tool; only a custom tool or one of an MCP server can match
    warning: `tools.allow` entry `no_*` matches no tool
    warning: `tools.allow` entry `group:x*` matches no tool
    warning: `tools.allow` entry `group:workspace` is a group without tools
    ");
    let found = errors(&sample::config(config.clone()), &sample::tools());
    let mut all = lint(&sample::config(config), &sample::tools());
    all.retain(|finding| finding.severity == Severity::Error);
    assert_eq!(found, all);
}

#[test]
fn a_misspelt_name_in_the_rules_of_a_tenant_or_of_its_agent_is_an_error() {
    let deny = |name: &str| vec![name.to_owned()];
    let mut tenant = TenantTools { deny: deny("exce"), ..TenantTools::default() };
    let agent = AgentTools { deny: deny("read_fiel"), ..AgentTools::default() };
    tenant.agents.insert("coder".to_owned(), agent);
    let mut config = PolicyConfig::default();
    config.tenants.insert(TenantId::new("other").unwrap(), tenant);
    let found = errors(&config, &sample::tools());
    let lists: Vec<&str> = found.iter().map(|finding| finding.list.as_str()).collect();
    assert_eq!(lists, ["tenants.other.agents.coder.deny", "tenants.other.deny"], "{found:?}");
}

#[test]
fn tools_that_come_and_go_may_be_named_before_they_are_there() {
    let named =
        json!({"tools": {"deny": ["group:mcp:notes", "mcp_notes_delete", "group:custom", "group:mcp"]}});
    assert_eq!(linted(named), "");
    let custom = linted(json!({"agents": {"a": {"deny": ["web_fetch_intranet"]}}}));
    assert!(
        custom.starts_with("warning: `agents.a.deny` entry `web_fetch_intranet` names no built-in"),
        "{custom}"
    );
}

#[test]
fn entries_that_another_one_covers() {
    let config = json!({"tools": {
        "allow": ["read_file", "group:fs", "read", "exec", "exec", "effect:read", "effect:write"]}});
    insta::assert_snapshot!(linted(config), @r"
    note: `tools.allow` entry `read_file` changes nothing; `group:fs` in the same list covers it
    note: `tools.allow` entry `group:fs` changes nothing; the effects in the same list cover it
    note: `tools.allow` entry `read` changes nothing; `read_file` in the same list covers it
    note: `tools.allow` entry `exec` is listed twice
    ");
}

#[test]
fn a_thousand_patterns_for_one_tool_are_each_compared_with_the_others() {
    let pattern = |number: usize| format!("ex{}ec", "*".repeat(number % 100 + 1));
    let found = linted(json!({"tools": {"deny": (0..1_000).map(pattern).collect::<Vec<_>>()}}));
    let covered = "`ex*ec` in the same list covers it";
    assert_eq!(found.lines().filter(|line| line.ends_with(covered)).count(), 990, "{found}");
    assert_eq!(found.lines().filter(|line| line.ends_with("entry `ex*ec` is listed twice")).count(), 9);
    assert_eq!(found.lines().count(), 999);
}

#[test]
fn entries_that_come_too_late() {
    let config = json!({
        "tools": {"profile": "messaging", "allow": ["group:web", "exec", "read_artifact"],
            "also_allow": ["web_fetch", "glob"], "deny": ["web_search"]},
        "agents": {"coder": {"allow": ["group:web", "group:fs"], "deny": ["web_*", "web_search", "group:fs"]}},
    });
    insta::assert_snapshot!(linted(config), @r"
    warning: `tools.also_allow` entry `web_fetch` brings back `web_fetch`, though `agents.coder.deny` entry `web_*` denies it; set `tools.deny_wins` to forbid this
    warning: `tools.also_allow` entry `glob` brings back `glob`, though `agents.coder.deny` entry `group:fs` denies it; set `tools.deny_wins` to forbid this
    note: `tools.allow` entry `exec` changes nothing; `tools.profile` (`messaging`) does not include it
    note: `tools.allow` entry `read_artifact` changes nothing; a standing tool needs no list to allow it
    note: `agents.coder.allow` entry `group:fs` changes nothing; for `edit`, for example, `tools.profile` (`messaging`) does not include it
    note: `agents.coder.deny` entry `web_search` changes nothing; `web_*` in the same list covers it
    note: `agents.coder.deny` entry `group:fs` changes nothing; for `edit`, for example, `tools.profile` (`messaging`) does not include it
    ");
}

#[test]
fn entries_that_bring_back_what_is_denied() {
    let config = |wins| {
        json!({"tools": {"deny": ["group:runtime"], "deny_wins": wins},
            "agents": {"coder": {"also_allow": ["group:runtime", "glob"]}}})
    };
    insta::assert_snapshot!(linted(config(false)), @r"
    warning: `agents.coder.also_allow` entry `group:runtime` brings back `credentialed_exec`, though `tools.deny` entry `group:runtime` denies it; set `tools.deny_wins` to forbid this
    note: `agents.coder.also_allow` entry `glob` changes nothing; the tool is available without it
    ");
    insta::assert_snapshot!(linted(config(true)), @r"
    note: `agents.coder.also_allow` entry `group:runtime` changes nothing; for `credentialed_exec`, for example, `tools.deny` entry `group:runtime` denies it, and `tools.deny_wins` is set
    note: `agents.coder.also_allow` entry `glob` changes nothing; the tool is available without it
    ");
}

#[test]
fn a_denial_that_only_deny_wins_makes_count_is_not_idle() {
    let config = json!({"tools": {"profile": "minimal", "deny": ["exec"], "deny_wins": true},
        "agents": {"coder": {"also_allow": ["group:runtime"]}}});
    assert_eq!(linted(config), "");
}

#[test]
fn an_empty_allow_list() {
    insta::assert_snapshot!(linted(json!({"tools": {"groups": {"-100": {"allow": []}}}})), @"warning: `tools.groups.-100.allow` is empty, so it keeps no tool; leave the list out to keep all");
}
