//! The WebSocket of `clawsmith serve`, by a library of another language.

use crate::gateway::{Gateway, client};
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
