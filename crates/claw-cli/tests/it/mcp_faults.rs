//! `clawsmith mcp`: servers that die, hang, flood, drop their sessions, start again or change, which harms one call at most.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;
use crate::mcp::{Peers, Running, clients, good, listening, listening_at, named, peers};

const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway, and the key of a user who calls tools.
struct Caller<'a> {
    gateway: Gateway<'a>,
    key: String,
}

impl<'a> Caller<'a> {
    fn new(home: &'a Home) -> Self {
        let gateway = Gateway::start(home, ECHO);
        let key = gateway.key("ann", &[]);
        Self { gateway, key }
    }

    fn call(&self, tool: &str) -> Value {
        self.gateway.invoke(&self.key, &json!({ "tool": tool, "args": {} })).json()
    }

    /// Calls a tool; returns the answer, which says these words.
    #[track_caller]
    fn says(&self, tool: &str, words: &str) -> String {
        let answer = self.call(tool).to_string();
        assert!(answer.contains(words), "{words}: {}", answer.get(..2_000).unwrap_or(&answer));
        answer
    }

    /// Calls a tool until it succeeds; returns the failures before.
    #[track_caller]
    fn fine(&self, tool: &str) -> Vec<String> {
        let until = Instant::now() + PATIENCE;
        let mut failures = Vec::new();
        loop {
            let answer = self.call(tool);
            if answer["ok"] == true {
                return failures;
            }
            assert!(Instant::now() < until, "{tool}: {answer}");
            failures.push(answer.to_string());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits until the connection to a server is in this state, and returns it.
    #[track_caller]
    fn until_state(&self, admin: &str, server: &str, state: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let path = format!("/v1/mcp/servers/{server}");
            let shown = self.gateway.get(&path, admin).check(200, server).json();
            if shown["connections"][0]["state"] == state {
                return shown["connections"][0].clone();
            }
            assert!(Instant::now() < until, "{state}: {shown}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The command of the misbehaving server over HTTP, on this port.
fn dropping(peers: &Peers, port: u16) -> Command {
    let mut command = Command::new(&peers.python);
    command.arg(clients().join("mcp_dropping.py")).arg(port.to_string());
    command
}

/// Starts the misbehaving server over HTTP, and adds it as `far`.
fn add_dropping(peers: &Peers, home: &Home) -> (Running, u16) {
    let (running, port) = listening(&mut Command::new(&peers.python), |command, port| {
        command.arg(clients().join("mcp_dropping.py")).arg(port.to_string());
    });
    good(&home.run(&["mcp", "add", "far", &format!("http://127.0.0.1:{port}/mcp"), "--timeout", "2"]));
    (running, port)
}

#[test]
fn a_server_that_misbehaves_harms_one_call_at_most() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    let tools = ["ok", "die", "hang", "late", "flood", "garbage", "huge", "broken", "unknown"];
    good(&peers.add_faulty(&home, "bad", &named(&tools), &["--timeout", "2"]));
    good(&peers.add_faulty(&home, "good", &named(&["ok"]), &[]));
    let ann = Caller::new(&home);
    ann.fine("mcp_bad_ok");
    ann.says("mcp_bad_die", "ended the connection during the call");
    ann.says("mcp_good_ok", "fine");
    // The server is started again by itself.
    ann.fine("mcp_bad_ok");
    ann.says("mcp_bad_hang", "did not answer within 2 seconds");
    ann.says("mcp_bad_late", "did not answer within 2 seconds");
    ann.fine("mcp_bad_ok");
    // A busy machine takes its time to read what follows.
    good(&home.run(&["mcp", "grant", "bad", "agent:default", "--timeout", "60"]));
    ann.says("mcp_bad_garbage", "after the garbage");
    ann.says("mcp_bad_broken", "sent an invalid answer: its answer is not valid JSON");
    ann.says("mcp_bad_unknown", "refused the request");
    let flooded = ann.call("mcp_bad_flood").to_string();
    assert!(flooded.contains("after the flood") || flooded.contains("did not answer"), "{flooded}");
    let huge = ann.says("mcp_bad_huge", "its answer has more than 16 MiB");
    assert!(huge.len() < 10_000, "{}", huge.len());
    ann.says("mcp_good_ok", "fine");
    ann.fine("mcp_bad_ok");
}

#[test]
fn a_server_that_drops_its_session_answers_late_or_renames_its_tools_harms_one_call_at_most() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    let (_far, _) = add_dropping(&peers, &home);
    good(&peers.add_faulty(&home, "near", &named(&["ok"]), &[]));
    let ann = Caller::new(&home);
    assert_eq!(ann.fine("mcp_far_ok"), [] as [String; 0]);
    // The session is gone with the answer: the next call begins another one.
    assert_eq!(ann.fine("mcp_far_drop"), [] as [String; 0]);
    assert_eq!(ann.fine("mcp_far_ok"), [] as [String; 0]);
    assert_eq!(ann.fine("mcp_near_ok"), [] as [String; 0]);
    ann.says("mcp_far_late", "did not answer within 2 seconds");
    assert_eq!(ann.fine("mcp_far_ok"), [] as [String; 0]);
    good(&home.run(&["mcp", "grant", "far", "agent:default", "--timeout", "60"]));
    ann.says("mcp_far_huge", "sent an invalid answer: its answer has more than 16 MiB");
    ann.says("mcp_far_broken", "sent an invalid answer: its answer is not valid JSON");
    assert_eq!(ann.fine("mcp_far_ok"), [] as [String; 0]);
    // A tool that the server renamed without a word is refused by it, and is gone once the server is listed again.
    ann.fine("mcp_far_rename");
    ann.says("mcp_far_ok", "MCP server `far` refused the request: no tool ok");
    good(&home.run(&["mcp", "test", "far"]));
    let until = Instant::now() + PATIENCE;
    while !ann.call("mcp_far_ok").to_string().contains("no tool called") {
        assert!(Instant::now() < until, "{}", ann.call("mcp_far_ok"));
        std::thread::sleep(Duration::from_millis(100));
    }
    ann.fine("mcp_near_ok");
}

#[test]
fn refuses_a_changed_tool_of_a_server_that_started_again() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    let (_far, _) = add_dropping(&peers, &home);
    let ann = Caller::new(&home);
    ann.fine("mcp_far_ok");
    // From now on the server describes the tool otherwise, and knows no session.
    ann.says("mcp_far_swap", "swap is fine");
    let refused = ann.says("mcp_far_ok", "is not the one that was accepted");
    assert!(!refused.contains("ok is fine"), "{refused}");
    for _ in 0..5 {
        let again = ann.call("mcp_far_ok").to_string();
        assert!(!again.contains("ok is fine"), "{again}");
    }
    assert_eq!(ann.fine("mcp_far_drop"), [] as [String; 0], "the other tools did not change");
    let shown = home.run(&["mcp", "pin", "far"]);
    assert!(good(&shown).stdout.contains("Send it all to me."), "{}", shown.shown());
    good(&home.run(&["mcp", "pin", "far", "--accept"]));
    ann.fine("mcp_far_ok");
}

#[test]
fn calls_wait_for_a_server_that_died_until_it_is_started_again() {
    let Some(peers) = peers() else { return };
    let home = Home::new();
    let (_far, port) = add_dropping(&peers, &home);
    let ann = Caller::new(&home);
    let root = ann.gateway.key("root", &["--role", "admin", "--scope", "admin"]);
    ann.fine("mcp_far_ok");
    let dropped = ann.says("mcp_far_die", "ended the connection during the call");
    assert!(dropped.contains("it is unknown whether the call took effect"), "{dropped}");
    let waiting = ann.until_state(&root, "far", "waiting");
    assert!(waiting["reason"].as_str().unwrap().contains("onnection refused"), "{waiting}");
    let unreached = ann.says("mcp_far_ok", "MCP server `far` cannot be reached: ");
    assert!(unreached.contains("onnection refused"), "{unreached}");
    let _again = std::thread::scope(|scope| {
        let waits = scope.spawn(|| ann.call("mcp_far_ok").to_string());
        let again = listening_at(&mut dropping(&peers, port), port);
        let answer = waits.join().unwrap();
        // The machine may be slow to start the server.
        assert!(answer.contains("ok is fine") || answer.contains("cannot be reached"), "{answer}");
        again
    });
    ann.fine("mcp_far_ok");
    ann.until_state(&root, "far", "connected");
}
