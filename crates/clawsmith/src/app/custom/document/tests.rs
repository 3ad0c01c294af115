use claw_core::store::CustomToolAction;

use super::*;

/// The example of the product's documents.
const EXAMPLE: &str = r#"{
  "name": "dns_lookup",
  "description": "Look up DNS records for a domain",
  "parameters": {
    "type": "object",
    "properties": {
      "domain": { "type": "string", "description": "Domain name" },
      "record_type": { "type": "string", "enum": ["A", "AAAA", "MX", "CNAME", "TXT"] }
    },
    "required": ["domain"]
  },
  "command": "dig +short {{.record_type}} {{.domain}}",
  "timeout_seconds": 10,
  "enabled": true
}"#;

fn read(text: &str) -> (CustomToolCard, CustomToolValues) {
    CustomToolDocument::parse(text).unwrap().read(&TenantId::main()).unwrap()
}

#[test]
fn the_example_of_the_documents_reads_unchanged() {
    let (card, values) = read(EXAMPLE);
    super::super::check(&card.place, &card.definition).unwrap();
    assert_eq!((card.definition.timeout_seconds, card.definition.enabled), (10, true));
    assert_eq!((card.place.name.as_str(), values.names().len()), ("dns_lookup", 0));
}

#[test]
fn refuses_what_a_tool_does_not_have() {
    for (text, said) in [
        (r#"{"name":"t","description":"d","command":"ls","comand":"x"}"#, "comand"),
        (r#"{"name":"t","description":"d"}"#, "exactly one of"),
        (r#"{"name":"t","description":"d","command":"ls","argv":["ls"]}"#, "exactly one of"),
        (r#"{"name":"t t","description":"d","command":"ls"}"#, "t t"),
        (r#"{"name":"t","description":"d","command":"ls","env":{"A B":"x"}}"#, "A B"),
        (r#"{"name":"t","description":"d","http":{"url":"https://x/"},"env":{"A":"x"}}"#, "http.headers"),
    ] {
        let document = CustomToolDocument::parse(text);
        let error = document.and_then(|document| document.read(&TenantId::main())).map(|_| ()).unwrap_err();
        assert!(error.what().contains(said), "{text}: {error}");
    }
}

#[test]
fn a_view_and_a_debug_text_show_no_value() {
    let text = r#"{"name":"t","description":"d","command":"ls","env":{"TOKEN":"s3cr3t-value"}}"#;
    let document = CustomToolDocument::parse(text).unwrap();
    assert!(!format!("{document:?}").contains("s3cr3t"));
    let (card, _) = document.read(&TenantId::main()).unwrap();
    let shown = serde_json::to_string(&CustomToolView::from(&card)).unwrap();
    assert!(shown.contains("TOKEN") && !shown.contains("s3cr3t"), "{shown}");
}

#[test]
fn a_change_keeps_what_it_does_not_name() {
    let text = r#"{"name":"t","description":"d","command":"ls","env":{"A":"one","B":"two"},
                   "grants":{"network":true},"timeout_seconds":5}"#;
    let (card, values) = read(text);
    let edit = |change: Value| changed(&card, &values, change).unwrap().read(&TenantId::main()).unwrap();
    let (new, kept) =
        edit(json!({ "description": "other", "env": { "B": null, "C": "three" }, "timeout_seconds": null }));
    assert_eq!((new.definition.description.as_str(), new.definition.timeout_seconds), ("other", 60));
    assert_eq!((kept.names(), new.definition.grants.network), (vec!["A".to_owned(), "C".to_owned()], true));
    assert_eq!(new.definition.action, card.definition.action);
    let (new, kept) = edit(json!({ "argv": ["ls", "-l"], "env": { "A": "one", "B": null } }));
    assert!(matches!(new.definition.action, CustomToolAction::Argv { .. }));
    assert_eq!(kept.names(), ["A"]);
    assert!(changed(&card, &values, json!([])).is_err());
    assert!(changed(&card, &values, json!({ "nope": 1 })).is_err());
}

#[test]
fn refuses_to_hand_a_sealed_variable_to_another_command() {
    let text = r#"{"name":"t","description":"d","command":"ls","env":{"A":"one","B":"two"},
                   "grants":{"paths":[{"path":"/srv"}]}}"#;
    let (card, values) = read(text);
    for change in [
        json!({ "command": "env" }),
        json!({ "command": "ls " }),
        json!({ "argv": ["ls"] }),
        json!({ "argv": ["ls"], "command": null }),
        json!({ "working_dir": "other" }),
        json!({ "grants": { "network": true, "paths": [{ "path": "/srv" }] } }),
        json!({ "grants": { "paths": [{ "path": "/srv", "write": true }] } }),
        json!({ "grants": null }),
    ] {
        let with = |env: Value| {
            let mut change = change.clone();
            change["env"] = env;
            changed(&card, &values, change)
        };
        let error = changed(&card, &values, change.clone()).unwrap_err();
        assert!(error.what().contains("the secret variable `A`, `B` was set for"), "{change}: {error}");
        for env in [json!({}), json!({ "C": "x" }), json!({ "a": "x" })] {
            assert!(with(env.clone()).is_err(), "{change}: {env}");
        }
        let error = with(json!({ "A": "new" })).unwrap_err();
        assert!(error.what().contains("variable `B` was"), "{change}: {error}");
        for env in [json!(null), json!({ "A": "one", "B": "two" }), json!({ "A": null, "B": "two" })] {
            assert!(with(env.clone()).is_ok(), "{change}: {env}");
        }
    }
    let same = json!({ "command": "ls", "working_dir": null, "grants": { "paths": [{ "path": "/srv" }] } });
    assert!(changed(&card, &values, same).is_ok());
    // A request has no variables.
    let http = json!({ "http": { "url": "https://x/" } });
    assert!(changed(&card, &values, http).unwrap().env.is_empty());
}
