//! The suite of [`McpStore`]: servers, grants, accepted tools and requests, each of its own tenant.

use std::collections::BTreeMap;

use claw_core::port::UnixMillis;
use claw_core::store::{
    McpEndpoint, McpGrant, McpRequest, McpReview, McpServer, McpStore, McpSubject, McpToolState,
    McpTransport, StoreError, Topic,
};
use claw_core::{AccessRequestId, AgentId, ServerName, TenantId, UserId};
use serde_json::{Value, json};

use crate::fixture::{NOW, tenant};

/// Runs the suite of MCP servers; `make` creates an empty store.
pub async fn mcp<S: McpStore>(make: impl AsyncFn() -> S) {
    keeps_servers_of_tenants_apart(make().await).await;
    removes_a_server_with_all_of_it(make().await).await;
    keeps_grants(make().await).await;
    reads_the_access_of_one_caller(make().await).await;
    stops_a_tool_whose_definition_changed(make().await).await;
    reviews_a_request_once(make().await).await;
    tells_of_changes(make().await).await;
}

fn name(text: &str) -> ServerName {
    ServerName::new(text).unwrap()
}

fn server(text: &str) -> McpServer {
    let endpoint = McpEndpoint {
        url: format!("https://{text}.example/mcp"),
        headers: vec![],
        private: false,
        oauth: None,
    };
    McpServer::new(name(text), McpTransport::Http(endpoint))
}

fn agent(text: &str) -> McpSubject {
    McpSubject::Agent(AgentId::new(text).unwrap())
}

fn user(text: &str) -> UserId {
    UserId::new(text).unwrap()
}

fn listed(tools: &[(&str, Value)]) -> BTreeMap<String, Value> {
    tools.iter().map(|(name, definition)| ((*name).to_owned(), definition.clone())).collect()
}

fn request(server: &str, tools: Option<&[&str]>) -> McpRequest {
    McpRequest {
        id: AccessRequestId::new(),
        server: name(server),
        user: user("ann"),
        subject: McpSubject::User(user("ann")),
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        reason: "releases".to_owned(),
        at: NOW,
        review: None,
    }
}

async fn keeps_servers_of_tenants_apart(store: impl McpStore) {
    let (main, other) = (TenantId::main(), tenant("other"));
    for of in ["zeta", "alpha"] {
        store.put_mcp_server(&main, &server(of), NOW).await.unwrap();
    }
    let changed = McpServer { enabled: false, timeout_secs: 5, ..server("alpha") };
    store.put_mcp_server(&main, &changed, NOW).await.unwrap();
    assert_eq!(store.mcp_servers(&main).await.unwrap(), [changed, server("zeta")]);
    assert_eq!(store.mcp_servers(&other).await.unwrap(), []);
    assert!(!store.remove_mcp_server(&other, &name("zeta")).await.unwrap());
    assert_eq!(store.mcp_servers(&main).await.unwrap().len(), 2);
}

async fn removes_a_server_with_all_of_it(store: impl McpStore) {
    let main = TenantId::main();
    for of in ["one", "two"] {
        store.put_mcp_server(&main, &server(of), NOW).await.unwrap();
        store.put_mcp_grant(&main, &McpGrant::new(name(of), agent("default")), NOW).await.unwrap();
        store.list_mcp_tools(&main, &name(of), &listed(&[("t", json!({}))]), NOW).await.unwrap();
        store.add_mcp_request(&main, &request(of, None)).await.unwrap();
    }
    assert!(store.remove_mcp_server(&main, &name("one")).await.unwrap());
    assert!(!store.remove_mcp_server(&main, &name("one")).await.unwrap());
    let grants = store.mcp_grants(&main).await.unwrap();
    let (tools, requests) = (store.mcp_tools(&main).await.unwrap(), store.mcp_requests(&main).await.unwrap());
    assert_eq!((grants.len(), tools.len(), requests.len()), (1, 1, 1));
    assert!(grants[0].server == name("two") && tools[0].server == name("two"));
}

async fn keeps_grants(store: impl McpStore) {
    let main = TenantId::main();
    let grant = McpGrant::new(name("github"), agent("default"));
    let refused = store.put_mcp_grant(&main, &grant, NOW).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
    store.put_mcp_server(&main, &server("github"), NOW).await.unwrap();
    let narrow = McpGrant {
        tool_allow: Some(vec!["search".into()]),
        tool_deny: vec!["delete".into()],
        enabled: false,
        ..grant.clone()
    };
    for grant in [&grant, &narrow] {
        store.put_mcp_grant(&main, grant, NOW).await.unwrap();
        assert_eq!(store.mcp_grants(&main).await.unwrap(), std::slice::from_ref(grant));
    }
    assert_eq!(store.mcp_grants(&tenant("other")).await.unwrap(), []);
    assert!(!store.remove_mcp_grant(&main, &name("github"), &agent("other")).await.unwrap());
    assert!(store.remove_mcp_grant(&main, &name("github"), &agent("default")).await.unwrap());
    assert_eq!(store.mcp_grants(&main).await.unwrap(), []);
}

async fn reads_the_access_of_one_caller(store: impl McpStore) {
    let (main, github) = (TenantId::main(), name("github"));
    let (default, ann) = (AgentId::new("default").unwrap(), user("ann"));
    for of in ["github", "other"] {
        store.put_mcp_server(&main, &server(of), NOW).await.unwrap();
        for subject in
            [agent("default"), agent("else"), McpSubject::User(ann.clone()), McpSubject::User(user("bob"))]
        {
            store.put_mcp_grant(&main, &McpGrant::new(name(of), subject), NOW).await.unwrap();
        }
    }
    let mine = McpGrant::new(github.clone(), agent("default"));
    let anns = McpGrant::new(github.clone(), McpSubject::User(ann.clone()));
    let read = store.mcp_access(&main, &github, &default, Some(&ann)).await.unwrap().unwrap();
    assert_eq!((read.server, read.grants), (server("github"), vec![mine.clone(), anns.clone()]));
    let read = store.mcp_access(&main, &github, &default, None).await.unwrap().unwrap();
    assert_eq!(read.grants, [mine]);
    store.remove_mcp_grant(&main, &github, &agent("default")).await.unwrap();
    let read = store.mcp_access(&main, &github, &default, Some(&ann)).await.unwrap().unwrap();
    assert_eq!(read.grants, [anns]);
    let read = store.mcp_access(&main, &github, &default, None).await.unwrap().unwrap();
    assert_eq!((read.server.name.as_str(), read.grants.len()), ("github", 0));
    assert_eq!(store.mcp_access(&main, &name("unknown"), &default, None).await.unwrap(), None);
    assert_eq!(store.mcp_access(&tenant("other"), &github, &default, Some(&ann)).await.unwrap(), None);
}

async fn stops_a_tool_whose_definition_changed(store: impl McpStore) {
    let (main, github) = (TenantId::main(), name("github"));
    let unknown = store.list_mcp_tools(&main, &github, &listed(&[]), NOW).await;
    assert!(matches!(unknown, Err(StoreError::Refused { .. })), "{unknown:?}");
    store.put_mcp_server(&main, &server("github"), NOW).await.unwrap();
    let (kind, evil) = (json!({"description": "kind"}), json!({"description": "evil"}));
    let first = store.list_mcp_tools(&main, &github, &listed(&[("a", kind.clone())]), NOW).await.unwrap();
    assert_eq!(first[0].state(), McpToolState::Accepted);
    assert!(store.list_mcp_tools(&main, &github, &listed(&[("a", kind)]), NOW).await.unwrap().is_empty());
    store.list_mcp_tools(&main, &github, &listed(&[("a", evil)]), NOW).await.unwrap();
    let stopped = store.mcp_tools(&main).await.unwrap().remove(0);
    assert_eq!(stopped.state(), McpToolState::Changed);
    // A person accepts the definition that was seen, and none that came since.
    let worse = listed(&[("a", json!({"description": "worse"}))]);
    store.list_mcp_tools(&main, &github, &worse, NOW).await.unwrap();
    assert!(!store.accept_mcp_tool(&main, &stopped, NOW).await.unwrap());
    let stopped = store.mcp_tools(&main).await.unwrap().remove(0);
    assert!(!store.accept_mcp_tool(&tenant("other"), &stopped, NOW).await.is_ok_and(|accepted| accepted));
    assert!(store.accept_mcp_tool(&main, &stopped, NOW).await.unwrap());
    assert_eq!(store.mcp_tools(&main).await.unwrap()[0].state(), McpToolState::Accepted);
}

async fn reviews_a_request_once(store: impl McpStore) {
    let main = TenantId::main();
    store.put_mcp_server(&main, &server("github"), NOW).await.unwrap();
    let (asked, other) = (request("github", Some(&["search"])), request("github", None));
    for request in [&asked, &other] {
        store.add_mcp_request(&main, request).await.unwrap();
    }
    assert_eq!(store.mcp_requests(&main).await.unwrap(), [other.clone(), asked.clone()]);
    let review = |approved| McpReview { approved, by: user("root"), note: None, at: UnixMillis(NOW.0 + 1) };
    let elsewhere = store.review_mcp_request(&tenant("other"), asked.id, &review(true)).await;
    assert!(matches!(elsewhere, Err(StoreError::Refused { .. })), "{elsewhere:?}");
    let approved = store.review_mcp_request(&main, asked.id, &review(true)).await.unwrap();
    assert_eq!(approved.review, Some(review(true)));
    let grants = store.mcp_grants(&main).await.unwrap();
    assert_eq!(grants, [asked.grant(None)]);
    let again = store.review_mcp_request(&main, asked.id, &review(false)).await;
    assert!(matches!(again, Err(StoreError::Refused { .. })), "{again:?}");
    store.review_mcp_request(&main, other.id, &review(false)).await.unwrap();
    assert_eq!(store.mcp_grants(&main).await.unwrap(), grants);
}

async fn tells_of_changes(store: impl McpStore) {
    let (main, mut heard) = (TenantId::main(), store.changes(Topic::Mcp));
    heard.mark_unchanged();
    store.put_mcp_server(&main, &server("github"), NOW).await.unwrap();
    assert!(heard.has_changed().unwrap());
    heard.mark_unchanged();
    store.list_mcp_tools(&main, &name("github"), &listed(&[("a", json!(1))]), NOW).await.unwrap();
    assert!(heard.has_changed().unwrap());
}
