//! Sessions and approvals over HTTP: renamed, forked, removed; answered for good, in the width that is chosen.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::Home;

const ECHO: &str = "[[turn]]\ndo = [{ say = \"You said: {{said}}\" }]\n";

#[test]
fn a_session_is_renamed_forked_and_removed() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    let session = gateway.chat(&ann, "one", None).header("x-clawsmith-session").unwrap().to_owned();
    let path = format!("/v1/sessions/{session}");
    let title = json!({ "title": "About one" }).to_string();
    gateway.send(&format!("PATCH {path}"), &ben, &[], &title).check(404, "there is no session");
    let renamed = gateway.send(&format!("PATCH {path}"), &ann, &[], &title);
    assert!(renamed.status < 300, "{}", renamed.body);
    assert_eq!(gateway.get("/v1/sessions", &ann).json()["sessions"][0]["title"], "About one");

    let shown = gateway.get(&path, &ann).check(200, "About one").json();
    assert_eq!(shown["sessionKey"], session.as_str());
    assert_eq!((&shown["messages"], &shown["agentId"]), (&json!(2), &json!("default")));
    assert_eq!(shown, gateway.get("/v1/sessions", &ann).json()["sessions"][0]);
    gateway.get(&path, &ben).check(404, "there is no session");
    gateway.get(&format!("{path}-none"), &ann).check(404, "there is no session");
    gateway.get("/v1/sessions/none", &ann).check(404, "there is no session");
    let writer = gateway.key("ann", &["--scope", "sessions:write"]);
    gateway.get(&path, &writer).check(403, "sessions:read");

    gateway.post(&format!("{path}/fork"), &ben, &json!({})).check(404, "there is no session");
    let forked = gateway.post(&format!("{path}/fork"), &ann, &json!({}));
    assert!(forked.status < 300, "{}", forked.body);
    let fork = forked.json()["sessionKey"].as_str().unwrap().to_owned();
    assert_ne!(fork, session);
    gateway.get(&format!("/v1/sessions/{fork}/messages"), &ann).check(200, "You said: one");

    gateway.send(&format!("DELETE {path}"), &ben, &[], "").check(404, "there is no session");
    let removed = gateway.send(&format!("DELETE {path}"), &ann, &[], "");
    assert!(removed.status < 300, "{}", removed.body);
    gateway.get(&format!("{path}/messages"), &ann).check(404, "there is no session");
    gateway.get(&path, &ann).check(404, "there is no session");
    gateway.get(&format!("/v1/sessions/{fork}/messages"), &ann).check(200, "You said: one");
}

#[test]
fn an_approval_is_answered_for_good_in_the_width_that_is_chosen() {
    let home = Home::with_config("[approvals]\nsecurity = \"allowlist\"\n");
    let gateway = Gateway::start(&home, ECHO);
    let ann = gateway.key("ann", &["--scope", "tools:read,tools:call,approvals:read,approvals:answer"]);
    let call =
        |command: &str| gateway.invoke(&ann, &json!({ "tool": "exec", "args": { "command": command } }));
    let waiting = call("cat src/a.txt");
    assert_eq!(waiting.status, 202, "{}", waiting.body);
    let id = waiting.json()["approvalId"].as_str().unwrap().to_owned();
    let begun = Instant::now();
    let shown = loop {
        let all = gateway.get("/v1/approvals", &ann).json();
        let found = all["approvals"].as_array().unwrap().iter().find(|one| one["id"] == id.as_str()).cloned();
        match found {
            Some(found) => break found,
            None => assert!(begun.elapsed() < Duration::from_secs(60), "{all}"),
        }
    };
    let widths: Vec<&Value> = shown["widths"].as_array().unwrap().iter().map(|one| &one["width"]).collect();
    assert_eq!(widths, ["exact", "paths"], "{shown}");
    let answer = |always: Value| {
        gateway.post(
            &format!("/v1/approvals/{id}/answer"),
            &ann,
            &json!({ "approve": true, "always": always }),
        )
    };
    answer(json!({ "scope": "tenant" })).check(403, "only an administrator may");
    answer(json!({ "width": "host" })).check(400, "no rule of width `host` is offered");
    answer(json!({ "width": "paths" })).check(200, "approved");
    // Another path is covered, another option is not.
    assert_eq!(call("cat src/b.txt").status, 200);
    assert_eq!(call("cat -n src/b.txt").status, 202);
}
