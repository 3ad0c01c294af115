//! The worker: failed runs are retried or reported, and after a lost lease nothing is stored.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use claw_agent::{Acceptance, RunLimits, Worker, WorkerOptions};
use claw_core::message::Part;
use claw_core::port::{AgentDirectory, Clock as _, ResolvedAgent};
use claw_core::store::{Claim, JobState, Queue as _, Role};
use claw_core::tool::{ErrorKind, ToolError};
use claw_core::{AgentId, NodeId, TenantId};
use claw_host::SystemClock;
use claw_llm::Script;
use claw_store::{SqliteStore, StoreOptions};
use claw_testkit::fixture;
use tokio_util::sync::CancellationToken;

use crate::kit::{Bench, LANE, Watched, deployment, order, owner, tenant};

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

/// Agents of a store that can be away.
struct AwayAgents {
    agents: Arc<dyn AgentDirectory>,
    is_away: AtomicBool,
}

#[async_trait]
impl AgentDirectory for AwayAgents {
    async fn list(&self, tenant: &TenantId) -> Result<Vec<ResolvedAgent>, ToolError> {
        self.agents.list(tenant).await
    }

    async fn agent(&self, tenant: &TenantId, id: &AgentId) -> Result<Option<ResolvedAgent>, ToolError> {
        match self.is_away.load(Ordering::Relaxed) {
            true => Err(ToolError::new(ErrorKind::Unavailable, "the store does not answer")),
            false => self.agents.agent(tenant, id).await,
        }
    }
}

#[tokio::test]
async fn a_store_that_is_away_for_a_while_does_not_end_a_run() {
    let mut bench = Bench::new("[[turn]]\ndo = [{ say = \"Here I am.\" }]").await;
    let agents = Arc::clone(&bench.deployment.agents);
    let away = Arc::new(AwayAgents { agents, is_away: AtomicBool::new(true) });
    bench.deployment.agents = Arc::clone(&away) as _;
    bench.restarted();
    let job = bench.send("hello").await.job;
    assert_eq!(bench.worker.drain().await.unwrap(), 1);
    assert_eq!(bench.state(job).await, JobState::Pending, "it is tried again");
    away.is_away.store(false, Ordering::Relaxed);
    bench.clock.advance(Duration::from_secs(60));
    assert_eq!(bench.worker.drain().await.unwrap(), 1);
    assert_eq!(bench.last_words().await, "Here I am.");
    assert_eq!(bench.run_states().await, ["began", "failed", "resumed", "ended"]);
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
    assert_eq!(bench.last_words().await, "the run was started 2 times and never finished");
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
    // Another boot of the same node takes the job.
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

#[tokio::test]
async fn goes_on_when_the_store_was_busy_for_a_while() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let options = StoreOptions { busy_timeout: Duration::from_millis(50), ..StoreOptions::default() };
    let store = Arc::new(SqliteStore::open_with(&file, NodeId::local(), &options).await.unwrap());
    let script = Arc::new(Script::parse("test.toml", "[[turn]]\ndo = [{ say = \"Here I am.\" }]").unwrap());
    let clock = Arc::new(SystemClock);
    let watched = Arc::new(Watched::default());
    let deployment = deployment(store.clone(), clock, script, RunLimits::default(), &watched);
    let place = Acceptance { lane: LANE, at: SystemClock.now(), lineage: None, priority: 0, after: None };
    let hello = [Part::text("hello")];
    let job = order().accept(&*store, &owner(), &hello, place).await.unwrap().job;

    let lock = WriteLock::take(&directory.path().join("store.db-shm"));
    let worker = Worker::new(deployment, WorkerOptions::new(fixture::worker("local"), [LANE.into()]));
    let stop = CancellationToken::new();
    let working = tokio::spawn({
        let stop = stop.clone();
        async move { worker.work(stop).await }
    });
    // A writer waits for the one connection that writes, and then gets the error that the store is busy; so
    // does the worker in between.
    for _ in 0..4 {
        let busy = store.enqueue(fixture::job()).await.unwrap_err().to_string();
        assert!(busy.contains("another program is writing"), "{busy}");
    }
    assert!(!working.is_finished(), "{:?}", working.await);
    lock.release();
    while store.job(&tenant(), job).await.unwrap().unwrap().state != JobState::Done {
        assert!(!working.is_finished(), "{:?}", working.await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    working.await.unwrap().unwrap();
}

/// The lock that a writer of a SQLite file in WAL mode holds: a byte of its shared memory. It belongs to this
/// open file and not to the process, so the store sees it as another program's.
struct WriteLock(File);

impl WriteLock {
    fn take(shm: &Path) -> Self {
        let lock = Self(File::options().read(true).write(true).open(shm).unwrap());
        lock.set(libc::F_WRLCK);
        lock
    }

    /// Releases the lock. The file stays open, since closing it would drop the store's own locks.
    fn release(self) {
        self.set(libc::F_UNLCK);
        std::mem::forget(self);
    }

    #[expect(unsafe_code, reason = "a lock of one byte is not to be had otherwise")]
    fn set(&self, kind: libc::c_int) {
        // SAFETY: all zeroes is a value of this struct, which has numbers alone.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        (lock.l_start, lock.l_len) = (120, 1);
        // SAFETY: the descriptor is open and the struct is whole.
        let done = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}
