//! The worker: failures are tried again or reported, and a lost lease stores nothing.

use std::time::Duration;

use claw_agent::{RunLimits, Worker, WorkerOptions};
use claw_core::port::Clock as _;
use claw_core::store::{Claim, JobState, Role};
use claw_testkit::fixture;

use crate::kit::{Bench, LANE};

#[tokio::test]
async fn what_passes_is_tried_again() {
    let bench = Bench::new(
        r#"
        [[turn]]
        when.first = 1
        do = [{ say = "half an ans" }, { fail = "unavailable", message = "overloaded" }]

        [[turn]]
        do = [{ say = "Here I am." }]
        "#,
    )
    .await;
    let job = bench.send("hello").await.job;
    assert_eq!(bench.worker.drain().await.unwrap(), 1);
    assert_eq!(bench.state(job).await, JobState::Pending);
    assert_eq!(bench.roles().await, [Role::User], "what failed is not part of the conversation");
    assert_eq!(bench.worker.drain().await.unwrap(), 0, "not before its time");
    bench.clock.advance(Duration::from_secs(60));
    assert_eq!(bench.worker.drain().await.unwrap(), 1);
    assert_eq!(bench.last_words().await, "Here I am.");
    assert_eq!(bench.run_states().await, ["began", "failed", "resumed", "ended"]);
    bench.check_history().await;
}

#[tokio::test]
async fn what_does_not_pass_is_reported_at_once() {
    let bench =
        Bench::new("[[turn]]\ndo = [{ fail = \"unauthorised\", message = \"the key is wrong\" }]").await;
    let job = bench.send("hello").await.job;
    bench.worker.drain().await.unwrap();
    assert_eq!(bench.state(job).await, JobState::Done);
    assert_eq!(bench.roles().await, [Role::User, Role::System]);
    let words = bench.last_words().await;
    assert!(words.starts_with("the run failed: ") && words.contains("the key is wrong"), "{words}");
    assert_eq!(bench.run_states().await, ["began", "reported"]);
    bench.check_history().await;
}

#[tokio::test]
async fn what_fails_too_often_is_reported() {
    let limits = RunLimits { attempts: 2, ..RunLimits::default() };
    let bench =
        Bench::with("[[turn]]\ndo = [{ fail = \"connection\", message = \"no route\" }]", limits).await;
    bench.send("hello").await;
    for _ in 0..3 {
        bench.worker.drain().await.unwrap();
        bench.clock.advance(Duration::from_secs(60));
    }
    assert_eq!(bench.run_states().await, ["began", "failed", "resumed", "reported"]);
    assert!(bench.last_words().await.contains("no route"));
}

#[tokio::test]
async fn a_run_whose_program_dies_each_time_is_reported() {
    let mut bench =
        Bench::with("[[turn]]\ndo = [{ say = \"hi\" }]", RunLimits { attempts: 2, ..RunLimits::default() })
            .await;
    bench.send("hello").await;
    for _ in 0..2 {
        let dies = fixture::worker("local");
        bench.deployment.store.reclaim(&dies, bench.clock.now()).await.unwrap();
        let until = bench.clock.now().plus(Duration::from_secs(60));
        let claim = Claim { worker: dies, lanes: vec![LANE.into()], now: bench.clock.now(), until };
        bench.deployment.store.claim(claim).await.unwrap().expect("it can be claimed");
    }
    bench.restarted();
    bench.worker.drain().await.unwrap();
    assert_eq!(bench.last_words().await, "the run was begun 2 times and never came to its end");
    assert_eq!(bench.roles().await, [Role::User, Role::System]);
}

#[tokio::test]
async fn refuses_to_say_what_a_run_says_after_it_was_lost() {
    let bench = Bench::new("[[turn]]\ndo = [{ call = \"hang\", args = { what = \"x\" } }]").await;
    let job = bench.send("go").await.job;
    let mut options = WorkerOptions::new(fixture::worker("local"), [LANE.into()]);
    options.lease = Duration::from_millis(60);
    let worker = Worker::new(bench.deployment.clone(), options);
    let working = tokio::spawn(async move { worker.drain().await });
    bench.world.hanging.notified().await;
    // Someone else takes the job: its node came back with another boot.
    let other = fixture::worker("local");
    assert_eq!(bench.deployment.store.reclaim(&other, bench.clock.now()).await.unwrap(), [job]);
    let now = bench.clock.now();
    let claim =
        Claim { worker: other, lanes: vec![LANE.into()], now, until: now.plus(Duration::from_secs(60)) };
    assert!(bench.deployment.store.claim(claim).await.unwrap().is_some());
    working.await.unwrap().unwrap();
    assert_eq!(bench.roles().await, [Role::User, Role::Assistant], "its result was not stored");
    assert_eq!(bench.state(job).await, JobState::Leased);
}

#[tokio::test]
async fn what_does_not_read_is_dead_and_harms_nobody() {
    let bench = Bench::new("[[turn]]\ndo = [{ say = \"hi\" }]").await;
    let job = claw_core::store::NewJob { session: None, ..fixture::job() };
    bench.deployment.store.enqueue(job.clone()).await.unwrap();
    assert_eq!(bench.ask("hello").await, "hi");
    assert_eq!(bench.state(job.id).await, JobState::Dead);
}
