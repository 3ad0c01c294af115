//! Traces by OTLP over HTTP, taken by a collector of this test: what is sent, what it hangs on, and what is never sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;

/// A collector: keeps the requests that it gets.
struct Receiver {
    address: String,
    got: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&got);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut reader, kept) = (BufReader::new(stream.unwrap()), Arc::clone(&kept));
                std::thread::spawn(move || {
                    while let Some(request) = read(&mut reader) {
                        kept.lock().unwrap().push(request);
                        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
                        reader.get_mut().write_all(answer.as_bytes()).unwrap();
                    }
                });
            }
        });
        Self { address, got }
    }

    fn heads(&self) -> String {
        self.got.lock().unwrap().iter().map(|(head, _)| head.clone()).collect()
    }

    fn spans(&self) -> Vec<Value> {
        let got = self.got.lock().unwrap();
        let resources = got.iter().flat_map(|(_, body)| body["resourceSpans"].as_array().unwrap().clone());
        let scopes = resources.flat_map(|resource| resource["scopeSpans"].as_array().unwrap().clone());
        scopes.flat_map(|scope| scope["spans"].as_array().unwrap().clone()).collect()
    }

    /// Waits for so many spans of these names.
    fn wait_for(&self, name: &str, count: usize) -> Vec<Value> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let found: Vec<Value> = self
                .spans()
                .into_iter()
                .filter(|span| span["name"].as_str().unwrap().starts_with(name))
                .collect();
            if found.len() >= count {
                return found;
            }
            assert!(Instant::now() < deadline, "{count} of {name}: {:?}", self.spans());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Reads a request; `None` when the connection ends.
fn read(reader: &mut BufReader<std::net::TcpStream>) -> Option<(String, Value)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.trim().parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    Some((lower, serde_json::from_slice(&body).unwrap()))
}

fn attribute(span: &Value, key: &str) -> Option<String> {
    let found = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key)?;
    let value = &found["value"];
    let text = value["stringValue"].as_str().or_else(|| value["intValue"].as_str());
    Some(text.map_or_else(|| value.to_string(), ToOwned::to_owned))
}

fn config(receiver: &Receiver, content: bool) -> String {
    format!("[telemetry]\nendpoint = \"http://{}\"\ncontent = {content}\n", receiver.address)
}

#[test]
fn a_run_is_one_trace_across_an_approval() {
    let receiver = Receiver::start();
    let home = Home::with_config(&config(&receiver, false));
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let workspace = home.data().join("workspaces/main/default/user-ann");
    std::fs::create_dir_all(workspace.join("build")).unwrap();
    let parked = gateway.chat(&key, "write", None).check(200, "waiting for approval");
    let run = parked.header("x-clawsmith-run").unwrap().to_owned();
    let yes = gateway.answering("ann");
    let approval =
        gateway.get("/v1/approvals", &yes).json()["approvals"][0]["id"].as_str().unwrap().to_owned();
    gateway
        .post(&format!("/v1/approvals/{approval}/answer"), &yes, &json!({ "approve": true }))
        .check(200, "");

    let attempts = receiver.wait_for("invoke_agent default", 2);
    let chats = receiver.wait_for("chat ", 2);
    let calls = receiver.wait_for("execute_tool exec", 1);
    let trace = run.replace('-', "");
    for span in receiver.spans() {
        assert_eq!(span["traceId"], trace, "{span}");
        let (start, end) =
            (span["startTimeUnixNano"].as_str().unwrap(), span["endTimeUnixNano"].as_str().unwrap());
        assert!(start.parse::<u128>().unwrap() <= end.parse::<u128>().unwrap(), "{span}");
    }
    let states: Vec<_> =
        attempts.iter().map(|span| attribute(span, "clawsmith.run.state").unwrap()).collect();
    assert_eq!(states, ["parked", "ended"]);
    assert!(attempts[0]["parentSpanId"].is_null());
    assert_eq!(attempts[1]["parentSpanId"], attempts[0]["spanId"]);
    assert_eq!(chats[0]["parentSpanId"], attempts[0]["spanId"]);
    assert_eq!(chats[1]["parentSpanId"], attempts[1]["spanId"]);
    assert_eq!(
        calls[0]["parentSpanId"], chats[0]["spanId"],
        "the call belongs to the answer before the wait"
    );
    assert_eq!(attribute(&attempts[0], "gen_ai.operation.name").unwrap(), "invoke_agent");
    assert_eq!(attribute(&chats[0], "gen_ai.operation.name").unwrap(), "chat");
    assert_eq!(chats[0]["kind"], 3);
    assert!(attribute(&chats[0], "gen_ai.usage.input_tokens").unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(attribute(&calls[0], "gen_ai.tool.name").unwrap(), "exec");
    let sent = receiver.spans().iter().map(ToString::to_string).collect::<String>();
    for content in ["rm -r build", "Let me.", "It said"] {
        assert!(!sent.contains(content), "{content}: {sent}");
    }
    assert!(receiver.heads().starts_with("post /v1/traces "));
}

#[test]
fn content_is_sent_if_configured_and_scrubbed() {
    let receiver = Receiver::start();
    let home = Home::with_config(&config(&receiver, true));
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    gateway.chat(&key, &format!("list the files, {secret}"), None).check(200, "So there are some");
    receiver.wait_for("invoke_agent default", 1);
    let chats = receiver.wait_for("chat ", 2);
    assert!(attribute(&chats[0], "gen_ai.input.messages").unwrap().contains("list the files"));
    assert!(attribute(&chats[1], "gen_ai.output.messages").unwrap().contains("So there are some"));
    let calls = receiver.wait_for("execute_tool list_files", 1);
    assert_eq!(attribute(&calls[0], "gen_ai.tool.call.arguments").unwrap(), "{}");
    let sent = receiver.spans().iter().map(ToString::to_string).collect::<String>();
    assert!(!sent.contains(&secret), "{sent}");
}

#[test]
fn calls_outside_of_runs_are_traces_of_their_own() {
    let receiver = Receiver::start();
    let home = Home::with_config(&config(&receiver, false));
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let read = |path: &str| json!({ "tool": "read_file", "args": { "path": path } });
    let called =
        gateway.invoke(&key, &json!({ "tool": "list_files", "args": {} })).check(200, "\"ok\":true").json();
    gateway.invoke(&key, &read("secret-plan.txt")).check(200, "\"kind\":\"not_found\"");
    gateway.invoke(&key, &json!({ "tool": "nothing" })).check(404, "unknown_tool");
    let session = called["sessionKey"].as_str().unwrap();

    let listed = receiver.wait_for("execute_tool list_files", 1).remove(0);
    assert!(listed["parentSpanId"].is_null(), "{listed}");
    assert_eq!(attribute(&listed, "gen_ai.operation.name").unwrap(), "execute_tool");
    assert_eq!(attribute(&listed, "gen_ai.agent.id").unwrap(), "default");
    assert_eq!(attribute(&listed, "gen_ai.conversation.id").unwrap(), session);
    assert_eq!(attribute(&listed, "clawsmith.channel").unwrap(), "http");
    assert_eq!(attribute(&listed, "clawsmith.call").unwrap().replace('-', ""), listed["traceId"], "{listed}");
    assert!(listed["status"].is_null(), "{listed}");
    let failed = receiver.wait_for("execute_tool read_file", 1).remove(0);
    assert_eq!(attribute(&failed, "error.type").unwrap(), "failed");
    assert_eq!(failed["status"]["message"], "the call was failed");
    let refused = receiver.wait_for("execute_tool nothing", 1).remove(0);
    assert_eq!(attribute(&refused, "error.type").unwrap(), "refused");

    // A call that waits for an approval has its span when it is made.
    let workspace = home.data().join("workspaces/main/default/user-ann");
    std::fs::create_dir_all(workspace.join("build")).unwrap();
    let remove = json!({ "tool": "exec", "args": { "command": "rm -r build" } });
    let waits = gateway.invoke(&key, &remove).check(202, "approvalId").json();
    let yes = gateway.answering("ann");
    let answer = format!("/v1/approvals/{}/answer", waits["approvalId"].as_str().unwrap());
    gateway.post(&answer, &yes, &json!({ "approve": true })).check(200, "");
    let mut again = remove;
    again["callId"] = waits["callId"].clone();
    gateway.invoke(&key, &again).check(200, "\"ok\":true");
    receiver.wait_for("execute_tool exec", 1);

    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "datetime", "arguments": { "action": "now" }, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        } },
    });
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "datetime"),
    ];
    gateway.send("POST /mcp", &key, &headers, &call.to_string()).check(200, "\"result\"");
    let of_mcp = receiver.wait_for("execute_tool datetime", 1).remove(0);
    assert!(attribute(&of_mcp, "gen_ai.conversation.id").unwrap().ends_with(":mcp"), "{of_mcp}");

    // The command line ends at once, and its span was sent.
    let ran = home.run(&["tools", "call", "workspace_dir", "{}"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let of_command = receiver.wait_for("execute_tool workspace_dir", 1).remove(0);
    assert_eq!(attribute(&of_command, "clawsmith.channel").unwrap(), "cli");

    let spans = receiver.spans();
    let count =
        |name: &str| spans.iter().filter(|span| span["name"] == format!("execute_tool {name}")).count();
    for tool in ["list_files", "read_file", "nothing", "exec", "datetime", "workspace_dir"] {
        assert_eq!(count(tool), 1, "{tool}");
    }
    let sent = spans.iter().map(ToString::to_string).collect::<String>();
    assert!(!sent.contains("secret-plan") && !sent.contains("rm -r"), "{sent}");
}

#[test]
fn content_of_calls_outside_of_runs_is_sent_if_configured_and_scrubbed() {
    let receiver = Receiver::start();
    let home = Home::with_config(&config(&receiver, true));
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    home.write("project/plan.txt", format!("the plan of {secret}\n"));
    let args = json!({ "path": "plan.txt", "offset": 1 }).to_string();
    let ran = home.run(&["tools", "call", "read_file", &args]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let call = receiver.wait_for("execute_tool read_file", 1).remove(0);
    assert!(attribute(&call, "gen_ai.tool.call.arguments").unwrap().contains("plan.txt"), "{call}");
    assert!(attribute(&call, "gen_ai.tool.call.result").unwrap().contains("the plan of"), "{call}");
    assert!(!call.to_string().contains(&secret), "{call}");
}

#[test]
fn a_collector_that_is_away_costs_no_run() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = Home::with_config(&format!("[telemetry]\nendpoint = \"http://{nobody}\"\n"));
    let gateway = Gateway::start(&home, ECHO);
    gateway.chat(&gateway.key("ann", &[]), "one", None).check(200, "You said: one");
    let ran = home.run(&["tools", "call", "workspace_dir", "{}"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let home = Home::with_config("[telemetry]\nendpoint = \"nowhere\"\n");
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.code != 0 && ran.stderr.contains("telemetry.endpoint"), "{}", ran.shown());
}
