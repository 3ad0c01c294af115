//! Runs whose program is killed at any moment: each call is made at most once, and every run ends.
//!
//! `CLAWSMITH_KILL_TURNS` sets the number of turns, `CLAWSMITH_KILL_SEED` the seed, to repeat a failure. The
//! program is killed after a number of printed lines, at some point of its next step; no check depends on how
//! long anything took.

use std::collections::HashMap;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use claw_agent::{Acceptance, RunLimits, Worker, WorkerOptions};
use claw_core::message::Part;
use claw_core::port::{Clock as _, Owner};
use claw_core::store::{JobState, Message, Outcome, SessionLog as _};
use claw_core::tool::{Call, Effect, Group, Meta, Output, Tool, ToolError, erase};
use claw_core::{CallId, JobId, NodeId, SessionKey};
use claw_host::SystemClock;
use claw_llm::Script;
use claw_store::SqliteStore;
use claw_testkit::fixture;
use claw_testkit::killing::Random;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::kit::{LANE, Watched, check_whole, deployment, order, parts, tenant, text};

/// The variable with the directory of the store and of the probe's file.
const PLACE: &str = "CLAWSMITH_KILL_PLACE";
const TURNS: usize = 30;
/// The number of turns in progress at a time: they belong to different sessions and run side by side.
const SESSIONS: usize = 3;
/// The most attempts of a run; each kill restarts all runs in progress.
const ATTEMPTS: u16 = 4;

/// Four answers: one call, two calls at once, a look and a call, and the end.
const SCRIPT: &str = r#"
    [[turn]]
    when.round = 0
    do = [{ say = "First." }, { call = "probe", args = { what = "1" } }]

    [[turn]]
    when.round = 1
    do = [{ call = "probe", args = { what = "2" } }, { call = "probe", args = { what = "3" } }]

    [[turn]]
    when.round = 2
    do = [{ call = "peek", args = { what = "4" } }, { call = "probe", args = { what = "5" } }]

    [[turn]]
    do = [{ say = "That is all." }]
"#;

#[test]
fn runs_keep_their_promise_through_kill_9() {
    let turns = number("CLAWSMITH_KILL_TURNS").map_or(TURNS, |turns| turns as usize);
    let mut random = Random::new(number("CLAWSMITH_KILL_SEED").unwrap_or(1));
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let jobs = runtime.block_on(accept(directory.path(), turns));
    let (mut boots, mut kills) = (0, 0);
    loop {
        boots += 1;
        // A process that is not killed ends when all work is done.
        let lines = 1 + random.below(50);
        if !live(directory.path(), lines, &mut random) {
            break;
        }
        kills += 1;
    }
    let report = runtime.block_on(check(directory.path(), &jobs));
    println!("{turns} turns, {boots} boots, {kills} killed: {report}");
    assert!(kills >= turns / 3, "programs were killed: {kills} times");
}

/// Not a test: the program that the test starts and kills.
#[tokio::test]
async fn worker() {
    let Ok(place) = env::var(PLACE) else { return };
    let place = PathBuf::from(place);
    let store = Arc::new(open(&place).await);
    let script = Arc::new(Script::parse("kill.toml", SCRIPT).unwrap());
    let world = Arc::new(Watched::default());
    let limits = RunLimits { attempts: ATTEMPTS, ..RunLimits::default() };
    let deployment = deployment(store, Arc::new(SystemClock), script, limits, &world);
    deployment.executor.registry().register(erase(Probe(place.join("probe")))).unwrap();
    let mut options = WorkerOptions::new(fixture::worker("local"), [LANE.into()]);
    options.slots = SESSIONS;
    let worker = Worker::new(deployment.clone(), options);
    let stop = tokio_util::sync::CancellationToken::new();
    let watch = async {
        let mut changes =
            claw_core::store::Changes::changes(&*deployment.store, claw_core::store::Topic::Sessions);
        loop {
            // One line for each change: the test counts them to kill the program.
            println!("~~");
            let lanes = deployment.store.lanes(&tenant()).await.unwrap();
            if lanes.iter().all(|lane| lane.pending + lane.leased == 0) {
                stop.cancel();
                return;
            }
            changes.changed().await.unwrap();
        }
    };
    // A worker that stops before all work is done fails the test.
    let watch = async {
        watch.await;
        std::future::pending::<std::convert::Infallible>().await
    };
    tokio::select! {
        worked = worker.work(stop.clone()) => worked.unwrap(),
        never = watch => match never {},
    }
}

/// A tool that writes its call to a file, and then answers.
struct Probe(PathBuf);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The topic.
    what: String,
}

impl Tool for Probe {
    type Args = Args;
    const META: Meta = Meta::new("probe", Group::Fs).effects(&[Effect::Write]).about("Leave a trace.");

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let mut file =
            OpenOptions::new().create(true).append(true).open(&self.0).map_err(ToolError::internal)?;
        file.write_all(format!("{}\n", call.id()).as_bytes()).map_err(ToolError::internal)?;
        // Long enough to be killed in.
        tokio::time::sleep(Duration::from_millis(2)).await;
        Ok(Output::text(format!("traced {}", args.what)))
    }
}

async fn open(place: &Path) -> SqliteStore {
    SqliteStore::open(&place.join("store.db"), NodeId::local()).await.unwrap()
}

fn session(n: usize) -> SessionKey {
    SessionKey::new(format!("agent:tester:cli:direct:{n}")).unwrap()
}

/// Puts all questions into the queue before anything runs.
async fn accept(place: &Path, turns: usize) -> Vec<JobId> {
    let store = open(place).await;
    let mut jobs = Vec::with_capacity(turns);
    for n in 0..turns {
        let (owner, question) = (tenant(), [Part::text(format!("question {n}"))]);
        let key = session(n % SESSIONS);
        let accepted = order()
            .accept(
                &store,
                &Owner { tenant: owner.clone(), session: key.clone() },
                &question,
                Acceptance { lane: LANE, at: SystemClock.now(), lineage: None, priority: 0, after: None },
            )
            .await
            .unwrap();
        jobs.push(accepted.job);
    }
    jobs
}

/// Runs the program once; returns whether it was killed.
fn live(place: &Path, lines: usize, random: &mut Random) -> bool {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["kill::worker", "--exact", "--nocapture"])
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let aim = Duration::from_micros(random.below(4_000) as u64);
    let output = BufReader::new(child.stdout.take().unwrap());
    let heard = output.lines().map_while(Result::ok).filter(|line| line.contains("~~"));
    let killed = heard.take(lines).count() == lines;
    if killed {
        // The kill hits somewhere in the next step, not always at its beginning.
        std::thread::sleep(aim);
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    assert!(killed || status.success(), "a worker ended by itself: {status}");
    killed
}

/// Compares the calls that were made with the records of them.
async fn check(place: &Path, jobs: &[JobId]) -> String {
    let store = open(place).await;
    let mut traces: HashMap<CallId, usize> = HashMap::new();
    for line in fs::read_to_string(place.join("probe")).unwrap().lines() {
        *traces.entry(line.parse().unwrap()).or_default() += 1;
    }
    for (call, count) in &traces {
        assert_eq!(*count, 1, "call {call} was made {count} times");
    }
    let (mut calls, mut unknown, mut lost, mut reported) = (0, 0, 0, 0);
    for n in 0..SESSIONS.min(jobs.len()) {
        let messages: Vec<Message> = store.messages(&tenant(), &session(n), 0, usize::MAX).await.unwrap();
        check_whole(messages.clone());
        let parts: Vec<Part> = messages.iter().flat_map(parts).collect();
        for part in &parts {
            let Part::Result(told) = part else { continue };
            if told.tool != "probe" {
                continue;
            }
            calls += 1;
            let fate = claw_core::store::Ledger::fate(&store, &tenant(), told.call).await.unwrap();
            let (said, traced) = (text(told), traces.contains_key(&told.call));
            match fate {
                None => assert!(!traced && said.starts_with("not made: "), "{fate:?} {traced} {said}"),
                Some(Outcome::Done) if said.starts_with("traced ") => assert!(traced),
                Some(Outcome::Done) => {
                    assert!(traced && said.contains("output is lost"), "{said}");
                    lost += 1;
                }
                Some(Outcome::Unknown) => {
                    assert!(said.starts_with("unknown: "), "{said}");
                    unknown += 1;
                }
                Some(Outcome::Failed) => panic!("a probe does not fail: {said}"),
            }
        }
        let ends = messages.iter().filter(|message| message.new.role == claw_core::store::Role::System);
        reported += ends.count();
    }
    for job in jobs {
        let found = claw_core::store::Queue::job(&store, &tenant(), *job).await.unwrap().unwrap();
        assert_eq!(found.state, JobState::Done, "run {job} ended");
    }
    let told: Vec<_> = traces.keys().collect();
    assert!(told.len() <= calls, "each trace is told of");
    let broken: Vec<_> =
        store.verify().await.unwrap().into_iter().filter(|chain| chain.fault.is_some()).collect();
    assert!(broken.is_empty(), "{broken:?}");
    format!(
        "{calls} calls, {} traces, {unknown} unknown, {lost} without output, {reported} runs reported",
        traces.len()
    )
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|number| number.parse().unwrap())
}
