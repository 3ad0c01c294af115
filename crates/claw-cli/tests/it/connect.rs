//! `clawsmith chat --connect`: a terminal here, the session at a gateway.

use serde_json::Value;

use crate::gateway::{ECHO, Gateway, log_of};
use crate::harness::{Home, Ran};
use crate::terminal::Terminal;

const SCOPES: &str = "sessions:read,sessions:write,approvals:read,approvals:answer";

fn chat(home: &Home, gateway: &Gateway<'_>, key: &str, words: &[&str]) -> Ran {
    let url = format!("http://{}", gateway.address);
    home.run_with(&[("CLAWSMITH_API_KEY", key)], &[&["chat", "--connect", &url], words].concat())
}

#[test]
fn a_chat_looks_the_same_wherever_its_session_lives() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &["--scope", SCOPES]);
    let remote = chat(&home, &gateway, &key, &["list the files"]);
    assert_eq!(remote.code, 0, "{}", remote.shown());
    let script = home.path().join("script.toml");
    let local = home.run(&["chat", "--managed", "--script", script.to_str().unwrap(), "list the files"]);
    assert_eq!(remote.stdout, local.stdout, "{}", remote.shown());
    assert!(remote.stdout.contains("I look.") && remote.stdout.contains("So there are some."));
    assert!(remote.stderr.contains("→ list_files"), "{}", remote.shown());

    // Programs read lines, and the session goes on.
    let lines = |ran: &Ran| -> Vec<Value> {
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let first = chat(&home, &gateway, &key, &["-m", "hello", "--json"]);
    assert_eq!(first.code, 0, "{}", first.shown());
    let first = lines(&first);
    assert_eq!(first[0]["type"], "chat");
    assert_eq!(first.last().unwrap()["type"], "usage");
    assert!(first.iter().any(|line| line["type"] == "message"), "{first:?}");
    let session = first[0]["session"].as_str().unwrap();
    let second = chat(&home, &gateway, &key, &["-m", "again", "--session", session]);
    assert!(second.stdout.contains("You said: again"), "{}", second.shown());
    let said = gateway.get(&format!("/v1/sessions/{session}/messages"), &key).check(200, "hello").json();
    assert_eq!(said["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn where_nobody_can_be_asked_a_call_is_refused() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &["--scope", SCOPES]);
    let ran = chat(&home, &gateway, &key, &["write"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stderr.contains("nobody can be asked"), "{}", ran.shown());
}

#[test]
fn refuses_what_is_no_key_and_where_one_could_be_read() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let check = |ran: Ran, code: i32, says: &str| {
        assert_eq!(ran.code, code, "{}", ran.shown());
        assert!(ran.stderr.contains(says), "{says}: {}", ran.shown());
    };
    check(chat(&home, &gateway, "claw_nothing", &["hello"]), 3, "this key is unknown");
    let url = format!("http://{}", gateway.address);
    check(home.run(&["chat", "--connect", &url, "hello"]), 2, "`CLAWSMITH_API_KEY` holds no key");
    let named = ["chat", "--connect", &url, "--key-env", "OTHER", "hello"];
    check(home.run(&named), 2, "`OTHER` holds no key");
    let key = [("CLAWSMITH_API_KEY", "claw_x")];
    let clear = ["chat", "--connect", "http://agents.example.org", "hello"];
    check(home.run_with(&key, &clear), 2, "could read the key");
    let nobody = ["chat", "--connect", "http://127.0.0.1:1", "hello"];
    check(home.run_with(&key, &nobody), 1, "cannot be reached");
    let both = ["chat", "--connect", &url, "--script", "x", "hello"];
    check(home.run_with(&key, &both), 2, "cannot be used with");
    let readable = gateway.key("ann", &["--scope", "sessions:read"]);
    check(chat(&home, &gateway, &readable, &["hello"]), 3, "sessions:write");
}

const SLOW: &str = r#"
[[turn]]
when.said = "go on for ever"
do = [{ say = "Very well. ", delay_ms = 1 }, { hang = true }]

[[turn]]
when.said = "write"
when.result_of = "exec"
do = [{ say = "It said {{result}}" }]

[[turn]]
when.said = "write"
do = [{ say = "Let me." }, { call = "exec", args = { command = "$WHAT; echo it ran" } }]

[[turn]]
do = [{ say = "You said: {{said}}" }]
"#;

#[test]
fn a_chat_survives_a_restart_of_its_gateway_between_two_messages() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &["--scope", SCOPES]);
    let address = gateway.address.clone();
    let url = format!("http://{address}");
    let words = ["chat", "--connect", url.as_str()];
    let mut terminal = Terminal::with_variables(&home, &words, &[("CLAWSMITH_API_KEY", key.as_str())]);
    terminal.wait_for("/help for commands");
    terminal.say("hello");
    terminal.wait_for("You said: hello");
    let pid = nix::unistd::Pid::from_raw(gateway.child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    let mut again = home.process(&["serve", "--json", "--listen", &address, "--script"]);
    again.arg(home.path().join("script.toml")).stderr(log_of(&home));
    let gateway = Gateway::spawn(&home, &mut again);
    terminal.say("still there?");
    terminal.wait_for("You said: still there?");
    terminal.end();
    let sessions = gateway.get("/v1/sessions", &key).check(200, "sessions").json();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "it is the same session: {sessions}");
}

#[test]
fn a_person_talks_answers_and_stops_at_a_terminal() {
    let home = Home::new();
    let gateway = Gateway::start(&home, SLOW);
    let key = gateway.key("ann", &["--scope", SCOPES]);
    let url = format!("http://{}", gateway.address);
    let words = ["chat", "--connect", url.as_str()];
    let mut terminal = Terminal::with_variables(&home, &words, &[("CLAWSMITH_API_KEY", key.as_str())]);
    terminal.wait_for("/help for commands");
    terminal.say("hello");
    terminal.wait_for("You said: hello");
    terminal.say("write");
    terminal.wait_for("[n]o");
    terminal.type_in("y\r");
    terminal.wait_for("it ran");
    terminal.say("go on for ever");
    terminal.wait_for("Very well.");
    terminal.type_in("\u{3}");
    terminal.wait_for("Stopped.");
    terminal.say("/cost");
    terminal.wait_for("answers");
    terminal.say("/new");
    terminal.wait_for("session agent:default:http:direct:ann:");
    terminal.say("still there?");
    terminal.wait_for("You said: still there?");
    terminal.end();
}
