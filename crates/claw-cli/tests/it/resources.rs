//! Resources by their ids, runs of a tenant, and the events of many sessions.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;

/// A home with a second tenant, and its owner's key.
fn stranger(home: &Home, gateway: &Gateway<'_>) -> String {
    assert_eq!(home.run(&["tenants", "add", "other"]).code, 0);
    gateway.key("eve", &["--tenant", "other", "--role", "owner", "--scope", "admin"])
}

fn runs(gateway: &Gateway<'_>, query: &str, key: &str) -> Value {
    gateway.get(&format!("/v1/runs{query}"), key).check(200, "runs").json()
}

fn ids(found: &Value) -> Vec<String> {
    found["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_administrator_sees_and_stops_the_runs_of_the_tenant_and_others_their_own() {
    let home = Home::with_config("[agents.scribe]\nabout = \"Writes.\"\n");
    let gateway = Gateway::start(&home, ECHO);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    let admin = gateway.key("root", &["--role", "admin", "--scope", "sessions:read,sessions:write"]);
    let reader = gateway.key("rita", &["--role", "admin", "--scope", "sessions:read"]);
    let limited = gateway.key("lea", &["--role", "admin", "--scope", "sessions:read", "--agent", "scribe"]);
    let eve = stranger(&home, &gateway);
    let run = |key: &str, text: &str| {
        gateway.chat(key, text, None).check(200, "").header("x-clawsmith-run").unwrap().to_owned()
    };
    let (of_ann, waiting) = (run(&ann, "one"), run(&ben, "write"));
    assert_eq!(ids(&runs(&gateway, "", &ann)), [of_ann.as_str()]);
    assert_eq!(ids(&runs(&gateway, "", &ben)), [waiting.as_str()]);
    let all = runs(&gateway, "", &admin);
    assert_eq!(ids(&all), [waiting.clone(), of_ann.clone()], "the latest first");
    assert_eq!((&all["runs"][0]["userId"], &all["runs"][0]["agentId"]), (&json!("ben"), &json!("default")));
    assert_eq!(ids(&runs(&gateway, "?state=parked", &admin)), [waiting.as_str()]);
    assert!(ids(&runs(&gateway, "?state=parked", &ann)).is_empty());
    let first = runs(&gateway, "?limit=1", &admin);
    assert_eq!(ids(&first), [waiting.as_str()]);
    let next = first["next"].as_str().unwrap();
    assert_eq!(ids(&runs(&gateway, &format!("?limit=1&cursor={next}"), &admin)), [of_ann]);
    let session = all["runs"][0]["sessionKey"].as_str().unwrap();
    assert_eq!(ids(&runs(&gateway, &format!("?sessionKey={session}"), &admin)), [waiting.as_str()]);
    gateway.get(&format!("/v1/runs?sessionKey={session}"), &ann).check(404, "there is no session");
    gateway.get("/v1/runs?state=sleeping", &ann).check(400, "");

    // Nobody else sees or stops it: another user, another tenant, a key of another agent, one that may only read.
    for key in [&eve, &limited] {
        assert!(ids(&runs(&gateway, "", key)).is_empty());
    }
    for key in [&ann, &eve] {
        gateway.get(&format!("/v1/runs/{waiting}"), key).check(404, "there is no run");
        gateway.post(&format!("/v1/runs/{waiting}/cancel"), key, &json!({})).check(404, "there is no run");
    }
    gateway.get(&format!("/v1/runs/{waiting}"), &reader).check(200, "parked");
    gateway.post(&format!("/v1/runs/{waiting}/cancel"), &reader, &json!({})).check(403, "sessions:write");
    gateway.post(&format!("/v1/runs/{waiting}/cancel"), &admin, &json!({})).check(200, &waiting);
    let ended = gateway.get(&format!("/v1/runs/{waiting}"), &ben).check(200, "cancelled").json();
    assert_eq!(ended["cancel"]["by"], "root", "{ended}");
}

#[test]
fn a_resource_is_shown_by_its_id_and_not_to_another_tenant() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let owner = gateway.key("owner", &["--role", "owner", "--scope", "admin"]);
    let (ann, eve) = (gateway.answering("ann"), stranger(&home, &gateway));
    let asked = gateway.invoke(&ann, &json!({ "tool": "exec", "args": { "command": "rm -r build" } }));
    let approval = asked.check(202, "approvalId").json()["approvalId"].as_str().unwrap().to_owned();
    let keys = gateway.get("/v1/api-keys", &owner).check(200, "").json();
    let key = keys["keys"][0]["id"].as_str().unwrap();
    let settings = json!({ "block": ["a.example"] }).to_string();
    gateway.send("PUT /v1/settings/tools/web_fetch", &owner, &[], &settings).check(204, "");
    let shown = [
        (format!("/v1/approvals/{approval}"), "\"pending\""),
        (format!("/v1/api-keys/{key}"), key),
        ("/v1/users/ann".to_owned(), "\"ann\""),
        ("/v1/tenants/other".to_owned(), "\"other\""),
        ("/v1/settings/tools/web_fetch".to_owned(), "a.example"),
    ];
    for (path, says) in &shown {
        gateway.get(path, &owner).check(200, says);
        let refused = gateway.get(path, &eve);
        assert!(matches!(refused.status, 403 | 404), "{path}: {}", refused.body);
    }
    gateway.get(&format!("/v1/approvals/{approval}"), &ann).check(200, "rm -r build");
    for path in ["approvals", "rules", "api-keys"] {
        let none = format!("/v1/{path}/0190a000-0000-7000-8000-000000000000");
        gateway.get(&none, &owner).check(404, "there is no");
    }
    gateway.get("/v1/users/nobody", &owner).check(404, "there is no user");
    gateway.get("/v1/tenants/nowhere", &owner).check(404, "there is no tenant");
    gateway.get("/v1/settings/tools/read_file", &owner).check(404, "no settings");

    // A rule that was given with a yes; and an approval that was answered is still shown.
    let yes = json!({ "approve": true, "always": {} });
    gateway.post(&format!("/v1/approvals/{approval}/answer"), &ann, &yes).check(200, "approved");
    gateway.get(&format!("/v1/approvals/{approval}"), &ann).check(200, "\"approved\"");
    let rules = gateway.get("/v1/rules", &owner).check(200, "rules").json();
    let rule = format!("/v1/rules/{}", rules["rules"][0]["id"].as_str().unwrap());
    gateway.get(&rule, &owner).check(200, "exec");
    gateway.get(&rule, &eve).check(404, "there is no rule");
    gateway.get(&rule, &ann).check(403, "admin");
}

#[test]
fn pending_approvals_come_in_pages() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let ann = gateway.answering("ann");
    for name in ["a", "b", "c"] {
        let call = json!({ "tool": "exec", "args": { "command": format!("rm -r {name}") } });
        gateway.invoke(&ann, &call).check(202, "approvalId");
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = gateway.get(&format!("/v1/approvals?limit=2{cursor}"), &ann).check(200, "next").json();
        let shown = page["approvals"].as_array().unwrap().iter();
        found.extend(shown.map(|approval| approval["summary"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found.len(), 3, "{found:?}");
    for (summary, name) in found.iter().zip(["rm -r a", "rm -r b", "rm -r c"]) {
        assert!(summary.contains(name), "{found:?}");
    }
    let sought = gateway.get("/v1/approvals?q=rm%20-r%20b", &ann).check(200, "rm -r b").json();
    assert_eq!(sought["approvals"].as_array().unwrap().len(), 1, "{sought}");
}

/// Follows server-sent events, up to the end of a run of this session; returns the numbers and the sessions.
fn follow(gateway: &Gateway<'_>, query: &str, key: &str, until: &str) -> Vec<(u64, String)> {
    let mut stream: TcpStream = gateway.connect();
    let host = &gateway.address;
    write!(stream, "GET /v1/events{query} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n\r\n")
        .unwrap();
    let mut found = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let data: Value = serde_json::from_str(data).unwrap();
        let session = data["session"].as_str().unwrap().to_owned();
        found.push((data["feed"].as_u64().unwrap(), session.clone()));
        if data["type"] == "run" && data["state"] == "ended" && session == until {
            break;
        }
    }
    found
}

#[test]
fn events_of_many_sessions_are_streamed_to_those_who_may_see_them() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    let admin = gateway.key("root", &["--role", "admin", "--scope", "sessions:read"]);
    let chat = |key: &str, text: &str| {
        gateway.chat(key, text, None).check(200, "").header("x-clawsmith-session").unwrap().to_owned()
    };
    let (of_ben, first, second) = (chat(&ben, "one"), chat(&ann, "two"), chat(&ann, "three"));
    let own = follow(&gateway, "?agentId=default&after=0", &ann, &second);
    let sessions: Vec<&String> = own.iter().map(|(_, session)| session).collect();
    assert!(sessions.contains(&&first) && !sessions.contains(&&of_ben), "{sessions:?}");
    assert!(own.is_sorted_by(|one, other| one.0 < other.0), "{own:?}");
    // From a number on: exactly what came after it.
    let after = own[1].0;
    assert_eq!(follow(&gateway, &format!("?agentId=default&after={after}"), &ann, &second), own[2..]);
    let all = follow(&gateway, "?tenant=true&after=0", &admin, &second);
    assert!(all.iter().any(|(_, session)| *session == of_ben), "{all:?}");
    assert!(own.iter().all(|event| all.contains(event)), "{all:?}");
    gateway.get("/v1/events?tenant=true", &ann).check(403, "administrators");
    gateway.get("/v1/events", &ann).check(400, "agentId");
    gateway.get("/v1/events?tenant=true&agentId=default", &admin).check(400, "agentId");
    // Nothing of one tenant is in another's stream.
    let eve = stranger(&home, &gateway);
    let theirs = chat(&eve, "four");
    let found = follow(&gateway, "?tenant=true&after=0", &eve, &theirs);
    assert!(found.iter().all(|(_, session)| *session == theirs), "{found:?}");
}
