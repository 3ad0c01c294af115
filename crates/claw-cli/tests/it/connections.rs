//! Limits of what one key has open at a time: requests, streams included, and WebSocket connections. And connections that MCP
//! servers make to the gateway.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::gateway::{ECHO, Gateway, client};
use crate::harness::Home;
use crate::mcp::{good, peers};

const CONFIG: &str = "[gateway]\nrequests_per_key = 2\nwebsockets_per_key = 1\n";

/// Sends a request and reads the head of its answer; the connection stays open.
fn open(gateway: &Gateway<'_>, path: &str, key: &str, more: &str) -> (String, BufReader<TcpStream>) {
    let mut stream = gateway.connect();
    let host = &gateway.address;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n{more}\r\n")
        .unwrap();
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    (head, reader)
}

#[track_caller]
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_key_has_so_many_requests_open_and_others_are_not_concerned() {
    let home = Home::with_config(CONFIG);
    let gateway = Gateway::start(&home, ECHO);
    let (ann, other, ben) = (gateway.key("ann", &[]), gateway.key("ann", &[]), gateway.key("ben", &[]));
    let session = gateway.chat(&ann, "one", None).header("x-clawsmith-session").unwrap().to_owned();
    let events = format!("/v1/sessions/{session}/events");
    let follow = || {
        let (head, stream) = open(&gateway, &events, &ann, "");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        stream
    };
    let (first, second) = (follow(), follow());
    let refused = gateway.get("/v1/sessions", &ann).check(429, "this key has 2 requests open");
    assert!(refused.header("retry-after").is_some(), "{}", refused.head);
    let said = refused.json();
    assert_eq!(said["code"], "too_many_requests_open");
    assert_eq!(said["setting"], "gateway.requests_per_key");
    assert!(said["hint"].as_str().unwrap().contains("wait until one has ended"), "{said}");
    gateway.chat(&ann, "two", None).check(429, "too_many_requests_open");
    gateway.get("/v1/sessions", &other).check(200, "");
    gateway.get("/v1/sessions", &ben).check(200, "");
    gateway.get("/health", "").check(200, "");
    drop(first);
    until("the place is free again", || gateway.get("/v1/sessions", &ann).status == 200);
    drop(second);
    // Requests that have ended, refused ones too, hold nothing.
    for _ in 0..10 {
        gateway.get("/v1/runs/none", &ann).check(404, "");
    }
}

#[test]
fn a_key_has_so_many_websockets_open() {
    let home = Home::with_config(CONFIG);
    let gateway = Gateway::start(&home, ECHO);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    let upgrade = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let connect = |key: &str| open(&gateway, "/v1/ws", key, upgrade);
    let (head, first) = connect(&ann);
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    let (head, _) = connect(&ann);
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
    let (head, _of_ben) = connect(&ben);
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    // A connection counts as itself, and not among the requests.
    for _ in 0..3 {
        gateway.get("/v1/sessions", &ann).check(200, "");
    }
    drop(first);
    until("the place is free again", || connect(&ann).0.starts_with("HTTP/1.1 101"));
    let (key, rated) = (gateway.key("cleo", &[]), gateway.key("dan", &["--per-minute", "3"]));
    client(&gateway, "websocket_limits.py", &key, &[&rated]);
}

/// An MCP server on standard streams whose tool asks another server by HTTP.
const REACHING: &str = r#"
import json, sys, urllib.request

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if request["method"] == "initialize":
        result = {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "reaching", "version": "1"},
        }
    elif request["method"] == "tools/list":
        schema = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}
        result = {"tools": [{"name": "reach", "description": "Asks a server.", "inputSchema": schema}]}
    elif request["method"] == "tools/call":
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request["params"]["arguments"]["url"], timeout=10) as answer:
                said = "it answered: " + answer.read().decode()
        except Exception as error:
            said = f"no answer: {error}"
        result = {"content": [{"type": "text", "text": said}]}
    else:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

#[test]
fn refuses_the_gateway_to_programs_of_mcp_servers_that_have_the_network() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    std::fs::create_dir(home.path().join("reaching")).unwrap();
    let script = home.write("reaching/server.py", REACHING);
    let directory = script.parent().unwrap().to_str().unwrap().to_owned();
    let gateway = Gateway::start(&home, ECHO);
    let mut words = vec!["mcp", "add", "far", "--network", "--read", &directory];
    for read in &peers.python_reads {
        words.extend(["--read", read]);
    }
    words.extend(["--", peers.python.to_str().unwrap(), script.to_str().unwrap()]);
    good(&home.run(&words));
    let key = gateway.key("ann", &[]);
    let reach = |address: &str| {
        let call = json!({ "tool": "mcp_far_reach", "args": { "url": format!("http://{address}/health") } });
        gateway.invoke(&key, &call).check(200, "\"ok\":true").body
    };
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = other.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\nreached")
            .unwrap();
    });
    until("the tools of the server are there", || {
        gateway.get("/v1/tools", &key).body.contains("mcp_far_reach")
    });
    let body = reach(&elsewhere);
    assert!(body.contains("it answered: reached"), "the network is there: {body}");
    server.join().unwrap();
    let port = gateway.address.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "localhost", "0.0.0.0"] {
        let body = reach(&format!("{host}:{port}"));
        assert!(body.contains("no answer: "), "{host}: {body}");
    }
    gateway.get("/health", "").check(200, "ok");
}
