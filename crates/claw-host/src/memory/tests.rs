use claw_core::port::UnixMillis;
use claw_core::tool::Effects;
use claw_core::{AgentId, CallId};

use super::*;

fn record(call: CallId, session: &str, event: EntryEvent) -> Record {
    Record {
        at: UnixMillis(1),
        tenant: TenantId::main(),
        session: SessionKey::new(session).unwrap(),
        agent: AgentId::new("a").unwrap(),
        user: None,
        call,
        tool: "exec".to_owned(),
        event,
    }
}

fn intent(call: CallId, session: &str) -> Record {
    let digest = Digest::of_bytes(b"");
    let args = serde_json::Value::Null;
    record(call, session, EntryEvent::Intent { digest, effects: Effects::NONE, args, approval: None })
}

fn outcome(call: CallId, session: &str) -> Record {
    let event = EntryEvent::Outcome { outcome: Outcome::Done, micros: 1, bytes: 1, error: None };
    record(call, session, event)
}

#[tokio::test]
async fn keeps_the_latest_entries_and_refuses_what_it_forgot() {
    let limits = MemoryLimits { entries: 2, calls: 2, ..MemoryLimits::default() };
    let store = MemoryStore::with_limits(limits);
    let calls: Vec<_> = (0..3).map(|_| CallId::new()).collect();
    for call in &calls {
        store.begin_call(intent(*call, "cli:me")).await.unwrap();
    }
    let kept = store.recent(&TenantId::main(), 10).await.unwrap();
    assert_eq!(kept.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3]);
    for call in calls {
        let again = store.begin_call(intent(call, "cli:me")).await.unwrap_err();
        assert!(matches!(again, StoreError::AlreadyBegun { outcome: Outcome::Unknown, .. }), "{again}");
    }
}

#[tokio::test]
async fn forgets_the_figures_of_sessions_at_rest_and_not_of_running_ones() {
    let store = MemoryStore::with_limits(MemoryLimits { sessions: 2, ..MemoryLimits::default() });
    let (rests, runs) = (CallId::new(), CallId::new());
    store.begin_call(intent(rests, "cli:rests")).await.unwrap();
    store.finish_call(outcome(rests, "cli:rests")).await.unwrap();
    store.begin_call(intent(runs, "cli:runs")).await.unwrap();
    store.begin_call(intent(CallId::new(), "cli:third")).await.unwrap();
    let open = async |session: &str| {
        let session = SessionKey::new(session).unwrap();
        store.tally(&TenantId::main(), &session).await.unwrap()
    };
    assert_eq!(open("cli:rests").await, Tally::default());
    assert_eq!(open("cli:runs").await.open, 1);
    assert_eq!(open("cli:third").await.open, 1);
}
