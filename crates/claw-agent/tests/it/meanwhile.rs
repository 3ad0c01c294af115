//! Messages that arrive during a run: they wait, are answered together, or steer it.

use claw_agent::{Meanwhile, RunLimits};
use claw_core::store::{JobState, Role};

use crate::kit::Bench;

fn limits(meanwhile: Meanwhile) -> RunLimits {
    RunLimits { meanwhile, ..RunLimits::default() }
}

#[tokio::test]
async fn what_waits_is_answered_together() {
    let script = "[[turn]]\nwhen.said = \"two\"\ndo = [{ say = \"Both: {{said}}\" }]\n[[turn]]\ndo = [{ say = \"One.\" }]";
    let bench = Bench::with(script, limits(Meanwhile::Merge)).await;
    let (first, second) = (bench.send("one").await.job, bench.send("two").await.job);
    assert_eq!(bench.worker.drain().await.unwrap(), 1);
    assert_eq!(bench.last_words().await, "Both: one\ntwo");
    assert_eq!(bench.roles().await, [Role::User, Role::User, Role::Assistant]);
    assert_eq!((bench.state(first).await, bench.state(second).await), (JobState::Done, JobState::Done));
    bench.check_history().await;
}

/// Runs an agent that gets a message while it waits in a call.
async fn spoken_to_in_a_call(meanwhile: Meanwhile) -> Bench {
    let bench = Bench::with(
        r#"
        [[turn]]
        when.said = "stop that"
        do = [{ say = "I heard you." }]

        [[turn]]
        when.result_of = "gate"
        do = [{ say = "I went on." }]

        [[turn]]
        do = [{ call = "gate", args = { what = "x" } }]
        "#,
        limits(meanwhile),
    )
    .await;
    bench.send("go").await;
    let worker = bench.worker.clone();
    let working = tokio::spawn(async move { worker.drain().await });
    bench.world.hanging.notified().await;
    bench.send("stop that").await;
    bench.world.open.notify_one();
    working.await.unwrap().unwrap();
    bench
}

#[tokio::test]
async fn what_is_said_meanwhile_steers_the_run() {
    let bench = spoken_to_in_a_call(Meanwhile::Steer).await;
    let (user, agent, tool) = (Role::User, Role::Assistant, Role::Tool);
    assert_eq!(bench.roles().await, [user, agent, user, tool, agent]);
    assert_eq!(bench.last_words().await, "I heard you.");
    assert_eq!(bench.run_states().await, ["began", "ended"]);
    bench.check_history().await;
}

#[tokio::test]
async fn what_is_said_meanwhile_waits() {
    for meanwhile in [Meanwhile::Queue, Meanwhile::Merge] {
        let bench = spoken_to_in_a_call(meanwhile).await;
        let (user, agent, tool) = (Role::User, Role::Assistant, Role::Tool);
        assert_eq!(bench.roles().await, [user, agent, user, tool, agent, agent]);
        assert_eq!(bench.run_states().await, ["began", "ended", "began", "ended"]);
        bench.check_history().await;
    }
}
