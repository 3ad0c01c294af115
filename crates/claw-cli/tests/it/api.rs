//! The gateway's API as a whole: the OpenAPI document, its page, responses, and abuse of every path in it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway::{Answer, ECHO, Gateway, client, request};
use crate::harness::Home;

/// Method, path and entry of every operation in the document.
pub(crate) fn operations(gateway: &Gateway<'_>) -> Vec<(String, String, Value)> {
    let document = gateway.get("/openapi.json", "").check(200, "\"openapi\":\"3.1.0\"").json();
    let paths = document["paths"].as_object().unwrap().clone();
    let entries = |(path, of): (String, Value)| {
        let of = of.as_object().unwrap().clone();
        of.into_iter().map(move |(method, entry)| (method.to_uppercase(), path.clone(), entry))
    };
    paths.into_iter().flat_map(entries).collect()
}

#[test]
fn the_document_and_the_routes_are_the_same() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let operations = operations(&gateway);
    assert!(operations.len() > 45, "{}", operations.len());
    for (method, path, entry) in &operations {
        let real = path.replace(['{', '}'], "");
        let answer = gateway.send(&format!("{method} {real}"), "", &[], "");
        let is_open = entry["security"].as_array().unwrap().is_empty();
        assert_eq!(answer.status, if is_open { 200 } else { 401 }, "{method} {path}: {}", answer.body);
        assert_eq!(answer.header("set-cookie"), None, "{method} {path}: keys are in no cookie");
    }
    let key = gateway.key("ann", &[]);
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        for (_, path, _) in operations.iter().filter(|(_, path, _)| path != "/mcp") {
            if operations.iter().any(|(of, at, _)| of == method && at == path) {
                continue;
            }
            let real = path.replace(['{', '}'], "");
            let answer = gateway.send(&format!("{method} {real}"), &key, &[], "");
            assert_eq!(answer.status, 405, "{method} {path}: {}", answer.body);
        }
    }
    gateway.get("/v1/nothing", &key).check(404, "there is nothing at `/v1/nothing`");
}

/// Operations whose permission depends on the request.
const DEPENDING: [&str; 3] = ["/v1/tools/custom", "/v1/tools/custom/{name}", "/mcp"];
/// The roles, the least first.
const ROLES: [&str; 4] = ["viewer", "operator", "admin", "owner"];
/// The scopes of which `admin` is each.
const SCOPES: [&str; 15] = [
    "agents:read",
    "agents:write",
    "approvals:answer",
    "approvals:read",
    "ledger:read",
    "memory:read",
    "memory:write",
    "metrics:read",
    "sessions:read",
    "sessions:write",
    "settings:read",
    "settings:write",
    "tools:call",
    "tools:read",
    "users:act",
];

/// The document says what an operation needs, and both are asked for: the scope, and the role.
#[test]
fn every_operation_asks_for_the_scope_and_the_role_that_the_document_names() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let mut keys: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut key = |role: &str, scopes: &str| {
        let of = || gateway.key(role, &["--role", role, "--scope", scopes]);
        keys.entry((role.to_owned(), scopes.to_owned())).or_insert_with(of).clone()
    };
    let mut tried = 0;
    for (method, path, entry) in operations(&gateway) {
        let description = entry["description"].as_str().unwrap();
        let Some(needs) = description.strip_prefix("Needs the scope `") else {
            let is_open = description == "Needs no key.";
            assert!(
                is_open || path == "/v1/ws" || DEPENDING.contains(&path.as_str()),
                "{method} {path}: {description}"
            );
            continue;
        };
        let words: Vec<&str> = needs.split('`').collect();
        let (scope, role) = (words[0], words[2]);
        let what = format!("{method} {}", path.replace(['{', '}'], ""));
        let others: Vec<&str> = SCOPES.into_iter().filter(|other| *other != scope).collect();
        gateway
            .send(&what, &key(role, &others.join(",")), &[], "")
            .check(403, &format!("does not have the scope `{scope}`"));
        let at = ROLES.iter().position(|known| *known == role).unwrap();
        if at > 0 {
            gateway
                .send(&what, &key(ROLES[at - 1], "admin"), &[], "")
                .check(403, &format!("needs the role `{role}`"));
        }
        tried += 1;
    }
    assert!(tried > 90, "{tried}");
}

#[test]
fn the_page_of_the_document_needs_nothing_from_elsewhere() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    for path in ["/docs", "/docs/page.js", "/docs/page.css"] {
        let file = gateway.get(path, "").check(200, "");
        let policy = file.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
        assert!(!file.body.contains("http://") && !file.body.contains("https://"), "{path}");
        assert!(!file.body.contains("innerHTML") && !file.body.contains(" style=\""), "{path}");
    }
}

#[test]
fn a_response_goes_on_where_the_one_before_it_ended() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    let respond = |key: &str, body: Value| gateway.post("/v1/responses", key, &body);
    let first =
        respond(&ann, json!({ "model": "default", "input": "one" })).check(200, "You said: one").json();
    assert_eq!(first["status"], "completed");
    let after = |id: &Value| json!({ "model": "default", "input": "two", "previous_response_id": id });
    respond(&ben, after(&first["id"])).check(404, "there is no response");
    let second = respond(&ann, after(&first["id"])).check(200, "You said: two").json();
    respond(&ann, after(&first["id"])).check(409, "\"code\":\"session_went_on\"");
    respond(&ann, after(&second["id"])).check(200, "You said: two");
    for wrong in
        ["resp_", "resp_x", "", "'; drop table jobs", second["id"].as_str().unwrap().get(5..).unwrap()]
    {
        respond(&ann, after(&json!(wrong))).check(404, "\"type\":\"invalid_request_error\"");
    }
    // A call that the agent makes is part of the output; one that needs approval ends it.
    let listed =
        respond(&ann, json!({ "model": "default", "input": "list the files" })).check(200, "").json();
    let kinds: Vec<&str> =
        listed["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "mcp_call", "message"], "{listed}");
    // A response can be read again, by whom it was made for.
    let path = |response: &Value| format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let stored = gateway.get(&path(&listed), &ann).check(200, "").json();
    for field in ["id", "status", "output", "usage", "object"] {
        assert_eq!(stored[field], listed[field], "{field}");
    }
    assert_eq!(gateway.get(&path(&second), &ann).json()["output"], second["output"]);
    gateway.get(&path(&listed), &ben).check(404, "there is no response");
    gateway.get("/v1/responses/resp_x", &ann).check(404, "\"type\":\"invalid_request_error\"");
    let waits = respond(&ann, json!({ "model": "default", "input": "write" }))
        .check(200, "waiting for approval")
        .json();
    assert_eq!(waits["status"], "completed");
    let streamed = json!({ "model": "default", "input": "three", "stream": true });
    let streamed = respond(&ann, streamed).check(200, "event: response.created");
    let last = streamed.body.lines().rfind(|line| line.starts_with("event: ")).unwrap();
    assert_eq!(last, "event: response.completed", "{}", streamed.body);
    let numbers: Vec<u64> = streamed
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str::<Value>(data).unwrap()["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<u64>>());
}

#[test]
fn curl_asks_an_agent() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let curl = |path: &str, body: &str| {
        let ran = Command::new("curl")
            .args(["-sS", "--max-time", "30", "-H", &format!("Authorization: Bearer {key}")])
            .args(["-H", "Content-Type: application/json", "-d", body])
            .arg(format!("http://{}{path}", gateway.address))
            .output();
        ran.map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    let Ok(said) = curl("/v1/responses", r#"{"model": "default", "input": "one"}"#) else {
        return eprintln!("skipped: there is no curl");
    };
    assert!(said.contains("You said: one"), "{said}");
    let said = curl("/v1/tools/invoke", r#"{"tool": "list_files"}"#).unwrap();
    assert!(said.contains("\"ok\":true"), "{said}");
    let said = curl("/v1/responses", "{").unwrap();
    assert!(said.contains("\"type\":\"invalid_request_error\""), "{said}");
}

#[test]
fn schemathesis_finds_no_fault_in_any_path() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &["--role", "owner", "--scope", "admin"]);
    client(&gateway, "schemathesis_client.py", &key, &[]);
    gateway.get("/health", "").check(200, "ok");
    if std::env::var_os("CLAWSMITH_TEST_PYTHON").is_none() {
        return;
    }
    // A run that reaches nothing finds nothing: the gateway itself counts what came.
    // The first key may be gone by now: some of the generated requests disable users.
    let other = gateway.key("zoe", &["--role", "owner", "--scope", "admin"]);
    let metrics = gateway.get("/metrics", &other).check(200, "clawsmith_http_requests_total").body;
    let is_reached = |(method, path, _): &(String, String, Value)| {
        metrics.contains(&format!("clawsmith_http_requests_total{{method=\"{method}\",path=\"{path}\","))
    };
    let (reached, missed): (Vec<_>, Vec<_>) = operations(&gateway).into_iter().partition(is_reached);
    let missed: Vec<_> = missed.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    assert!(
        reached.len() > 2 * missed.len() && reached.len() > 60,
        "{} reached, not {missed:?}",
        reached.len()
    );
}

/// The advice of an error; of OpenAI's paths the whole message, which ends with it.
pub(crate) fn hint_of(answer: &Answer) -> Option<String> {
    let said = answer.json();
    let hint = said["hint"].as_str().map(str::to_owned);
    hint.or_else(|| Some(said["error"]["message"].as_str()?.split_once("; ")?.1.to_owned()))
}

/// A body that the schema lets through: each required field with a value of its type.
pub(crate) fn example(entry: &Value) -> String {
    let schema = &entry["requestBody"]["content"]["application/json"]["schema"];
    value_of(schema).to_string()
}

fn value_of(schema: &Value) -> Value {
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or("object");
    match kind {
        "string" if schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("sha256")) => {
            json!(format!("sha256:{}", "0".repeat(64)))
        }
        "string" if schema["pattern"].is_string() => json!("agent:default"),
        "string" => json!("x"),
        "boolean" => json!(true),
        "integer" | "number" => json!(1),
        "array" => json!([]),
        _ => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let fields = required.iter().filter_map(Value::as_str);
            fields.map(|name| (name.to_owned(), value_of(&schema["properties"][name]))).collect()
        }
    }
}

#[test]
fn huge_bodies_deep_json_and_slow_heads_are_cut_off() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let huge = format!("{{\"tool\": \"{}\"}}", "x".repeat(9 * 1024 * 1024));
    gateway.send("POST /v1/tools/invoke", &key, &[], &huge).check(413, "");
    for depth in [200, 100_000] {
        let deep =
            format!("{{\"tool\": \"list_files\", \"args\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
        gateway.send("POST /v1/tools/invoke", &key, &[], &deep).check(400, "recursion limit");
        let open = "[".repeat(depth);
        let answer = gateway.send("POST /v1/tools/invoke", &key, &[], &open);
        assert!(matches!(answer.status, 400 | 422), "{}", answer.body);
        let deep = format!("{{\"model\": {}1{}}}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let answer = gateway.send("POST /v1/responses", &key, &[], &deep);
        assert!(
            matches!(answer.status, 400 | 422) && answer.body.contains("invalid_request_error"),
            "{}",
            answer.body
        );
    }
    // A head that comes a byte at a time is not waited for, and others are served meanwhile.
    let began = Instant::now();
    let mut slow: Vec<_> = (0..50).map(|_| gateway.connect()).collect();
    let head = request(&gateway.address, "GET /v1/tools", &key, &[], "");
    for byte in head.as_bytes().iter().take(40) {
        for stream in &mut slow {
            let _ = stream.write_all(&[*byte]);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    gateway.get("/v1/tools", &key).check(200, "list_files");
    for stream in &mut slow {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    }
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    gateway.get("/v1/tools", &key).check(200, "list_files");
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for_forever() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let whole = request(&gateway.address, "POST /v1/tools/invoke", &key, &[], "{\"tool\": \"list_files\"}");
    let mut stream = gateway.connect();
    stream.write_all(&whole.as_bytes()[..whole.len() - 5]).unwrap();
    gateway.get("/v1/tools", &key).check(200, "list_files");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("too_slow"), "{answer}");
}

#[test]
fn no_page_of_another_site_is_told_that_it_may_read() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let own = format!("http://{}", gateway.address);
    for origin in [own.as_str(), "https://evil.example", "null"] {
        for what in
            ["GET /v1/tools", "OPTIONS /v1/tools", "OPTIONS /v1/tools/invoke", "GET /health", "GET /nothing"]
        {
            let asked = [
                ("origin", origin),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "authorization"),
            ];
            let answer = gateway.send(what, &key, &asked, "");
            assert!(
                !answer.head.to_lowercase().contains("access-control-"),
                "{what} {origin}: {}",
                answer.head
            );
            assert!(origin == own || answer.status == 403, "{what} {origin}: {}", answer.status);
        }
    }
}

#[test]
fn a_message_narrows_the_tools_of_its_own_run() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let scopes = "tools:read,tools:call,agents:read,sessions:read,sessions:write,ledger:read";
    let key = gateway.key("ann", &["--scope", scopes]);
    let events = || {
        let entries = gateway.get("/v1/ledger?tool=list_files", &key).check(200, "entries").json();
        let entries = entries["entries"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry.to_string()).collect::<Vec<_>>()
    };
    let asked = "list the files";
    let narrow = json!({ "model": "default", "input": asked, "allowed_tools": ["read_file"],
        "messages": [{ "role": "user", "content": asked }] });
    for (count, path) in ["/v1/chat/completions", "/v1/responses"].iter().enumerate() {
        let mut body = narrow.clone();
        let other = if *path == "/v1/responses" { "messages" } else { "input" };
        body.as_object_mut().unwrap().remove(other);
        gateway.post(path, &key, &body).check(200, "");
        let found = events();
        assert_eq!(found.len(), count + 1, "{found:?}");
        assert!(found.iter().all(|entry| entry.contains("\"refused\"")), "{path}: {found:?}");
    }
    // The next message has all tools again.
    gateway.chat(&key, asked, None).check(200, "So there are some.");
    let found = events();
    assert!(found.iter().any(|entry| entry.contains("\"intent\"")), "{found:?}");
    client(&gateway, "websocket_allowed.py", &key, &[]);
}

#[test]
fn refuses_messages_that_allow_megabytes_of_tools() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let many: Vec<String> = (0..257).map(|number| format!("tool_{number}")).collect();
    let long = vec!["x".repeat(4 << 20)];
    for (allowed, says) in [(&many, "257 entries; at most 256"), (&long, "4194304 bytes; at most 128")] {
        let mut body = json!({ "model": "default", "input": "hi", "allowed_tools": allowed });
        gateway.post("/v1/responses", &key, &body).check(400, says);
        body["messages"] = json!([{ "role": "user", "content": "hi" }]);
        body.as_object_mut().unwrap().remove("input");
        gateway.post("/v1/chat/completions", &key, &body).check(400, says);
        // With a tool of the client, the list is compared with the agent's tools.
        body["tools"] = json!([{ "type": "function", "function": { "name": "weather" } }]);
        gateway.post("/v1/chat/completions", &key, &body).check(400, says);
    }
    assert_eq!(gateway.get("/v1/runs", &key).check(200, "").json()["runs"], json!([]), "nothing is stored");
}

#[test]
fn refuses_rules_that_would_keep_the_gateway_busy() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let admin = gateway.key("ann", &["--role", "admin", "--scope", "admin"]);
    let patterns: Vec<String> = (0..500_000).map(|number| format!("*{number}*")).collect();
    let add = |tools: Value| gateway.post("/v1/agents", &admin, &json!({ "id": "busy", "tools": tools }));
    add(json!({ "deny": patterns })).check(400, "`deny` has 500000 entries; at most 1000 are accepted");
    add(json!({ "allow": ["*".repeat(129)] })).check(400, "129 bytes; at most 128");
    let providers: Value = (0..65).map(|number| (format!("p{number}"), json!({ "allow": [] }))).collect();
    add(json!({ "by_provider": providers })).check(400, "65 providers; at most 64");
    add(json!({ "deny": ["exec"] })).check(201, "busy");
    let rules = json!({ "deny": patterns }).to_string();
    gateway
        .send("PATCH /v1/agents/busy", &admin, &[], &json!({ "tools": { "deny": patterns } }).to_string())
        .check(400, "500000 entries");
    gateway.send("PUT /v1/tenant/rules", &admin, &[], &rules).check(400, "500000 entries");
}

#[test]
fn a_policy_is_explained_compared_and_replayed() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let admin = gateway.key("ann", &["--role", "admin", "--scope", "settings:read,tools:call"]);
    gateway.invoke(&admin, &json!({ "tool": "list_files" })).check(200, "\"ok\":true");
    let post = |path: &str, body: Value| gateway.post(&format!("/v1/policy/{path}"), &admin, &body);
    post("explain", json!({ "tool": "list_files" })).check(200, "\"allowed\":true");
    post("explain", json!({ "tool": "list_files", "requestAllow": ["exec"] }))
        .check(200, "\"allowed\":false");
    post("lint", json!({})).check(200, "findings");
    post("lint", json!({ "config": "[tools]\ndeny = [\"lst_files\"]" })).check(200, "lst_files");
    post("diff", json!({ "config": "[tools]\ndeny = [\"list_files\"]" }))
        .check(200, "\"list_files\":\"lost\"");
    let replayed = post("replay", json!({ "config": "[tools]\ndeny = [\"list_files\"]", "since": "1d" }));
    let replayed = replayed.check(200, "").json();
    assert_eq!(
        (&replayed["changes"][0]["tool"], &replayed["changes"][0]["after"]),
        (&json!("list_files"), &json!("deny"))
    );
    post("replay", json!({ "config": "[tools]", "since": "soon" })).check(400, "use days or hours");
    post("diff", json!({ "config": "tools = 1" })).check(400, "tools");
    post("diff", json!({ "config": "[" })).check(400, "");
    // The deployment's rules are not another tenant's business, nor an operator's.
    assert_eq!(home.run(&["tenants", "add", "other"]).code, 0);
    let other = gateway.key("eve", &["--tenant", "other", "--role", "owner", "--scope", "admin"]);
    gateway.post("/v1/policy/lint", &other, &json!({})).check(403, "own tenant");
    gateway.post("/v1/policy/diff", &other, &json!({ "config": "" })).check(403, "own tenant");
    let operator = gateway.key("ben", &["--scope", "settings:read"]);
    gateway.post("/v1/policy/lint", &operator, &json!({})).check(403, "role `admin`");
}

#[test]
fn an_agent_is_added_changed_by_its_version_and_removed() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let admin = gateway.key("ann", &["--role", "admin", "--scope", "admin"]);
    let new = json!({ "id": "helper", "about": "Helps.", "tools": { "deny": ["exec"] } });
    gateway.post("/v1/agents", &admin, &new).check(201, "Helps.");
    gateway.post("/v1/agents", &admin, &new).check(409, "already");
    gateway
        .post("/v1/agents", &admin, &json!({ "id": "other", "tools": { "deny": ["exek"] } }))
        .check(400, "exek");
    let shown = gateway.get("/v1/agents/helper", &admin).check(200, "\"deny\":[\"exec\"]");
    let tag = shown.header("etag").unwrap().to_owned();
    let patch = |tag: &str, body: Value| {
        gateway.send("PATCH /v1/agents/helper", &admin, &[("if-match", tag)], &body.to_string())
    };
    patch(&tag, json!({ "name": "Helper" })).check(200, "\"name\":\"Helper\"");
    patch(&tag, json!({ "name": "Late" })).check(412, "\"code\":\"stale\"");
    patch("x", json!({ "name": "Late" })).check(400, "If-Match");
    gateway.get("/v1/tools?agentId=helper", &admin).check(200, "list_files");
    // Its rules hold as soon as the store has told of them.
    let deadline = Instant::now() + Duration::from_secs(10);
    while gateway.get("/v1/tools?agentId=helper", &admin).body.contains("\"exec\"") {
        assert!(Instant::now() < deadline, "the agent's rules do not hold");
    }
    let put = |body: &Value, tag: &str| {
        gateway.send("PUT /v1/agents/helper/files/SOUL.md", &admin, &[("if-match", tag)], &body.to_string())
    };
    let first = gateway.send(
        "PUT /v1/agents/helper/files/SOUL.md",
        &admin,
        &[],
        &json!({ "text": "Kind." }).to_string(),
    );
    let tag = first.check(200, "SOUL.md").header("etag").unwrap().to_owned();
    put(&json!({ "text": "Kinder." }), &tag).check(200, "");
    put(&json!({ "text": "Late." }), &tag).check(412, "");
    gateway.get("/v1/agents/helper/files/SOUL.md", &admin).check(200, "Kinder.");
    gateway.get("/v1/agents/helper/files", &admin).check(200, "SOUL.md");
    gateway.get("/v1/agents/helper/files/..%2f..%2fetc", &admin).check(404, "context file");
    gateway.get("/v1/agents/nobody/files", &admin).check(404, "not set up");
    gateway.send("DELETE /v1/agents/helper", &admin, &[], "").check(204, "");
    gateway.get("/v1/agents/helper", &admin).check(404, "no agent `helper`");
    gateway.send("DELETE /v1/agents/helper", &admin, &[], "").check(404, "");
}

#[test]
fn a_custom_tool_is_changed_and_removed_by_its_version() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let owner = gateway.key("ann", &["--role", "owner", "--scope", "admin"]);
    let tool = json!({ "name": "say", "description": "Says it.", "command": "echo it" });
    gateway.post("/v1/tools/custom", &owner, &tool).check(201, "say");
    let path = "/v1/tools/custom/say";
    let send = |method: &str, tag: &str, body: &str| {
        gateway.send(&format!("{method} {path}"), &owner, &[("if-match", tag)], body)
    };
    let first = gateway.get(path, &owner).check(200, "Says it.").header("etag").unwrap().to_owned();
    let change = json!({ "description": "Says more." }).to_string();
    let changed = send("PATCH", &first, &change).check(200, "Says more.");
    let second = changed.header("etag").unwrap().to_owned();
    assert!(first != second && gateway.get(path, &owner).header("etag") == Some(second.as_str()));
    send("PATCH", &first, &change).check(412, "\"code\":\"stale\"");
    send("DELETE", &first, "").check(412, "\"code\":\"stale\"");
    send("DELETE", &second, "").check(204, "");
    gateway.get(path, &owner).check(404, "");
}

#[test]
fn refuses_to_give_more_than_one_has() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let admin = gateway.key("ann", &["--role", "admin", "--scope", "admin"]);
    gateway.key("root", &["--role", "owner", "--scope", "admin"]);
    let key = |user: &str, role: &str| json!({ "user": user, "role": role, "scopes": ["tools:read"] });
    gateway.post("/v1/api-keys", &admin, &key("root", "viewer")).check(403, "role `owner`");
    gateway.post("/v1/api-keys", &admin, &key("new", "owner")).check(403, "role `owner`");
    gateway.post("/v1/users", &admin, &json!({ "id": "eve", "role": "owner" })).check(403, "role `owner`");
    gateway.post("/v1/users", &admin, &json!({ "id": "eve", "role": "viewer" })).check(201, "viewer");
    let edit = |user: &str, body: Value| {
        gateway.send(&format!("PATCH /v1/users/{user}"), &admin, &[], &body.to_string())
    };
    edit("eve", json!({ "role": "owner" })).check(403, "role `owner`");
    edit("root", json!({ "disabled": true })).check(403, "role `owner`");
    edit("eve", json!({ "role": "operator" })).check(200, "operator");
    edit("nobody", json!({ "role": "viewer" })).check(404, "no user");
    gateway.get("/v1/tenants", &admin).check(403, "role `owner`");
    // A key that is made works until it is revoked; it is listed without its value.
    let made = gateway.post("/v1/api-keys", &admin, &key("eve", "viewer")).check(201, "claw_").json();
    let value = made["key"].as_str().unwrap();
    gateway.get("/v1/tools", value).check(200, "list_files");
    assert!(!gateway.get("/v1/api-keys", &admin).check(200, "eve").body.contains("claw_"));
    gateway
        .send(&format!("DELETE /v1/api-keys/{}", made["id"].as_str().unwrap()), &admin, &[], "")
        .check(200, "");
    gateway.get("/v1/tools", value).check(401, "");
    // A key with limits keeps to them, and gives none.
    let limited = json!({
        "user": "eve", "scopes": ["tools:read"], "limits": { "agents": ["helper"], "per_minute": 3 },
    });
    let limited = gateway.post("/v1/api-keys", &admin, &limited).check(201, "").json();
    let limited = limited["key"].as_str().unwrap();
    gateway.get("/v1/tools", limited).check(403, "cannot be used with the agent `default`");
    gateway.get("/v1/tools", limited).check(403, "");
    gateway.get("/v1/tools", limited).check(403, "");
    let refused = gateway.get("/v1/tools", limited).check(429, "limit of requests per minute");
    assert!(refused.header("retry-after").is_some());
    let narrow = gateway.key("root", &["--scope", "admin", "--agent", "default"]);
    gateway.post("/v1/api-keys", &narrow, &key("eve", "viewer")).check(403, "restricted to some agents");
}

#[test]
fn secrets_settings_and_rules_of_a_tenant_are_its_own() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let admin = gateway.key("ann", &["--role", "admin", "--scope", "admin"]);
    let put = |path: &str, body: Value| gateway.send(&format!("PUT {path}"), &admin, &[], &body.to_string());
    put("/v1/secrets/TOKEN", json!({ "value": "tok-9f8e7d6c5b4a" })).check(204, "");
    let listed = gateway.get("/v1/secrets", &admin).check(200, "TOKEN");
    assert!(!listed.body.contains("9f8e7d"), "{}", listed.body);
    put("/v1/secrets/TOKEN", json!({ "value": "" })).check(400, "1 to");
    put("/v1/secrets/a%20b", json!({ "value": "x" })).check(404, "");
    gateway.send("DELETE /v1/secrets/TOKEN", &admin, &[], "").check(204, "");
    gateway.send("DELETE /v1/secrets/TOKEN", &admin, &[], "").check(404, "no secret");
    put("/v1/settings/tools/web_fetch", json!({ "block": ["a.example"] })).check(204, "");
    put("/v1/settings/tools/web_fetch", json!({ "blok": ["a.example"] })).check(400, "no setting `blok`");
    put("/v1/settings/tools/web_fetch", json!({ "block": "a.example" })).check(400, "a list of texts");
    gateway.get("/v1/settings/tools", &admin).check(200, "a.example");
    put("/v1/settings/tools/nothing", json!({})).check(404, "no built-in tool");
    gateway.send("DELETE /v1/settings/tools/web_fetch", &admin, &[], "").check(204, "");
    put("/v1/tenant/rules", json!({ "deny": ["list_files"] })).check(200, "list_files");
    put("/v1/tenant/rules", json!({ "deny": ["lst_files"] })).check(400, "lst_files");
    gateway.get("/v1/tenant/rules", &admin).check(200, "list_files");
    // A rule holds from the next call on.
    let deadline = Instant::now() + Duration::from_secs(10);
    while gateway.get("/v1/tools", &admin).body.contains("\"list_files\"") {
        assert!(Instant::now() < deadline, "the rule does not hold");
    }
    gateway.get("/v1/providers", &admin).check(200, "providers");
    gateway.get("/v1/programs", &admin).check(200, "programs");
    gateway.get("/v1/rules", &admin).check(200, "rules");
}

#[test]
fn changes_are_shown_and_undone_and_the_ledger_comes_in_pages() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let scopes = "tools:call,ledger:read";
    let (ann, ben) = (gateway.key("ann", &["--scope", scopes]), gateway.key("ben", &["--scope", scopes]));
    for text in ["one", "two"] {
        let write = json!({ "tool": "write_file", "args": { "path": "a.txt", "content": text } });
        gateway.invoke(&ann, &write).check(200, "\"ok\":true");
    }
    let changes = gateway.get("/v1/undo", &ann).check(200, "a.txt").json();
    let id = changes["changes"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(gateway.get("/v1/undo", &ben).json()["changes"], json!([]));
    gateway.get(&format!("/v1/undo/{id}"), &ben).check(404, "no change");
    gateway.post(&format!("/v1/undo/{id}/apply"), &ben, &json!({})).check(404, "no change");
    gateway.get(&format!("/v1/undo/{id}"), &ann).check(200, "+two");
    gateway.post(&format!("/v1/undo/{id}/apply"), &ann, &json!({})).check(200, "callId");
    let ledger = home.run(&["ledger", "show", "--json"]).json();
    let undo = ledger.as_array().unwrap().iter().find(|entry| entry["tool"] == "undo").unwrap();
    assert_eq!(undo["args"]["by"], "ann", "{undo}");
    let read = json!({ "tool": "read_file", "args": { "path": "a.txt" } });
    gateway.invoke(&ann, &read).check(200, "one");
    // Pages have every entry once.
    let all = gateway.get("/v1/ledger", &ann).check(200, "").json();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = gateway.get(&format!("/v1/ledger?limit=2{cursor}"), &ann).check(200, "").json();
        let mut entries = page["entries"].as_array().unwrap().clone();
        entries.append(&mut seen);
        seen = entries;
        match page["next"].as_u64() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(Value::from(seen), all["entries"]);
    assert_eq!(gateway.get("/v1/ledger", &ben).json()["entries"], json!([]));
    gateway.get("/v1/ledger/verify", &ann).check(403, "role `admin`");
    let admin = gateway.key("root", &["--role", "admin", "--scope", "admin"]);
    gateway.get("/v1/ledger/verify", &admin).check(200, "\"sound\":true");
    gateway.get("/v1/usage/days", &admin).check(200, "days");
}

#[test]
fn metrics_count_requests_by_route_for_the_deployments_own() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &["--scope", "metrics:read,tools:read,sessions:write"]);
    gateway.get("/v1/tools", &key).check(200, "");
    gateway.get("/v1/runs/0190a000-0000-7000-8000-000000000000", &key).check(403, "");
    gateway.send("BREW /v1/tools", &key, &[], "").check(405, "");
    gateway.chat(&key, "one", None).check(200, "");
    // The first key may be gone by now: some of the generated requests disable users.
    let other = gateway.key("zoe", &["--role", "owner", "--scope", "admin"]);
    let metrics = gateway.get("/metrics", &other).check(200, "# EOF");
    for line in [
        "clawsmith_http_requests_total{method=\"GET\",path=\"/v1/tools\",status=\"200\"} 1",
        "clawsmith_http_requests_total{method=\"GET\",path=\"/v1/runs/{run}\",status=\"403\"} 1",
        "clawsmith_http_requests_total{method=\"other\",path=\"/v1/tools\",status=\"405\"} 1",
        "clawsmith_runs{state=\"pending\"} 0",
        "clawsmith_http_request_seconds_bucket",
    ] {
        assert!(metrics.body.contains(line), "{line}: {}", metrics.body);
    }
    assert!(!metrics.body.contains("0190a000"), "{}", metrics.body);
    gateway.get("/metrics", "").check(401, "");
    gateway.get("/metrics", &gateway.key("ben", &[])).check(403, "metrics:read");
    assert_eq!(home.run(&["tenants", "add", "other"]).code, 0);
    let other = gateway.key("eve", &["--tenant", "other", "--role", "owner", "--scope", "admin"]);
    gateway.get("/metrics", &other).check(403, "own tenant");
}

#[test]
fn tls_is_spoken_with_a_certificate_and_never_without() {
    let home = Home::new();
    let (certificate, key) = (home.path().join("cert.pem"), home.path().join("key.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        return eprintln!("skipped: there is no openssl that makes a certificate");
    }
    home.write("tls.toml", "[gateway.tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n");
    let config = home.path().join("tls.toml");
    let gateway = Gateway::start_with(&home, ECHO, &["--config", config.to_str().unwrap()]);
    let curl = |scheme: &str| {
        let ran = Command::new("curl")
            .args(["-sS", "--max-time", "20", "--cacert"])
            .arg(&certificate)
            .arg(format!("{scheme}://{}/health", gateway.address))
            .output()
            .unwrap();
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    assert!(curl("https").contains("\"ok\""));
    assert!(!curl("http").contains("\"ok\""));
    // A wide address needs TLS, or a proxy that is named; a certificate that is none is no reason to do without.
    let ran = home.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(ran.code == 2 && ran.stderr.contains("others could read API keys"), "{}", ran.shown());
    std::fs::write(&certificate, "nonsense").unwrap();
    let ran = home.run(&["--config", config.to_str().unwrap(), "serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.code == 2 && ran.stderr.contains("is not a usable certificate"), "{}", ran.shown());
}
