//! Programs that write memory documents, give them vectors and extract their facts, and are killed at any moment:
//! nothing that was acknowledged is lost, and nothing is indexed twice.
//!
//! `CLAWSMITH_KILL_ROUNDS` says how many rounds; `CLAWSMITH_KILL_SEED` which, where one failed. A program is killed when
//! it has written so many lines; nothing that is checked depends on how long anything took.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::graph::{EntityFacts, GraphSource, RelationFacts};
use claw_core::port::{
    Clock as _, EmbedError, EmbedPurpose, Embedder, MemoryReader, UnixMillis, unit_vector,
};
use claw_core::store::{
    DocumentKey, EmbeddingDone, EntityQuery, FactsFrom, GraphStore, Memories, NewEntity, NewFacts,
    NewRelation, PassageQuery, RelationEnd, Shelf, SimilarQuery, StoreError, passages,
};
use claw_core::{AgentId, NodeId, TenantId};
use claw_host::SystemClock;
use claw_host::recall::StoredMemory;
use claw_store::{PostgresStore, SqliteStore};
use claw_testkit::killing::Random;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::postgres::database::Database;

/// The place of the store of a killed program; its tenant and number.
const PLACE: &str = "CLAWSMITH_KILL_MEMORY";
const ROUND: &str = "CLAWSMITH_KILL_MEMORY_ROUND";
const MARK: &str = "~~ ";
const MODEL: &str = "test:kill";
/// Programs that work at the same time, each on documents of its own; all index and extract everything.
const PROGRAMS: usize = 2;
const DOCUMENTS: usize = 3;
/// Writes of one life.
const WRITES: usize = 8;
/// A claim of a dead program ends soon.
const LEASE: Duration = Duration::from_millis(20);

#[test]
fn sqlite_memory_survives_kill_9_while_it_is_indexed() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store.db");
    let command = || program("kill_memory::sqlite_program", path.to_str().unwrap());
    let open = async || SqliteStore::open(&path, NodeId::local()).await.unwrap();
    rounds(8, command, open);
}

/// Not a test: what the killed processes run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_program() {
    let Ok(place) = env::var(PLACE) else { return };
    live(Arc::new(SqliteStore::open(place.as_ref(), node()).await.unwrap())).await;
}

#[test]
fn postgres_memory_survives_kill_9_while_it_is_indexed() {
    let database = Runtime::new().unwrap().block_on(Database::create());
    let url = database.url();
    let open = async || {
        // A server ends what a killed client began; until then what is there may still change.
        database.wait_until_alone().await;
        PostgresStore::connect(&url, NodeId::local()).await.unwrap()
    };
    rounds(4, || program("kill_memory::postgres_program", &url), open);
}

/// Not a test: what the killed processes run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_program() {
    let Ok(place) = env::var(PLACE) else { return };
    live(Arc::new(PostgresStore::connect(&place, node()).await.unwrap())).await;
}

fn program(test: &str, place: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(PLACE, place);
    command
}

fn node() -> NodeId {
    NodeId::new(format!("node-{}", std::process::id())).unwrap()
}

/// Values of one document that programs reported: the highest value that was acknowledged, and the highest that was tried.
type Said = BTreeMap<String, (u64, u64)>;

fn rounds<S: Memories + GraphStore>(
    rounds: usize,
    command: impl Fn() -> Command + Sync,
    open: impl AsyncFn() -> S,
) {
    let rounds = number("CLAWSMITH_KILL_ROUNDS").map_or(rounds, |rounds| rounds as usize);
    let first = number("CLAWSMITH_KILL_SEED").unwrap_or(1);
    let runtime = Runtime::new().unwrap();
    let (mut kills, mut boots, mut acknowledged) = (0, 0, 0);
    for seed in (first..).take(rounds) {
        let lives = thread::scope(|scope| {
            let lives: Vec<_> = (0..PROGRAMS)
                .map(|n| {
                    let command = &command;
                    scope.spawn(move || boots_of(seed, n, command))
                })
                .collect();
            lives.into_iter().map(|life| life.join().unwrap()).collect::<Vec<_>>()
        });
        let mut said = Said::new();
        for (words, booted, killed) in lives {
            boots += booted;
            kills += killed;
            said.extend(words);
        }
        acknowledged += said.values().filter(|(done, _)| *done > 0).count();
        runtime.block_on(async {
            let store = open().await;
            check(&store, &tenant(seed), &said).await;
        });
    }
    println!("{rounds} rounds, {boots} boots, {kills} killed, {acknowledged} documents acknowledged");
    assert!(kills >= rounds, "programs were killed: {kills} of {boots}");
    assert!(acknowledged >= rounds, "programs got somewhere: {acknowledged}");
}

/// The lives of one program; its last is not cut short.
fn boots_of(seed: u64, n: usize, command: impl Fn() -> Command) -> (Said, usize, usize) {
    let mut random = Random::part(seed, n as u64 + 1);
    let mut said = Said::new();
    let (mut boots, mut kills) = (0, 0);
    for is_last in [false, false, true] {
        boots += 1;
        let lines = if is_last { usize::MAX } else { 1 + random.below(30) };
        kills +=
            usize::from(hear(command().env(ROUND, format!("{seed} {n}")), lines, &mut random, &mut said));
    }
    (said, boots, kills)
}

/// Hears one life; whether it was killed.
fn hear(command: &mut Command, lines: usize, random: &mut Random, said: &mut Said) -> bool {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut heard, mut killed, mut line) = (0, false, String::new());
    while output.read_line(&mut line).unwrap() > 0 {
        // A line without its end was not written: the program died in it.
        if let Some(words) = line.strip_prefix(MARK).and_then(|line| line.strip_suffix('\n')) {
            heard += 1;
            let words: Vec<&str> = words.split(' ').collect();
            if let [what @ ("try" | "done"), path, value] = words[..] {
                let (done, tried) = said.entry(path.to_owned()).or_default();
                let which = if what == "done" { done } else { tried };
                *which = (*which).max(value.parse().unwrap());
            }
        }
        if !killed && heard >= lines {
            thread::sleep(Duration::from_micros(random.below(3_000) as u64));
            child.kill().unwrap();
            killed = true;
        }
        line.clear();
    }
    let status = child.wait().unwrap();
    assert!(killed || status.success(), "a program ended by itself: {status}");
    killed
}

/// One write for each line: it is out, or it is not.
fn say(line: &str) {
    std::io::stdout().lock().write_all(format!("{MARK}{line}\n").as_bytes()).unwrap();
}

/// One life: writes documents while it indexes and extracts whatever waits.
async fn live(store: Arc<impl Memories + GraphStore + 'static>) {
    let round = env::var(ROUND).unwrap();
    let (seed, n) = round.split_once(' ').unwrap();
    let (tenant, n): (TenantId, usize) = (tenant(seed.parse().unwrap()), n.parse().unwrap());
    // Begins on a line of its own.
    println!();
    let (done, is_done) = tokio::sync::watch::channel(false);
    let indexing = tokio::spawn(index(Arc::clone(&store), is_done.clone()));
    let extracting = tokio::spawn(extract_until(Arc::clone(&store), is_done));
    let mut random = Random::new(std::process::id().into());
    for _ in 0..WRITES {
        let key = key(&tenant, &format!("memory/{n}-{}.md", random.below(DOCUMENTS)));
        let known = store.document(&key).await.unwrap();
        let value = known.as_ref().map_or(0, |known| value_of(&known.text)) + 1;
        say(&format!("try {} {value}", key.path));
        let seen = known.map(|known| known.version);
        store.put_document(&key, &text(&key.path, value), seen, SystemClock.now()).await.unwrap();
        say(&format!("done {} {value}", key.path));
    }
    done.send(true).unwrap();
    indexing.await.unwrap();
    extracting.await.unwrap();
}

async fn index(store: Arc<impl Memories + 'static>, is_done: tokio::sync::watch::Receiver<bool>) {
    let memory = StoredMemory::new(store as _, Some(Arc::new(Loud)));
    loop {
        let last = *is_done.borrow();
        let done = memory.indexer().run().await.unwrap();
        assert_eq!(done.failed, 0);
        if last {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn extract_until(store: Arc<impl GraphStore>, is_done: tokio::sync::watch::Receiver<bool>) {
    loop {
        let last = *is_done.borrow();
        extract(&*store, SystemClock.now(), LEASE).await;
        if last {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn extract(store: &impl GraphStore, now: UnixMillis, lease: Duration) {
    for work in store.claim_unextracted(now, now, lease, 4).await.unwrap() {
        say("extract");
        let facts = facts(&work.key.path, value_of(&work.text));
        let from = FactsFrom::Document {
            key: work.key.clone(),
            version: work.version,
            model: "local/kill".to_owned(),
        };
        store.keep_facts(&from, facts, now).await.unwrap();
        say("extracted");
    }
}

/// Says when it is asked, so that a program can be killed between asking and keeping.
struct Loud;

#[async_trait]
impl Embedder for Loud {
    fn model(&self) -> &str {
        MODEL
    }

    fn batch(&self) -> usize {
        2
    }

    async fn embed(
        &self,
        _: &TenantId,
        texts: &[String],
        _: EmbedPurpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        say("embed");
        Ok(texts.iter().map(|text| vector(text)).collect())
    }
}

fn vector(text: &str) -> Vec<f32> {
    unit_vector(&[value_of(text) as f32, text.len() as f32, 1.0]).unwrap()
}

/// Three passages, each with the value.
fn text(path: &str, value: u64) -> String {
    let part = |n: usize| format!("# Part {n}\n\nvalue {value} of {path} in part {n}\n");
    (1..=3).map(part).collect::<Vec<_>>().join("\n")
}

fn value_of(text: &str) -> u64 {
    let after = text.split_once("value ").map_or("", |(_, after)| after);
    after.split(' ').next().and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn facts(path: &str, value: u64) -> NewFacts {
    let source = || Some(GraphSource::new(path, 1, 3));
    let entity =
        |name: String, kind: &str| NewEntity { said: EntityFacts::new(name, kind), source: source() };
    let entities =
        vec![entity(format!("Holder {path}"), "holder"), entity(format!("Value {path} {value}"), "value")];
    let (from, to) = (RelationEnd::New(0), RelationEnd::New(1));
    let relation =
        NewRelation { source: from, target: to, said: RelationFacts::new("holds"), place: source() };
    NewFacts { entities, relations: vec![relation] }
}

/// Finishes what was left, and compares the store with what was said.
async fn check<S: Memories + GraphStore>(store: &S, tenant: &TenantId, said: &Said) {
    // Claims of the dead have ended by then.
    let later = UnixMillis(SystemClock.now().0 + 86_400_000);
    finish(store, later).await.unwrap();
    let agent = AgentId::new("main").unwrap();
    let (mut expected, mut total) = (Vec::new(), 0);
    for (path, (done, tried)) in said {
        let Some(document) = store.document(&key(tenant, path)).await.unwrap() else {
            assert_eq!(*done, 0, "`{path}` was acknowledged and is lost");
            continue;
        };
        let value = value_of(&document.text);
        assert!(
            (*done..=*tried).contains(&value),
            "`{path}` is {value}; {done} was acknowledged, {tried} tried"
        );
        let whole = passages(&document.text);
        total += whole.len();
        let query = PassageQuery {
            tenant: tenant.clone(),
            agent: agent.clone(),
            user: None,
            text: "value part".to_owned(),
            limit: 1_000,
        };
        let found = store.search_passages(&query).await.unwrap();
        let mut found: Vec<_> = found.into_iter().filter(|found| found.key.path == *path).collect();
        found.sort_by_key(|found| found.passage.first_line);
        assert!(found.iter().all(|found| found.version == document.version), "`{path}`: {found:?}");
        let found: Vec<_> = found.into_iter().map(|found| found.passage).collect();
        assert_eq!(found, whole, "words of `{path}`");
        let nearest = SimilarQuery {
            tenant: tenant.clone(),
            agent: agent.clone(),
            user: None,
            model: MODEL.to_owned(),
            vector: vector(&document.text),
            limit: 1_000,
        };
        let near = store.similar_passages(&nearest).await.unwrap();
        assert_eq!(
            near.iter().filter(|near| near.found.key.path == *path).count(),
            whole.len(),
            "vectors of `{path}`"
        );
        expected.extend([format!("Holder {path}"), format!("Value {path} {value}")]);
    }
    let state = store.memory_state(tenant, Some(MODEL)).await.unwrap();
    let counts = (state.passages, state.vectors, state.unembedded, state.unindexed);
    assert_eq!(counts, (total as u64, total as u64, 0, 0), "{state:?}");
    let reader = MemoryReader { tenant: tenant.clone(), agent, user: None };
    let all = EntityQuery { reader, text: None, kind: None, as_of: None, limit: 1_000, after: None };
    let entities = store.entities(&all).await.unwrap();
    assert!(entities.iter().all(|found| found.entity.mentions == 1), "{entities:#?}");
    let mut names: Vec<String> = entities.into_iter().map(|found| found.entity.said.name).collect();
    names.sort();
    expected.sort();
    assert_eq!(names, expected);
    let graph = store.graph_state(tenant).await.unwrap();
    assert_eq!((graph.relations * 2, graph.unextracted), (graph.entities, 0), "{graph:?}");
}

/// Gives what waits its vectors and facts.
async fn finish<S: Memories + GraphStore>(store: &S, now: UnixMillis) -> Result<(), StoreError> {
    loop {
        let work = store.claim_unembedded(MODEL, now, LEASE, 100).await?;
        if work.is_empty() {
            break;
        }
        for work in work {
            let vectors: Vec<_> =
                work.passages.iter().map(|passage| (passage.hash, vector(&passage.text))).collect();
            store.put_embeddings(&work.key.tenant, MODEL, &vectors, now).await?;
            let done = store.embed_document(&work.key, work.version, MODEL).await?;
            assert_eq!(done, EmbeddingDone::Stored);
        }
    }
    for _ in 0..100 {
        extract(store, now, LEASE).await;
    }
    Ok(())
}

fn key(tenant: &TenantId, path: &str) -> DocumentKey {
    let agent = Some(AgentId::new("main").unwrap());
    DocumentKey { tenant: tenant.clone(), agent, user: None, shelf: Shelf::Memory, path: path.to_owned() }
}

fn tenant(seed: u64) -> TenantId {
    TenantId::new(format!("round-{seed}")).unwrap()
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|number| number.parse().unwrap())
}
