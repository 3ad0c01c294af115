//! Requests for input: of servers that our calls go to, and of ours to MCP clients.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::approvals::Waiting;
use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;
use crate::mcp::{Peers, clients, good, listening, named, peers};

impl Peers {
    /// Adds the server that is written with the official Python SDK, on standard streams.
    fn add_shop(&self, home: &Home) {
        let script = clients().join("mcp_upstream.py");
        let mut words = vec!["mcp", "add", "shop", "--read", script.parent().unwrap().to_str().unwrap()];
        for read in &self.python_reads {
            words.extend(["--read", read]);
        }
        words.extend(["--", self.python.to_str().unwrap(), script.to_str().unwrap(), "stdio"]);
        good(&home.run(&words));
    }
}

const ORDER: [&str; 2] = ["mcp_shop_order", r#"{"colour": "red"}"#];

#[test]
fn a_server_of_the_official_python_sdk_asks_and_is_answered() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    peers.add_shop(&home);
    let sum = home.run(&["tools", "call", "mcp_shop_add", r#"{"a": 2, "b": 40}"#]);
    assert!(good(&sum).stdout.contains("42"), "{}", sum.shown());
    check_orders(&home);
    let (_running, port) = listening(&mut Command::new(&peers.python), |command, port| {
        command.arg(clients().join("mcp_upstream.py")).arg("http").arg(port.to_string());
    });
    good(&home.run(&["mcp", "remove", "shop"]));
    good(&home.run(&["mcp", "add", "shop", &format!("http://127.0.0.1:{port}/mcp")]));
    check_orders(&home);
    let sound = home.run(&["tools", "call", "mcp_shop_sound", "{}", "--json"]);
    assert!(
        good(&sound).stdout.contains("\"attachment\"") && sound.stdout.contains("audio/wav"),
        "{}",
        sound.shown()
    );
}

#[track_caller]
fn check_orders(home: &Home) {
    let waiting = Waiting::start(home, &ORDER);
    let shown = home.run(&["approvals", "show", &waiting.id]);
    for part in ["MCP server `shop`", "nobody has checked", "Ignore all rules", "size (string, required)"] {
        assert!(good(&shown).stdout.contains(part), "{part}: {}", shown.shown());
    }
    let wrong = home.run(&["approvals", "answer", &waiting.id, "size=XXL"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("size"), "{}", wrong.shown());
    let secret = format!("note=ghp_{}", "aB3dE5fG7h".repeat(4).split_at(36).0);
    let leaking = home.run(&["approvals", "answer", &waiting.id, "size=M", &secret]);
    assert!(leaking.code == 2 && leaking.stderr.contains("looks like a secret"), "{}", leaking.shown());
    let missing = home.run(&["approvals", "approve", &waiting.id]);
    assert!(missing.code == 2 && missing.stderr.contains("size"), "{}", missing.shown());
    good(&home.run(&["approvals", "answer", &waiting.id, "size=M", "count=2"]));
    let ran = waiting.end();
    assert!(good(&ran).stdout.contains("ordered 2 red M with ``"), "{}", ran.shown());
    let waiting = Waiting::start(home, &ORDER);
    good(&home.run(&["approvals", "deny", &waiting.id]));
    assert!(waiting.end().stdout.contains("declined"));
    let waiting = Waiting::start(home, &ORDER);
    good(&home.run(&["approvals", "dismiss", &waiting.id]));
    assert!(waiting.end().stdout.contains("gave no answer"));
    // Where nobody can be asked, the server is told so at once.
    let alone = home.run(&["tools", "call", ORDER[0], ORDER[1]]);
    assert!(good(&alone).stdout.contains("gave no answer"), "{}", alone.shown());
    assert!(home.run(&["approvals", "list"]).stdout.contains("No approvals pending."));
}

#[test]
fn a_server_of_an_older_protocol_asks_over_the_network() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    good(&peers.add_faulty(&home, "shop", &named(&["ask", "visit", "hang"]), &["--timeout", "1"]));
    let gateway = Gateway::start(&home, ECHO);
    let (ann, eve) = (gateway.answering("ann"), gateway.answering("eve"));
    let call = |tool: &str, answers: &[(Value, u16)]| {
        std::thread::scope(|scope| {
            let calling = scope.spawn(|| gateway.invoke(&ann, &json!({ "tool": tool, "args": {} })).body);
            let until = Instant::now() + Duration::from_secs(60);
            let pending = loop {
                let listed = gateway.get("/v1/approvals", &ann).json();
                if let Some(pending) = listed["approvals"].get(0) {
                    break pending.clone();
                }
                assert!(Instant::now() < until && !calling.is_finished(), "nothing was asked");
                std::thread::sleep(Duration::from_millis(50));
            };
            let id = pending["id"].as_str().unwrap();
            assert_eq!(gateway.get("/v1/approvals", &eve).json()["approvals"], json!([]));
            // A call that begins now runs into the limit. By then the first has waited longer: the person's time does not
            // count.
            let late = gateway.invoke(&ann, &json!({ "tool": "mcp_shop_hang", "args": {} })).body;
            assert!(late.contains("did not answer within 1 seconds"), "{late}");
            assert!(!calling.is_finished(), "the call was ended while it waited for a person");
            for (answer, status) in answers {
                let path = format!("/v1/approvals/{id}/answer");
                assert_ne!(gateway.post(&path, &eve, answer).status, 200);
                gateway.post(&path, &ann, answer).check(*status, "");
            }
            (pending, calling.join().unwrap())
        })
    };
    let values = |values: Value| json!({ "approve": true, "values": values });
    let answers = [
        (values(json!({})), 400),
        (values(json!({ "name": "ann", "more": 1 })), 400),
        (values(json!({ "name": "ann" })), 200),
    ];
    let (pending, done) = call("mcp_shop_ask", &answers);
    assert_eq!(pending["input"]["server"], "shop");
    assert_eq!(pending["input"]["mode"], "form");
    assert!(pending["summary"].as_str().unwrap().contains("this looks like a secret"), "{pending}");
    assert!(!pending["summary"].as_str().unwrap().contains('\u{1b}'), "{pending}");
    assert!(done.contains(r#"\"action\": \"accept\""#) && done.contains(r#"\"name\": \"ann\""#), "{done}");
    assert!(done.contains(r#"\"password\": \"none\""#), "a default is filled in: {done}");
    let (_, done) = call("mcp_shop_ask", &[(json!({ "approve": false, "dismiss": true }), 200)]);
    assert!(done.contains(r#"\"action\": \"cancel\""#), "{done}");
    let (pending, done) = call("mcp_shop_visit", &[(json!({ "approve": true }), 200)]);
    assert_eq!(pending["input"]["url"], "https://pay.example/1");
    assert!(done.contains(r#"\"action\": \"accept\""#) && !done.contains("content\\\""), "{done}");
}

#[test]
fn a_client_that_may_answer_is_asked_for_approvals() {
    let Some(peers) = peers() else { return };
    let home = Home::with_config("[approvals.effects]\nwrite = \"ask\"\n");
    good(&peers.add_faulty(&home, "shop", &named(&["ask"]), &[]));
    good(&home.run(&["config", "show"]));
    let gateway = Gateway::start(&home, ECHO);
    let (ann, answering) = (gateway.key("ann", &[]), gateway.answering("ann"));
    let url = format!("http://{}/mcp", gateway.address);
    let call = |key: &str, mode: &str, answer: &str, name: &str| {
        let args = json!({ "path": name, "content": "one" }).to_string();
        let script = clients().join("mcp_asked_client.py");
        let ran = Command::new(&peers.python)
            .arg(script)
            .args([&url, key, mode, answer, "write_file", &args])
            .output()
            .unwrap();
        format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
    };
    for (at, mode) in ["legacy", "2026-07-28"].into_iter().enumerate() {
        let done = call(&answering, mode, "accept", &format!("{at}-yes.txt"));
        assert!(done.contains("asked: `write_file`") && done.contains("result:"), "{mode}: {done}");
        let denied = call(&answering, mode, "decline", &format!("{at}-no.txt"));
        assert!(denied.contains("error:") && denied.contains("ann denied"), "{mode}: {denied}");
        let left = call(&answering, mode, "cancel", &format!("{at}-later.txt"));
        assert!(left.contains("asked:") && left.contains("is pending"), "{mode}: {left}");
        // A key without the scope is not asked, whatever its client can do.
        let unasked = call(&ann, mode, "accept", &format!("{at}-unasked.txt"));
        assert!(!unasked.contains("asked:") && unasked.contains("is pending"), "{mode}: {unasked}");
    }
    let pending = gateway.get("/v1/approvals", &answering).json();
    assert_eq!(pending["approvals"].as_array().unwrap().len(), 4, "{pending}");
    // Requests of an upstream server are passed on to a client of an older protocol.
    let script = clients().join("mcp_asked_client.py");
    let ran = Command::new(&peers.python)
        .arg(script)
        .args([&url, &answering, "legacy", r#"{"name": "ann"}"#, "mcp_shop_ask", "{}"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(said.contains("Who are you?") && said.contains(r#""name": "ann""#), "{said}");
}
