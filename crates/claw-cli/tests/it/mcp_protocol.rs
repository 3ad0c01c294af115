//! The protocol through us: progress, cancellation, and older servers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Home;
use crate::mcp::{good, named, peers};

/// A client of our server on standard streams.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    fn start(home: &Home) -> Self {
        let mut command = home.process(&["mcp", "serve"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, input, output };
        let us = json!({ "name": "t", "version": "1" });
        client.send(&json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": us },
        }));
        client.until(|message| message["id"] == 0);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn call(&mut self, id: u32, tool: &str) {
        self.send(&json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": {}, "_meta": { "progressToken": format!("of-{id}") } },
        }));
    }

    /// Reads messages up to the one that is wanted, and returns all of them.
    fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended after {messages:?}");
            messages.push(serde_json::from_str(&line).unwrap());
            if is_wanted(messages.last().unwrap()) {
                return messages;
            }
        }
    }
}

#[test]
fn progress_of_an_upstream_call_reaches_the_client() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    good(&peers.add_faulty(&home, "up", &named(&["count"]), &[]));
    let mut client = Client::start(&home);
    client.call(1, "mcp_up_count");
    let messages = client.until(|message| message["id"] == 1);
    assert!(messages.last().unwrap().to_string().contains("counted"), "{messages:?}");
    let told: Vec<&Value> =
        messages.iter().filter(|message| message["method"] == "notifications/progress").collect();
    assert!(
        !told.is_empty() && told.iter().all(|told| told["params"]["progressToken"] == "of-1"),
        "{messages:?}"
    );
    let said: String = told.iter().map(|told| told["params"]["message"].to_string()).collect();
    for step in ["1/3 step 1", "2/3 step 2", "3/3 step 3"] {
        assert!(said.contains(step), "{step}: {messages:?}");
    }
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_upstream_too() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    good(&peers.add_faulty(&home, "up", &named(&["hang", "count"]), &[]));
    let note = home.path().join("faulty-up/cancelled");
    let mut client = Client::start(&home);
    // The connection is up, and the server reads.
    client.call(1, "mcp_up_count");
    client.until(|message| message["id"] == 1);
    client.call(2, "mcp_up_hang");
    client.call(3, "mcp_up_count");
    client.until(|message| message["id"] == 3);
    assert!(!note.exists());
    let why = json!({ "requestId": 2, "reason": "enough" });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": why }));
    let end = Instant::now() + Duration::from_secs(60);
    while !note.exists() {
        assert!(Instant::now() < end, "the upstream was not told");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "cancelled by the caller");
    client.call(4, "mcp_up_count");
    let messages = client.until(|message| message["id"] == 4);
    assert!(messages.last().unwrap().to_string().contains("counted"), "{messages:?}");
}

#[test]
fn servers_of_the_oldest_protocol_and_of_empty_discoveries_are_used() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    for directory in ["faulty-old", "faulty-empty"] {
        std::fs::create_dir_all(home.path().join(directory)).unwrap();
    }
    home.write("faulty-old/protocol", "2024-11-05");
    home.write("faulty-empty/discovers", "");
    for (name, protocol) in [("old", "2024-11-05"), ("empty", "2025-11-25")] {
        good(&peers.add_faulty(&home, name, &named(&["ok"]), &[]));
        let tested = home.run(&["mcp", "test", name, "--json"]);
        assert_eq!(good(&tested).json()["protocol"], protocol, "{}", tested.shown());
        let called = home.run(&["tools", "call", &format!("mcp_{name}_ok"), "{}"]);
        assert!(good(&called).stdout.contains("fine"), "{}", called.shown());
    }
}
