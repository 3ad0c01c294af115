use claw_core::CallId;
use claw_testkit::fixture::{intent, outcome, session};

use super::*;

#[tokio::test]
async fn keeps_the_latest_entries_and_refuses_what_it_forgot() {
    let limits = MemoryLimits { entries: 2, calls: 2, ..MemoryLimits::default() };
    let store = MemoryStore::with_limits(limits);
    let calls = [(); 3].map(|()| CallId::new());
    for call in calls {
        store.begin_call(intent(call, "ls", None)).await.unwrap();
    }
    let kept = store.recent(&TenantId::main(), 10).await.unwrap();
    assert_eq!(kept.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3]);
    for call in calls {
        let again = store.begin_call(intent(call, "ls", None)).await.unwrap_err();
        assert!(matches!(again, StoreError::AlreadyBegun { outcome: Outcome::Unknown, .. }), "{again}");
    }
}

#[tokio::test]
async fn forgets_the_figures_of_sessions_at_rest_and_not_of_running_ones() {
    let store = MemoryStore::with_limits(MemoryLimits { sessions: 2, ..MemoryLimits::default() });
    let begin = async |call, key: &str| {
        store.begin_call(Record { session: session(key), ..intent(call, "ls", None) }).await.unwrap();
    };
    let tally = async |key: &str| store.tally(&TenantId::main(), &session(key)).await.unwrap();
    let rests = CallId::new();
    begin(rests, "cli:rests").await;
    let end = Record { session: session("cli:rests"), ..outcome(rests, Outcome::Done) };
    store.finish_call(end).await.unwrap();
    assert_eq!(tally("cli:rests").await.done, 1);
    begin(CallId::new(), "cli:runs").await;
    begin(CallId::new(), "cli:third").await;
    assert_eq!(tally("cli:rests").await, Tally::default());
    assert_eq!(tally("cli:runs").await.open, 1);
    assert_eq!(tally("cli:third").await.open, 1);
}
