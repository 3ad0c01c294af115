//! `clawsmith serve`, over real connections: keys, tools, chat completions, sessions, approvals, events.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Home;

/// A gateway that ends with this value.
pub(crate) struct Gateway<'a> {
    home: &'a Home,
    pub(crate) child: Child,
    pub(crate) address: String,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':')?.1.trim())
    }

    #[track_caller]
    pub(crate) fn check(self, status: u16, says: &str) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        assert!(self.body.contains(says), "{says}: {}", self.body);
        self
    }
}

impl<'a> Gateway<'a> {
    pub(crate) fn start(home: &'a Home, script: &str) -> Self {
        Self::start_with(home, script, &[])
    }

    /// Starts a gateway with more arguments.
    pub(crate) fn start_with(home: &'a Home, script: &str, more: &[&str]) -> Self {
        let script = home.write("script.toml", script);
        let mut command = home.process(more);
        command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--script"]).arg(script);
        Self::spawn(home, command.stderr(log_of(home)))
    }

    /// Starts one by this command, which must say where it listens as JSON.
    pub(crate) fn spawn(home: &'a Home, command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let address = line["listening"].as_str().unwrap().split("://").nth(1).unwrap().to_owned();
        Self { home, child, address }
    }

    /// Waits until a run of this session is at work.
    fn until_running(&self, key: &str, session: &str) {
        let begun = std::time::Instant::now();
        while self.get(&format!("/v1/sessions/{session}"), key).check(200, "running").json()["running"]
            != true
        {
            assert!(begun.elapsed() < Duration::from_secs(60), "no run of {session} begins");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Creates a key of this user, with these scopes or the default ones.
    pub(crate) fn key(&self, user: &str, more: &[&str]) -> String {
        let ran = self.home.run(&[&["api-keys", "create", "--user", user], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.shown());
        ran.stdout.trim().to_owned()
    }

    /// A key of this user that answers approvals.
    pub(crate) fn answering(&self, user: &str) -> String {
        self.key(user, &["--scope", "tools:read,tools:call,approvals:read,approvals:answer"])
    }

    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server may answer and close before everything is sent.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    pub(crate) fn send(&self, what: &str, key: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.raw(request(&self.address, what, key, headers, body).as_bytes())
    }

    pub(crate) fn get(&self, path: &str, key: &str) -> Answer {
        self.send(&format!("GET {path}"), key, &[], "")
    }

    pub(crate) fn post(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.send(&format!("POST {path}"), key, &[], &body.to_string())
    }

    pub(crate) fn invoke(&self, key: &str, body: &Value) -> Answer {
        self.post("/v1/tools/invoke", key, body)
    }

    pub(crate) fn chat(&self, key: &str, text: &str, session: Option<&str>) -> Answer {
        let body = json!({ "model": "agent:default", "messages": [{ "role": "user", "content": text }] });
        let headers: Vec<(&str, &str)> =
            session.map(|session| ("x-clawsmith-session", session)).into_iter().collect();
        self.send("POST /v1/chat/completions", key, &headers, &body.to_string())
    }
}

pub(crate) fn request(host: &str, what: &str, key: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{what} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    if !key.is_empty() {
        text.push_str(&format!("authorization: Bearer {key}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
    }
    text + "\r\n" + body
}

/// The file that the standard error of a home's gateways goes to.
pub(crate) fn log_of(home: &Home) -> std::fs::File {
    let path = home.path().join("gateway.log");
    std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap()
}

/// No request, frame or signal makes a gateway panic.
impl Drop for Gateway<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let log = std::fs::read_to_string(self.home.path().join("gateway.log")).unwrap_or_default();
        if !std::thread::panicking() {
            assert!(!log.contains("panicked at"), "{log}");
        }
    }
}

pub(crate) const ECHO: &str = r#"
[[turn]]
when.said = "write"
when.result_of = "exec"
do = [{ say = "It said {{result}}" }]

[[turn]]
when.said = "write"
do = [{ say = "Let me." }, { call = "exec", args = { command = "rm -r build" } }]

[[turn]]
when.said = "list the files"
when.result_of = "list_files"
do = [{ say = "So there are some." }]

[[turn]]
when.said = "list the files"
do = [{ say = "I look." }, { call = "list_files", args = {} }]

[[turn]]
do = [{ say = "You said: {{said}}" }]
"#;

#[test]
fn a_stream_ends_with_its_key() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let session = gateway.chat(&key, "one", None).header("x-clawsmith-session").unwrap().to_owned();
    let mut stream = gateway.connect();
    let what = format!("GET /v1/sessions/{session}/events?after=0");
    stream.write_all(request(&gateway.address, &what, &key, &[], "").as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("id: 4")));
    let id = home.run(&["api-keys", "list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    home.run(&["api-keys", "revoke", &id]);
    let deadline = std::time::Instant::now() + Duration::from_secs(45);
    let mut rest = lines.take_while(|_| std::time::Instant::now() < deadline);
    assert!(rest.any(|line| line.contains("no longer valid")), "the stream ends");
    let nobody = format!("/v1/sessions/{session}0/events");
    gateway.get(&nobody, &gateway.key("ann", &[])).check(404, "there is no session");
}

#[test]
fn a_stream_of_the_tenant_ends_when_the_role_is_taken_away() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &["--role", "admin", "--scope", "admin"]);
    let mut stream = gateway.connect();
    let what = request(&gateway.address, "GET /v1/events?tenant=true&after=0", &key, &[], "");
    stream.write_all(what.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("text/event-stream")));
    let ran = home.run(&["users", "edit", "ann", "--role", "viewer"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let deadline = std::time::Instant::now() + Duration::from_secs(45);
    let mut rest = lines.take_while(|_| std::time::Instant::now() < deadline);
    assert!(rest.any(|line| line.contains("rights of this stream's API key changed")), "the stream ends");
}

const SLOW: &str = r#"
piece = 1

[[turn]]
when.said = "slow"
do = [{ wait_ms = 1500 }, { say = "0123456789" }]

[[turn]]
when.said = "long"
do = [{ wait_ms = 6000 }, { say = "0123456789" }]

[[turn]]
when.said = "hang"
do = [{ hang = true }]

[[turn]]
do = [{ say = "You said: {{said}}" }]
"#;

#[test]
fn an_answer_has_the_words_of_its_own_run_alone() {
    let home = Home::new();
    let gateway = Gateway::start(&home, SLOW);
    let key = gateway.key("ann", &[]);
    let session = gateway.chat(&key, "one", None).header("x-clawsmith-session").unwrap().to_owned();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| gateway.chat(&key, "slow", Some(&session)));
        gateway.until_running(&key, &session);
        let second = gateway.chat(&key, "second", Some(&session)).check(200, "You said: second").json();
        assert_eq!(second["choices"][0]["message"]["content"], "You said: second");
        slow.join().unwrap().check(200, "0123456789");
    });
}

#[test]
fn one_user_does_not_take_the_turns_of_all() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, SLOW);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    let body =
        json!({ "model": "default", "stream": true, "messages": [{ "role": "user", "content": "hang" }] });
    // All at once: none may be let in by a count that another is about to change.
    let open = |_| {
        let mut stream = gateway.connect();
        let what = request(&gateway.address, "POST /v1/chat/completions", &ann, &[], &body.to_string());
        stream.write_all(what.as_bytes()).unwrap();
        stream
    };
    let hanging: Vec<_> = (0..40).map(open).collect();
    let accepted = hanging.iter().filter(|stream| {
        let mut first = String::new();
        BufReader::new(*stream).read_line(&mut first).unwrap();
        assert!(first.contains("200") || first.contains("429"), "{first}");
        first.contains("200")
    });
    assert_eq!(accepted.count(), 16, "more and more runs are taken");
    gateway.chat(&ben, "hello", None).check(200, "You said: hello");
    // A hanging run does not keep the gateway from ending.
    let pid = nix::unistd::Pid::from_raw(gateway.child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while gateway.child.try_wait().unwrap().is_none() {
        assert!(std::time::Instant::now() < deadline, "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_agent_answers_as_a_model_does() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    gateway.get("/v1/models", &key).check(200, "agent:default");
    let first = gateway.chat(&key, "one", None).check(200, "You said: one");
    assert_eq!(first.json()["choices"][0]["finish_reason"], "stop");
    assert!(first.json()["usage"]["total_tokens"].as_u64().unwrap() > 0);
    let session = first.header("x-clawsmith-session").unwrap().to_owned();
    gateway.chat(&key, "two", Some(&session)).check(200, "You said: two");
    let path = format!("/v1/sessions/{session}/messages");
    let said = gateway.get(&path, &key).check(200, "You said: one").json();
    assert_eq!(said["messages"].as_array().unwrap().len(), 4, "the session has continued");
    let listed = gateway.get("/v1/sessions", &key).json();
    assert_eq!(listed["sessions"][0]["sessionKey"], session.as_str());
    let runs = gateway.get(&format!("/v1/runs?sessionKey={session}"), &key).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);

    let body = json!({
        "model": "default", "stream": true, "stream_options": { "include_usage": true },
        "messages": [{ "role": "user", "content": "three" }],
    });
    let streamed = gateway.send("POST /v1/chat/completions", &key, &[], &body.to_string());
    let chunks: Vec<Value> = streamed
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let words: String =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(words, "You said: three");
    assert!(streamed.body.contains("data: [DONE]"));
    assert!(chunks.last().unwrap()["usage"]["total_tokens"].as_u64().unwrap() > 0);
    gateway.chat(&key, "", None).check(400, "the last message must have the role");
    let unknown = json!({ "model": "agent:nobody", "messages": [{ "role": "user", "content": "x" }] });
    gateway.post("/v1/chat/completions", &key, &unknown).check(404, "invalid_request_error");
}

#[test]
fn a_run_that_waits_for_approval_goes_on_after_the_yes() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let asked = gateway.chat(&key, "write", None).check(200, "waiting for approval");
    let session = asked.header("x-clawsmith-session").unwrap().to_owned();
    let pending = gateway.get("/v1/approvals", &key).json();
    let id = pending["approvals"][0]["id"].as_str().unwrap().to_owned();
    let yes = gateway.answering("ann");
    gateway
        .post(&format!("/v1/approvals/{id}/answer"), &yes, &json!({ "approve": true }))
        .check(200, "approved");
    let path = format!("/v1/sessions/{session}/messages");
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !gateway.get(&path, &key).body.contains("It said") {
        assert!(std::time::Instant::now() < deadline, "{}", gateway.get(&path, &key).body);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn events_are_resumed_from_their_number_after_a_restart() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let session = gateway.chat(&key, "one", None).header("x-clawsmith-session").unwrap().to_owned();
    let events = |gateway: &Gateway<'_>, after: u64, count: usize| {
        let mut stream = gateway.connect();
        let what = format!("GET /v1/sessions/{session}/events");
        let after = after.to_string();
        stream
            .write_all(request(&gateway.address, &what, &key, &[("last-event-id", &after)], "").as_bytes())
            .unwrap();
        let ids = BufReader::new(stream).lines().map_while(Result::ok);
        let ids = ids.filter_map(|line| line.strip_prefix("id: ").and_then(|id| id.parse::<u64>().ok()));
        ids.take(count).collect::<Vec<u64>>()
    };
    let all = events(&gateway, 0, 4);
    assert_eq!(all, [1, 2, 3, 4], "message, began, message, ended");
    drop(gateway);
    let gateway = Gateway::start(&home, ECHO);
    assert_eq!(events(&gateway, 2, 2), [3, 4]);
    gateway.chat(&key, "two", Some(&session)).check(200, "two");
    assert_eq!(events(&gateway, 4, 2), [5, 6]);
}

#[test]
fn refuses_who_has_no_key_or_not_the_right_one() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    for path in ["/v1/tools", "/v1/models", "/v1/sessions", "/v1/approvals", "/v1/runs/x"] {
        gateway.get(path, "").check(401, "key");
        gateway.get(path, "claw_0000").check(401, "key");
        gateway.get(path, &key.replace('a', "b")).check(401, "key");
    }
    assert_eq!(gateway.get("/v1/tools", "").header("www-authenticate"), Some("Bearer"));
    gateway.get("/v1/tools", &key).check(200, "tools");
    let id = home.run(&["api-keys", "list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(home.run(&["api-keys", "revoke", &id]).code, 0);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while gateway.get("/v1/tools", &key).status != 401 {
        assert!(std::time::Instant::now() < deadline, "a revoked key is still let in");
        std::thread::sleep(Duration::from_millis(20));
    }
    let reader = gateway.key("reader", &["--scope", "tools:read"]);
    gateway.get("/v1/tools", &reader).check(200, "tools");
    gateway
        .invoke(&reader, &json!({ "tool": "datetime" }))
        .check(403, "does not have the scope `tools:call`");
    gateway.chat(&reader, "hi", None).check(403, "permission_error");
    let viewer = gateway.key("viewer", &["--role", "viewer"]);
    gateway.invoke(&viewer, &json!({ "tool": "datetime" })).check(403, "needs the role `operator`");
}

#[test]
fn refuses_what_belongs_to_somebody_else() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    let first = gateway.chat(&ann, "a secret plan", None);
    let session = first.header("x-clawsmith-session").unwrap().to_owned();
    let run = first.header("x-clawsmith-run").unwrap().to_owned();
    for path in [
        format!("/v1/sessions/{session}/messages"),
        format!("/v1/sessions/{session}/events"),
        format!("/v1/runs?sessionKey={session}"),
        format!("/v1/runs/{run}"),
    ] {
        let answer = gateway.get(&path, &ben).check(404, "there is no");
        assert!(!answer.body.contains("secret"), "{}", answer.body);
    }
    gateway.post(&format!("/v1/runs/{run}/cancel"), &ben, &json!({})).check(404, "there is no run");
    gateway.chat(&ben, "go on", Some(&session)).check(400, "there is no session");
    let read = json!({ "tool": "datetime", "sessionKey": session });
    gateway.invoke(&ben, &read).check(400, "there is no session");
    for claim in [
        json!({ "tool": "datetime", "channel": "cli" }),
        json!({ "tool": "datetime", "channel": "telegram", "chatId": "-100", "peerKind": "group" }),
        json!({ "tool": "datetime", "peerKind": "group" }),
    ] {
        gateway.invoke(&ben, &claim).check(403, "scope `users:act`");
    }
    gateway.invoke(&ben, &json!({ "tool": "datetime", "user": "ann" })).check(422, "unknown field `user`");
    let cli = "agent:default:cli:direct:ben";
    gateway.chat(&ben, "hi", Some(cli)).check(400, "there is no session");
}

#[test]
fn refuses_pages_of_other_sites_and_bad_requests() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    gateway
        .raw(request("evil.example", "GET /v1/tools", &key, &[], "").as_bytes())
        .check(403, "foreign_host");
    let origin = [("origin", "https://evil.example")];
    gateway.send("GET /v1/tools", &key, &origin, "").check(403, "foreign_host");
    gateway.get("/nothing", &key).check(404, "there is nothing at");
    gateway.send("DELETE /v1/tools", &key, &[], "").check(405, "method");
    gateway.send("POST /v1/tools/invoke", &key, &[], "{").check(400, "invalid_request");
    gateway.send("POST /v1/chat/completions", &key, &[], "[]").check(400, "invalid_request_error");
    let deep = format!("{{\"tool\":\"datetime\",\"args\":{}{}}}", "[".repeat(20_000), "]".repeat(20_000));
    gateway.send("POST /v1/tools/invoke", &key, &[], &deep).check(400, "recursion limit");
    let long = json!({ "tool": "datetime", "args": { "time": "x".repeat(9 << 20) } });
    gateway.invoke(&key, &long).check(413, "length limit").check(413, "send a smaller body");
    for junk in [&b"\r\n\r\n"[..], b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"] {
        let mut stream = gateway.connect();
        stream.write_all(junk).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }
    gateway.get("/health", "").check(200, "ok");
    gateway.get("/ready", "").check(200, "ready");
    let open = home.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(open.code == 2 && open.stderr.contains("is not a loopback address"), "{}", open.shown());
}

#[test]
fn sigterm_ends_it_and_the_next_one_finds_everything() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let session = gateway.chat(&key, "one", None).header("x-clawsmith-session").unwrap().to_owned();
    let pid = nix::unistd::Pid::from_raw(gateway.child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    drop(gateway);
    let gateway = Gateway::start(&home, ECHO);
    gateway.chat(&key, "two", Some(&session)).check(200, "You said: two");
}

/// Runs a third-party client against the gateway; `make test` brings them.
pub(crate) fn client(gateway: &Gateway<'_>, script: &str, key: &str, more: &[&str]) {
    let Some(python) = std::env::var_os("CLAWSMITH_TEST_PYTHON") else {
        eprintln!("skipped: CLAWSMITH_TEST_PYTHON names no Python with the clients; run `make test`");
        return;
    };
    let program = if script.ends_with(".mjs") { "node".into() } else { python };
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(script);
    let ran = Command::new(program)
        .arg(script)
        .args([&format!("http://{}", gateway.address), key])
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.trim() == "ok", "{said}{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn the_official_openai_clients_talk_to_an_agent() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    client(&gateway, "openai_client.py", &key, &[]);
    client(&gateway, "openai_responses.py", &key, &[]);
    client(&gateway, "openai_client.mjs", &key, &[]);
}

#[test]
fn a_websocket_client_follows_sessions_and_malformed_frames_harm_nobody() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let scopes = "sessions:read,sessions:write,approvals:read,approvals:answer";
    let key = gateway.key("ann", &["--scope", scopes]);
    client(&gateway, "websocket_client.py", &key, &["10000"]);
    client(&gateway, "websocket_malformed.py", &key, &[]);
}

#[test]
fn a_websocket_client_is_told_why_its_connection_ends() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, ECHO);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    let admin = gateway.key("root", &["--role", "admin", "--scope", "admin"]);
    let pid = gateway.child.id().to_string();
    client(&gateway, "websocket_closed.py", &ann, &[&ben, &admin, &pid]);
    if std::env::var_os("CLAWSMITH_TEST_PYTHON").is_some() {
        assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn an_answer_that_is_streamed_at_sigterm_is_sent_to_its_end() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, SLOW);
    let key = gateway.key("ann", &[]);
    let body =
        json!({ "model": "default", "stream": true, "messages": [{ "role": "user", "content": "slow" }] });
    let mut stream = gateway.connect();
    let what = request(&gateway.address, "POST /v1/chat/completions", &key, &[], &body.to_string());
    stream.write_all(what.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.by_ref().any(|line| line.is_empty()), "the head");
    let pid = nix::unistd::Pid::from_raw(gateway.child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let rest: Vec<String> = lines.collect();
    let chunks = rest.iter().filter_map(|line| line.strip_prefix("data: "));
    let chunks = chunks.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let words: String = chunks
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(words, "0123456789", "{rest:?}");
    assert!(rest.iter().any(|line| line == "data: [DONE]"), "{rest:?}");
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
}

#[test]
fn sigterm_ends_open_streams() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let session = gateway.chat(&key, "one", None).header("x-clawsmith-session").unwrap().to_owned();
    let mut stream = gateway.connect();
    let what = format!("GET /v1/sessions/{session}/events?after=0");
    stream.write_all(request(&gateway.address, &what, &key, &[], "").as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("id: 1")));
    let pid = nix::unistd::Pid::from_raw(gateway.child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert!(lines.count() < 1_000, "the stream ends");
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_dry_run_says_what_a_call_would_do_and_does_nothing() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let dry = |tool: &str, args: Value| {
        gateway.invoke(&key, &json!({ "tool": tool, "args": args, "dryRun": true }))
    };
    let write =
        dry("write_file", json!({ "path": "a", "content": "x" })).check(200, "\"verdict\":\"allow\"").json();
    assert!(write["effects"].as_array().unwrap().contains(&json!("write")), "{write}");
    assert!(write["plan"].is_object() && write["plan"].to_string().contains("\"a\""), "{write}");
    dry("exec", json!({ "command": "rm -r build" })).check(200, "\"verdict\":\"ask\"");
    let denied = dry("exec", json!({ "command": "rm -rf /" })).check(200, "\"verdict\":\"deny\"").json();
    assert!(denied["reason"].as_str().unwrap().contains("destructive"), "{denied}");
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let named = dry("exec", json!({ "command": format!("echo {secret}") })).check(200, "[REDACTED]");
    assert!(!named.body.contains(secret), "{}", named.body);
    dry("exec", json!({ "command": 1.5 })).check(422, "invalid_arguments");
    assert!(!home.data().join("workspaces/main/default/user-ann/a").exists());
    let nothing = gateway.get("/v1/approvals", &key).json();
    assert_eq!(nothing["approvals"], json!([]), "nobody is asked");
}

#[test]
fn tenants_are_apart_and_the_disabled_stay_out() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let ran = home.run(&["api-keys", "create", "--tenant", "acme", "--user", "ann"]);
    assert!(ran.code != 0 && ran.stderr.contains("acme"), "a tenant is added first: {}", ran.shown());
    assert_eq!(home.run(&["tenants", "add", "acme", "--name", "Acme"]).code, 0);
    let (own, acme) = (gateway.key("ann", &[]), gateway.key("ann", &["--tenant", "acme"]));
    let session = gateway.chat(&own, "a secret plan", None).header("x-clawsmith-session").unwrap().to_owned();
    gateway.get(&format!("/v1/sessions/{session}/messages"), &acme).check(404, "there is no session");
    assert_eq!(gateway.get("/v1/sessions", &acme).json()["sessions"], json!([]));
    let write = json!({ "tool": "write_file", "args": { "path": "a", "content": "x" } });
    gateway.invoke(&acme, &write).check(200, "\"ok\":true");
    assert!(home.data().join("workspaces/acme/default/user-ann/a").exists());
    assert!(!home.data().join("workspaces/main/default/user-ann/a").exists());

    let refused = |key: &str| {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while gateway.get("/v1/tools", key).status != 401 {
            assert!(std::time::Instant::now() < deadline, "a disabled one is still let in");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    assert_eq!(home.run(&["users", "edit", "ann", "--disabled", "true"]).code, 0);
    refused(&own);
    gateway.get("/v1/tools", &acme).check(200, "tools");
    let own = home.run(&["tenants", "edit", "main", "--disabled", "true"]);
    assert!(own.code == 2 && own.stderr.contains("cannot be disabled"), "{}", own.shown());
    assert_eq!(home.run(&["tenants", "edit", "acme", "--disabled", "true"]).code, 0);
    refused(&acme);
    let users = home.run(&["users", "list", "--tenant", "acme", "--json"]).json();
    assert_eq!((&users[0]["id"], &users[0]["role"]), (&json!("ann"), &json!("operator")));
    let ran = home.run(&["users", "edit", "nobody", "--role", "admin"]);
    assert!(ran.code == 2 && ran.stderr.contains("there is no user `nobody`"), "{}", ran.shown());
}

#[test]
fn the_ledger_and_usage_are_ones_own_unless_one_is_an_administrator() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &["--scope", "ledger:read,tools:call"]));
    gateway.get("/v1/ledger", &ann).check(403, "ledger:read");
    gateway.invoke(&ann, &json!({ "tool": "datetime" })).check(200, "\"ok\":true");
    gateway.invoke(&ben, &json!({ "tool": "agents_list" })).check(200, "\"ok\":true");
    gateway.chat(&ann, "hello", None).check(200, "hello");
    let own = gateway.get("/v1/ledger", &ben).check(200, "agents_list");
    assert!(!own.body.contains("datetime"), "{}", own.body);
    assert_eq!(gateway.get("/v1/usage", &ben).json()["answers"], 0);
    let admin = gateway.key("root", &["--role", "admin", "--scope", "admin"]);
    let all = gateway.get("/v1/ledger?tool=datetime", &admin).check(200, "datetime").json();
    assert_eq!(all["entries"].as_array().unwrap().len(), 2, "intent and outcome: {all}");
    assert_eq!(gateway.get("/v1/usage", &admin).json()["answers"], 1);
    gateway.get("/v1/agents", &ann).check(200, "agents");
    gateway.get("/v1/ledger?nothing=1", &admin).check(400, "unknown field");
}

#[test]
fn a_question_that_another_run_took_is_answered_with_it() {
    let home = Home::with_config("[runs]\nmeanwhile = \"merge\"\n");
    let gateway = Gateway::start(&home, SLOW);
    let key = gateway.key("ann", &[]);
    let session = gateway.chat(&key, "one", None).header("x-clawsmith-session").unwrap().to_owned();
    std::thread::scope(|scope| {
        let long = scope.spawn(|| gateway.chat(&key, "long", Some(&session)));
        gateway.until_running(&key, &session);
        let second = scope.spawn(|| gateway.chat(&key, "second", Some(&session)));
        let third = scope.spawn(|| gateway.chat(&key, "third", Some(&session)));
        long.join().unwrap().check(200, "0123456789");
        for answer in [second.join().unwrap(), third.join().unwrap()] {
            let answer = answer.check(200, "second");
            assert!(answer.body.contains("third"), "{}", answer.body);
        }
    });
}

#[test]
fn a_question_behind_a_run_that_waits_for_approval_is_told_so() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let session = gateway.chat(&key, "write", None).header("x-clawsmith-session").unwrap().to_owned();
    gateway.chat(&key, "hello", Some(&session)).check(200, "an earlier run of session");
}

#[test]
fn skills_are_seen_by_all_and_changed_by_administrators() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let (ann, admin) =
        (gateway.key("ann", &[]), gateway.key("root", &["--role", "admin", "--scope", "admin"]));
    // The skills of whoever runs the gateway are nobody else's.
    let front = |name: &str| format!("---\nname: {name}\ndescription: About {name}.\n---\nDo.\n");
    for (directory, name) in
        [(".agents/skills/private-notes", "private-notes"), ("made/team-notes", "team-notes")]
    {
        std::fs::create_dir_all(home.path().join(directory)).unwrap();
        home.write(&format!("{directory}/SKILL.md"), front(name));
    }
    assert_eq!(home.run(&["skills", "add", "../made/team-notes", "--private"]).code, 0);
    let listed = gateway.get("/v1/skills", &ann).check(200, "review-change").body;
    assert!(!listed.contains("private-notes") && !listed.contains("team-notes"), "{listed}");
    gateway.get("/v1/skills/search?query=review%20a%20change", &ann).check(200, "review-change");
    gateway.get("/v1/skills/review-change", &ann).check(200, "Reviewing a change");
    gateway.get("/v1/skills/nothing", &ann).check(404, "there is no skill `nothing`");
    gateway.get("/v1/skills/Not%2FA-name", &ann).check(404, "nothing named `Not/A-name`");
    gateway.get("/v1/skills", "").check(401, "");
    // Granting is an administrator's.
    let grant = json!({ "userId": "ann" });
    gateway.post("/v1/skills/team-notes/grants", &ann, &grant).check(403, "scope `admin`");
    gateway.post("/v1/skills/team-notes/grants", &admin, &grant).check(200, "\"to\":\"user\"");
    gateway.get("/v1/skills/search?query=team", &ann).check(200, "team-notes");
    gateway.send("DELETE /v1/skills/team-notes/grants?userId=ann", &admin, &[], "").check(204, "");
    let hidden = gateway.get("/v1/skills/search?query=team", &ann).check(200, "skills").body;
    assert!(!hidden.contains("team-notes"), "{hidden}");
    // One in a workspace is accepted with the digest that was seen.
    let base = home.data().canonicalize().unwrap().join("workspaces");
    let (agent, user) =
        (claw_core::AgentId::new("default").unwrap(), claw_core::UserId::new("root").unwrap());
    let tenant = claw_core::TenantId::main();
    let workspace = claw_host::files::workspace_path(&base, &tenant, &agent, Some(&user));
    std::fs::create_dir_all(workspace.join("skills/fresh")).unwrap();
    std::fs::write(workspace.join("skills/fresh/SKILL.md"), front("fresh")).unwrap();
    let shown = gateway.get("/v1/skills/fresh", &admin).check(200, "unaccepted").json();
    let digest = json!({ "digest": shown["digest"] });
    let other = json!({ "digest": format!("sha256:{}", "0".repeat(64)) });
    gateway.post("/v1/skills/fresh/accept", &admin, &other).check(400, "has changed");
    gateway.post("/v1/skills/fresh/accept", &ann, &digest).check(403, "scope `admin`");
    gateway.post("/v1/skills/fresh/accept", &admin, &digest).check(200, "fresh");
    gateway.get("/v1/skills/search?query=fresh", &admin).check(200, "\"usable\"");
    gateway.send("DELETE /v1/skills/team-notes", &ann, &[], "").check(403, "");
    gateway.send("DELETE /v1/skills/team-notes", &admin, &[], "").check(200, "\"removed\":true");
}
