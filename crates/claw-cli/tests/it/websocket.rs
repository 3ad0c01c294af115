//! The WebSocket of `clawsmith serve`, by a library of another language.

use crate::gateway::{ECHO, Gateway, client};
use crate::harness::Home;

const INJECTED: &str = r#"
[[turn]]
when.said = "slow"
when.round = 0
do = [{ wait_ms = 3000 }, { call = "list_files", args = {} }]

[[turn]]
do = [{ say = "You said: {{said}}" }]
"#;

#[test]
fn a_message_reaches_a_run_that_goes_on_and_many_sessions_are_followed() {
    let home = Home::new();
    let gateway = Gateway::start(&home, INJECTED);
    let key = gateway.key("ann", &["--scope", "sessions:read,sessions:write"]);
    let admin = gateway.key("boss", &["--role", "admin", "--scope", "admin"]);
    client(&gateway, "websocket_inject.py", &key, &[&admin]);
}

#[test]
fn a_browser_shows_its_key_in_the_first_frame_and_nothing_is_done_before() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let (key, other) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    client(&gateway, "websocket_connect.py", &key, &[&other]);
}

#[test]
fn a_client_resumes_the_events_of_many_sessions_after_a_restart() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let kept = home.path().join("kept.json");
    let kept = kept.to_str().unwrap();
    client(&gateway, "websocket_resume.py", &key, &[kept, "begin"]);
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
    let gateway = Gateway::start(&home, ECHO);
    client(&gateway, "websocket_resume.py", &key, &[kept, "resume"]);
}
