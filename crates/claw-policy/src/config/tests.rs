//! Valid and refused configurations.

use serde_json::json;

use super::{PolicyConfig, SubagentTools};
use crate::pipeline::sample::{self, config};

#[test]
fn an_empty_policy_denies_subagents_the_parents_business() {
    let empty = config(json!({}));
    assert_eq!(empty, PolicyConfig::default());
    assert_eq!(empty.tools.subagents.deny, SubagentTools::DENY);
    assert_eq!(empty.tools.subagents.leaf_deny, SubagentTools::LEAF_DENY);
}

#[test]
fn one_subagent_list_leaves_the_other_as_it_was() {
    let subagents = config(json!({"tools": {"subagents": {"deny": []}}})).tools.subagents;
    assert!(subagents.deny.is_empty());
    assert_eq!(subagents.leaf_deny, SubagentTools::LEAF_DENY);
}

#[test]
fn refuses_unknown_fields_everywhere() {
    for misspelt in [
        json!({"tool": {}}),
        json!({"tools": {"denny": []}}),
        json!({"tools": {"by_provider": {"openai": {"deny": []}}}}),
        json!({"tools": {"groups": {"-100": {"deny": []}}}}),
        json!({"tools": {"subagents": {"leaf": []}}}),
        json!({"agents": {"coder": {"profile": "full"}}}),
        json!({"agents": {"coder": {"by_provider": {"openai": {"profile": "full"}}}}}),
    ] {
        assert!(serde_json::from_value::<PolicyConfig>(misspelt.clone()).is_err(), "{misspelt}");
    }
}

#[test]
fn a_policy_survives_being_written_and_read() {
    let written = json!({"tools": {"profile": "coding", "allow": [], "by_provider": {"openai": {"profile": "minimal"}}},
        "agents": {"coder": {"also_allow": ["exec"]}}});
    let config = config(written);
    assert_eq!(sample::config(serde_json::to_value(&config).unwrap()), config);
}

#[test]
fn every_field_says_what_it_is_for() {
    let schema = serde_json::to_value(schemars::schema_for!(PolicyConfig)).unwrap();
    let mut objects = vec![&schema];
    objects.extend(schema["$defs"].as_object().unwrap().values());
    for object in objects {
        for (name, field) in object["properties"].as_object().into_iter().flatten() {
            assert!(field["description"].is_string(), "`{name}` is not described");
        }
    }
}
