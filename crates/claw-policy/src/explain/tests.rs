//! Explanations, as people read them.

use claw_core::tool::SubagentDepth;
use serde_json::{Value, json};

use super::explain;
use crate::pipeline::{Policy, Subject, sample};

const CODER: Subject<'_> = Subject {
    tenant: None,
    agent: "coder",
    provider: None,
    chat_group: None,
    subagent: SubagentDepth { depth: 0, leaf: false },
    request_allow: None,
};

#[track_caller]
fn explained(config: Value, subject: &Subject<'_>, tool: &str) -> String {
    let policy = Policy::compile(&sample::config(config)).unwrap();
    explain(&policy, &sample::tools(), subject, tool).to_string()
}

#[test]
fn a_denied_tool() {
    let config = json!({"tools": {"profile": "messaging", "deny": ["group:runtime", "*exec"]},
        "agents": {"coder": {"allow": ["group:web"]}}});
    insta::assert_snapshot!(explained(config, &CODER, "exec"), @r"
    agent `coder` does not have `exec`: `tools.profile` (`messaging`) does not include it

      -  1 profile: `tools.profile` (`messaging`) does not include it
      -  5 agent allow: `agents.coder.allow` does not name it
      -  8 global deny: `tools.deny` entry `group:runtime` denies it

    to allow it:
      set `tools.profile` to `coding`
      add `exec` to `agents.coder.allow`
      remove `group:runtime` from `tools.deny`
      remove `*exec` from `tools.deny`

    or:
      add `exec` to `tools.also_allow`
    ");
}

#[test]
fn a_tool_that_deny_wins_keeps_away() {
    let config = json!({"tools": {"profile": "minimal", "deny": ["group:runtime"], "deny_wins": true,
        "also_allow": ["exec"]}});
    insta::assert_snapshot!(explained(config, &CODER, "exec"), @r"
    agent `coder` does not have `exec`: `tools.deny` entry `group:runtime` denies it

      -  1 profile: `tools.profile` (`minimal`) does not include it
      -  8 global deny: `tools.deny` entry `group:runtime` denies it
      - 10 global also_allow: `tools.also_allow` entry `exec` cannot add it, since `tools.deny_wins` is set

    to allow it:
      remove `group:runtime` from `tools.deny`
    ");
}

#[test]
fn a_narrowed_tool() {
    let config =
        json!({"tools": {"deny": ["effect:network"]}, "agents": {"coder": {"deny": ["effect:write"]}}});
    insta::assert_snapshot!(explained(config, &CODER, "exec"), @r"
    agent `coder` has `exec`: no step removes it; `tools.deny` entry `effect:network` narrows it, taking away network; `agents.coder.deny` entry `effect:write` narrows it, taking away write

      +  1 profile: `tools.profile` (`full`) includes it
      +  8 global deny: `tools.deny` entry `effect:network` narrows it, taking away network
      +  9 agent deny: `agents.coder.deny` entry `effect:write` narrows it, taking away write

    its calls may have these effects: read, execute (without write, network)

    to take it away:
      add `exec` to `tools.deny`

    to give back the removed effects:
      remove `effect:network` from `tools.deny`
      remove `effect:write` from `agents.coder.deny`
    ");
}

#[test]
fn a_revived_tool() {
    let config = json!({"tools": {"deny": ["group:fs"]}, "agents": {"coder": {"also_allow": ["edit_file"]}}});
    insta::assert_snapshot!(explained(config, &CODER, "edit"), @r"
    agent `coder` has `edit`: `agents.coder.also_allow` entry `edit_file` adds it

      +  1 profile: `tools.profile` (`full`) includes it
      -  8 global deny: `tools.deny` entry `group:fs` denies it
      + 11 agent also_allow: `agents.coder.also_allow` entry `edit_file` adds it

    its calls may have these effects: read, write

    to take it away:
      add `edit` to `tools.deny`
      set `tools.deny_wins` to true
    ");
}

#[test]
fn every_step_at_once() {
    let config = json!({
        "tools": {"profile": "minimal", "allow": ["effect:network", "effect:read"], "deny": ["group:runtime"],
            "by_provider": {"openai": {"profile": "coding", "allow": ["*"]}},
            "groups": {"-100": {"allow": ["group:web"]}}, "also_allow": ["exec"]},
        "agents": {"coder": {"allow": ["web_*"], "deny": ["cron"], "also_allow": ["exec"],
            "by_provider": {"openai": {"allow": ["web_fetch"]}}}},
    });
    let request = ["glob".to_owned()];
    let subject = Subject {
        provider: Some("openai"),
        chat_group: Some("-100"),
        subagent: SubagentDepth { depth: 1, leaf: true },
        request_allow: Some(&request),
        ..CODER
    };
    insta::assert_snapshot!(explained(config, &subject, "web_fetch"), @r"
    agent `coder` does not have `web_fetch`: `request.allow` does not name it

      +  1 profile: `tools.profile` (`minimal`) is replaced by the provider's profile
      +  2 provider profile: `tools.by_provider.openai.profile` (`coding`) includes it
      +  3 global allow: `tools.allow` (effects read, network) keeps it
      +  4 provider allow: `tools.by_provider.openai.allow` entry `*` keeps it
      +  5 agent allow: `agents.coder.allow` entry `web_*` keeps it
      +  6 agent and provider allow: `agents.coder.by_provider.openai.allow` entry `web_fetch` keeps it
      +  7 group allow: `tools.groups.-100.allow` entry `group:web` keeps it
      +  8 global deny: `tools.deny` does not name it
      +  9 agent deny: `agents.coder.deny` does not name it
      + 10 global also_allow: `tools.also_allow` does not name it
      + 11 agent also_allow: `agents.coder.also_allow` does not name it
      + 17 subagent deny: `tools.subagents.deny` does not name it
      + 18 leaf deny: `tools.subagents.leaf_deny` does not name it
      - 19 request allow: `request.allow` does not name it

    to allow it:
      add `web_fetch` to `request.allow`
    ");
}

#[test]
fn a_standing_tool() {
    let config = json!({"tools": {"profile": "minimal", "allow": []}});
    insta::assert_snapshot!(explained(config, &CODER, "read_artifact"), @r"
    agent `coder` has `read_artifact`: no step removes it

      +  1 profile: `tools.profile` (`minimal`) does not apply to a standing tool
      +  3 global allow: `tools.allow` does not apply to a standing tool

    its calls may have these effects: read

    to take it away:
      add `read_artifact` to `tools.deny`
    ");
}

#[test]
fn a_tool_that_this_build_is_without() {
    insta::assert_snapshot!(explained(json!({"tools": {"profile": "messaging"}}), &CODER, "canvas"), @r"
    `canvas` is not in this build, and agent `coder` would not have it: `tools.profile` (`messaging`) does not include it

      -  1 profile: `tools.profile` (`messaging`) does not include it

    to allow it:
      set `tools.profile` to `full`

    or:
      add `canvas` to `tools.also_allow`
    ");
}

#[test]
fn a_tool_that_nobody_knows() {
    insta::assert_snapshot!(explained(json!({}), &CODER, "raed_file"), @"there is no tool `raed_file`; did you mean `read_file`?");
    insta::assert_snapshot!(explained(json!({}), &CODER, "zzz"), @"there is no tool `zzz`");
}
