use serde_json::{Value, json};

use super::*;

const ID: &str = "0190f5fe-7c00-7a00-8000-000000000001";

/// Checks that the event has this JSON form, and parses from it.
#[track_caller]
fn check(event: SessionEventBody, expected: Value) {
    assert_eq!(serde_json::to_value(&event).unwrap(), expected);
    assert_eq!(expected["type"], event.kind());
    assert_eq!(serde_json::from_value::<SessionEventBody>(expected).unwrap(), event);
}

#[test]
fn events_keep_the_form_that_clients_know() {
    let (run, call) = (ID.parse().unwrap(), ID.parse().unwrap());
    let message = SessionEventBody::Message { id: ID.parse().unwrap(), seq: 7, role: Role::Assistant, run };
    check(message, json!({ "type": "message", "id": ID, "seq": 7, "role": "assistant", "run": ID }));
    let of_run = |state| SessionEventBody::Run { run, state };
    for (state, mut expected) in [
        (RunEvent::Began { attempt: 1 }, json!({ "state": "began", "attempt": 1 })),
        (RunEvent::Resumed { attempt: 70_000 }, json!({ "state": "resumed", "attempt": 70_000 })),
        (RunEvent::Parked { until: UnixMillis(-5) }, json!({ "state": "parked", "until": -5 })),
        (RunEvent::Woken, json!({ "state": "woken" })),
        (
            RunEvent::Failed { why: "no".to_owned(), retry: UnixMillis(9) },
            json!({ "state": "failed", "why": "no", "retry": 9 }),
        ),
        (RunEvent::Ended { end: RunEnd::Limited }, json!({ "state": "ended", "end": "limited" })),
        (RunEvent::Reported { why: "no".to_owned() }, json!({ "state": "reported", "why": "no" })),
        (RunEvent::Summarised { upto: u64::MAX }, json!({ "state": "summarised", "upto": u64::MAX })),
        (RunEvent::Cancelled { by: "ann".to_owned() }, json!({ "state": "cancelled", "by": "ann" })),
    ] {
        expected["type"] = json!("run");
        expected["run"] = json!(ID);
        check(of_run(state), expected);
    }
    let of_call = |state| SessionEventBody::Tool { call, tool: "exec".to_owned(), state };
    for (state, mut expected) in [
        (ToolEvent::Started, json!({ "state": "started" })),
        (
            ToolEvent::Finished { outcome: Outcome::Failed, micros: 12 },
            json!({ "state": "finished", "outcome": "failed", "micros": 12 }),
        ),
        (
            ToolEvent::Refused { step: "judge".into(), reason: "no".to_owned(), setting: None },
            json!({ "state": "refused", "step": "judge", "reason": "no" }),
        ),
    ] {
        expected["type"] = json!("tool");
        expected["call"] = json!(ID);
        expected["tool"] = json!("exec");
        check(of_call(state), expected);
    }
    let approval = ID.parse().unwrap();
    let state = ApprovalState::Expired;
    let closed = SessionEventBody::Approval { approval, call, state, request: None };
    check(closed, json!({ "type": "approval", "approval": ID, "call": ID, "state": "expired" }));
    let request = ApprovalAsked {
        tool: ToolName::literal("exec"),
        effects: Effects::ALL,
        summary: "ls".to_owned(),
        reason: "commands are asked".to_owned(),
        expires: UnixMillis(9),
    };
    let effects = serde_json::to_value(Effects::ALL).unwrap();
    let state = ApprovalState::Pending;
    check(
        SessionEventBody::Approval { approval, call, state, request: Some(request) },
        json!({
            "type": "approval", "approval": ID, "call": ID, "state": "pending", "tool": "exec",
            "effects": effects, "summary": "ls", "reason": "commands are asked", "expires": 9,
        }),
    );
}

#[test]
fn an_unknown_kind_or_state_does_not_read() {
    for body in [
        json!({ "type": "note", "run": ID }),
        json!({ "type": "run", "run": ID, "state": "flew" }),
        json!({ "type": "run", "state": "woken" }),
        json!({ "type": "tool", "call": ID, "tool": "exec", "state": "finished" }),
    ] {
        assert!(serde_json::from_value::<SessionEventBody>(body.clone()).is_err(), "{body}");
    }
}
