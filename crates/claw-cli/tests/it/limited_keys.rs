//! Keys that are limited: to agents, so that nothing of another agent is read and nothing of the tenant is changed, and in time.

use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{ApiKey, KeyLimits, NewKey};
use claw_core::{KeyId, NodeId, TenantId, UserId};
use claw_host::SystemClock;
use claw_store::{StoreLocation, StoreOptions};
use serde_json::json;

use crate::api::{example, operations};
use crate::foreign_ids::ids_of_others;
use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;

/// Paths that answer such a key, with what is its own.
const NARROWED: [&str; 9] = [
    "GET /v1/agents",
    "GET /v1/models",
    "GET /v1/ledger",
    "GET /v1/usage",
    "GET /v1/usage/days",
    "GET /v1/undo",
    "GET /v1/approvals",
    "GET /v1/runs",
    "GET /openapi.json",
];

/// Every path of the document, with everything that another agent of the same owner has.
#[test]
fn a_limited_key_of_an_owner_reads_and_changes_nothing_of_other_agents() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let ids = ids_of_others(&home, &gateway);
    let owner = gateway.key("owner", &["--role", "owner", "--scope", "admin"]);
    gateway.post("/v1/agents", &owner, &json!({ "id": "narrow" })).check(201, "narrow");
    let limited = gateway.key("owner", &["--role", "owner", "--scope", "admin", "--agent", "narrow"]);
    let mut tried = 0;
    for (method, path, entry) in operations(&gateway) {
        let what = format!("{method} {path}");
        let is_open = entry["security"].as_array().is_some_and(|needs| needs.is_empty());
        if is_open || what.contains("/mcp") && !path.starts_with("/v1/") {
            continue;
        }
        let mut real = path.clone();
        for (name, id) in &ids {
            real = real.replace(&format!("{{{name}}}"), id);
        }
        let real = real.replace("{tool}", "web_fetch");
        let body = if entry["requestBody"].is_null() { String::new() } else { example(&entry) };
        let answer = gateway.send(&format!("{method} {real}"), &limited, &[], &body);
        for secret in ["secret of main", "of-main", "of_main", "OF_MAIN", "agent:default:http"] {
            assert!(!answer.body.contains(secret) || real.contains(secret), "{what}: {}", answer.body);
        }
        assert!(!answer.body.contains("secret of main"), "{what}: {}", answer.body);
        if !NARROWED.contains(&what.as_str()) {
            assert!(
                matches!(answer.status, 400 | 403 | 404 | 422),
                "{what}: {} {}",
                answer.status,
                answer.body
            );
        }
        tried += 1;
    }
    assert!(tried > 80, "{tried}");
    // What is narrowed is narrowed to its own.
    let models = gateway.get("/v1/models", &limited).check(200, "agent:narrow").json();
    assert_eq!(models["data"].as_array().unwrap().len(), 1, "{models}");
    let agents = gateway.get("/v1/agents", &limited).check(200, "narrow").json();
    assert_eq!(agents["agents"].as_array().unwrap().len(), 1, "{agents}");
    assert_eq!(gateway.get("/v1/ledger", &limited).check(200, "").json()["entries"], json!([]));
    assert_eq!(gateway.get("/v1/undo", &limited).check(200, "").json()["changes"], json!([]));
    assert_eq!(gateway.get("/v1/approvals", &limited).check(200, "").json()["approvals"], json!([]));
    assert_eq!(gateway.get("/v1/runs", &limited).check(200, "").json()["runs"], json!([]));
    assert_eq!(gateway.get("/v1/usage", &limited).check(200, "").json()["answers"], 0);
    gateway.get("/v1/usage?agentId=default", &limited).check(403, "cannot be used with the agent");
    // It works with its own agent, and what it does there is its own to see.
    let call = json!({ "tool": "datetime", "agentId": "narrow" });
    gateway.invoke(&limited, &call).check(200, "\"ok\":true");
    let entries = gateway.get("/v1/ledger", &limited).check(200, "datetime").json();
    assert!(
        entries["entries"].as_array().unwrap().iter().all(|entry| entry["agent"] == "narrow"),
        "{entries}"
    );
    // And nothing was changed.
    gateway.get("/v1/tools/custom/of_main", &owner).check(200, "secret of main");
    gateway.get("/v1/agents/of-main/files/SOUL.md", &owner).check(200, "secret of main");
    gateway.get("/v1/secrets", &owner).check(200, "OF_MAIN");
}

#[test]
fn a_limited_key_remembers_no_rule_for_other_agents() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let owner = gateway.key("owner", &["--role", "owner", "--scope", "admin"]);
    gateway.post("/v1/agents", &owner, &json!({ "id": "narrow" })).check(201, "narrow");
    let limited = gateway.key("owner", &["--role", "owner", "--scope", "admin", "--agent", "narrow"]);
    let call = json!({ "tool": "exec", "agentId": "narrow", "args": { "command": "rm -r build" } });
    let asked = gateway.invoke(&limited, &call).check(202, "approvalId").json();
    let path = format!("/v1/approvals/{}/answer", asked["approvalId"].as_str().unwrap());
    let always = |scope: &str| json!({ "approve": true, "always": { "scope": scope } });
    gateway.post(&path, &limited, &always("tenant")).check(403, "concerns all agents");
    gateway.post(&path, &limited, &always("agent")).check(200, "approved");
}

#[test]
fn lists_come_in_pages() {
    let provider = |name: &str| {
        format!(
            "[models.providers.{name}]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n"
        )
    };
    let providers = provider("one") + &provider("two");
    let home = Home::with_config(&providers);
    let gateway = Gateway::start(&home, ECHO);
    let owner = gateway.key("owner", &["--role", "owner", "--scope", "admin"]);
    gateway.chat(&owner, "one", None).check(200, "You said: one");
    for tool in ["web_fetch", "web_search"] {
        let settings = json!({}).to_string();
        gateway.send(&format!("PUT /v1/settings/tools/{tool}"), &owner, &[], &settings).check(204, "");
    }
    for id in ["a1", "a2", "a3"] {
        let tool = json!({ "name": id, "description": id, "command": "true" });
        gateway.post("/v1/tools/custom", &owner, &tool).check(201, id);
        let document = json!({ "path": format!("memory/{id}.md"), "text": id }).to_string();
        gateway.send("PUT /v1/memory/document", &owner, &[], &document).check(200, id);
        gateway.post("/v1/agents", &owner, &json!({ "id": id, "about": "one of three" })).check(201, id);
        let value = json!({ "value": "a value" }).to_string();
        gateway.send(&format!("PUT /v1/secrets/{id}"), &owner, &[], &value).check(204, "");
        let user = json!({ "id": id, "role": "viewer" });
        gateway.post("/v1/users", &owner, &user).check(201, id);
        gateway.post("/v1/tenants", &owner, &json!({ "id": id })).check(201, id);
        let write = json!({ "tool": "write_file", "args": { "path": id, "content": id } });
        gateway.invoke(&owner, &write).check(200, "\"ok\":true");
    }
    for file in ["SOUL.md", "AGENTS.md"] {
        let text = json!({ "text": "Kind." }).to_string();
        gateway.send(&format!("PUT /v1/agents/a1/files/{file}"), &owner, &[], &text).check(200, file);
    }
    for (list, total) in [
        ("agents", None),
        ("secrets", Some(3)),
        ("users", Some(4)),
        ("tenants", Some(4)),
        ("api-keys", Some(1)),
        ("undo", Some(3)),
        ("tools/custom", Some(3)),
        ("memory", Some(3)),
        ("settings/tools", Some(2)),
        ("agents/a1/files", Some(2)),
        ("providers", Some(2)),
        ("skills", None),
        ("usage/days", Some(1)),
    ] {
        let field = match list {
            "api-keys" => "keys",
            "undo" => "changes",
            "tools/custom" => "tools",
            "memory" => "documents",
            "settings/tools" => "settings",
            "agents/a1/files" => "files",
            "usage/days" => "days",
            list => list,
        };
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = gateway.get(&format!("/v1/{list}?limit=1{cursor}"), &owner).check(200, "next").json();
            let entries = page[field].as_array().unwrap();
            assert!(entries.len() <= 1, "{page}");
            seen.extend(entries.iter().map(ToString::to_string));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={}", next.replace(' ', "%20")),
                None => break,
            }
            assert!(seen.len() < 20, "{list} ends: {seen:?}");
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count, "{list}: each once");
        assert!(total.is_none_or(|total| total == count), "{list}: {seen:?}");
        let whole = gateway.get(&format!("/v1/{list}"), &owner).check(200, "").json();
        assert_eq!(whole[field].as_array().unwrap().len(), count, "{list}");
    }
    gateway.get("/v1/providers/one", &owner).check(200, "\"name\":\"one\"");
    gateway.get("/v1/providers/none", &owner).check(404, "there is no provider `none`");
    gateway.get("/v1/mcp/requests?limit=1", &owner).check(200, "\"next\":null");
    let found = gateway.get("/v1/agents?q=ONE%20of", &owner).check(200, "a1").json();
    assert_eq!(found["agents"].as_array().unwrap().len(), 3);
    gateway.get("/v1/undo?cursor=x", &owner).check(400, "not the `next` of a page");
    gateway.get("/v1/rules?limit=1", &owner).check(200, "next");
    gateway.get("/v1/mcp/servers?limit=1", &owner).check(200, "next");
}

#[test]
fn a_role_that_the_keys_user_does_not_have_is_refused() {
    let home = Home::new();
    assert_eq!(home.run(&["api-keys", "create", "--user", "ann"]).code, 0);
    assert_eq!(home.run(&["api-keys", "create", "--user", "ann", "--role", "operator"]).code, 0);
    let ran = home.run(&["api-keys", "create", "--user", "ann", "--role", "admin"]);
    assert!(ran.code == 2 && ran.stderr.contains("user `ann` has the role `operator`"), "{}", ran.shown());
    assert!(ran.stderr.contains("clawsmith users edit ann --role ROLE"), "{}", ran.shown());
    assert_eq!(home.run(&["api-keys", "list", "--json"]).json().as_array().unwrap().len(), 2);
}

#[test]
fn a_key_is_stored_nowhere() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let owner = gateway.key("root", &["--role", "owner", "--scope", "admin"]);
    let wish = json!({ "user": "ben", "scopes": ["tools:read"] });
    let made = gateway.post("/v1/api-keys", &owner, &wish).check(201, "claw_").json();
    let made = made["key"].as_str().unwrap();
    for key in [key.as_str(), owner.as_str(), made] {
        gateway.get("/v1/tools", key).check(200, "tools");
    }
    let (mut directories, mut read) = (vec![home.data()], 0);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                directories.push(path);
                continue;
            }
            // Sockets and files that are gone by now hold nothing.
            let Ok(bytes) = std::fs::read(&path) else { continue };
            for key in [key.as_str(), owner.as_str(), made] {
                let secret = key.strip_prefix("claw_").unwrap().as_bytes();
                let is_there = bytes.windows(secret.len()).any(|part| part == secret);
                assert!(!is_there, "{} holds a key", path.display());
            }
            read += 1;
        }
    }
    assert!(read > 0);
    let log = std::fs::read_to_string(home.path().join("gateway.log")).unwrap();
    assert!(!log.contains(&key[5..]) && !log.contains(&made[5..]), "{log}");
}

#[test]
fn an_expired_key_is_refused_like_an_unknown_one() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let good = gateway.key("ann", &["--days", "1"]);
    gateway.get("/v1/tools", &good).check(200, "tools");
    // A key lasts a day at least, so one that has ended is stored here.
    let key = ApiKey::from_random([7; 32]);
    let ended = UnixMillis(SystemClock.now().0 - 1_000);
    let new = NewKey {
        id: KeyId::new(),
        hash: key.hash(),
        tenant: TenantId::main(),
        user: Some(UserId::new("ann").unwrap()),
        label: String::new(),
        scopes: "tools:read sessions:read".parse().unwrap(),
        created: UnixMillis(ended.0 - 1_000),
        expires: Some(ended),
        limits: KeyLimits::default(),
    };
    let place = StoreLocation::File(home.data().join("clawsmith.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = claw_store::open(&place, NodeId::local(), &StoreOptions::default()).await.unwrap();
        store.add_key(new).await.unwrap();
        store.disconnect().await;
    });
    let key = key.reveal().to_owned();
    let unknown = gateway.get("/v1/tools", "claw_0000").check(401, "unknown, revoked or expired");
    for path in ["/v1/tools", "/v1/sessions", "/v1/ws", "/mcp"] {
        let refused = gateway.get(path, &key).check(401, "");
        assert_eq!(refused.body, unknown.body, "{path}");
    }
    gateway.get("/v1/tools", &good).check(200, "tools");
}
