//! The report that people read before they change a policy.

use claw_core::tool::Group;
use serde_json::{Value, json};

use super::diff;
use crate::pipeline::ToolSet;
use crate::pipeline::sample::{self, config};

#[track_caller]
fn changed(old: Value, new: Value) -> String {
    diff(&config(old), &config(new), &sample::tools()).unwrap().to_string()
}

#[test]
fn the_same_policy_in_other_words() {
    let old = json!({"tools": {"allow": ["group:web"]}});
    let new = json!({"tools": {"allow": ["web_fetch", "web_search"]}});
    insta::assert_snapshot!(changed(old, new), @"no agent gains or loses a tool");
}

#[test]
fn gains_losses_and_effects() {
    let old = json!({"tools": {"allow": ["group:fs", "exec"], "deny": ["effect:network"]}});
    let new = json!({"tools": {"allow": ["group:web", "exec", "glob"], "deny": ["effect:write"]},
        "agents": {"coder": {"also_allow": ["edit"]}}});
    insta::assert_snapshot!(changed(old, new), @r"
    agent `coder`:
      ~ exec +network -write
      - list_files
      - read_file
      - search
      + web_fetch
      + web_search
      - write_file
    agent `default`:
      - edit
      ~ exec +network -write
      - list_files
      - read_file
      - search
      + web_fetch
      + web_search
      - write_file
    ");
}

#[test]
fn what_changes_anyway_is_not_repeated() {
    let old = json!({"tools": {"deny": ["exec"], "by_provider": {"openai": {"profile": "messaging"}},
        "groups": {"-100": {"allow": ["exec", "glob"]}}}});
    let new = json!({"tools": {"by_provider": {"openai": {"profile": "messaging"}},
        "groups": {"-100": {"allow": ["exec", "message"]}}, "subagents": {"leaf_deny": []}}});
    insta::assert_snapshot!(changed(old, new), @r"
    agent `default`:
      + exec
    agent `default` as a leaf subagent:
      + sessions_history
      + sessions_list
      + spawn
      + subagents
    agent `default` in chat `-100`:
      - glob
      + message
    ");
}

#[test]
fn a_change_is_data_for_programs() {
    let (old, new) =
        (json!({"tools": {"deny": ["effect:write"]}}), json!({"tools": {"deny": ["effect:network"]}}));
    let tools = sample::tools();
    let runtime = tools.iter().filter(|meta| meta.group == Group::Runtime).cloned();
    let set = ToolSet::new(runtime, []);
    insta::assert_json_snapshot!(diff(&config(old), &config(new), &set).unwrap(), @r#"
    [
      {
        "agent": "default",
        "when": {},
        "tools": {
          "credentialed_exec": "lost",
          "exec": {
            "effects": {
              "gained": [
                "write"
              ],
              "lost": [
                "network"
              ]
            }
          }
        }
      }
    ]
    "#);
}
