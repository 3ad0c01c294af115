//! The overhead of an agent over its tools and its store, with a model that answers at once: a turn with ten
//! calls beside the calls alone, many sessions at once, the memory of an idle session, and opening a long
//! session.
//!
//! Prints `name<TAB>value<TAB>unit` lines. The store is a file, as in a deployment. Words after `--` select
//! the benchmarks: `turn`, `many`, `idle`, `open`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use claw_agent::{
    Acceptance, Budget, Chronicle, Deployment, History, Order, Profile, Profiles, RunLimits, StoredTalks,
    Worker, WorkerOptions,
};
use claw_core::message::Part;
use claw_core::port::{Clock, Model, ModelError, Models, Owner, World};
use claw_core::store::{Accepted, Claim, NewJob, NewMessage, Role, Store, Summary};
use claw_core::tool::{Call, Effect, Group, Meta, Output, PeerKind, Tool, ToolError, erase};
use claw_core::{AgentId, NodeId, SessionKey, TenantId, UserId};
use claw_host::SystemClock;
use claw_llm::{Script, Scripted};
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_policy::rate_config::RateConfig;
use claw_registry::rate_limiter::Limiter;
use claw_registry::{Asking, Executor, Registry, Request};
use claw_store::SqliteStore;
use claw_testkit::fixture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

const LANE: &str = "main";
const PARTS: [&str; 4] = ["turn", "many", "idle", "open"];
const TURNS: usize = 200;
const AT_ONCE: usize = 200;
const IDLE: usize = 2_000;
const LONG: usize = 10_000;
const SHORT: usize = 100;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for part in PARTS.into_iter().filter(|part| words.is_empty() || words.iter().any(|word| word == part)) {
        let directory = tempfile::tempdir().unwrap();
        runtime.block_on(async {
            let agent = Agent::new(directory.path()).await;
            match part {
                "turn" => turn(&agent).await,
                "many" => many(&agent).await,
                "idle" => idle(&agent).await,
                _ => open(&agent).await,
            }
        });
    }
}

/// Measures a turn of ten calls and an answer, beside the ten calls alone.
async fn turn(agent: &Agent) {
    let (mut turns, mut calls) = (Vec::new(), Vec::new());
    let (mut commits, mut syncs) = (0, 0);
    let worker = agent.worker(1);
    for n in 0..TURNS {
        let before = agent.file.sync_counts();
        agent.say(&session("ten", n % 10), "ten").await;
        turns.push(time(async { assert_eq!(worker.drain().await.unwrap(), 1) }).await);
        let after = agent.file.sync_counts();
        commits += after.commits - before.commits;
        syncs += after.syncs - before.syncs;
        let mut caller = claw_core::tool::Caller::new(agent_id(), session("alone", n % 10), "/w");
        caller.user = Some(UserId::new("ann").unwrap());
        calls.push(
            time(async {
                let offer = agent.deployment.executor.offer(caller).await;
                let requests = (0..10).map(|n| Request::new("peek", json!({ "what": n.to_string() })));
                let replies = agent.deployment.executor.execute_batch(&offer, requests.collect()).await;
                assert!(replies.iter().all(|reply| reply.is_done()));
            })
            .await,
        );
    }
    let (turn, alone) = (median(turns), median(calls));
    println!("a turn with 10 calls\t{turn:.2}\tms median of {TURNS}");
    println!("the 10 calls alone\t{alone:.2}\tms median");
    let a_turn = |count: u64| count as f64 / TURNS as f64;
    println!("transactions of a turn with 10 calls, its message included\t{:.1}\ta turn", a_turn(commits));
    println!("syncs of it\t{:.1}\ta turn", a_turn(syncs));
    println!("turn / calls alone\t{:.2}\tx\t{:.2}\tms more", turn / alone, turn - alone);
}

/// Measures many sessions that get a message at the same moment.
async fn many(agent: &Agent) {
    for n in 0..AT_ONCE {
        agent.say(&session("many", n), "hello").await;
    }
    let (worker, stop) = (agent.worker(AT_ONCE), CancellationToken::new());
    let begun = Instant::now();
    let working = tokio::spawn({
        let stop = stop.clone();
        async move { worker.work(stop).await }
    });
    for n in 0..AT_ONCE {
        agent.answered(&session("many", n), 2).await;
    }
    let took = begun.elapsed().as_secs_f64();
    stop.cancel();
    working.await.unwrap().unwrap();
    println!("{AT_ONCE} sessions at once, all answered\t{:.0}\tms", took * 1e3);
    println!("the same\t{:.0}\tturns a second", AT_ONCE as f64 / took);
}

/// Measures the memory of idle sessions that have had a turn.
async fn idle(agent: &Agent) {
    let worker = agent.worker(8);
    let talk = async |from: usize, to: usize| {
        for n in from..to {
            agent.say(&session("idle", n), "ten").await;
            worker.drain().await.unwrap();
        }
    };
    // Allocations made once belong to no session.
    talk(0, IDLE / 4).await;
    let before = resident();
    talk(IDLE / 4, IDLE / 4 + IDLE).await;
    let more = resident().saturating_sub(before);
    println!("{IDLE} idle sessions, ten calls made in each\t{more}\tKiB more");
    println!("one idle session\t{:.2}\tKB\ttarget under 20", more as f64 * 1.024 / IDLE as f64);
}

/// Measures opening a session: everything a run reads before its model is asked.
async fn open(agent: &Agent) {
    let mut medians = Vec::new();
    for (name, count, summary) in [
        ("100 messages", SHORT, None),
        ("10,000 messages, summed up but for 100", LONG, Some(LONG - SHORT)),
        ("10,000 messages, never summed up", LONG, None),
    ] {
        let key = session("open", medians.len());
        let run = agent.fill(&key, count, summary).await;
        let mut times = Vec::new();
        for _ in 0..50 {
            let store = &*agent.deployment.store;
            times.push(
                time(async {
                    let history = History::read(store, &TenantId::main(), &key, run.job).await.unwrap();
                    assert!(!history.turns().is_empty());
                })
                .await,
            );
        }
        medians.push(median(times));
        let ratio = medians[medians.len() - 1] / medians[0];
        println!("opens {name}\t{:.2}\tms median\t{ratio:.2}\tx 100 messages", medians[medians.len() - 1]);
    }
    println!("target for 10,000, as runs leave them\tunder 1.5\tx");
}

/// An agent over a store in a file.
struct Agent {
    deployment: Deployment,
    /// The same store as the deployment's.
    file: Arc<SqliteStore>,
}

impl Agent {
    async fn new(directory: &Path) -> Self {
        let file = Arc::new(SqliteStore::open(&directory.join("store.db"), NodeId::local()).await.unwrap());
        let store: Arc<dyn Store> = Arc::clone(&file) as _;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let mut world = World::new(Arc::clone(&clock));
        world.talks = Some(Arc::new(StoredTalks::new(Arc::clone(&store), Arc::clone(&clock))));
        let registry = Arc::new(Registry::new(world));
        registry.register(erase(Peek)).unwrap();
        let chronicle = Chronicle::start(Arc::clone(&store), Arc::clone(&clock), None);
        let executor = Executor::builder(
            registry,
            Arc::clone(&store) as _,
            Policy::compile(&PolicyConfig::default()).unwrap(),
        )
        .limiter(Limiter::new(RateConfig { total: 0, light: 0, normal: 0, heavy: 0 }, 100_000))
        .listener(Arc::clone(&chronicle) as _)
        .build();
        let calls: String =
            (0..10).map(|n| format!("{{ call = \"peek\", args = {{ what = \"{n}\" }} }},")).collect();
        let script = format!(
            "[[turn]]\nwhen.result_of = \"peek\"\ndo = [{{ say = \"done\" }}]\n\
             [[turn]]\nwhen.said = \"ten\"\ndo = [{calls}]\n[[turn]]\ndo = [{{ say = \"Hello.\" }}]\n"
        );
        let script = Arc::new(Script::parse("bench.toml", &script).unwrap());
        let model: Arc<dyn Model> = Arc::new(Scripted::new("script", "bench", script));
        let common = Profile { limits: RunLimits::default(), ..Profile::default() };
        let profiles = Arc::new(Profiles { common, ..Profiles::default() });
        let agents = Arc::new(claw_host::AgentResolver::default().over(Arc::clone(&store) as _));
        let models = Arc::new(OneModel(model));
        Self {
            deployment: Deployment {
                store,
                executor,
                models,
                clock,
                chronicle,
                agents,
                profiles,
                traces: None,
            },
            file,
        }
    }

    fn worker(&self, slots: usize) -> Worker {
        let mut options = WorkerOptions::new(fixture::worker("local"), [LANE.into()]);
        options.slots = slots;
        Worker::new(self.deployment.clone(), options)
    }

    async fn say(&self, session: &SessionKey, text: &str) -> Accepted {
        let place = Acceptance {
            lane: LANE,
            at: self.deployment.clock.now(),
            lineage: None,
            priority: 0,
            after: None,
        };
        let owner = Owner { tenant: TenantId::main(), session: session.clone() };
        order().accept(&*self.deployment.store, &owner, &[Part::text(text)], place).await.unwrap()
    }

    /// Waits until a session has this many messages.
    async fn answered(&self, session: &SessionKey, messages: usize) {
        let store = &self.deployment.store;
        while store.messages(&TenantId::main(), session, 0, messages).await.unwrap().len() < messages {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Fills a session with this many messages, two per run, and one more that waits; returns the run that
    /// would answer it.
    async fn fill(&self, session: &SessionKey, count: usize, summed: Option<usize>) -> Accepted {
        let (store, now) = (&self.deployment.store, self.deployment.clock.now());
        for n in 0..count / 2 {
            let job = NewJob { lane: "done".into(), ..fixture::job_of(session.as_str()) };
            for role in [Role::User, Role::Assistant] {
                let text = format!("message {n}, with a few words to it");
                let said = NewMessage { role, at: now, ..fixture::message(session.as_str(), &text) };
                store.accept_message(said, job.clone()).await.unwrap();
            }
        }
        if let Some(upto) = summed {
            let (worker, until) = (fixture::worker("filler"), now.plus(Duration::from_secs(600)));
            let lanes = vec!["summing".into()];
            store.enqueue(NewJob { lane: "summing".into(), ..fixture::job() }).await.unwrap();
            let (_, lease) = store.claim(Claim { worker, lanes, now, until }).await.unwrap().unwrap();
            let summary = Summary { upto: upto as u64, text: "They talked.".to_owned(), at: now };
            let of = Owner { tenant: TenantId::main(), session: session.clone() };
            store.summarise(&lease, &of, summary).await.unwrap();
        }
        self.say(session, "and now?").await
    }
}

struct OneModel(Arc<dyn Model>);

#[async_trait]
impl Models for OneModel {
    async fn model(
        &self,
        _: &TenantId,
        _: Option<&str>,
        _: Option<&str>,
    ) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::clone(&self.0))
    }
}

struct Peek;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The topic.
    what: String,
}

impl Tool for Peek {
    type Args = Args;
    const META: Meta = Meta::new("peek", Group::Fs).effects(&[Effect::Read]).about("Look at something.");

    async fn run(&self, _: &Call, args: Args) -> Result<Output, ToolError> {
        Ok(Output::text(args.what))
    }
}

fn order() -> Order {
    Order {
        agent: agent_id(),
        user: Some(UserId::new("ann").unwrap()),
        channel: "cli".into(),
        chat: None,
        peer: PeerKind::Direct,
        workspace: PathBuf::from("/w"),
        allow: None,
        thread: None,
        asking: Asking::Impossible,
        budget: Budget::default(),
        narrowing: None,
        client: Default::default(),
        hops: 0,
        untrusted: false,
    }
}

fn agent_id() -> AgentId {
    AgentId::new("bench").unwrap()
}

fn session(kind: &str, n: usize) -> SessionKey {
    SessionKey::new(format!("{kind}:{n}")).unwrap()
}

/// Measures a future, in milliseconds.
async fn time(run: impl Future<Output = ()>) -> f64 {
    let begun = Instant::now();
    run.await;
    begun.elapsed().as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Returns the resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
