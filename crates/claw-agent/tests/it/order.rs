//! Many people write at once, in many sessions, to a model that sometimes fails, and several workers carry
//! the runs: every question is answered once, in the order of the messages in their session.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use claw_agent::{Acceptance, Meanwhile, RunLimits, Worker, WorkerOptions};
use claw_core::message::{Part, Turn};
use claw_core::port::{
    Answer, Clock as _, Ear, Fault, Model, ModelCard, ModelError, Owner, Prices, Question, Stop, UnixMillis,
};
use claw_core::store::{Role, Store, Tokens};
use claw_core::{NodeId, SessionKey};
use claw_host::SystemClock;
use claw_llm::Script;
use claw_store::{PostgresStore, SqliteStore};
use claw_testkit::fixture;
use claw_testkit::postgres::Database;
use tokio_util::sync::CancellationToken;

use crate::kit::{LANE, OneModel, Watched, deployment, order, parts, tenant};

const SESSIONS: usize = 25;
const SPEAKERS: usize = 5;
const WORKERS: usize = 3;
const EVERY_MEANWHILE: [Meanwhile; 3] = [Meanwhile::Queue, Meanwhile::Merge, Meanwhile::Steer];

/// A model that answers open questions, or fails.
struct Diligent {
    card: ModelCard,
    asked: AtomicUsize,
    /// One in this many requests fails.
    fails: usize,
    /// The answered questions, in order.
    done: Mutex<Vec<String>>,
}

impl Diligent {
    fn new(fails: usize) -> Arc<Self> {
        let card = ModelCard {
            provider: "test".into(),
            model: "diligent".into(),
            context: 100_000,
            output: 1_000,
            images: false,
            prices: Prices::default(),
            demo: true,
        };
        Arc::new(Self { card, asked: AtomicUsize::new(0), fails, done: Mutex::default() })
    }
}

#[async_trait]
impl Model for Diligent {
    fn card(&self) -> &ModelCard {
        &self.card
    }

    async fn ask(&self, question: &Question, _: &dyn Ear) -> Result<Answer, ModelError> {
        let (provider, model) = (self.card.provider.clone(), self.card.model.clone());
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(1)).await;
        if asked % self.fails == self.fails - 1 {
            let (fault, message) =
                (Fault::RateLimited { retry_after: Some(Duration::ZERO) }, "busy".to_owned());
            return Err(ModelError { provider, model, fault, message });
        }
        let answered = question.turns.iter().rposition(|turn| turn.role == Role::Assistant);
        let open = question.turns.iter().skip(answered.map_or(0, |at| at + 1));
        let questions: Vec<String> = open.flat_map(|turn| &turn.parts).filter_map(said).collect();
        self.done.lock().unwrap().extend(questions.iter().cloned());
        let parts = vec![Part::text(format!("done: {}", questions.join(", ")))];
        Ok(Answer { parts, stop: Stop::Done, tokens: Tokens::default(), provider, model, cost: 0 })
    }
}

fn said(part: &Part) -> Option<String> {
    match part {
        Part::Text { text } => Some(text.clone()),
        _ => None,
    }
}

fn session(of: usize) -> SessionKey {
    SessionKey::new(format!("agent:tester:cli:direct:s{of}")).unwrap()
}

async fn storm(stores: Vec<Arc<dyn Store>>, meanwhile: Meanwhile) {
    let model = Diligent::new(7);
    let limits = RunLimits { meanwhile, attempts: 1_000, ..RunLimits::default() };
    let script = Arc::new(Script::parse("unused.toml", "[[turn]]\ndo = [{ say = \"hi\" }]").unwrap());
    let clock = Arc::new(SystemClock);
    let (stop, mut working) = (CancellationToken::new(), Vec::new());
    for (at, store) in stores.iter().cycle().take(WORKERS).enumerate() {
        let mut deployment = deployment(
            Arc::clone(store),
            clock.clone(),
            Arc::clone(&script),
            limits.clone(),
            &Arc::new(Watched::default()),
        );
        deployment.models = Arc::new(OneModel(model.clone()));
        let mut options = WorkerOptions::new(fixture::worker(&format!("w{at}")), [LANE.into()]);
        options.poll = Duration::from_millis(20);
        let (worker, stop) = (Worker::new(deployment, options), stop.clone());
        working.push(tokio::spawn(async move { worker.work(stop).await.unwrap() }));
    }
    let mut speaking = Vec::new();
    for of in 0..SESSIONS {
        for speaker in 0..SPEAKERS {
            let store = Arc::clone(&stores[speaker % stores.len()]);
            speaking.push(tokio::spawn(async move {
                // Clocks of different machines differ.
                let at = UnixMillis(SystemClock.now().0 - 1_000 * speaker as i64);
                let place = Acceptance { lane: LANE, at, lineage: None, priority: 0, after: None };
                let said = [Part::text(format!("s{of} q{speaker}"))];
                order()
                    .accept(&*store, &Owner { tenant: tenant(), session: session(of) }, &said, place)
                    .await
                    .unwrap();
            }));
        }
    }
    for one in speaking {
        one.await.unwrap();
    }
    let store = &stores[0];
    for of in 0..SESSIONS {
        let messages = loop {
            let messages = store.messages(&tenant(), &session(of), 0, usize::MAX).await.unwrap();
            let answered: usize = messages
                .iter()
                .filter(|message| message.new.role == Role::Assistant)
                .map(|message| {
                    Turn { role: Role::Assistant, parts: parts(message) }.words().matches('q').count()
                })
                .sum();
            if answered >= SPEAKERS {
                break messages;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let asked: Vec<String> = messages
            .iter()
            .filter(|message| message.new.role == Role::User)
            .flat_map(|message| parts(message).iter().filter_map(said).collect::<Vec<_>>())
            .collect();
        let mine = format!("s{of} ");
        let done: Vec<String> =
            model.done.lock().unwrap().iter().filter(|one| one.starts_with(&mine)).cloned().collect();
        assert_eq!(done, asked, "each once, in the order of the messages");
    }
    stop.cancel();
    for one in working {
        one.await.unwrap();
    }
    assert!(model.asked.load(Ordering::Relaxed) > model.fails, "some requests failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_question_is_carried_out_once_and_in_order() {
    for meanwhile in EVERY_MEANWHILE {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&directory.path().join("claw.db"), NodeId::local()).await.unwrap();
        storm(vec![Arc::new(store)], meanwhile).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_question_is_carried_out_once_and_in_order_on_postgres() {
    for meanwhile in EVERY_MEANWHILE {
        let Some(database) = Database::new() else { return };
        let mut stores: Vec<Arc<dyn Store>> = Vec::new();
        for node in ["a", "b", "c"] {
            let node = NodeId::new(node).unwrap();
            stores.push(Arc::new(PostgresStore::connect(database.url(), node).await.unwrap()));
        }
        storm(stores, meanwhile).await;
    }
}
