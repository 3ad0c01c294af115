//! The reads of a run: each fact once, and again when it may have changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use claw_agent::{Meanwhile, RunLimits, Worker};
use claw_core::port::{Artifact, ArtifactStore, Clock as _, Owner, Part, World};
use claw_core::store::{DocumentKey, Documents as _, JobState, Role, Shelf};
use claw_core::tool::ToolError;
use claw_core::{ArtifactId, CallId};
use claw_llm::Script;
use claw_store::SqliteStore;
use claw_testkit::ManualClock;

use crate::counting_store::CountingStore;
use crate::kit::{Bench, order, tenant};
use crate::limits::patient;

/// Four answers with a call each, the last of which waits, and then the last answer; one answer to another message.
const FIVE_ANSWERS: &str = r#"
    [[turn]]
    when.said = "and that"
    do = [{ say = "Heard." }]

    [[turn]]
    when.round = 4
    do = [{ say = "Done." }]

    [[turn]]
    when.round = 3
    do = [{ call = "gate", args = { what = "x" } }]

    [[turn]]
    do = [{ call = "peek", args = { what = "new" } }]
"#;

/// The reads that a run repeats only if something changed.
const READS: [&str; 6] = ["offered", "tool_uses", "documents", "processes", "jobs", "take_waiting"];

/// Kept results, of which there are none; counts how often somebody asks.
#[derive(Default)]
struct NoResults(AtomicUsize);

#[async_trait]
impl ArtifactStore for NoResults {
    async fn put(&self, _: &Owner, _: CallId, _: &str) -> Result<Artifact, ToolError> {
        Err(ToolError::failed("nothing is kept"))
    }

    async fn list(&self, _: &Owner) -> Result<Vec<Artifact>, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Vec::new())
    }

    async fn lines(&self, _: &Owner, _: ArtifactId, _: usize, _: usize) -> Result<Part, ToolError> {
        Err(ToolError::not_found("nothing is kept"))
    }
}

struct Counted {
    bench: Bench,
    store: Arc<CountingStore>,
    results: Arc<NoResults>,
}

impl Counted {
    async fn new(meanwhile: Meanwhile) -> Self {
        let script = Arc::new(Script::parse("test.toml", FIVE_ANSWERS).unwrap());
        let store = Arc::new(SqliteStore::memory(claw_core::NodeId::local()).await.unwrap());
        let store = CountingStore::over(store);
        let results = Arc::new(NoResults::default());
        let clock = Arc::new(ManualClock::default());
        let mut world = World::new(Arc::clone(&clock) as _);
        world.artifacts = Some(Arc::clone(&results) as _);
        let limits = RunLimits { meanwhile, ..patient() };
        let bench = Bench::over(Arc::clone(&store) as _, world, clock, script, limits);
        Self { bench, store, results }
    }

    /// Runs until the call that waits, does `meanwhile`, and carries the run to its end.
    async fn run(&self, meanwhile: impl AsyncFnOnce()) {
        self.bench.send("go").await;
        let worker: Worker = self.bench.worker.clone();
        let working = tokio::spawn(async move { worker.drain().await });
        self.bench.world.hanging.notified().await;
        meanwhile().await;
        self.bench.world.open.notify_one();
        working.await.unwrap().unwrap();
    }

    fn reads(&self) -> [usize; 6] {
        READS.map(|method| self.store.take(method))
    }
}

#[tokio::test]
async fn nothing_is_read_again_while_nothing_changes() {
    for (meanwhile, jobs, taken) in
        [(Meanwhile::Queue, 1, 0), (Meanwhile::Merge, 0, 1), (Meanwhile::Steer, 0, 1)]
    {
        let counted = Counted::new(meanwhile).await;
        counted.run(async || {}).await;
        assert_eq!(counted.bench.last_words().await, "Done.");
        // Documents are two lists: context files and memory.
        assert_eq!(counted.reads(), [1, 1, 2, 1, jobs, taken], "{READS:?} with {meanwhile:?}");
        assert_eq!(counted.results.0.load(Ordering::SeqCst), 1, "the offer is decided once");
    }
}

#[tokio::test]
async fn a_changed_document_is_read_once_more() {
    let counted = Counted::new(Meanwhile::Queue).await;
    let store = Arc::clone(&counted.store);
    let now = counted.bench.clock.now();
    counted
        .run(async || {
            let key = DocumentKey {
                tenant: tenant(),
                agent: Some(order().agent),
                user: None,
                shelf: Shelf::Context,
                path: "SOUL.md".to_owned(),
            };
            store.put_document(&key, "kind", None, now).await.unwrap();
        })
        .await;
    let [offered, uses, documents, processes, jobs, _] = counted.reads();
    assert_eq!((offered, uses, documents, processes, jobs), (1, 1, 4, 1, 1));
}

#[tokio::test]
async fn a_message_is_looked_for_when_one_came() {
    // A message that is queued has a run of its own, which looks once.
    for (meanwhile, answers, jobs, taken) in [(Meanwhile::Queue, 6, 3, 0), (Meanwhile::Steer, 5, 0, 2)] {
        let counted = Counted::new(meanwhile).await;
        let mut second = None;
        counted.run(async || second = Some(counted.bench.send("and that").await.job)).await;
        assert_eq!(counted.bench.state(second.unwrap()).await, JobState::Done);
        assert_eq!(counted.bench.last_words().await, "Heard.");
        let roles = counted.bench.roles().await;
        assert_eq!(roles.iter().filter(|role| **role == Role::Assistant).count(), answers);
        let [.., asked, took] = counted.reads();
        assert_eq!((asked, took), (jobs, taken), "{meanwhile:?}");
    }
}

#[tokio::test]
async fn messages_are_looked_for_again_after_more_than_a_second() {
    for (millis, jobs) in [(1_000, 1), (1_001, 2)] {
        let counted = Counted::new(Meanwhile::Queue).await;
        counted.run(async || counted.bench.clock.advance(Duration::from_millis(millis))).await;
        let [.., looks, _] = counted.reads();
        assert_eq!(looks, jobs, "after {millis} ms");
    }
}
