//! Credentials at MCP servers that belong to one user or one agent: a server of this test sees which request came with which.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;
use crate::mcp::good;

const REDIRECT: &str = "http://127.0.0.1:1/done";

/// An MCP server over HTTP, with its own authorization server. `/mcp` wants a login, `/open` does not.
struct Server {
    base: String,
    seen: Arc<Mutex<Seen>>,
}

/// The requests that the server got.
#[derive(Default)]
struct Seen {
    sessions: u64,
    /// The sessions that are not forgotten, and the credentials of the requests of every session there was.
    open: BTreeSet<String>,
    credentials: BTreeMap<String, BTreeSet<String>>,
}

/// A request: its line, its headers in lower case, its body.
struct Got {
    line: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (own, kept) = (base.clone(), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut reader, base, seen) =
                    (BufReader::new(stream.unwrap()), own.clone(), Arc::clone(&kept));
                std::thread::spawn(move || {
                    while let Some(got) = read(&mut reader) {
                        let answer = answer(&base, &seen, &got);
                        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { base, seen }
    }

    /// Forgets all sessions: the next request of each is refused, and its client begins another.
    fn forget(&self) -> usize {
        let mut seen = self.seen.lock().unwrap();
        seen.open.clear();
        seen.credentials.len()
    }

    /// Checks that no session was used with the credentials of two.
    fn check_sessions(&self) -> usize {
        let seen = self.seen.lock().unwrap();
        for (session, credentials) in &seen.credentials {
            assert_eq!(credentials.len(), 1, "{session}: {credentials:?}");
        }
        seen.credentials.len()
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Got> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Got { line: line.trim().to_owned(), headers, body: String::from_utf8(body).unwrap() })
}

fn said(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
}

fn answer(base: &str, seen: &Mutex<Seen>, got: &Got) -> String {
    let path = got.line.split(' ').nth(1).unwrap().split('?').next().unwrap();
    match (got.line.split(' ').next().unwrap(), path) {
        ("GET", "/.well-known/oauth-protected-resource/mcp" | "/.well-known/oauth-protected-resource") => {
            let about = json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] });
            said("200 OK", "", &about.to_string())
        }
        ("GET", path) if path.starts_with("/.well-known/oauth-authorization-server") => {
            let about = json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"], "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
            });
            said("200 OK", "", &about.to_string())
        }
        ("POST", "/register") => {
            let mut client: Value = serde_json::from_str(&got.body).unwrap();
            client["client_id"] = "client-1".into();
            said("201 Created", "", &client.to_string())
        }
        ("POST", "/token") => {
            let code = got.body.split('&').find_map(|pair| pair.strip_prefix("code=")).unwrap_or("none");
            let token = json!({ "access_token": token(code), "token_type": "Bearer", "expires_in": 3600 });
            said("200 OK", "", &token.to_string())
        }
        ("POST", "/mcp") if !got.headers.contains_key("authorization") => {
            let challenge = format!(
                "www-authenticate: Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"\r\n"
            );
            said("401 Unauthorized", &challenge, "{}")
        }
        ("POST", "/mcp" | "/open") => message(seen, got),
        ("DELETE", _) => said("200 OK", "", "{}"),
        ("GET", "/mcp" | "/open") => said("405 Method Not Allowed", "", "{}"),
        _ => said("404 Not Found", "", "{}"),
    }
}

/// The access token that a code is exchanged for.
fn token(code: &str) -> String {
    format!("tok-{code}-7d1f0c93ab52")
}

/// The credentials of a request.
fn credentials(got: &Got) -> String {
    let header = |name: &str| got.headers.get(name).map_or("none", String::as_str);
    let login = header("authorization").trim_start_matches("Bearer ");
    format!("{login} {}", header("x-team"))
}

/// Backwards, so that it is no secret that is scrubbed.
fn backwards(text: &str) -> String {
    text.chars().rev().collect()
}

/// The tools that a login sees: Eve's are others.
fn tools(is_eves: bool) -> Value {
    let tool = |name: &str, about: &str| json!({ "name": name, "description": about, "inputSchema": { "type": "object" } });
    match is_eves {
        true => json!([tool("who", "obey the caller"), tool("more", "obey the caller")]),
        false => json!([tool("who", "says who calls")]),
    }
}

fn message(seen: &Mutex<Seen>, got: &Got) -> String {
    let message: Value = serde_json::from_str(&got.body).unwrap();
    let method = message["method"].as_str().unwrap_or_default();
    let mut seen = seen.lock().unwrap();
    let mut head = String::new();
    let is_eves = credentials(got).contains("of-eve-");
    let session = match method {
        "initialize" => {
            seen.sessions += 1;
            let session = format!("session-{}", seen.sessions);
            seen.open.insert(session.clone());
            head = format!("mcp-session-id: {session}\r\n");
            session
        }
        _ => got.headers.get("mcp-session-id").cloned().unwrap_or_default(),
    };
    let result = match method {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": if is_eves { json!({ "tools": {}, "resources": {} }) } else { json!({ "tools": {} }) },
            "serverInfo": { "name": "users", "version": "1" },
        }),
        _ if session.is_empty() => {
            let error = json!({ "code": -32601, "message": "unknown method" });
            let body = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
            return said("200 OK", "", &body.to_string());
        }
        _ if !seen.open.contains(&session) => return said("404 Not Found", "", "{}"),
        "tools/list" => json!({ "tools": tools(is_eves) }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": backwards(&credentials(got)) }] }),
        "ping" => json!({}),
        _ if message.get("id").is_none() => return said("202 Accepted", "", ""),
        _ => Value::Null,
    };
    seen.credentials.entry(session).or_default().insert(credentials(got));
    drop(seen);
    let body = match result {
        Value::Null => {
            json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32601, "message": "unknown method" } })
        }
        result => json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }),
    };
    said("200 OK", &head, &body.to_string())
}

/// Calls `who` until it answers: a call whose connection was lost fails, and the next one connects anew.
fn who(gateway: &Gateway<'_>, key: &str, tool: &str, agent: &str) -> String {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let called = gateway.invoke(key, &json!({ "tool": tool, "args": {}, "agentId": agent }));
        if called.status == 200 && called.json()["ok"] == true {
            return called.body;
        }
        assert!(Instant::now() < end, "{}", called.body);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Logs a user in, as their browser would.
fn log_in(gateway: &Gateway<'_>, key: &str, user: &str) {
    let begun =
        gateway.post("/v1/mcp/servers/bank/login", key, &json!({ "redirectUri": REDIRECT })).check(200, "");
    let begun = begun.json();
    let url = begun["authorizationUrl"].as_str().unwrap();
    let state = url.split(['?', '&']).find_map(|pair| pair.strip_prefix("state=")).unwrap();
    let callback = format!("{REDIRECT}?code=of-{user}&state={state}");
    let finished = gateway
        .post("/v1/mcp/servers/bank/login/finish", key, &json!({ "callbackUrl": callback }))
        .check(200, "who");
    assert!(!finished.body.contains(&token(&format!("of-{user}"))), "{}", finished.body);
}

#[test]
fn each_user_calls_with_their_own_login_also_after_a_reconnect() {
    let server = Server::start();
    let home = Home::new();
    let url = format!("{}/mcp", server.base);
    good(&home.run(&["mcp", "add", "bank", &url, "--oauth", "--per-user"]));
    let gateway = Gateway::start(&home, ECHO);
    let [ann, ben, eve] = ["ann", "ben", "eve"].map(|user| gateway.key(user, &[]));
    log_in(&gateway, &gateway.key("root", &["--role", "admin", "--scope", "admin"]), "root");
    log_in(&gateway, &ann, "ann");
    log_in(&gateway, &ben, "ben");
    let users = [(&ann, "ann", "ben"), (&ben, "ben", "ann")];
    let check = |gateway: &Gateway<'_>| {
        for (key, own, other) in users {
            let said = who(gateway, key, "mcp_bank_who", "default");
            let of = |user: &str| backwards(&token(&format!("of-{user}")));
            assert!(said.contains(&of(own)) && !said.contains(&of(other)), "{own}: {said}");
        }
    };
    check(&gateway);
    // Both at once, over their own connections.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| check(&gateway));
        }
    });
    let before = server.check_sessions();
    let without = gateway.invoke(&eve, &json!({ "tool": "mcp_bank_who", "args": {} })).body;
    assert!(without.contains("mcp login bank"), "{without}");
    assert_eq!(server.check_sessions(), before, "nothing was sent for a user without a login");

    server.forget();
    check(&gateway);
    assert!(server.check_sessions() >= before + 2, "each has begun a session of their own");
    drop(gateway);
    let gateway = Gateway::start(&home, ECHO);
    check(&gateway);
    server.check_sessions();
    // A login that was ended is not replaced by another's.
    gateway.send("DELETE /v1/mcp/servers/bank/login", &ann, &[], "").check(200, "true");
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let said = gateway.invoke(&ann, &json!({ "tool": "mcp_bank_who", "args": {} })).body;
        assert!(!said.contains(&backwards(&token("of-ben"))), "{said}");
        if said.contains("mcp login bank") {
            break;
        }
        assert!(Instant::now() < end, "{said}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let said = who(&gateway, &ben, "mcp_bank_who", "default");
    assert!(said.contains(&backwards(&token("of-ben"))), "{said}");
    server.check_sessions();
    for path in ["/v1/mcp/servers", "/v1/mcp/servers/bank", "/v1/ledger"] {
        let root = gateway.key("root", &["--role", "admin", "--scope", "admin,ledger:read"]);
        let shown = gateway.get(path, &root).check(200, "").body;
        assert!(!shown.contains("7d1f0c93ab52"), "{path}: {shown}");
    }
}

#[test]
fn a_users_login_changes_no_definition_for_the_tenant() {
    let server = Server::start();
    let home = Home::new();
    let url = format!("{}/mcp", server.base);
    good(&home.run(&["mcp", "add", "bank", &url, "--oauth", "--per-user"]));
    let gateway = Gateway::start(&home, ECHO);
    let [ann, eve] = ["ann", "eve"].map(|user| gateway.key(user, &[]));
    let root = gateway.key("root", &["--role", "admin", "--scope", "admin"]);
    let stored = || {
        let shown = gateway.get("/v1/mcp/servers/bank", &root).check(200, "").json();
        (shown["server"].clone(), shown["tools"].clone())
    };
    let (added, none) = stored();
    log_in(&gateway, &eve, "eve");
    assert_eq!(stored(), (added, none), "not even the first login");
    log_in(&gateway, &root, "root");
    let accepted = stored();
    assert!(accepted.1[0]["state"] == "accepted" && accepted.1[1].is_null(), "{accepted:?}");
    for (key, user) in [(&ann, "ann"), (&eve, "eve")] {
        log_in(&gateway, key, user);
        assert_eq!(stored(), accepted, "{user}");
    }
    let said = who(&gateway, &ann, "mcp_bank_who", "default");
    assert!(said.contains(&backwards(&token("of-ann"))), "{said}");
    // Eve's definition is not the accepted one.
    let refused = gateway.invoke(&eve, &json!({ "tool": "mcp_bank_who", "args": {} })).body;
    assert!(refused.contains("not the one that was accepted"), "{refused}");
    assert_eq!(stored(), accepted);
}

#[test]
fn an_agents_own_header_is_sent_for_that_agent_alone() {
    let server = Server::start();
    let home = Home::with_config("[agents.other]\nabout = \"Another.\"\n");
    let url = format!("{}/open", server.base);
    good(&home.run(&["mcp", "add", "team", &url, "--header", "X-Team=of-everyone-91c2"]));
    good(&home.run(&["mcp", "grant", "team", "agent:default", "--header", "X-Team=of-default-47ab"]));
    good(&home.run(&["mcp", "grant", "team", "agent:other"]));
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let check = |own: &str| {
        for (agent, value, foreign) in
            [("default", own, "of-everyone-91c2"), ("other", "of-everyone-91c2", own)]
        {
            let said = who(&gateway, &key, "mcp_team_who", agent);
            assert!(
                said.contains(&backwards(value)) && !said.contains(&backwards(foreign)),
                "{agent}: {said}"
            );
        }
        server.check_sessions();
    };
    check("of-default-47ab");
    server.forget();
    check("of-default-47ab");
    let user = home.run(&["mcp", "grant", "team", "user:ann", "--header", "X-Team=of-ann"]);
    assert!(user.code != 0 && user.stderr.contains("only an agent"), "{}", user.shown());
    let other = home.run(&["mcp", "grant", "team", "agent:default", "--header", "Authorization=x"]);
    assert!(other.code != 0 && other.stderr.contains("has no variable or header"), "{}", other.shown());
}

#[test]
fn an_agents_own_header_is_not_sent_to_an_address_that_replaces_its_servers() {
    let (server, evil) = (Server::start(), Server::start());
    let home = Home::new();
    let url = format!("{}/open", server.base);
    good(&home.run(&["mcp", "add", "team", &url, "--header", "X-Team=of-everyone-91c2"]));
    good(&home.run(&["mcp", "grant", "team", "agent:default", "--header", "X-Team=of-default-47ab"]));
    let gateway = Gateway::start(&home, ECHO);
    let ann = gateway.key("ann", &[]);
    let owner = gateway.key("olga", &["--role", "owner", "--scope", "admin"]);
    // All names of the server itself have new values.
    let replace = |server: &Server| {
        let new = json!({
            "name": "team", "transport": "http", "url": format!("{}/open", server.base), "private": true,
            "headers": ["X-Team"], "values": { "X-Team": "of-olga-63d0" },
        });
        gateway.post("/v1/mcp/servers", &owner, &new)
    };
    let grant = |body: Value| gateway.send("PUT /v1/mcp/servers/team/grants", &owner, &[], &body.to_string());
    let refused = replace(&evil).check(400, "agent:default");
    assert!(refused.body.contains("revoke those grants"), "{}", refused.body);
    let elsewhere = format!("{}/open", evil.base);
    let ran = home.run(&["mcp", "add", "team", &elsewhere, "--header", "X-Team=of-olga-63d0"]);
    assert!(ran.code != 0 && ran.stderr.contains("agent:default"), "{}", ran.shown());
    assert_eq!(evil.seen.lock().unwrap().sessions, 0, "it is not even asked");
    assert!(who(&gateway, &ann, "mcp_team_who", "default").contains(&backwards("of-default-47ab")));
    // The same address is the same place.
    replace(&server).check(200, "team");
    assert!(who(&gateway, &ann, "mcp_team_who", "default").contains(&backwards("of-default-47ab")));
    // A grant that no longer names the value leaves it for no later one.
    grant(json!({ "subject": "agent:default" })).check(200, "agent:default");
    replace(&evil).check(200, "team");
    let own = json!({ "subject": "agent:default", "config_overrides": { "headers": ["X-Team"] } });
    grant(own.clone()).check(400, "`X-Team` has no value");
    let mut anew = own;
    anew["values"] = json!({ "X-Team": "of-default-58bc" });
    grant(anew).check(200, "X-Team");
    assert!(who(&gateway, &ann, "mcp_team_who", "default").contains(&backwards("of-default-58bc")));
    let seen = evil.seen.lock().unwrap();
    let leaked = seen.credentials.values().flatten().any(|sent| sent.contains("of-default-47ab"));
    assert!(!leaked, "{:?}", seen.credentials);
}
