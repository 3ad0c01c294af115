use std::ffi::OsString;

use claw_host::files::UndoLimits;
use claw_host::{ArtifactKeeping, ProcessLimits};
use claw_registry::Limits;
use serde_json::json;

use super::{Config, FilesConfig, LimitsConfig, Loaded, Surroundings, schema};

fn around(variables: &[(&str, &str)]) -> Surroundings {
    let variables = variables.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))).collect();
    Surroundings { directory: "/nowhere".into(), variables }
}

#[track_caller]
fn check(variable: &str, value: &str, key: &str, expected: serde_json::Value) {
    let loaded = Loaded::load(None, &around(&[(variable, value)])).unwrap();
    let config = serde_json::to_value(&loaded.config).unwrap();
    assert_eq!(config.pointer(key), Some(&expected), "{config}");
}

#[test]
fn a_variable_gives_what_its_key_takes() {
    check("CLAWSMITH_TENANT", "42", "/tenant", json!("42"));
    check("CLAWSMITH_TENANT", "\"acme\"", "/tenant", json!("acme"));
    check("CLAWSMITH_TOOLS__PROFILE", "coding", "/tools/profile", json!("coding"));
    check("CLAWSMITH_TOOLS__DENY", "[\"exec\"]", "/tools/deny", json!(["exec"]));
    check("CLAWSMITH_TOOLS__DENY", "exec, group:fs", "/tools/deny", json!(["exec", "group:fs"]));
    check("CLAWSMITH_TOOLS__ALLOW", "", "/tools/allow", json!([]));
    check("CLAWSMITH_TOOLS__DENY_WINS", "true", "/tools/deny_wins", json!(true));
    check("CLAWSMITH_LIMITS__RATE__HEAVY", "7", "/limits/rate/heavy", json!(7));
    check("CLAWSMITH_LIMITS__TOOL_TOKENS", "900", "/limits/tool_tokens", json!(900));
    check("CLAWSMITH_APPROVALS__EFFECTS__READ", "ask", "/approvals/effects/read", json!("ask"));
    check("CLAWSMITH_APPROVALS__EFFECTS", "{read = \"ask\"}", "/approvals/effects/read", json!("ask"));
    check("CLAWSMITH_DATA_DIR", "/var/lib/claw", "/data_dir", json!("/var/lib/claw"));
    check("CLAWSMITH_SETTINGS__FAR__DEPTH", "3", "/settings/far/depth", json!(3));
    check("CLAWSMITH_SETTINGS__FAR__NAME", "three", "/settings/far/name", json!("three"));
    check(
        "CLAWSMITH_TOOLS__BY_PROVIDER__OPENAI__PROFILE",
        "minimal",
        "/tools/by_provider/openai/profile",
        json!("minimal"),
    );
}

/// Every key of the default configuration, and those that have no default value.
#[test]
fn every_key_can_be_set_by_environment() {
    let loaded = Loaded { config: Config::default(), ..Loaded::default() };
    let mut keys: Vec<(String, String)> = loaded
        .settings()
        .unwrap()
        .into_iter()
        .map(|setting| (setting.key, setting.value.to_string()))
        .collect();
    for (key, value) in [("data_dir", "/x"), ("tools.allow", "a"), ("limits.tool_tokens", "1")] {
        keys.push((key.to_owned(), value.to_owned()));
    }
    assert!(keys.len() > 20);
    for (key, value) in keys {
        let variable = format!("CLAWSMITH_{}", key.to_uppercase().replace('.', "__"));
        let loaded = Loaded::load(None, &around(&[(&variable, &value)]));
        assert!(loaded.is_ok(), "{variable}={value}: {}", loaded.unwrap_err());
    }
}

#[test]
fn names_that_people_chose_keep_their_spelling() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("clawsmith.toml");
    std::fs::write(&path, "[agents.Front-Desk]\nabout = \"Answers.\"\n").unwrap();
    let around = around(&[("CLAWSMITH_AGENTS__FRONT_DESK__DENY", "exec")]);
    let loaded = Loaded::load(Some(&path), &around).unwrap();
    let agent = &loaded.config.agents["Front-Desk"];
    assert_eq!((agent.about.as_str(), agent.deny.as_slice()), ("Answers.", &["exec".to_owned()][..]));
    assert_eq!(loaded.config.agents.len(), 1);
}

#[test]
fn the_schema_accepts_what_is_the_default() {
    let default = serde_json::to_value(Config::default()).unwrap();
    let properties = schema()["properties"].as_object().unwrap().clone();
    for key in default.as_object().unwrap().keys() {
        assert!(properties.contains_key(key), "{key}");
    }
}

#[test]
fn the_defaults_of_the_libraries_are_those_of_the_file() {
    let limits = LimitsConfig::default();
    assert_eq!(limits.for_calls(), Limits::default());
    assert_eq!(limits.for_processes(), ProcessLimits::default());
    let (results, expected) = (limits.artifact_keeping(), ArtifactKeeping::default());
    assert_eq!((results.age, results.bytes), (expected.age, expected.bytes));
    assert_eq!(FilesConfig::default().undo_limits(), UndoLimits::default());
}
