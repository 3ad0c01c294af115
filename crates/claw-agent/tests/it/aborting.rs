//! Stopping a run ends the model's stream and its tools at once, and keeps the partial answer.

use std::sync::atomic::Ordering;
use std::time::Duration;

use claw_core::store::{JobState, Role};
use tokio_util::sync::CancellationToken;

use crate::kit::{Bench, owner, shown, text};

#[tokio::test]
async fn what_was_said_before_is_kept_and_marked() {
    let bench = Bench::new("[[turn]]\ndo = [{ say = \"Once\\nupon a time\" }, { hang = true }]").await;
    let mut heard = bench.deployment.store.listen(&owner());
    let job = bench.send("tell me a story").await.job;
    let worker = bench.worker.clone();
    let stop = CancellationToken::new();
    let working = tokio::spawn({
        let (worker, stop) = (worker.clone(), stop.clone());
        async move { worker.work(stop).await }
    });
    heard.recv().await.unwrap();
    assert!(worker.abort(job));
    stop.cancel();
    working.await.unwrap().unwrap();
    assert_eq!(bench.state(job).await, JobState::Cancelled);
    assert_eq!(bench.roles().await, [Role::User, Role::Assistant, Role::System]);
    assert_eq!(bench.last_words().await, "the run was stopped here");
    let last = bench.events().await.pop().unwrap();
    assert_eq!(shown(&last)["end"], "stopped");
    let said = crate::kit::parts(&bench.messages().await[1]);
    assert_eq!(said, [claw_core::message::Part::text("Once\nupon a time")]);
    bench.check_history().await;
    assert!(!worker.abort(job), "it is over");
}

#[tokio::test]
async fn tools_are_cancelled_and_what_follows_is_not_made() {
    let bench = Bench::new(
        r#"
        [[turn]]
        do = [{ call = "hang", args = { what = "x" } }, { call = "save", args = { what = "y" } }]
        "#,
    )
    .await;
    let job = bench.send("go").await.job;
    let (worker, stop) = (bench.worker.clone(), CancellationToken::new());
    let working = tokio::spawn({
        let (worker, stop) = (worker.clone(), stop.clone());
        async move { worker.work(stop).await }
    });
    bench.world.hanging.notified().await;
    assert!(worker.abort(job));
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(30), working).await.expect("it ends").unwrap().unwrap();
    assert_eq!(bench.world.cancelled.load(Ordering::SeqCst), 1);
    assert_eq!(bench.world.writes.load(Ordering::SeqCst), 0);
    let results = bench.results().await;
    assert!(results[0].failed);
    assert_eq!(text(&results[1]), "not made: the run had been stopped");
    assert_eq!(bench.roles().await, [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::System]);
    bench.check_history().await;
}
