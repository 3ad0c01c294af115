//! Ids of another tenant, guessed in every path of the API and in queries.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::{example, hint_of, operations};
use crate::gateway::{ECHO, Gateway, client};
use crate::harness::Home;
use crate::mcp::{good, named, peers};

/// Adds the server `of-main`, and a user who asks for access to it; returns the request. Without the clients of others there
/// is no server, and an id that no tenant has.
fn mcp_server_and_request(home: &Home, gateway: &Gateway<'_>, owner: &str) -> String {
    let Some(peers) = peers() else { return "0190a000-0000-7000-8000-000000000000".to_owned() };
    good(&peers.add_faulty(home, "of-main", &named(&["of_main"]), &[]));
    let wish = json!({ "server": "of-main", "reason": "secret of main" });
    let asked = gateway.post("/v1/mcp/requests", owner, &wish).check(200, "secret of main").json();
    asked["request"]["id"].as_str().unwrap().to_owned()
}

/// Ids of tenant `main`, by the names that paths have for them.
pub(crate) fn ids_of_others(home: &Home, gateway: &Gateway<'_>) -> Vec<(&'static str, String)> {
    let owner = gateway.key("owner", &["--role", "owner", "--scope", "admin"]);
    let waits = gateway.chat(&owner, "write", None).check(200, "waiting for approval");
    let session = waits.header("x-clawsmith-session").unwrap().to_owned();
    let run = waits.header("x-clawsmith-run").unwrap().to_owned();
    let approvals = gateway.get("/v1/approvals", &owner).json();
    let approval = approvals["approvals"][0]["id"].as_str().unwrap().to_owned();
    let tool =
        json!({ "name": "of_main", "description": "secret of main", "command": "echo secret of main" });
    gateway.post("/v1/tools/custom", &owner, &tool).check(201, "of_main");
    std::fs::create_dir(home.path().join("of-main")).unwrap();
    home.write("of-main/SKILL.md", "---\nname: of-main\ndescription: secret of main\n---\nsecret of main\n");
    let published = home.run(&["skills", "add", home.path().join("of-main").to_str().unwrap()]);
    assert_eq!(published.code, 0, "{}", published.shown());
    // A rule that an answer made.
    let asked = gateway.invoke(&owner, &json!({ "tool": "exec", "args": { "command": "rm -r other" } }));
    let asked = asked.check(202, "approvalId").json()["approvalId"].as_str().unwrap().to_owned();
    let always = json!({ "approve": true, "always": {} });
    gateway.post(&format!("/v1/approvals/{asked}/answer"), &owner, &always).check(200, "approved");
    let rules = gateway.get("/v1/rules", &owner).check(200, "exec").json();
    let program = json!({ "binary": "/bin/true", "variables": { "OF_MAIN": "the secret of main itself" }, "bare": true });
    gateway.send("PUT /v1/programs/of-main", &owner, &[], &program.to_string()).check(200, "of-main");
    let request = mcp_server_and_request(home, gateway, &owner);
    let agent = json!({ "id": "of-main", "about": "secret of main" });
    gateway.post("/v1/agents", &owner, &agent).check(201, "secret of main");
    let soul = json!({ "text": "secret of main" }).to_string();
    gateway.send("PUT /v1/agents/of-main/files/SOUL.md", &owner, &[], &soul).check(200, "SOUL.md");
    // It contains the words and is not the words: these are looked for.
    let value = json!({ "value": "the secret of main itself" }).to_string();
    gateway.send("PUT /v1/secrets/OF_MAIN", &owner, &[], &value).check(204, "");
    let settings = json!({ "block": ["of-main.example"] }).to_string();
    gateway.send("PUT /v1/settings/tools/web_fetch", &owner, &[], &settings).check(204, "");
    let write = json!({ "tool": "write_file", "args": { "path": "a.txt", "content": "secret of main" } });
    gateway.invoke(&owner, &write).check(200, "\"ok\":true");
    let facts = json!({ "facts": [{ "entity": { "name": "secret of main", "type": "person" } }] });
    let kept = gateway.post("/v1/graph/facts", &owner, &facts).check(200, "\"added\":1").json();
    let document = json!({ "path": "memory/of-main.md", "text": "secret of main", "owner": "tenant" });
    gateway.send("PUT /v1/memory/document", &owner, &[], &document.to_string()).check(200, "of-main");
    let changes = gateway.get("/v1/undo", &owner).check(200, "a.txt").json();
    let keys = gateway.get("/v1/api-keys", &owner).check(200, "").json();
    let id = |value: &Value| value.as_str().unwrap().to_owned();
    vec![
        ("session", session),
        ("response", format!("resp_{run}")),
        ("run", run),
        ("approval", approval),
        ("name", "of_main".to_owned()),
        ("name", "of-main".to_owned()),
        ("server", "of-main".to_owned()),
        ("request", request),
        ("agent", "of-main".to_owned()),
        ("file", "SOUL.md".to_owned()),
        ("secret", "OF_MAIN".to_owned()),
        ("program", "of-main".to_owned()),
        // Providers are those of the configuration file, for every tenant.
        ("provider", "of-main".to_owned()),
        ("rule", id(&rules["rules"][0]["id"])),
        ("change", id(&changes["changes"][0]["id"])),
        ("key", id(&keys["keys"][0]["id"])),
        ("entity", id(&kept["entities"][0])),
        ("user", "owner".to_owned()),
        ("tenant", "main".to_owned()),
        ("tool", "web_fetch".to_owned()),
    ]
}

/// Paths by which a tenant has something of its own under any name.
const OWN: [&str; 3] =
    ["PUT /v1/secrets/{secret}", "PUT /v1/settings/tools/{tool}", "DELETE /v1/settings/tools/{tool}"];

/// Tries every path of the document that has ids, with ids of another tenant: later resources are included,
/// and one whose ids are not listed above fails this.
#[test]
fn ids_of_another_tenant_lead_nowhere() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let ids = ids_of_others(&home, &gateway);
    assert_eq!(home.run(&["tenants", "add", "other"]).code, 0);
    let stranger = gateway.key("eve", &["--tenant", "other", "--role", "owner", "--scope", "admin"]);
    let (mut tried, mut body_first) = (0, BTreeSet::new());
    for (method, path, entry) in operations(&gateway) {
        if OWN.contains(&format!("{method} {path}").as_str()) {
            continue;
        }
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let names: Vec<String> = names.map(str::to_owned).collect();
        let Some(first) = names.first() else { continue };
        assert!(
            names.iter().all(|name| ids.iter().any(|(of, _)| of == name)),
            "{path}: say what another tenant's is"
        );
        for (_, id) in ids.iter().filter(|(of, _)| of == first) {
            let mut real = path.replace(&format!("{{{first}}}"), id);
            for (name, id) in &ids {
                real = real.replace(&format!("{{{name}}}"), id);
            }
            // Parameters without which the ids are not looked at.
            match (method.as_str(), path.as_str()) {
                ("DELETE", "/v1/mcp/servers/{server}/grants") => real += "?subject=agent:default",
                ("DELETE", "/v1/skills/{name}/grants") => real += "?agentId=default",
                _ => {}
            }
            let body = if entry["requestBody"].is_null() { String::new() } else { example(&entry) };
            let answer = gateway.send(&format!("{method} {real}"), &stranger, &[], &body);
            match answer.status {
                403 | 404 => {}
                400 | 422 => {
                    body_first.insert(format!("{method} {path}: {}", answer.body));
                }
                status => panic!("{method} {real}: {status} {}", answer.body),
            }
            assert!(!answer.body.contains("secret of main"), "{method} {real}: {}", answer.body);
            assert!(
                hint_of(&answer).is_some_and(|hint| !hint.is_empty()),
                "{method} {real}: {}",
                answer.body
            );
            tried += 1;
        }
    }
    // A body made from the schema is good, so that nothing is refused before the id is looked at.
    assert!(body_first.is_empty(), "{body_first:#?}");
    ids_in_queries_lead_nowhere(&gateway, &ids, &stranger);
    // Lists have nothing of another tenant either. Streams do not end, so they are read elsewhere.
    for (method, path, _) in operations(&gateway) {
        let is_stream = path == "/v1/ws" || path.ends_with("/events");
        if method == "GET" && path.starts_with("/v1/") && !path.contains('{') && !is_stream {
            let answer = gateway.get(&path, &stranger);
            assert!(answer.status < 500, "{path}: {}", answer.body);
            for secret in ["secret of main", "of-main", "of_main", "OF_MAIN"] {
                assert!(!answer.body.contains(secret), "{path}: {}", answer.body);
            }
        }
    }
    assert!(tried > 35, "{tried}");
    let namesake = gateway.key("owner", &["--tenant", "other", "--role", "owner", "--scope", "admin"]);
    let of = |name: &str| ids.iter().find(|(of, _)| *of == name).unwrap().1.clone();
    let foreign = [namesake, of("session"), of("run"), of("approval")];
    client(&gateway, "websocket_foreign.py", &stranger, &foreign.each_ref().map(String::as_str));
    // The tenant that has them still has them.
    let owner = gateway.key("owner", &["--role", "owner", "--scope", "admin"]);
    gateway.get("/v1/tools/custom/of_main", &owner).check(200, "secret of main");
    gateway.get("/v1/approvals", &owner).check(200, &ids[3].1);
    gateway.get("/v1/agents/of-main/files/SOUL.md", &owner).check(200, "secret of main");
    gateway.get("/v1/secrets", &owner).check(200, "OF_MAIN");
}

/// Paths that name something of others in their query: a session, a document, an agent, a run.
fn ids_in_queries_lead_nowhere(gateway: &Gateway<'_>, ids: &[(&str, String)], stranger: &str) {
    let id = |name: &str| ids.iter().find(|(of, _)| *of == name).unwrap().1.clone();
    let (session, agent) = (id("session"), id("agent"));
    let queries = [
        (format!("/v1/runs?sessionKey={session}"), 200),
        (format!("/v1/ledger?sessionKey={session}"), 200),
        (format!("/v1/ledger?agentId={agent}"), 200),
        (format!("/v1/usage?agentId={agent}"), 200),
        (format!("/v1/usage/days?agentId={agent}"), 200),
        (format!("/v1/sessions?agentId={agent}"), 200),
        (format!("/v1/tools?agentId={agent}"), 404),
        (format!("/v1/skills?agentId={agent}"), 404),
        (format!("/v1/memory?agentId={agent}"), 404),
        (format!("/v1/memory/search?q=secret&agentId={agent}"), 404),
        ("/v1/memory/document?path=memory/of-main.md".to_owned(), 404),
        (format!("/v1/memory/document?path=memory/of-main.md&agentId={agent}"), 404),
        (format!("/v1/graph/search?q=secret&agentId={agent}"), 404),
        (format!("/v1/graph/export?agentId={agent}"), 404),
        (format!("/v1/tools/custom/of_main?agentId={agent}"), 403),
        (format!("/v1/programs/of-main?agentId={agent}"), 404),
        (format!("/v1/agents/default/files/SOUL.md?userId={}", id("user")), 404),
    ];
    for (path, status) in queries {
        let answer = gateway.get(&path, stranger);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        for secret in ["secret of main", "of_main\"", "OF_MAIN"] {
            assert!(!answer.body.contains(secret), "{path}: {}", answer.body);
        }
    }
}
