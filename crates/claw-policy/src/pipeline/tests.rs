//! Tables of every step, attacks by name, and properties of generated policies.

use claw_core::id::{AgentId, SessionKey, TenantId};
use claw_core::tool::{Caller, Effect, Effects, Group, Meta, PeerKind, SubagentDepth};
use serde_json::{Value, json};

use super::{Policy, Subject, ToolSet, sample};
use crate::config::{AgentTools, PolicyConfig, TenantTools};

mod dice;
mod model;
mod properties;

const AGENT: Subject<'_> = Subject {
    tenant: None,
    agent: "coder",
    provider: None,
    chat_group: None,
    subagent: SubagentDepth { depth: 0, leaf: false },
    request_allow: None,
};
const ON_OPENAI: Subject<'_> = Subject { provider: Some("openai"), ..AGENT };
const IN_CHAT: Subject<'_> = Subject { chat_group: Some("-100"), ..AGENT };
const SUBAGENT: Subject<'_> = Subject { subagent: SubagentDepth { depth: 1, leaf: false }, ..AGENT };
const LEAF: Subject<'_> = Subject { subagent: SubagentDepth { depth: 2, leaf: true }, ..AGENT };

/// The standing tool is always there, and left out of the expected tools.
const STANDING: &str = "read_artifact";

#[track_caller]
fn allowed(config: Value, subject: &Subject<'_>) -> Vec<String> {
    let policy = Policy::compile(&sample::config(config)).unwrap();
    policy.decide(&sample::tools(), subject).names().map(str::to_owned).collect()
}

#[track_caller]
fn check(config: Value, subject: &Subject<'_>, expected: &str) {
    let names = allowed(config, subject);
    let names = Vec::from_iter(names.iter().map(String::as_str).filter(|name| *name != STANDING));
    assert_eq!(names.join(" "), expected);
}

/// Checks the deciding step's words about a tool.
#[track_caller]
fn check_words(config: Value, subject: &Subject<'_>, tool: &str, expected: &str) {
    let policy = Policy::compile(&sample::config(config)).unwrap();
    let verdict = policy.view(&sample::tools(), subject).judge(tool);
    let sign = if verdict.allowed { '+' } else { '-' };
    assert_eq!(format!("{sign} {}", verdict.trace), expected);
}

#[test]
fn an_empty_policy_gives_everything_that_is_built() {
    let names = allowed(json!({}), &AGENT);
    assert_eq!(names.len(), sample::tools().len());
    assert!(names.is_sorted());
    assert!(!names.contains(&"canvas".to_owned()));
}

#[test]
fn profile_is_where_it_starts() {
    check(json!({"tools": {"profile": "minimal"}}), &AGENT, "session_status");
}

#[test]
fn provider_profile_replaces_the_profile() {
    let config = json!({"tools": {"profile": "minimal", "allow": ["group:runtime", "session_status"],
        "by_provider": {"openai": {"profile": "coding"}}}});
    check(config.clone(), &ON_OPENAI, "credentialed_exec exec process session_status");
    check(config, &AGENT, "session_status");
}

#[test]
fn each_allow_list_narrows_the_one_before() {
    let config = json!({
        "tools": {
            "allow": ["group:fs", "group:web", "exec"],
            "by_provider": {"openai": {"allow": ["group:fs", "web_fetch", "spawn"]}},
            "groups": {"-100": {"allow": ["read_file", "exec"]}},
        },
        "agents": {"coder": {
            "allow": ["read_file", "edit", "web_fetch", "exec", "cron"],
            "by_provider": {"openai": {"allow": ["read_file", "web_fetch", "exec"]}},
        }},
    });
    let other = Subject { agent: "other", ..AGENT };
    let both = Subject { chat_group: Some("-100"), ..ON_OPENAI };
    check(
        config.clone(),
        &other,
        "edit exec glob list_files read_file search web_fetch web_search write_file",
    );
    check(
        config.clone(),
        &Subject { agent: "other", ..ON_OPENAI },
        "edit glob list_files read_file search web_fetch write_file",
    );
    check(config.clone(), &AGENT, "edit exec read_file web_fetch");
    check(config.clone(), &ON_OPENAI, "read_file web_fetch");
    check(config.clone(), &IN_CHAT, "exec read_file");
    check(config, &both, "read_file");
}

#[test]
fn an_empty_allow_list_allows_nothing() {
    check(json!({"tools": {"allow": []}}), &AGENT, "");
    check(json!({}), &Subject { request_allow: Some(&[]), ..AGENT }, "");
}

#[test]
fn deny_lists_add_up() {
    let config = json!({"tools": {"allow": ["group:runtime"], "deny": ["exec"]},
        "agents": {"coder": {"deny": ["process"]}}});
    check(config.clone(), &AGENT, "credentialed_exec");
    check(config, &Subject { agent: "other", ..AGENT }, "credentialed_exec process");
}

#[test]
fn also_allow_adds_past_profile_allow_and_deny() {
    let config = json!({"tools": {"profile": "minimal", "deny": ["exec"], "also_allow": ["exec"]},
        "agents": {"coder": {"also_allow": ["group:mcp"]}}});
    check(config.clone(), &AGENT, "exec mcp_github_issues session_status");
    check(config, &Subject { agent: "other", ..AGENT }, "exec session_status");
}

#[test]
fn subagents_lose_what_is_not_their_business() {
    let config = json!({"tools": {"allow": ["group:sessions", "group:memory", "cron", "gateway", "exec"]}});
    check(config.clone(), &SUBAGENT, "exec sessions_history sessions_list spawn subagents");
    check(config.clone(), &LEAF, "exec");
    let top = Subject { subagent: SubagentDepth { depth: 0, leaf: true }, ..AGENT };
    assert_eq!(allowed(config.clone(), &top), allowed(config, &AGENT));
}

#[test]
fn also_allow_gives_nothing_back_to_a_subagent() {
    check(json!({"tools": {"profile": "minimal", "also_allow": ["cron"]}}), &SUBAGENT, "");
}

#[test]
fn the_request_has_the_last_word() {
    let request = ["exec".to_owned(), "group:web".to_owned()];
    let subject = Subject { request_allow: Some(&request), ..AGENT };
    check(json!({"tools": {"profile": "minimal", "also_allow": ["exec", "glob"]}}), &subject, "exec");
}

#[test]
fn an_unreadable_entry_of_a_request_allows_nothing() {
    let request = ["effect:everything".to_owned(), String::new(), "exec".to_owned()];
    check(json!({}), &Subject { request_allow: Some(&request), ..AGENT }, "exec");
}

#[test]
fn a_standing_tool_passes_all_allow_lists_and_obeys_deny_lists() {
    let closed = json!({"tools": {"profile": "minimal", "allow": [], "groups": {"-100": {"allow": []}}}});
    let request = Subject { request_allow: Some(&[]), ..IN_CHAT };
    assert_eq!(allowed(closed, &request), [STANDING]);
    for deny in [STANDING, "group:tools", "effect:read", "*"] {
        let names = allowed(json!({"tools": {"deny": [deny]}}), &AGENT);
        assert!(!names.contains(&STANDING.to_owned()), "{deny}");
    }
}

#[test]
fn effects_in_an_allow_list_count_together() {
    check(
        json!({"tools": {"allow": ["effect:read", "effect:execute"]}}),
        &AGENT,
        "agents_list datetime delegate_search glob knowledge_graph_search list_files memory_get memory_search \
         process read_file search session_status sessions_history sessions_list skill_search use_skill",
    );
    check(json!({"tools": {"allow": ["effect:admin"]}}), &AGENT, "datetime gateway nodes");
}

#[test]
fn an_effect_in_a_deny_list_takes_every_tool_that_has_it() {
    let config = json!({"tools": {"allow": ["group:fs", "group:mcp", "group:custom", "datetime"],
        "deny": ["effect:write"]}});
    check(config, &AGENT, "datetime glob list_files read_file search");
}

#[test]
fn a_tool_that_can_do_without_an_effect_stays_and_loses_it() {
    let effects = |config| {
        let policy = Policy::compile(&sample::config(config)).unwrap();
        policy.view(&sample::tools(), &AGENT).judge("exec").effects
    };
    let narrow =
        json!({"tools": {"deny": ["effect:write"]}, "agents": {"coder": {"deny": ["effect:network"]}}});
    assert_eq!(effects(narrow), Effects::of(&[Effect::Read, Effect::Execute]));
    assert_eq!(effects(json!({"tools": {"deny": ["effect:write", "effect:execute"]}})), Effects::NONE);
    check_words(
        json!({"tools": {"deny": ["effect:write"]}}),
        &AGENT,
        "exec",
        "+ no step removes it; `tools.deny` entry `effect:write` narrows it, taking away write",
    );
}

#[test]
fn also_allow_brings_back_a_tool_but_no_effect() {
    let config = json!({"tools": {"deny": ["exec", "effect:write"], "also_allow": ["exec"]}});
    let policy = Policy::compile(&sample::config(config)).unwrap();
    let verdict = policy.view(&sample::tools(), &AGENT).judge("exec");
    assert_eq!(verdict.effects, Effects::of(&[Effect::Read, Effect::Execute, Effect::Network]));
}

#[test]
fn wildcards_match_names_and_older_names() {
    check(json!({"tools": {"allow": ["web_*"]}}), &AGENT, "web_fetch web_search");
    check(
        json!({"tools": {"allow": ["sessions_*"]}}),
        &AGENT,
        "sessions_history sessions_list sessions_send spawn",
    );
    check(json!({"tools": {"allow": ["group:mcp:git*"]}}), &AGENT, "mcp_github_issues");
}

#[test]
fn older_names_mean_todays_tools() {
    check(
        json!({"tools": {"allow": ["edit_file", "sessions_spawn", "read", "group:team"]}}),
        &AGENT,
        "edit read_file spawn team_message team_tasks",
    );
    check(json!({"tools": {"deny": ["group:goclaw"]}}), &AGENT, "deploy mcp_github_issues");
    check(json!({"tools": {"deny": ["group:clawsmith"]}}), &AGENT, "deploy mcp_github_issues");
}

#[test]
fn the_deciding_step_is_named() {
    let deny = json!({"tools": {"profile": "messaging", "deny": ["group:runtime"], "also_allow": ["exec"],
        "groups": {"-100": {"allow": ["effect:network", "effect:message"]}}},
        "agents": {"coder": {"allow": ["*"]}}});
    check_words(deny.clone(), &AGENT, "process", "- `tools.profile` (`messaging`) does not include it");
    check_words(deny.clone(), &AGENT, "exec", "+ `tools.also_allow` entry `exec` adds it");
    check_words(deny.clone(), &IN_CHAT, "read_image", "- `tools.groups.-100.allow` does not name it");
    check_words(deny.clone(), &IN_CHAT, "web_fetch", "+ no step removes it");
    check_words(
        deny.clone(),
        &SUBAGENT,
        "sessions_send",
        "- `tools.subagents.deny` entry `sessions_send` denies it",
    );
    check_words(deny, &AGENT, "canvas", "- there is no such tool");
    let wins = json!({"tools": {"profile": "minimal", "deny_wins": true, "deny": ["group:runtime"],
        "also_allow": ["exec"]}});
    check_words(wins, &AGENT, "exec", "- `tools.deny` entry `group:runtime` denies it");
}

#[test]
fn a_caller_in_a_group_chat_is_held_to_the_chats_list() {
    let session = SessionKey::new("telegram:-100").unwrap();
    let mut caller = Caller::new(AgentId::new("coder").unwrap(), session, "/work");
    caller.chat_id = Some("-100".into());
    assert_eq!(Subject::from(&caller).chat_group, None);
    caller.peer_kind = PeerKind::Group;
    assert_eq!(Subject::from(&caller), Subject { tenant: Some(&caller.tenant), ..IN_CHAT });
}

/// A `group:` entry must deny even though the policy was not told about groups beforehand.
#[test]
fn refuses_group_entry_that_would_be_inert() {
    for group in Group::BUILT_IN {
        let tools = sample::tools();
        let entry = format!("group:{group}");
        let policy = Policy::compile(&sample::config(json!({"tools": {"deny": [entry]}}))).unwrap();
        for meta in policy.decide(&tools, &AGENT).allowed().map(|(meta, _)| meta) {
            assert!(!meta.groups().any(|g| *g == group), "`{}` survives {group}", meta.name);
        }
    }
}

#[test]
fn refuses_deny_list_with_an_entry_it_cannot_read() {
    let config = json!({"tools": {"deny": ["exec", "effect:wirte"], "subagents": {"leaf_deny": ["group:"]}},
        "agents": {"coder": {"by_provider": {"openai": {"allow": ["exec(rm *)"]}}}}});
    let error = Policy::compile(&sample::config(config)).unwrap_err();
    insta::assert_snapshot!(error, @r"
    `tools.deny`: `effect:wirte` is not an effect; did you mean `effect:write`?
    `agents.coder.by_provider.openai.allow`: `exec(rm *)` can match no name; use letters, digits, `_` and `-`, and `*` for any characters
    `tools.subagents.leaf_deny`: `group:` names no group; write one after the colon, such as `group:fs`
    ");
}

#[test]
fn also_allow_cannot_revive_when_deny_wins() {
    let config = |wins: bool| {
        json!({"tools": {"deny": ["group:runtime"], "deny_wins": wins, "profile": "minimal"},
            "agents": {"coder": {"also_allow": ["exec", "glob"]}}})
    };
    check(config(false), &AGENT, "exec glob session_status");
    check(config(true), &AGENT, "glob session_status");
}

/// A tool that is not offered is not allowed either: a name that a model remembers is judged by the same
/// rules.
#[test]
fn a_remembered_name_is_as_forbidden_as_a_hidden_one() {
    let config = json!({"tools": {"deny": ["spawn"]}});
    for name in ["spawn", "sessions_spawn"] {
        check_words(config.clone(), &AGENT, name, "- `tools.deny` entry `spawn` denies it");
    }
}

#[test]
fn refuses_unregistered_tool_that_takes_an_alias_for_its_name() {
    let policy = Policy::compile(&sample::config(json!({}))).unwrap();
    let impostor = Meta::new("edit_file", Group::Fs);
    assert!(!policy.judge(&sample::tools(), &AGENT, &impostor).allowed);
}

/// An alias in use must not be lost to a tool that this build does not have: a deny entry with that name
/// would be lost too.
#[test]
fn refuses_tool_denied_by_an_alias_that_an_absent_tool_has_for_its_name() {
    let here = Meta::new("create_image", Group::MediaGen).aliases(&["image"]);
    let absent = Meta::new("image", Group::Media);
    let tools = ToolSet::new([here.into()], [absent.into()]);
    let policy = Policy::compile(&sample::config(json!({"tools": {"deny": ["image"]}}))).unwrap();
    assert_eq!(policy.decide(&tools, &AGENT).names().count(), 0);
}

#[test]
fn nothing_declared_counts_as_every_effect() {
    for effect in Effect::ALL {
        let names = allowed(json!({"tools": {"deny": [format!("effect:{effect}")]}}), &AGENT);
        assert!(!names.contains(&"mcp_github_issues".to_owned()), "{effect}");
    }
}

#[test]
fn a_decision_reads_as_a_list() {
    let config = json!({"tools": {"profile": "minimal", "deny": ["effect:network"], "also_allow": ["exec"]}});
    let tools = sample::tools();
    let few = ["exec", "glob", "read_artifact", "session_status"].map(|name| tools.find(name).cloned());
    let few = ToolSet::new(few.into_iter().flatten(), []);
    let decision = Policy::compile(&sample::config(config)).unwrap().decide(&few, &AGENT);
    insta::assert_snapshot!(decision, @r"
    + exec            `tools.also_allow` entry `exec` adds it; `tools.deny` entry `effect:network` narrows it, taking away network
    - glob            `tools.profile` (`minimal`) does not include it
    + read_artifact   no step removes it
    + session_status  no step removes it
    ");
}

#[test]
fn a_trace_is_data_for_programs() {
    let config = json!({"tools": {"profile": "coding", "deny": ["effect:network"]}});
    let policy = Policy::compile(&sample::config(config)).unwrap();
    let verdict = policy.view(&sample::tools(), &AGENT).judge("exec");
    insta::assert_json_snapshot!(verdict, @r#"
    {
      "allowed": true,
      "effects": [
        "read",
        "write",
        "execute"
      ],
      "trace": {
        "decided_by": null,
        "words": "no step removes it; `tools.deny` entry `effect:network` narrows it, taking away network",
        "steps": [
          {
            "step": "profile",
            "list": "tools.profile",
            "mark": "includes",
            "present": true
          },
          {
            "step": "global_deny",
            "list": "tools.deny",
            "entry": "effect:network",
            "mark": "narrows",
            "takes": [
              "network"
            ],
            "present": true
          }
        ]
      }
    }
    "#);
}

/// The rules of a tenant and of its stored agents, over a deployment that denies `exec` and adds `process` again.
fn with_tenants() -> Policy {
    let tools = |json: serde_json::Value| serde_json::from_value::<AgentTools>(json).unwrap();
    let mut config: PolicyConfig = serde_json::from_value(json!({
        "tools": { "deny": ["exec", "process"], "also_allow": ["process"] },
        "agents": { "coder": { "deny": ["edit"] } },
    }))
    .unwrap();
    let stored = json!({ "deny": ["process"], "also_allow": ["exec"] });
    let other = TenantTools {
        allow: Some(["group:fs", "process"].map(str::to_owned).to_vec()),
        deny: vec!["write_file".to_owned()],
        agents: [("coder".to_owned(), tools(stored.clone()))].into(),
    };
    config.tenants.insert(TenantId::new("other").unwrap(), other);
    let own = TenantTools { agents: [("coder".to_owned(), tools(stored))].into(), ..TenantTools::default() };
    config.tenants.insert(TenantId::main(), own);
    Policy::compile(&config).unwrap()
}

#[test]
fn a_tenants_rules_narrow_and_hold_for_it_alone() {
    let (policy, tools) = (with_tenants(), sample::tools());
    let (other, third) = (TenantId::new("other").unwrap(), TenantId::new("third").unwrap());
    let own = TenantId::main();
    let allowed = |subject: &Subject<'_>, name: &str| {
        let verdict = policy.decide(&tools, subject).get(name).cloned().unwrap();
        (verdict.allowed, verdict.trace.to_string())
    };
    let of = |tenant| Subject { tenant: Some(tenant), ..AGENT };
    // The agent in the file belongs to the deployment's own tenant.
    assert!(!allowed(&AGENT, "edit").0 && allowed(&of(&third), "edit").0);
    assert!(!allowed(&of(&other), "write_file").0 && allowed(&of(&third), "write_file").0);
    // A stored deny removes what the deployment adds back; no stored list adds back what the deployment
    // denies.
    assert!(allowed(&of(&third), "process").0);
    let (process, why) = allowed(&of(&other), "process");
    assert!(!process && why.contains("tenants.other.agents.coder.deny"), "{why}");
    for tenant in [&other, &own] {
        assert!(!allowed(&of(tenant), "exec").0, "{tenant}");
    }
    assert!(!allowed(&of(&own), "process").0, "a stored deny adds to the file's");
    let unlisted = allowed(&of(&other), "session_status");
    assert!(!unlisted.0 && unlisted.1.contains("tenants.other.allow"), "{}", unlisted.1);
}
