use claw_core::ProcessId;
use claw_core::tool::ErrorKind;
use serde_json::Value;

use super::*;
use crate::fixture::schema;

fn card(state: ProcessState) -> ProcessCard {
    ProcessCard {
        id: "01980000-0000-7000-8000-0000deadbeef".parse::<ProcessId>().unwrap(),
        command: "make test".into(),
        terminal: false,
        started: UnixMillis(1_000),
        state,
        printed: 20,
        place: "the sandbox",
    }
}

const DONE: ProcessState = ProcessState::Ended(ProcessEnd::Exited { code: Some(0), signal: None });

fn args(value: Value) -> Args {
    serde_json::from_value(value).unwrap()
}

#[track_caller]
fn wrong(value: Value, expected: &str) {
    let Err(error) = Command::try_from(&args(value)) else { panic!("it is right") };
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.for_model().contains(expected), "{error}");
}

#[test]
fn what_an_action_needs_is_said() {
    wrong(json!({ "action": "poll" }), "`list`");
    wrong(json!({ "action": "write", "id": "x" }), "`text`");
    wrong(json!({ "action": "keys", "id": "x" }), "`keys`");
    wrong(json!({ "action": "keys", "id": "x", "keys": ["Hyper"] }), "no key `Hyper`");
    wrong(json!({ "action": "resize", "id": "x", "columns": 3 }), "`rows`");
}

#[test]
fn only_what_is_typed_is_asked_for() {
    let plan = |value| Process.plan(&Facts::default(), &args(value));
    let typed = plan(json!({ "action": "keys", "id": "x", "keys": ["l", "s", "Enter"] }));
    let input = Input { process: "x".into(), text: "ls\r".into(), keys: true, end: false };
    assert_eq!(typed.asks, [Ask::Input(input)]);
    let typed = plan(json!({ "action": "write", "id": "x", "end": true }));
    assert_eq!(
        typed.asks,
        [Ask::Input(Input { process: "x".into(), text: String::new(), keys: false, end: true })]
    );
    for (action, effects) in [("list", false), ("poll", false), ("wait", false), ("kill", true)] {
        let plan = plan(json!({ "action": action, "id": "x" }));
        assert_eq!((plan.asks.len(), plan.effects.has(Effect::Execute)), (0, effects), "{action}");
    }
}

#[test]
fn what_a_model_reads() {
    let running = ProcessState::Running;
    let text = |output: Output| output.model_text();
    let now = UnixMillis(13_000);
    assert_eq!(
        text(listed(&[card(running), card(DONE)], now)),
        "deadbeef  running, started 12 s ago, 20 bytes printed: make test\n\
         deadbeef  ended with exit code 0, started 12 s ago, 20 bytes printed: make test"
    );
    assert_eq!(text(listed(&[], now)), "nothing runs in the background");
    let printed = Printed {
        card: card(running),
        text: "a\n".into(),
        from: 10,
        next: 12,
        dropped: 7,
        unfinished: String::new(),
    };
    assert_eq!(
        text(polled(&printed)),
        "[7 bytes before this are no longer kept]\na\n[running; bytes 10 to 12, 8 bytes follow]"
    );
    let prompt = Printed { text: "a\n".into(), dropped: 0, next: 20, unfinished: ">>> ".into(), ..printed };
    assert_eq!(text(polled(&prompt)), "a\n>>> \n[that line is not finished]\n[running; bytes 10 to 20]");
    let awaited = |matched: Option<&str>, state| Awaited {
        card: card(state),
        matched: matched.map(Into::into),
        next: 9,
    };
    let expected = Expected { pattern: Some("ready".into()), from: None };
    let limit = Duration::from_secs(3);
    assert_eq!(
        text(waited(&awaited(Some("ready"), running), &expected, limit)),
        "`deadbeef` printed:\nready\n[running; continue from offset 9]"
    );
    assert_eq!(
        text(waited(&awaited(None, running), &expected, limit)),
        "`deadbeef` printed nothing that matches `ready` within 3 s, and still runs"
    );
    assert_eq!(
        text(waited(&awaited(None, DONE), &Expected::default(), limit)),
        "`deadbeef`: ended with exit code 0"
    );
}

#[test]
fn the_schema() {
    insta::assert_snapshot!(schema::<Process>());
}
