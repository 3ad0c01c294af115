//! A session that grows beyond the model's context window.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use claw_agent::History;
use claw_core::MessageId;
use claw_core::message::Part;
use claw_core::port::{Answer, Clock as _, Ear, Fault, Model, ModelCard, ModelError, Prices, Question, Stop};
use claw_core::store::{Claim, Finish, NewMessage, Role, Tokens};
use claw_testkit::fixture;

use crate::kit::{Bench, LANE, OneModel, parts, session, tenant};

/// A model with a small context window that summarises when asked to.
const SMALL: &str = r#"
    model = { context = 4000, output = 400 }

    [[turn]]
    when.said = "Sum up the conversation"
    do = [{ say = "They talked about crabs." }]

    [[turn]]
    when.said = "in short]"
    do = [{ say = "I remember: {{said}}" }]

    [[turn]]
    do = [{ say = "You said so." }]
"#;

#[tokio::test]
async fn old_runs_are_summed_up_and_nothing_is_lost() {
    let bench = Bench::new(SMALL).await;
    let store = &bench.deployment.store;
    let (mut asked, mut words) = (0, String::new());
    while store.summary(&tenant(), &session()).await.unwrap().is_none() {
        words = bench.ask(&format!("{asked} {}", "crab ".repeat(400))).await;
        asked += 1;
        assert!(asked < 20, "it is never summed up");
    }
    assert!(words.contains("I remember") && words.contains("They talked about crabs."), "{words}");
    let summary = store.summary(&tenant(), &session()).await.unwrap().unwrap();
    assert_eq!(summary.text, "They talked about crabs.");
    assert_eq!(summary.upto, 2 * (asked as u64 - 1), "all runs before");
    assert!(bench.run_states().await.contains(&"summarised".to_owned()));

    let run = bench.send("what was it about?").await.job;
    bench.worker.drain().await.unwrap();
    let history = History::read(&**store, &tenant(), &session(), run).await.unwrap();
    let first = history.turns()[0].words();
    assert!(first.contains("They talked about crabs.") && first.contains("crab crab"), "{first}");
    let messages = bench.messages().await;
    assert_eq!(messages.len(), 2 * (asked + 1), "all of it is still there");
    assert!(parts(&messages[0]).iter().any(|part| format!("{part:?}").contains("crab crab")));
    bench.check_history().await;
}

#[tokio::test]
async fn old_results_are_left_out_in_a_long_run() {
    let script = r#"
        model = { context = 8000, output = 400 }

        [[turn]]
        when.round = 12
        do = [{ say = "Enough." }]

        [[turn]]
        do = [{ call = "peek", args = { what = "long" } }, { call = "save", args = { what = "x" } }]
    "#;
    let never = claw_agent::Threshold { warn: 0, stop: 0 };
    let loops =
        claw_agent::LoopLimits { same_call: never, same_result: never, reads: never, ping_pong: never };
    let limits = claw_agent::RunLimits { loops, ..claw_agent::RunLimits::default() };
    let bench = Bench::with(script, limits).await;
    assert_eq!(bench.ask("go").await, "Enough.");
    assert_eq!(bench.results().await.len(), 24);
    // Untrimmed, twelve results of two thousand tokens would be read 78 times.
    let usage = bench.deployment.store.usage(&tenant(), &Default::default()).await.unwrap();
    assert!(usage.tokens.input < 13 * 8_000, "what the model read stays in bounds: {}", usage.tokens.input);
}

#[tokio::test]
async fn a_model_that_says_it_is_too_long_is_asked_with_less() {
    let bench = Bench::new(
        r#"
        [[turn]]
        when.first = 2
        do = [{ fail = "too_long", message = "200000 tokens are too many" }]

        [[turn]]
        do = [{ say = "Now it fits." }]
        "#,
    )
    .await;
    assert_eq!(bench.ask(&"word ".repeat(10_000)).await, "Now it fits.");
    assert_eq!(bench.run_states().await, ["began", "ended"]);
}

/// Fills a session with many short messages, as long as their answers.
async fn long_session(bench: &Bench, questions: usize) {
    let store = &bench.deployment.store;
    for n in 0..questions {
        let accepted = bench.send(&format!("{n} {}", "crab ".repeat(20))).await;
        let now = bench.clock.now();
        let (worker, until) = (fixture::worker("before"), now.plus(Duration::from_secs(60)));
        let claim = Claim { worker, lanes: vec![LANE.into()], now, until };
        let (job, lease) = store.claim(claim).await.unwrap().unwrap();
        assert_eq!(job.new.id, accepted.job);
        let content = serde_json::to_value([Part::text("You said so.")]).unwrap();
        let (id, role, at) = (MessageId::new(), Role::Assistant, now);
        let answer = NewMessage { id, tenant: tenant(), session: session(), role, content, at };
        store.finish_run(&lease, Finish::done(vec![answer])).await.unwrap();
    }
}

/// A model that rejects requests longer than its context window.
struct Strict {
    card: ModelCard,
    sums_up: bool,
    longest: AtomicUsize,
    summaries: AtomicUsize,
}

#[async_trait]
impl Model for Strict {
    fn card(&self) -> &ModelCard {
        &self.card
    }

    async fn ask(&self, question: &Question, _: &dyn Ear) -> Result<Answer, ModelError> {
        let (provider, model) = (self.card.provider.clone(), self.card.model.clone());
        let words: usize = question.turns.iter().map(|turn| turn.words().len()).sum();
        self.longest.fetch_max(words.div_ceil(4), Ordering::Relaxed);
        if words.div_ceil(4) as u64 > self.card.context {
            let message = format!("{words} bytes are too many");
            return Err(ModelError { provider, model, fault: Fault::TooLong, message });
        }
        let is_summary = question.turns.last().unwrap().words().contains("Sum up the conversation");
        if is_summary && !self.sums_up {
            let message = "no".to_owned();
            return Err(ModelError { provider, model, fault: Fault::Unavailable, message });
        }
        let said = if is_summary { "They talked about crabs." } else { "Here I am." };
        self.summaries.fetch_add(is_summary.into(), Ordering::Relaxed);
        let (parts, tokens) = (vec![Part::text(said)], Tokens::default());
        Ok(Answer { parts, stop: Stop::Done, tokens, provider, model, cost: 0 })
    }
}

async fn ask_in_a_long_session(questions: usize, sums_up: bool) -> (Bench, Arc<Strict>) {
    let mut bench = Bench::new("[[turn]]\ndo = [{ say = \"hi\" }]").await;
    long_session(&bench, questions).await;
    let card = ModelCard {
        provider: "test".into(),
        model: "strict".into(),
        context: 32_000,
        output: 1_000,
        images: false,
        prices: Prices::default(),
        demo: true,
    };
    let (longest, summaries) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let model = Arc::new(Strict { card, sums_up, longest, summaries });
    bench.deployment.models = Arc::new(OneModel(model.clone()));
    bench.restarted();
    assert_eq!(bench.ask("are you there?").await, "Here I am.");
    (bench, model)
}

#[tokio::test]
async fn a_long_session_of_short_messages_is_summed_up_in_parts() {
    let (bench, model) = ask_in_a_long_session(2_400, true).await;
    let summary = bench.deployment.store.summary(&tenant(), &session()).await.unwrap().unwrap();
    assert_eq!(summary.upto, 4_800, "all that was said before");
    assert!(model.summaries.load(Ordering::Relaxed) > 1, "in parts");
    assert!(model.longest.load(Ordering::Relaxed) <= 32_000, "none is longer than the model can read");
    let before = model.summaries.load(Ordering::Relaxed);
    assert_eq!(bench.ask("and now?").await, "Here I am.");
    assert_eq!(model.summaries.load(Ordering::Relaxed), before, "once is enough");
}

#[tokio::test]
async fn a_long_session_stays_usable_though_it_cannot_be_summed_up() {
    let (_, model) = ask_in_a_long_session(2_400, false).await;
    assert!(model.longest.load(Ordering::Relaxed) <= 32_000, "the oldest are left out");
}
