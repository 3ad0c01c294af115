//! The suite of [`CustomTools`]: a tool is stored as defined, for its own tenant and agent alone, and a
//! writer that has not seen the last change is refused.

use claw_core::port::UnixMillis;
use claw_core::store::{
    CustomToolAction, CustomToolCard, CustomToolDefinition, CustomToolGrants, CustomToolHttp,
    CustomToolPlace, CustomTools, GrantedPath, Sealed, StoreError, StoredCustomTool, Topic,
};
use claw_core::{AgentId, ToolName};
use serde_json::json;

use super::secrets::sealed;
use crate::fixture::{NOW, tenant};

/// Later than [`NOW`].
const LATER: UnixMillis = UnixMillis(NOW.0 + 1_000);

/// Runs the suite; `make` creates an empty store.
pub async fn custom_tools<S: CustomTools>(make: impl AsyncFn() -> S) {
    keeps_a_tool(make().await).await;
    refuses_a_writer_who_saw_another_version(make().await).await;
    enables_a_tool(make().await).await;
    keeps_tools_of_tenants_and_agents_apart(make().await).await;
    lists_tools_sorted(make().await).await;
    tells_of_tools(make().await).await;
}

/// A custom tool of this place.
pub(super) fn custom_tool(of: &str, agent: Option<&str>, name: &str, env: Sealed) -> StoredCustomTool {
    let place = CustomToolPlace {
        tenant: tenant(of),
        agent: agent.map(|agent| AgentId::new(agent).unwrap()),
        name: ToolName::new(name).unwrap(),
    };
    let definition = CustomToolDefinition {
        description: "Looks up a name.".to_owned(),
        parameters: json!({ "type": "object", "properties": { "domain": { "type": "string" } } }),
        action: CustomToolAction::Command {
            template: "dig +short {{.domain}}".to_owned(),
            working_dir: ".".to_owned(),
        },
        timeout_seconds: 10,
        grants: CustomToolGrants::default(),
        enabled: true,
    };
    let card = CustomToolCard { place, definition, variables: vec!["TOKEN".to_owned()], version: 1, at: NOW };
    StoredCustomTool { card, env }
}

async fn keeps_a_tool(store: impl CustomTools) {
    let mut dns = custom_tool("main", None, "dns", sealed(1, b"x"));
    let place = dns.card.place.clone();
    assert_eq!(store.custom_tool(&place).await.unwrap(), None);
    assert!(!store.remove_custom_tool(&place, None).await.unwrap());
    assert_eq!(store.put_custom_tool(&dns, None).await.unwrap(), 1);
    assert_eq!(store.custom_tool(&place).await.unwrap().as_ref(), Some(&dns));
    dns.env = sealed(2, b"other");
    dns.card.variables = vec!["A\0B".to_owned(), "É".to_owned()];
    (dns.card.at, dns.card.version) = (LATER, 2);
    dns.card.definition = CustomToolDefinition {
        description: "'quotes', \"quotes\"\n\0".to_owned(),
        parameters: json!({ "type": "object", "properties": { "\u{1f980}": { "default": 1.5 } }, "z": 1, "a": 2 }),
        action: CustomToolAction::Http(CustomToolHttp {
            method: "POST".to_owned(),
            url: "https://example.com/{{.x}}".to_owned(),
            body: Some(json!({ "n": [null, true, "{{.x}}"] })),
            headers: vec!["Authorization".to_owned()],
        }),
        timeout_seconds: u32::MAX,
        grants: CustomToolGrants {
            network: true,
            paths: vec![GrantedPath { path: "/srv/\u{1f980}".to_owned(), write: true }],
        },
        enabled: false,
    };
    assert_eq!(store.put_custom_tool(&dns, Some(1)).await.unwrap(), 2);
    assert_eq!(store.custom_tool(&place).await.unwrap().as_ref(), Some(&dns));
    dns.card.definition.action = CustomToolAction::Argv {
        words: vec!["dig".to_owned(), "{{.x}}".to_owned(), String::new()],
        working_dir: "sub".to_owned(),
    };
    dns.card.version = 3;
    assert_eq!(store.put_custom_tool(&dns, Some(2)).await.unwrap(), 3);
    assert_eq!(store.custom_tools(&tenant("main")).await.unwrap(), [dns]);
    assert!(store.remove_custom_tool(&place, None).await.unwrap());
    assert_eq!(store.custom_tool(&place).await.unwrap(), None);
    assert_eq!(store.custom_tools(&tenant("main")).await.unwrap(), []);
}

#[track_caller]
fn stale<T: std::fmt::Debug>(written: Result<T, StoreError>, expected: Option<u64>) {
    match written {
        Err(StoreError::Stale { now, .. }) => assert_eq!(now, expected),
        other => panic!("expected a stale version, got {other:?}"),
    }
}

async fn refuses_a_writer_who_saw_another_version(store: impl CustomTools) {
    let dns = custom_tool("main", None, "dns", sealed(1, b"x"));
    let place = dns.card.place.clone();
    stale(store.put_custom_tool(&dns, Some(1)).await, None);
    store.put_custom_tool(&dns, None).await.unwrap();
    stale(store.put_custom_tool(&dns, None).await, Some(1));
    assert_eq!(store.put_custom_tool(&dns, Some(1)).await.unwrap(), 2);
    stale(store.put_custom_tool(&dns, Some(1)).await, Some(2));
    stale(store.remove_custom_tool(&place, Some(1)).await, Some(2));
    assert!(store.custom_tool(&place).await.unwrap().is_some());
    assert!(store.remove_custom_tool(&place, Some(2)).await.unwrap());
    assert!(!store.remove_custom_tool(&place, Some(2)).await.unwrap());
}

async fn enables_a_tool(store: impl CustomTools) {
    let mut dns = custom_tool("main", None, "dns", sealed(1, b"x"));
    store.put_custom_tool(&dns, None).await.unwrap();
    for (enabled, version) in [(false, 2), (true, 3), (true, 4)] {
        assert!(store.enable_custom_tool(&dns.card.place, enabled, LATER).await.unwrap());
        dns.card.definition.enabled = enabled;
        (dns.card.at, dns.card.version) = (LATER, version);
        assert_eq!(store.custom_tool(&dns.card.place).await.unwrap().as_ref(), Some(&dns));
    }
    let missing = custom_tool("main", None, "none", sealed(1, b"x")).card.place;
    assert!(!store.enable_custom_tool(&missing, true, LATER).await.unwrap());
}

async fn keeps_tools_of_tenants_and_agents_apart(store: impl CustomTools) {
    let all = [
        custom_tool("main", None, "dns", sealed(1, b"0")),
        custom_tool("main", Some("a"), "dns", sealed(1, b"1")),
        custom_tool("main", Some("b"), "dns", sealed(1, b"2")),
        custom_tool("other", None, "dns", sealed(1, b"3")),
        custom_tool("other", Some("a"), "dns", sealed(1, b"4")),
    ];
    for tool in &all {
        assert_eq!(store.custom_tool(&tool.card.place).await.unwrap(), None);
        store.put_custom_tool(tool, None).await.unwrap();
    }
    // Another tenant writes, disables and removes under the same name: nothing of the first changes.
    store.put_custom_tool(&custom_tool("other", None, "dns", sealed(9, b"new")), Some(1)).await.unwrap();
    assert!(store.enable_custom_tool(&all[3].card.place, false, LATER).await.unwrap());
    assert!(store.remove_custom_tool(&all[4].card.place, None).await.unwrap());
    for tool in &all[..3] {
        assert_eq!(store.custom_tool(&tool.card.place).await.unwrap().as_ref(), Some(tool));
    }
    assert_eq!(store.custom_tools(&tenant("main")).await.unwrap(), all[..3]);
    assert_eq!(store.custom_tools(&tenant("other")).await.unwrap().len(), 1);
    assert_eq!(store.custom_tools(&tenant("third")).await.unwrap(), []);
    let third = custom_tool("third", None, "dns", sealed(1, b"x")).card.place;
    assert!(!store.remove_custom_tool(&third, None).await.unwrap());
    assert!(!store.enable_custom_tool(&third, false, LATER).await.unwrap());
}

async fn lists_tools_sorted(store: impl CustomTools) {
    let sorted = [
        custom_tool("main", None, "Dns", sealed(1, b"x")),
        custom_tool("main", None, "a-b", sealed(1, b"x")),
        custom_tool("main", None, "ab", sealed(1, b"x")),
        custom_tool("main", Some("X"), "dns", sealed(1, b"x")),
        custom_tool("main", Some("x"), "a", sealed(1, b"x")),
    ];
    for tool in sorted.iter().rev() {
        store.put_custom_tool(tool, None).await.unwrap();
    }
    assert_eq!(store.custom_tools(&tenant("main")).await.unwrap(), sorted);
}

async fn tells_of_tools(store: impl CustomTools) {
    let mut changes = store.changes(Topic::Tools);
    let dns = custom_tool("main", None, "dns", sealed(1, b"x"));
    store.put_custom_tool(&dns, None).await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    store.enable_custom_tool(&dns.card.place, false, NOW).await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    store.remove_custom_tool(&dns.card.place, None).await.unwrap();
    assert!(changes.has_changed().unwrap());
}
