//! A port refuses what the plan did not name, and what the scope does not hold.

use claw_core::tool::ErrorKind;
use serde_json::json;

use crate::kit::{Bench, Setup, refused};

#[track_caller]
fn check(reply: &claw_registry::Reply, expected: Result<(), ErrorKind>) {
    match expected {
        Ok(()) => assert!(reply.is_done(), "{}", reply.model_text()),
        Err(kind) => assert_eq!(reply.failure().map(|e| e.kind), Some(kind), "{}", reply.model_text()),
    }
}

#[tokio::test]
async fn a_tool_cannot_do_what_it_did_not_plan() {
    let bench = Bench::new(Setup::default());
    for (attempt, expected) in [
        ("write", Err(ErrorKind::Forbidden)),
        ("outside", Err(ErrorKind::Forbidden)),
        ("read", Err(ErrorKind::Forbidden)),
        ("run", Err(ErrorKind::Forbidden)),
        ("port", Err(ErrorKind::Unavailable)),
        ("spelling", Ok(())),
    ] {
        check(&bench.call("rogue", json!({"attempt": attempt})).await, expected);
    }
    assert!(bench.shell.runs().is_empty());
    assert_eq!(bench.files.text("/w/other.txt"), None);
    assert_eq!(bench.files.text("/w/planned.txt").as_deref(), Some("x"));
}

#[tokio::test]
async fn a_write_outside_the_scope_never_begins() {
    let bench = Bench::new(Setup::default());
    for path in ["../x", "/etc/passwd", "/w-evil/x", "a/../../x"] {
        let reply = bench.call("save", json!({"file_path": path})).await;
        assert_eq!(refused(&reply).0, "judge", "{path}");
    }
    check(&bench.call("save", json!({"file_path": "/w/in.txt"})).await, Ok(()));
}
