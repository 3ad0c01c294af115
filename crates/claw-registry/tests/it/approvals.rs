//! Approvals: asking, answering, cancelling, and continuing after a restart.

use std::sync::Arc;

use claw_core::TenantId;
use claw_core::port::Clock;
use claw_core::store::{Answer, Approval, ApprovalState, Approvals, Changes as _, Ledger, Topic};
use claw_core::tool::Target;
use claw_registry::Request;
use serde_json::json;

use crate::kit::{Bench, Setup, done, refused};

/// Waits until an approval is pending.
pub(crate) async fn question(bench: &Bench) -> Approval {
    let mut changes = bench.store.changes(Topic::Approvals);
    loop {
        if let Some(row) = bench.store.pending(&TenantId::main(), bench.clock.now()).await.unwrap().pop() {
            return row;
        }
        changes.changed().await.unwrap();
    }
}

pub(crate) async fn answer(bench: &Bench, approve: bool) {
    let row = question(bench).await;
    let answer = Answer { approve, by: "ada".into(), at: bench.clock.now(), reason: None, values: None };
    bench.store.answer(&TenantId::main(), row.id, answer).await.unwrap();
}

pub(crate) async fn approve_one(bench: &Bench) {
    answer(bench, true).await;
}

fn ls() -> Request {
    Request::new("sh", json!({"command": "ls"}))
}

#[tokio::test]
async fn yes_runs_it_once() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let (reply, ()) = tokio::join!(bench.executor.execute(&offer, ls()), answer(&bench, true));
    assert_eq!(done(&reply), "ran\n");
    assert_eq!(bench.shell.runs().len(), 1);
    assert_eq!(
        bench.heard.names(),
        ["approval_requested", "approval_closed", "call_started", "call_progress", "call_finished"]
    );
}

#[tokio::test]
async fn no_refuses_it() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let (reply, ()) = tokio::join!(bench.executor.execute(&offer, ls()), answer(&bench, false));
    let (step, reason) = refused(&reply);
    assert_eq!(step, "judge");
    assert!(reason.starts_with("ada denied this call"), "{reason}");
    assert!(bench.shell.runs().is_empty());
}

#[tokio::test]
async fn the_question_shows_the_command_scrubbed() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let request =
        Request::new("sh", json!({"command": "curl -H 'Authorization: Bearer abcdefgh12345678' x"}));
    let look = async {
        let row = question(&bench).await;
        assert!(row.request.summary.contains("run in /w:\n  curl -H"), "{}", row.request.summary);
        assert!(!row.request.summary.contains("abcdefgh12345678"), "{}", row.request.summary);
        answer(&bench, false).await;
    };
    tokio::join!(bench.executor.execute(&offer, request), look);
}

#[tokio::test(start_paused = true)]
async fn nobody_answers() {
    let bench = Bench::new(Setup::default());
    let (step, reason) = refused(&bench.call("sh", json!({"command": "ls"})).await);
    assert_eq!((step, reason.as_str()), ("judge", "nobody answered within 2 minutes"));
    assert!(bench.store.pending(&TenantId::main(), bench.clock.now()).await.unwrap().is_empty());
}

#[tokio::test]
async fn cancelling_closes_the_question() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let request = ls();
    let cancel = request.cancel.clone();
    let give_up = async {
        let row = question(&bench).await;
        cancel.cancel();
        row
    };
    let (reply, row) = tokio::join!(bench.executor.execute(&offer, request), give_up);
    assert_eq!(refused(&reply).0, "judge");
    let row = bench.store.approval(&TenantId::main(), row.id).await.unwrap().unwrap();
    assert_eq!(row.state, ApprovalState::Cancelled);
}

/// Drops the executor while the call waits, builds another over the same stores and makes the call again.
async fn restart(setup: Setup) -> (Bench, Request) {
    let store = setup.store.clone();
    let bench = Bench::new(setup);
    let request = ls();
    let offer = bench.offer().await;
    let (executor, first) = (bench.executor.clone(), request.clone());
    let task = tokio::spawn(async move { executor.execute(&offer, first).await });
    question(&bench).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    drop(bench);
    (Bench::new(Setup { store, ..Setup::default() }), request)
}

#[tokio::test]
async fn after_a_restart_the_call_finds_its_question_again() {
    let (bench, request) = restart(Setup::default()).await;
    let offer = bench.offer().await;
    let before = question(&bench).await;
    let (reply, ()) = tokio::join!(bench.executor.execute(&offer, request), answer(&bench, true));
    assert_eq!(done(&reply), "ran\n");
    let row = bench.store.approval(&TenantId::main(), before.id).await.unwrap().unwrap();
    assert_eq!(row.state, ApprovalState::Used);
}

#[tokio::test]
async fn an_answer_given_while_the_program_was_down_counts() {
    let (bench, request) = restart(Setup::default()).await;
    answer(&bench, true).await;
    let offer = bench.offer().await;
    assert_eq!(done(&bench.executor.execute(&offer, request).await), "ran\n");
}

#[tokio::test]
async fn refuses_to_use_an_answer_for_another_command() {
    let (bench, mut request) = restart(Setup::default()).await;
    answer(&bench, true).await;
    request.args = claw_registry::Arguments::Json(json!({"command": "ls /"}));
    let offer = bench.offer().await;
    let (reply, ()) = tokio::join!(bench.executor.execute(&offer, request), answer(&bench, false));
    assert_eq!(refused(&reply).0, "judge");
    assert!(bench.shell.runs().is_empty());
}

#[tokio::test]
async fn refuses_to_use_an_answer_when_what_would_run_has_changed() {
    let (bench, request) = restart(Setup::default()).await;
    answer(&bench, true).await;
    bench.shell.swap(Target::Sandbox, "another sandbox");
    let offer = bench.offer().await;
    let (reply, ()) = tokio::join!(bench.executor.execute(&offer, request), answer(&bench, false));
    assert_eq!(refused(&reply).0, "judge");
    assert!(bench.shell.runs().is_empty());
}

#[tokio::test]
async fn refuses_to_use_an_answer_twice() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let request = ls();
    let (reply, ()) = tokio::join!(bench.executor.execute(&offer, request.clone()), answer(&bench, true));
    assert!(reply.is_done());
    let again = bench.executor.execute(&offer, request).await;
    assert!(matches!(refused(&again).0, "judge" | "record"));
    assert_eq!(bench.shell.runs().len(), 1);
}

#[tokio::test]
async fn two_executors_that_race_for_one_answer_run_it_once() {
    let bench = Bench::new(Setup::default());
    let other = Bench::new(Setup { store: bench.store.clone(), ..Setup::default() });
    let request = ls();
    let (offer, other_offer) = (bench.offer().await, other.offer().await);
    let (a, b, ()) = tokio::join!(
        bench.executor.execute(&offer, request.clone()),
        other.executor.execute(&other_offer, request.clone()),
        answer(&bench, true),
    );
    assert_eq!(usize::from(a.is_done()) + usize::from(b.is_done()), 1);
    assert_eq!(bench.shell.runs().len() + other.shell.runs().len(), 1);
    let tally = bench.store.tally(&TenantId::main(), &crate::kit::caller().session).await.unwrap();
    assert_eq!((tally.done, tally.refused), (1, 1));
}

#[tokio::test]
async fn approvals_are_refused_when_they_cannot_be_stored() {
    use claw_testkit::{FailingStore, StoreMethod};
    let store = Arc::new(FailingStore::new(claw_store_memory::MemoryStore::new()));
    let bench = Bench::new(Setup { calls: Some(store.clone()), ..Setup::default() });
    store.fail(StoreMethod::Request);
    let (step, _) = refused(&bench.call("sh", json!({"command": "ls"})).await);
    assert_eq!(step, "judge");
    assert!(bench.shell.runs().is_empty());
}
