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
    let parked = gateway.chat(&key, "write", None).check(200, "waits for approval");
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
fn a_collector_that_is_away_costs_no_run() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = Home::with_config(&format!("[telemetry]\nendpoint = \"http://{nobody}\"\n"));
    let gateway = Gateway::start(&home, ECHO);
    gateway.chat(&gateway.key("ann", &[]), "one", None).check(200, "You said: one");
    let home = Home::with_config("[telemetry]\nendpoint = \"nowhere\"\n");
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.code != 0 && ran.stderr.contains("telemetry.endpoint"), "{}", ran.shown());
}
