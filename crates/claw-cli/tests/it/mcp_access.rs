//! `clawsmith mcp`: requests for access and their events, values of agents, and what a server may ask of us.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway::{ECHO, Gateway, client};
use crate::harness::{Home, Ran};
use crate::mcp::{good, named, peers};

/// Follows requests for access by server-sent events.
struct Followed(BufReader<TcpStream>);

impl Followed {
    fn begin(gateway: &Gateway<'_>, key: &str, after: &str) -> Self {
        let mut stream = TcpStream::connect(&gateway.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let address = &gateway.address;
        let head = format!(
            "GET /v1/mcp/requests/events{after} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}"
        );
        write!(stream, "{head}\r\n\r\n").unwrap();
        let mut followed = Self(BufReader::new(stream));
        let status = followed.line();
        assert!(status.contains("200"), "{status}");
        while !followed.line().is_empty() {}
        followed
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The next event's state, user and server.
    fn next(&mut self) -> (String, String, String) {
        loop {
            let line = self.line();
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(data).unwrap();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let request = &event["request"];
            assert_eq!(request["review"].is_null(), event["state"] == "requested", "{event}");
            return (text(&event["state"]), text(&request["user"]), text(&request["server"]));
        }
    }
}

fn event(state: &str, user: &str) -> (String, String, String) {
    (state.to_owned(), user.to_owned(), "work".to_owned())
}

#[test]
fn both_sides_are_told_of_requests_and_their_reviews() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    good(&peers.add_faulty(&home, "work", &named(&["ok"]), &[]));
    let gateway = Gateway::start(&home, ECHO);
    let (ann, bob) = (gateway.key("ann", &[]), gateway.key("bob", &[]));
    let root = gateway.key("root", &["--role", "admin", "--scope", "admin"]);
    let mut of_ann = Followed::begin(&gateway, &ann, "");
    let mut of_root = Followed::begin(&gateway, &root, "");
    let ask = |key: &str| {
        let wish = json!({ "server": "work", "reason": "builds" });
        let asked = gateway.post("/v1/mcp/requests", key, &wish).check(200, "builds").json();
        asked["request"]["id"].as_str().unwrap().to_owned()
    };
    let (of_bobs, of_anns) = (ask(&bob), ask(&ann));
    assert_eq!(of_root.next(), event("requested", "bob"));
    assert_eq!(of_root.next(), event("requested", "ann"));
    assert_eq!(of_ann.next(), event("requested", "ann"), "bob's request is not ann's to see");
    // Another process answers.
    let rejected = home.run(&["mcp", "review", &of_bobs, "--reject"]);
    assert!(good(&rejected).stdout.contains("the user who made it is notified"), "{}", rejected.shown());
    assert_eq!(of_root.next(), event("rejected", "bob"));
    good(&home.run(&["mcp", "review", &of_anns, "--approve"]));
    assert_eq!(of_root.next(), event("approved", "ann"));
    assert_eq!(of_ann.next(), event("approved", "ann"));
    let mut from_the_start = Followed::begin(&gateway, &bob, "?after=0");
    assert_eq!(from_the_start.next(), event("requested", "bob"));
    assert_eq!(from_the_start.next(), event("rejected", "bob"));
    let asked = home.run(&["mcp", "request", "work", "--reason", "more"]);
    assert!(good(&asked).stdout.contains("the administrators are notified"), "{}", asked.shown());
    assert_eq!(of_root.next().0, "requested");
    // The same over the WebSocket.
    client(&gateway, "websocket_requests.py", &ann, &[&root]);
}

#[test]
fn a_value_given_anew_reaches_a_server_that_runs() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    let tools = named(&["who", "ok"]);
    let add = |value: &str| peers.add_faulty(&home, "bank", &tools, &["--env", &format!("TOKEN={value}")]);
    good(&add("first-secret"));
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let call = |tool: &str| gateway.invoke(&key, &json!({ "tool": tool, "args": {} })).body;
    let until = |words: &str| {
        let end = Instant::now() + Duration::from_secs(60);
        while !call("mcp_bank_who").contains(words) {
            assert!(Instant::now() < end, "{}", call("mcp_bank_who"));
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    // The server tells its value backwards, which is no secret.
    until("terces-tsrif");
    good(&add("second-secret"));
    until("terces-dnoces");
    // An agent's own value goes to its own program, and is given anew by granting again.
    let grant = |value: &str| {
        home.run(&[
            "mcp",
            "grant",
            "bank",
            "agent:default",
            "--env",
            &format!("TOKEN={value}"),
            "--timeout",
            "7",
        ])
    };
    good(&grant("third-secret"));
    until("terces-driht");
    good(&grant("fourth-secret"));
    until("terces-htruof");
    good(&home.run(&["mcp", "revoke", "bank", "agent:default"]));
    good(&home.run(&["mcp", "grant", "bank", "agent:default"]));
    until("terces-dnoces");
}

#[test]
fn an_agent_has_its_own_time_and_values_and_no_others() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    good(&peers.add_faulty(&home, "slow", &named(&["late", "who"]), &["--env", "TOKEN=of-everyone"]));
    good(&home.run(&["mcp", "grant", "slow", "agent:default", "--timeout", "1"]));
    let late = home.run(&["tools", "call", "mcp_slow_late", "{}"]);
    assert!(late.shown().contains("did not answer within 1 seconds"), "{}", late.shown());
    let shown = home.run(&["mcp", "show", "slow", "--json"]);
    assert!(
        shown.stdout.contains("timeout_secs\": 1") || shown.stdout.contains("timeout_secs\":1"),
        "{}",
        shown.shown()
    );
    // A name that the server was not added with could make its program run something else.
    let other = home.run(&["mcp", "grant", "slow", "agent:default", "--env", "LD_PRELOAD=/x.so"]);
    assert!(other.code != 0 && other.stderr.contains("has no variable or header"), "{}", other.shown());
    let header = home.run(&["mcp", "grant", "slow", "agent:default", "--header", "Authorization=x"]);
    assert!(header.code != 0 && header.stderr.contains("a program has variables"), "{}", header.shown());
    let user = home.run(&["mcp", "grant", "slow", "user:ann", "--env", "TOKEN=of-ann"]);
    assert!(user.code != 0 && user.stderr.contains("only an agent"), "{}", user.shown());
}

#[test]
fn a_server_is_told_its_directories_and_gets_no_model() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    let secret = "tok-19fe83a7c2d4b6e5a798";
    let tools = named(&["roots", "sample", "log"]);
    good(&peers.add_faulty(&home, "near", &tools, &["--env", &format!("TOKEN={secret}")]));
    let call = |tool: &str| home.run(&["tools", "call", &format!("mcp_near_{tool}"), "{}"]);
    let roots = call("roots");
    assert!(good(&roots).stdout.contains("file://~/faulty-near"), "{}", roots.shown());
    assert!(!roots.stdout.contains("file://~/project"), "{}", roots.shown());
    let sample = call("sample");
    assert!(good(&sample).stdout.contains("-32601"), "{}", sample.shown());
    let logged =
        home.run_with(&[("CLAWSMITH_LOG", "claw_mcp=debug")], &["tools", "call", "mcp_near_log", "{}"]);
    assert!(good(&logged).stdout.contains("logged"), "{}", logged.shown());
    assert!(
        logged.stderr.contains("error line") && logged.stderr.contains("debug line"),
        "{}",
        logged.shown()
    );
    assert!(!logged.shown().contains(secret), "{}", logged.shown());
}

#[test]
fn two_thousand_tools_are_read_page_by_page_and_found_by_searching() {
    let Some(peers) = peers() else { return };
    let home = Home::with_config("[limits]\ntool_tokens = 3000\n");
    let tools: Value = (0..2_000)
        .map(|at| json!({ "name": format!("act_{at}"), "description": format!("handles matter {at} of the office") }))
        .chain([json!({ "name": "ok", "description": "waters the plants on the balcony" })])
        .collect();
    good(&peers.add_faulty(&home, "office", &tools, &[]));
    let listed: Value =
        serde_json::from_str(&home.run(&["mcp", "tools", "office", "--json"]).stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2_001, "all pages are read");
    const SCRIPT: &str = r#"
[[turn]]
when.result_of = "mcp_office_ok"
do = [{ say = "It said {{result}}" }]

[[turn]]
when.result_of = "tool_search"
do = [{ call = "mcp_office_ok", args = {} }]

[[turn]]
do = [{ call = "tool_search", args = { query = "water plants" } }]
"#;
    let gateway = Gateway::start(&home, SCRIPT);
    let key = gateway.key("ann", &[]);
    // The model is sent a few of them, searches for what it needs, and calls it.
    let answer = gateway.chat(&key, "water the plants", None).check(200, "fine");
    assert!(answer.body.contains("It said"), "{}", answer.body);
    good(&home.run(&["mcp", "grant", "office", "agent:default", "--deny", "ok"]));
    let refused = gateway.chat(&key, "water the plants", None);
    assert!(!refused.body.contains("fine"), "what is not granted is not found: {}", refused.body);
}

#[test]
fn a_grants_time_is_within_bounds() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    good(&peers.add_faulty(&home, "slow", &named(&["slow"]), &["--timeout", "1"]));
    let grant = |limit: &str| home.run(&["mcp", "grant", "slow", "agent:default", "--timeout", limit]);
    for limit in ["0", "3601"] {
        let refused = grant(limit);
        assert!(refused.code != 0 && refused.stderr.contains("1 to 3600 seconds"), "{}", refused.shown());
    }
    // The agent's own time is longer than the server's.
    good(&grant("30"));
    let slow = home.run(&["tools", "call", "mcp_slow_slow", "{}"]);
    assert!(good(&slow).stdout.contains("at last"), "{}", slow.shown());
}

#[test]
fn tools_that_would_have_one_name_are_refused_when_they_are_added() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    let add = |name: &str, prefix: &str, tool: &str| {
        peers.add_faulty(&home, name, &named(&[tool]), &["--prefix", prefix])
    };
    let custom = |name: &str| {
        let tool = json!({ "name": name, "description": "Does it.", "parameters": {}, "command": "true" });
        home.write("project/tool.json", tool.to_string());
        home.run(&["tools", "add", "tool.json"])
    };
    let refused = |ran: Ran, why: &str| assert!(ran.code != 0 && ran.stderr.contains(why), "{}", ran.shown());
    good(&add("one", "x_", "y_ok"));
    refused(add("two", "x_", "ok"), "the tools of MCP server `one` begin with `x_` too");
    // Tools that either lists later would have one name.
    for prefix in ["x_y_", "x"] {
        refused(add("two", prefix, "other"), "the tools of MCP server `one` begin with `x_`, which overlaps");
    }
    good(&peers.add_faulty(&home, "plain", &named(&["ok"]), &[]));
    refused(add("two", "mcp_plain", "other"), "MCP server `plain` begin with `mcp_plain_`, which overlaps");
    refused(custom("x_make"), "`x_make` begins with `x_`, the prefix of the tools of MCP server `one`");
    good(&custom("z_make"));
    refused(add("two", "z_", "ok"), "the name of the custom tool `z_make` begins with the prefix `z_`");
    assert!(!home.run(&["mcp", "list"]).stdout.contains("two"));
    // The same server again is no other one.
    good(&add("one", "x_", "y_ok"));
    good(&add("two", "w_", "ok"));
}

#[test]
fn the_gateway_shows_the_states_of_its_connections() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    good(&peers.add_faulty(&home, "bad", &named(&["ok", "die"]), &[]));
    let gateway = Gateway::start(&home, ECHO);
    let ann = gateway.key("ann", &[]);
    let root = gateway.key("root", &["--role", "admin", "--scope", "admin"]);
    let call = |tool: &str| gateway.invoke(&ann, &json!({ "tool": tool, "args": {} })).body;
    let shown = || gateway.get("/v1/mcp/servers/bad", &root).check(200, "bad").json()["connections"].clone();
    let until = |state: &str| {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let connections = shown();
            if connections[0]["state"] == state {
                return connections;
            }
            assert!(Instant::now() < end, "{state}: {connections}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    assert_eq!(shown(), json!([]), "nobody has called it yet");
    assert!(call("mcp_bad_ok").contains("fine"));
    let connected = shown();
    assert_eq!(connected[0]["state"], "connected", "{connected}");
    assert!(connected[0]["protocol"].is_string() && connected[0]["attempts"] == 0, "{connected}");
    let listed = gateway.get("/v1/mcp/servers", &root).json();
    assert_eq!(listed["servers"][0]["connections"], connected);
    // It can no longer list its tools, and dies.
    let tools = home.path().join("faulty-bad/tools.json");
    std::fs::write(&tools, "broken").unwrap();
    call("mcp_bad_die");
    let waiting = until("waiting");
    assert!(waiting[0]["attempts"].as_u64().unwrap() >= 1, "{waiting}");
    assert!(waiting[0]["reason"].is_string() && waiting[0]["next_try"].is_i64(), "{waiting}");
    std::fs::write(&tools, named(&["ok", "die"]).to_string()).unwrap();
    until("connected");
    assert!(call("mcp_bad_ok").contains("fine"));
}

#[test]
fn a_program_reaches_the_paths_and_the_network_that_it_was_granted() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    std::fs::create_dir(home.path().join("outside")).unwrap();
    let file = home.write("outside/f", "the data").display().to_string();
    let directory = home.path().join("outside").display().to_string();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let schema = json!({ "type": "object" });
    let tools: Value = ["reads", "connects"]
        .map(|name| json!({ "name": name, "description": "d", "inputSchema": schema }))
        .into_iter()
        .collect();
    let call = |tool: &str, args: Value| {
        let ran = home.run(&["tools", "call", &format!("mcp_near_{tool}"), &args.to_string()]);
        good(&ran).stdout.clone()
    };
    good(&peers.add_faulty(&home, "near", &tools, &[]));
    assert!(call("reads", json!({ "path": file })).contains("not read"));
    assert!(call("connects", json!({ "port": port })).contains("not connected"));
    good(&peers.add_faulty(&home, "near", &tools, &["--read", &directory, "--network"]));
    assert!(call("reads", json!({ "path": file })).contains("the data"));
    let connected = call("connects", json!({ "port": port }));
    assert!(connected.contains("connected") && !connected.contains("not connected"), "{connected}");
}

#[test]
fn a_tool_of_a_file_takes_no_name_of_a_servers_tools() {
    let Some(peers) = peers() else { return };
    let home = Home::with_config("[custom_tools]\ndirectory = \"tools\"\n");
    std::fs::create_dir(home.path().join("project/tools")).unwrap();
    let tool = json!({ "name": "z_make", "description": "Does it.", "command": "true" });
    home.write("project/tools/make.json", tool.to_string());
    let add = |prefix: &str| peers.add_faulty(&home, "two", &named(&["ok"]), &["--prefix", prefix]);
    let refused = add("z_");
    assert!(
        refused.stderr.contains("the name of the custom tool `z_make` begins with the prefix `z_`"),
        "{}",
        refused.shown()
    );
    good(&add("w_"));
    assert_eq!(home.run(&["tools", "call", "z_make", "{}"]).code, 0);
    home.write(
        "project/tools/late.json",
        json!({ "name": "w_late", "description": "d", "command": "true" }).to_string(),
    );
    let ran = home.run(&["tools", "call", "z_make", "{}"]);
    assert!(
        ran.code != 0 && ran.stderr.contains("late.json") && ran.stderr.contains("`w_`"),
        "{}",
        ran.shown()
    );
}

#[test]
fn a_revoked_agent_gets_a_server_back_by_a_grant_alone() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    let add = || peers.add_faulty(&home, "work", &named(&["ok"]), &[]);
    assert!(good(&add()).stdout.contains("granted to agent:default"));
    good(&home.run(&["mcp", "revoke", "work", "agent:default"]));
    let again = add();
    assert!(good(&again).stdout.contains("granted to nobody"), "{}", again.shown());
    assert_ne!(home.run(&["tools", "call", "mcp_work_ok", "{}"]).code, 0);
    good(&home.run(&["mcp", "grant", "work", "agent:default"]));
    good(&home.run(&["tools", "call", "mcp_work_ok", "{}"]));
    // Over HTTP a server comes without grants.
    let gateway = Gateway::start(&home, ECHO);
    let owner = gateway.key("boss", &["--role", "owner", "--scope", "admin"]);
    let shown = gateway.get("/v1/mcp/servers/work", &owner).json();
    let mut server = shown["server"].as_object().unwrap().clone();
    server.retain(|name, _| ["transport", "command", "args", "read", "write"].contains(&name.as_str()));
    server.insert("name".to_owned(), json!("other"));
    let added = gateway.post("/v1/mcp/servers", &owner, &Value::Object(server)).check(200, "other").json();
    assert_eq!(added["added"]["grants"], json!([]), "{added}");
}

/// A program often takes its address from one variable and its key from another.
#[test]
fn an_administrator_gives_the_owners_program_no_other_address() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    let values = ["--env", "TOKEN=of-the-owner", "--env", "API_URL=https://example.org"];
    good(&peers.add_faulty(&home, "bank", &named(&["ok"]), &values));
    let gateway = Gateway::start(&home, ECHO);
    let grant = json!({
        "subject": "agent:default",
        "config_overrides": { "env": ["API_URL"] },
        "values": { "API_URL": "https://evil.example" },
    });
    let put = |key: &str, body: &Value| {
        let what = "PUT /v1/mcp/servers/bank/grants";
        gateway.send(what, key, &[("content-type", "application/json")], &body.to_string())
    };
    let admin = gateway.key("root", &["--role", "admin", "--scope", "admin"]);
    put(&admin, &grant).check(403, "owner");
    put(&admin, &json!({ "subject": "agent:default" })).check(200, "agent:default");
    let owner = gateway.key("boss", &["--role", "owner", "--scope", "admin"]);
    put(&owner, &grant).check(200, "API_URL");
}
