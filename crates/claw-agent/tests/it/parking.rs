//! Calls that wait for approval: their runs are parked, and the answer resumes them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use claw_agent::{Acceptance, Budget, Order};
use claw_core::message::Part;
use claw_core::port::{Clock as _, Owner};
use claw_core::store::{Answer, Approval, Cancel, JobState};
use claw_core::tool::{Effect, erase};
use claw_core::{JobId, SessionKey, ToolName};
use claw_policy::approval::{ApprovalConfig, EffectRule};
use claw_policy::config::SubagentTools;
use claw_registry::Asking;
use serde_json::json;

use crate::kit::{Bench, LANE, Peek, order, session, tenant, text};

const SAVES: &str = r#"
    [[turn]]
    when.result_of = "save"
    do = [{ say = "It is kept." }]

    [[turn]]
    when.said = "keep it"
    do = [{ call = "peek", args = { what = "a" } }, { call = "save", args = { what = "b" } }]

    [[turn]]
    do = [{ say = "You said: {{said}}" }]
"#;

/// Returns a bench in which every write needs approval.
async fn bench() -> Bench {
    let bench = Bench::new(SAVES).await;
    let effects = [(Effect::Write, EffectRule::Ask)].into();
    bench.deployment.executor.set_approvals(ApprovalConfig { effects, ..ApprovalConfig::default() });
    bench
}

fn asks(asking: Asking) -> Order {
    Order { asking, ..order() }
}

impl Bench {
    async fn send_as(&self, order: &Order, session: &SessionKey, said: &str) -> JobId {
        self.send_below(None, order, session, said).await
    }

    /// Sends a message whose run is a child of the run of another message.
    async fn send_below(
        &self,
        parent: Option<JobId>,
        order: &Order,
        session: &SessionKey,
        said: &str,
    ) -> JobId {
        let lineage = match parent {
            Some(parent) => {
                let job = self.deployment.store.job(&tenant(), parent).await.unwrap();
                Some(job.unwrap().new.child())
            }
            None => None,
        };
        let place = Acceptance { lane: LANE, at: self.clock.now(), lineage, priority: 0, after: None };
        let owner = Owner { tenant: tenant(), session: session.clone() };
        order.accept(&*self.deployment.store, &owner, &[Part::text(said)], place).await.unwrap().job
    }

    async fn pending(&self) -> Vec<Approval> {
        self.deployment.store.pending(&tenant(), self.clock.now()).await.unwrap()
    }

    async fn answer(&self, approval: &Approval, approve: bool) {
        let answer =
            Answer { approve, by: "ann".to_owned(), at: self.clock.now(), reason: None, values: None };
        self.deployment.store.answer(&tenant(), approval.id, answer).await.unwrap();
    }
}

#[tokio::test]
async fn a_yes_resumes_the_run_where_it_was() {
    let mut bench = bench().await;
    let job = bench.send_as(&asks(Asking::Watched), &session(), "keep it").await;
    assert_eq!(bench.worker.drain().await.unwrap(), 1);
    assert_eq!(bench.state(job).await, JobState::Parked);
    assert_eq!(bench.world.writes.load(Ordering::SeqCst), 0);
    let pending = bench.pending().await;
    assert_eq!((pending.len(), pending[0].request.run), (1, Some(job)));
    assert_eq!(bench.worker.drain().await.unwrap(), 0, "there is nothing to do until somebody answers");
    bench.answer(&pending[0], true).await;
    // Another program resumes it.
    bench.restarted();
    assert_eq!(bench.worker.drain().await.unwrap(), 1);
    assert_eq!((bench.state(job).await, bench.last_words().await.as_str()), (JobState::Done, "It is kept."));
    assert_eq!(bench.world.writes.load(Ordering::SeqCst), 1, "once");
    assert_eq!(bench.results().await.iter().map(text).collect::<Vec<_>>(), ["a", "saved b"]);
    assert_eq!(bench.run_states().await, ["began", "parked", "woken", "ended"]);
    bench.check_history().await;
}

#[tokio::test]
async fn a_no_and_an_approval_that_expires_are_told_to_the_model() {
    for expires in [false, true] {
        let bench = bench().await;
        let job = bench.send_as(&asks(Asking::Watched), &session(), "keep it").await;
        bench.worker.drain().await.unwrap();
        match expires {
            true => bench.clock.advance(Duration::from_secs(121)),
            false => bench.answer(&bench.pending().await[0], false).await,
        }
        assert_eq!(bench.worker.drain().await.unwrap(), 1);
        assert_eq!(bench.state(job).await, JobState::Done);
        assert_eq!(bench.world.writes.load(Ordering::SeqCst), 0);
        let told = text(&bench.results().await[1]);
        assert!(told.contains(if expires { "nobody answered within" } else { "ann denied" }), "{told}");
        bench.check_history().await;
    }
}

/// If nobody watches, the approval stays pending for `park_hours`, not for `wait_secs`.
#[tokio::test]
async fn an_approval_that_nobody_watches_stays_open_for_hours() {
    let bench = bench().await;
    bench.send_as(&asks(Asking::Unwatched), &session(), "keep it").await;
    bench.worker.drain().await.unwrap();
    bench.clock.advance(Duration::from_secs(23 * 3600));
    assert_eq!(bench.pending().await.len(), 1);
    bench.clock.advance(Duration::from_secs(3600));
    assert_eq!(bench.pending().await.len(), 0);
}

#[tokio::test]
async fn a_hundred_open_approvals_hold_up_nobody() {
    let bench = bench().await;
    for n in 0..100 {
        let session = SessionKey::new(format!("cli:{n}")).unwrap();
        bench.send_as(&asks(Asking::Unwatched), &session, "keep it").await;
    }
    bench.worker.drain().await.unwrap();
    assert_eq!(bench.pending().await.len(), 100);
    assert_eq!(bench.ask("hello").await, "You said: hello", "a session of its own is answered");
    // A message to a session whose run waits is answered after it.
    let session = SessionKey::new("cli:0").unwrap();
    let later = bench.send_as(&asks(Asking::Unwatched), &session, "hello").await;
    assert_eq!(bench.worker.drain().await.unwrap(), 0);
    assert_eq!(bench.state(later).await, JobState::Pending);
}

#[tokio::test]
async fn a_parked_run_that_is_cancelled_says_so_and_asks_no_more() {
    let bench = bench().await;
    let job = bench.send_as(&asks(Asking::Watched), &session(), "keep it").await;
    bench.worker.drain().await.unwrap();
    let note = json!([Part::text("the run was stopped by ann")]);
    let cancel = Cancel { at: bench.clock.now(), by: "ann".to_owned(), note };
    let cancelled = bench.deployment.store.cancel(&tenant(), job, cancel).await.unwrap();
    assert_eq!((cancelled.ended, bench.state(job).await), (vec![job], JobState::Cancelled));
    assert_eq!((bench.pending().await.len(), bench.worker.drain().await.unwrap()), (0, 0));
    assert_eq!(bench.last_words().await, "the run was stopped by ann");
    assert_eq!(bench.ask("hello").await, "You said: hello", "the session goes on");
    bench.check_history().await;
}

#[tokio::test]
async fn a_run_whose_budget_is_spent_comes_to_its_end() {
    let bench = bench().await;
    let budget = Budget { until: Some(bench.clock.now()), ..Budget::default() };
    let order = Order { budget, ..order() };
    bench.send_as(&order, &session(), "keep it").await;
    bench.worker.drain().await.unwrap();
    assert_eq!(bench.results().await.len(), 0, "no call is made");
    let last = bench.run_states().await.pop();
    assert_eq!(last.as_deref(), Some("ended"));
}

/// An answer uses 107 tokens and costs 100 millionths of a US dollar.
const PRICED: &str = r#"
    model.prices = { input = 1000000, output = 0, cache_read = 0, cache_write = 0 }

    [[turn]]
    when.may_call = false
    when.system = "WHY"
    do = [{ say = "I stop." }]

    [[turn]]
    when.said = "look"
    do = [{ call = "peek", args = { what = "a" } }]
    tokens = { input = 1, output = 0 }

    [[turn]]
    do = [{ say = "Hello." }]
    tokens = { input = 100, output = 7 }
"#;

#[tokio::test]
async fn the_use_of_a_parent_stops_its_child() {
    let tokens = Budget { tokens: Some(107), ..Budget::default() };
    let cost = Budget { cost_micros: Some(100), ..Budget::default() };
    for (budget, why) in [
        (tokens, "have used 107 tokens; the limit is 107"),
        (cost, "have cost $0.000100; the limit is $0.000100"),
    ] {
        for is_child in [true, false] {
            let bench = Bench::new(&PRICED.replace("WHY", why)).await;
            let order = Order { budget, ..order() };
            let parent_session = SessionKey::new("cli:parent").unwrap();
            let parent = bench.send_as(&order, &parent_session, "hello").await;
            bench.worker.drain().await.unwrap();
            bench.send_below(is_child.then_some(parent), &order, &session(), "look").await;
            bench.worker.drain().await.unwrap();
            let outcome = (bench.results().await.len(), bench.last_words().await);
            // A run that is no child has the whole budget for itself.
            let expected = if is_child { (0, "I stop.") } else { (1, "Hello.") };
            assert_eq!((outcome.0, outcome.1.as_str()), expected, "{why}");
        }
    }
}

#[tokio::test]
async fn a_child_is_refused_the_tools_that_subagents_do_not_get() {
    let script = r#"
        [[turn]]
        when.result_of = "cron"
        do = [{ say = "{{result}}" }]

        [[turn]]
        when.said = "look"
        do = [{ call = "cron", args = { what = "x" } }]

        [[turn]]
        do = [{ say = "Hello." }]
    "#;
    let bench = Bench::new(script).await;
    assert!(SubagentTools::DENY.contains(&"cron"));
    let rename = |meta: &mut claw_core::tool::Meta| meta.name = ToolName::literal("cron");
    bench.deployment.executor.registry().register_with(erase(Peek), rename).unwrap();
    let parent_session = SessionKey::new("cli:parent").unwrap();
    let parent = bench.send_as(&order(), &parent_session, "hello").await;
    bench.worker.drain().await.unwrap();
    bench.send_below(Some(parent), &order(), &session(), "look").await;
    bench.worker.drain().await.unwrap();
    let told = text(&bench.results().await[0]);
    assert!(told.contains("is not among the tools that are offered here"), "{told}");
    assert_eq!(bench.ask("look").await, "x", "an agent that people talk to has it");
}
