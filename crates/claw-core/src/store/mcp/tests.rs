use serde_json::json;

use super::*;

fn name() -> ServerName {
    ServerName::new("github").unwrap()
}

fn listed(tools: &[(&str, Value)]) -> BTreeMap<String, Value> {
    tools.iter().map(|(name, definition)| ((*name).to_owned(), definition.clone())).collect()
}

#[test]
fn a_new_tool_is_accepted_and_a_changed_one_is_not() {
    let first = compare_tools(&name(), &[], &listed(&[("a", json!(1)), ("b", json!(2))]), true);
    assert!(first.iter().all(|tool| tool.state() == McpToolState::Accepted));
    assert!(compare_tools(&name(), &first, &listed(&[("a", json!(1)), ("b", json!(2))]), true).is_empty());

    let changed = compare_tools(&name(), &first, &listed(&[("a", json!("evil")), ("c", json!(3))]), true);
    let states: Vec<_> = changed.iter().map(|tool| (tool.name.as_str(), tool.state())).collect();
    assert_eq!(
        states,
        [("a", McpToolState::Changed), ("b", McpToolState::Gone), ("c", McpToolState::Accepted)]
    );
    // The accepted definition is kept, so that a person can see the difference, and the old one works again.
    assert_eq!(changed[0].accepted, Some(json!(1)));
    let back = compare_tools(&name(), &changed[..1], &listed(&[("a", json!(1))]), true);
    assert_eq!(back[0].state(), McpToolState::Accepted);
}

#[test]
fn a_tool_that_came_back_changed_is_not_accepted() {
    let gone =
        McpTool { server: name(), name: "a".into(), accepted: Some(json!(1)), proposed: None, gone: true };
    let back = compare_tools(&name(), &[gone], &listed(&[("a", json!(2))]), true);
    assert_eq!(back[0].state(), McpToolState::Changed);
}

#[test]
fn new_tools_wait_where_the_server_says_so() {
    let new = compare_tools(&name(), &[], &listed(&[("a", json!(1))]), false);
    assert_eq!(new[0].state(), McpToolState::New);
    let mut tool = new[0].clone();
    assert!(tool.accept() && !tool.accept());
    assert_eq!(tool.state(), McpToolState::Accepted);
}

#[test]
fn an_approved_request_widens_a_grant_by_its_tools() {
    let request = |tools: Option<&[&str]>| McpRequest {
        id: AccessRequestId::new(),
        server: name(),
        user: UserId::new("ann").unwrap(),
        subject: McpSubject::User(UserId::new("ann").unwrap()),
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        reason: String::new(),
        at: UnixMillis(0),
        review: None,
    };
    assert_eq!(request(Some(&["a"])).grant(None).tool_allow, Some(vec!["a".to_owned()]));
    assert_eq!(request(None).grant(None).tool_allow, None);
    let over = McpGrant {
        tool_allow: Some(vec!["a".into()]),
        tool_deny: vec!["b".into(), "c".into()],
        enabled: false,
        ..McpGrant::new(name(), request(None).subject)
    };
    let wider = request(Some(&["b"])).grant(Some(over));
    assert_eq!(wider.tool_allow, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!((wider.tool_deny, wider.enabled), (vec!["c".to_owned()], true));
}

#[test]
fn a_server_reads_as_it_was_written() {
    let text = r#"{"name":"x","transport":"stdio","command":"npx","args":["-y","s"]}"#;
    let server: McpServer = serde_json::from_str(text).unwrap();
    assert!(server.enabled && server.accept_new && server.timeout_secs == 60);
    let again: McpServer = serde_json::from_str(&serde_json::to_string(&server).unwrap()).unwrap();
    assert_eq!(server, again);
    assert!("group:x".parse::<McpSubject>().is_err());
    assert_eq!("agent:default".parse::<McpSubject>().unwrap().to_string(), "agent:default");
}
