//! Background commands that ended: the agent is told once, in the present run or in its next one.

use claw_core::ProcessId;
use claw_core::message::Turn;
use claw_core::port::Clock as _;
use claw_core::store::{NewProcess, ProcessEnd, Role};
use claw_testkit::fixture;

use crate::kit::{Bench, order, parts, session, tenant};

async fn begin(bench: &Bench, command: &str) -> ProcessId {
    let new = NewProcess {
        id: ProcessId::new(),
        tenant: tenant(),
        session: session(),
        agent: order().agent,
        user: None,
        worker: fixture::worker("local"),
        command: command.to_owned(),
        directory: ".".into(),
        pid: 7,
        started: bench.clock.now(),
    };
    bench.deployment.store.begin_process(new.clone()).await.unwrap();
    new.id
}

async fn end(bench: &Bench, id: ProcessId, end: ProcessEnd) {
    let now = bench.clock.now();
    bench.deployment.store.end_process(&tenant(), id, end, now).await.unwrap().unwrap();
}

const DONE: ProcessEnd = ProcessEnd::Exited { code: Some(2), signal: None };

async fn notices(bench: &Bench) -> Vec<String> {
    let words = |message: &_| Turn { role: Role::User, parts: parts(message) }.words();
    let all = bench.messages().await;
    all.iter().map(words).filter(|words| words.starts_with("[told by the system")).collect()
}

#[tokio::test]
async fn one_that_ends_between_runs_is_told_in_the_next_and_once() {
    let bench = Bench::new("[[turn]]\ndo = [{ say = \"You said: {{said}}\" }]").await;
    let id = begin(&bench, "make test\nall").await;
    bench.ask("one").await;
    assert_eq!(notices(&bench).await, Vec::<String>::new(), "it still runs");
    end(&bench, id, DONE).await;
    let words = bench.ask("two").await;
    assert!(words.contains("ended with exit code 2") && words.contains(": make test all]"), "{words}");
    let words = bench.ask("three").await;
    assert_eq!(words, "You said: three");
    assert_eq!(notices(&bench).await.len(), 1);
    bench.check_history().await;
}

#[tokio::test]
async fn one_that_ends_during_a_run_is_told_in_it() {
    let bench = Bench::new(
        r#"
        [[turn]]
        when.said = "exit code 2"
        do = [{ say = "It is done." }]

        [[turn]]
        when.result_of = "gate"
        do = [{ say = "I know nothing." }]

        [[turn]]
        do = [{ call = "gate", args = { what = "x" } }]
        "#,
    )
    .await;
    let id = begin(&bench, "make").await;
    bench.send("go").await;
    let worker = bench.worker.clone();
    let working = tokio::spawn(async move { worker.drain().await });
    bench.world.hanging.notified().await;
    end(&bench, id, DONE).await;
    bench.world.open.notify_one();
    assert_eq!(working.await.unwrap().unwrap(), 1, "no run begins by itself");
    assert_eq!(bench.last_words().await, "It is done.");
    bench.check_history().await;
}

#[tokio::test]
async fn one_that_was_lost_is_told_at_the_next_start() {
    let mut bench = Bench::new("[[turn]]\ndo = [{ say = \"{{said}}\" }]").await;
    begin(&bench, "make").await;
    bench.restarted();
    let lost = bench.deployment.store.lose_processes(&fixture::worker("local"), bench.clock.now()).await;
    assert_eq!(lost.unwrap().len(), 1);
    let words = bench.ask("hello").await;
    assert!(words.contains("was lost: the program that ran it ended"), "{words}");
}
