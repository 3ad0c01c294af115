//! The cost of a hybrid search over 100,000 passages of about 160 tokens with vectors of 384 numbers, against comparing all
//! vectors, and against bare words and bare pgvector.
//!
//! Brute force is what sqlite-vec does: vectors are stored 1,024 together, and all are read from the file and compared.
//! It finds ids alone, by similarity alone. Vectors of one row each, as our table has them, are slower to read, so they are
//! printed without a target.
//!
//! A hybrid search is `memory_search` without its model: words, vectors, fusion. `CLAWSMITH_BENCH_PASSAGES` is another number
//! of passages. Prints `name<TAB>value<TAB>unit` lines. PostgreSQL is measured if `CLAWSMITH_TEST_POSTGRES` names one; its
//! database is dropped at the end.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::hint::black_box;
use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use claw_core::port::{
    EmbedError, EmbedPurpose, Embedder, MemoryHost as _, MemoryMode, MemoryQuery, MemoryReader, UnixMillis,
    unit_vector,
};
use claw_core::store::{DocumentKey, EmbeddingDone, Memories, Passage, Shelf, SimilarQuery};
use claw_core::{AgentId, NodeId, TenantId};
use claw_host::recall::StoredMemory;
use claw_store::vectors::{Index, product};
use claw_store::{PostgresStore, SqliteStore, StoreOptions};
use futures_util::TryStreamExt as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, query_as};

/// Passages of one document.
const PASSAGES: usize = 200;
/// Words of a passage: about 160 tokens.
const WORDS: usize = 100;
/// Passages that a hybrid search takes by words, and as many by similarity, before it fuses them.
const DEPTH: usize = 100;
const DIMENSIONS: usize = 384;
/// Vectors that brute force reads together, as sqlite-vec does.
const CHUNK: usize = 1_024;
const CENTRES: usize = 2_000;
const MODEL: &str = "bench";
const NOW: UnixMillis = UnixMillis(0);
const QUESTIONS: usize = 40;

/// The number of documents.
fn documents() -> usize {
    let asked = std::env::var("CLAWSMITH_BENCH_PASSAGES").ok().and_then(|count| count.parse().ok());
    asked.unwrap_or(100_000_usize).div_ceil(PASSAGES)
}

/// Gives each question the vector that was made for it.
struct Fixed(Vec<Vec<f32>>);

#[async_trait::async_trait]
impl Embedder for Fixed {
    fn model(&self) -> &str {
        MODEL
    }

    fn batch(&self) -> usize {
        1
    }

    async fn embed(
        &self,
        _: &TenantId,
        texts: &[String],
        _: EmbedPurpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let vector = |text: &String| {
            let at = (0..self.0.len()).find(|n| words(*n) == *text).unwrap();
            self.0[at].clone()
        };
        Ok(texts.iter().map(vector).collect())
    }
}

/// A generator of the same numbers every time.
struct Random(u64);

impl Random {
    /// About normal, from -6 to 6.
    fn number(&mut self) -> f32 {
        (0..12)
            .map(|_| {
                self.0 ^= self.0 << 13;
                self.0 ^= self.0 >> 7;
                self.0 ^= self.0 << 17;
                (self.0 >> 40) as f32 / (1_u64 << 24) as f32
            })
            .sum::<f32>()
            - 6.0
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| self.number()).collect()
    }
}

/// Vectors clustered around subjects, as those of texts are.
struct Vectors {
    random: Random,
    centres: Vec<Vec<f32>>,
}

impl Vectors {
    fn new() -> Self {
        let mut random = Random(0x5eed);
        let centres = (0..CENTRES).map(|_| random.vector()).collect();
        Self { random, centres }
    }

    fn next(&mut self, n: usize) -> Vec<f32> {
        let centre = self.centres[n.wrapping_mul(0x9e37_79b9) % CENTRES].clone();
        let around: Vec<f32> = centre.iter().map(|number| number + 0.8 * self.random.number()).collect();
        unit_vector(&around).unwrap()
    }
}

fn agent() -> AgentId {
    AgentId::new("bench").unwrap()
}

fn key(n: usize) -> DocumentKey {
    let (tenant, agent) = (TenantId::main(), Some(agent()));
    DocumentKey { tenant, agent, user: None, shelf: Shelf::Memory, path: format!("memory/{n}.md") }
}

/// Fills the store; returns the vectors, and some to query with.
async fn fill(name: &str, store: &impl Memories) -> (Vec<Vec<f32>>, Vec<Vec<f32>>) {
    let (mut source, mut all) = (Vectors::new(), Vec::new());
    let begun = Instant::now();
    for n in 0..documents() {
        store.put_document(&key(n), "", None, NOW).await.unwrap();
        let passage = |line: u64| Passage {
            first_line: line,
            last_line: line,
            heading: String::new(),
            text: text(n, line),
        };
        let passages = (1..=PASSAGES as u64).map(passage).collect();
        assert!(store.index_document(&key(n), 1, passages).await.unwrap());
        for work in store.claim_unembedded(MODEL, NOW, Duration::from_secs(60), 1).await.unwrap() {
            let mut vectors = Vec::new();
            for passage in &work.passages {
                let vector = source.next(all.len());
                all.push(vector.clone());
                vectors.push((passage.hash, vector));
            }
            store.put_embeddings(&work.key.tenant, MODEL, &vectors, NOW).await.unwrap();
            assert_eq!(store.embed_document(&work.key, 1, MODEL).await.unwrap(), EmbeddingDone::Stored);
        }
    }
    let rate = all.len() as f64 / begun.elapsed().as_secs_f64();
    println!("{name}: passages\t{}\tof {} bytes", all.len(), text(0, 1).len());
    println!("{name}: passages indexed with their vectors\t{rate:.0}\t1/s");
    let asked = (0..QUESTIONS).map(|n| source.next(n * 131)).collect();
    (all, asked)
}

fn query(vector: &[f32]) -> SimilarQuery {
    let (tenant, model, vector) = (TenantId::main(), MODEL.to_owned(), vector.to_vec());
    SimilarQuery { tenant, agent: agent(), user: None, model, vector, limit: 10 }
}

fn median(name: &str, mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    println!("{name}\t{:.2}\tms median\t{:.2}\tms at most", times[times.len() / 2], times[times.len() - 1]);
    times[times.len() / 2]
}

/// The text of a passage.
fn text(document: usize, line: u64) -> String {
    let mut text =
        format!("passage {line} of document {document} about subject{}", (document * PASSAGES) % 977);
    let mut seed = (document * PASSAGES) as u64 + line;
    for _ in 0..WORDS {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Few words are frequent and many are rare, as in texts.
        let rank = (seed >> 33) % 20_000;
        text.push_str(&format!(" w{}", rank * rank / 20_000));
    }
    text
}

/// A number of kilobytes that the kernel tells about this process, in MB.
fn memory(field: &str) -> f64 {
    let told = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1e3
}

/// The words of a query.
fn words(n: usize) -> String {
    format!("what about subject{} and passage {n}", n * 7)
}

/// The median times of a search by similarity, and of a hybrid search; prints the share of the exact ten
/// nearest that it finds.
async fn ours<S: Memories + 'static>(
    name: &str,
    store: &Arc<S>,
    all: &[Vec<f32>],
    asked: &[Vec<f32>],
) -> (f64, f64) {
    let before = memory("VmRSS");
    store.similar_passages(&query(&asked[0])).await.unwrap();
    println!("{name}: resident memory that the first search adds\t{:.0}\tMB", memory("VmRSS") - before);
    let (mut times, mut found) = (Vec::new(), 0);
    for vector in asked {
        let begun = Instant::now();
        let near = store.similar_passages(&query(vector)).await.unwrap();
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        let mut exact: Vec<f32> = all.iter().map(|known| product(known, vector)).collect();
        exact.sort_by(|one, other| other.total_cmp(one));
        found += near.iter().filter(|near| near.similarity >= exact[9] - 1e-5).count();
    }
    println!(
        "{name}: recall at 10\t{:.3}\tof comparing all\ttarget 0.95",
        found as f64 / (10 * asked.len()) as f64
    );
    let similar = median(&format!("{name}: similar passages"), times);
    let words = StoredMemory::new(Arc::clone(store) as _, None);
    let times = searched(&words, asked.len(), MemoryMode::Words).await;
    median(&format!("{name}: search by words alone, {DEPTH}, 10 hits"), times);
    let both = StoredMemory::new(Arc::clone(store) as _, Some(Arc::new(Fixed(asked.to_vec()))));
    let times = searched(&both, asked.len(), MemoryMode::Hybrid).await;
    (similar, median(&format!("{name}: hybrid search, {DEPTH} of each, 10 hits"), times))
}

/// The times of the searches that an agent would make.
async fn searched(memory: &StoredMemory, questions: usize, mode: MemoryMode) -> Vec<f64> {
    let reader = MemoryReader { tenant: TenantId::main(), agent: agent(), user: None };
    let mut times = Vec::new();
    for n in 0..questions {
        let query = MemoryQuery { text: words(n), limit: 10 };
        let begun = Instant::now();
        let found = memory.search(&reader, &query).await.unwrap();
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        assert_eq!(found.mode, mode, "{:?}", found.note);
    }
    times
}

/// A bare connection to a file, with as much of it mapped and cached as ours have.
async fn bare_sqlite(path: &Path) -> SqliteConnection {
    let set = StoreOptions::default();
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .pragma("cache_size", format!("-{}", set.cache_kib))
        .pragma("mmap_size", (u64::from(set.mmap_mib) << 20).to_string());
    options.disable_statement_logging().connect().await.unwrap()
}

/// The ten nearest of scored vectors, without their order.
fn ten<T>(mut scored: Vec<(f32, T)>) -> Vec<(f32, T)> {
    scored.select_nth_unstable_by(10, |one, other| other.0.total_cmp(&one.0));
    scored.truncate(10);
    scored
}

/// A vector from its bytes.
fn decoded(bytes: &[u8], into: &mut Vec<f32>) {
    let (numbers, _) = bytes.as_chunks::<4>();
    into.clear();
    into.extend(numbers.iter().map(|number| f32::from_le_bytes(*number)));
}

/// The median time of reading our table's vectors and comparing all.
async fn each_read(path: &Path, asked: &[Vec<f32>]) -> f64 {
    let mut bare = bare_sqlite(path).await;
    let mut times = Vec::new();
    for vector in asked {
        let begun = Instant::now();
        let rows: Vec<(i64, Vec<u8>)> =
            query_as("SELECT id, vector FROM embeddings").fetch_all(&mut bare).await.unwrap();
        let mut known = Vec::new();
        let compare = |(id, bytes): &(i64, Vec<u8>)| {
            decoded(bytes, &mut known);
            (product(&known, vector), *id)
        };
        black_box(ten(rows.iter().map(compare).collect()));
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    median("sqlite: all vectors read row by row and compared", times)
}

/// The median time of brute force.
async fn all_read(path: &Path, all: &[Vec<f32>], asked: &[Vec<f32>]) -> f64 {
    let mut bare = bare_sqlite(path).await;
    bare.execute("CREATE TABLE chunks (first INTEGER PRIMARY KEY, vectors BLOB)").await.unwrap();
    for (chunk, first) in all.chunks(CHUNK).zip((0_i64..).step_by(CHUNK)) {
        let bytes: Vec<u8> = chunk.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
        let insert = sqlx::query("INSERT INTO chunks VALUES ($1, $2)").bind(first).bind(bytes);
        insert.execute(&mut bare).await.unwrap();
    }
    let mut times = Vec::new();
    for vector in asked {
        let begun = Instant::now();
        let (mut scored, mut known) = (Vec::with_capacity(all.len()), Vec::new());
        let mut chunks = query_as::<_, (i64, Vec<u8>)>("SELECT first, vectors FROM chunks").fetch(&mut bare);
        while let Some((first, bytes)) = chunks.try_next().await.unwrap() {
            for (bytes, id) in bytes.chunks_exact(4 * DIMENSIONS).zip(first..) {
                decoded(bytes, &mut known);
                scored.push((product(&known, vector), id));
            }
        }
        black_box(ten(scored));
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    median("sqlite: brute force, all vectors read and compared", times)
}

async fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bench.db");
    let store = Arc::new(SqliteStore::open(&path, NodeId::local()).await.unwrap());
    let (all, asked) = fill("sqlite", &*store).await;
    let mut index = Index::default();
    for (vector, id) in all.iter().zip(0..) {
        index.push(id, vector);
    }
    println!("sqlite: memory of the index\t{:.0}\tMB", index.bytes() as f64 / 1e6);
    drop(index);
    println!("sqlite: memory of the vectors\t{:.0}\tMB", (all.len() * DIMENSIONS * 4) as f64 / 1e6);
    let (similar, hybrid) = ours("sqlite", &store, &all, &asked).await;
    let rows = each_read(&path, &asked[..10]).await;
    let brute = all_read(&directory.path().join("bare.db"), &all, &asked).await;
    let mut times = Vec::new();
    for vector in &asked {
        let begun = Instant::now();
        let scored: Vec<(f32, usize)> =
            all.iter().zip(0..).map(|(known, id)| (product(known, vector), id)).collect();
        black_box(ten(scored));
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let held = median("sqlite: all vectors compared, held in memory", times);
    for (what, time) in [("similar passages", similar), ("hybrid search", hybrid)] {
        println!("sqlite: {what} / brute force\t{:.2}\tx\ttarget at most 0.33", time / brute);
        println!("sqlite: {what} / all read row by row and compared\t{:.2}\tx", time / rows);
        println!("sqlite: {what} / all compared in memory\t{:.2}\tx", time / held);
    }
    println!(
        "sqlite: peak resident memory, with the vectors that the bench holds\t{:.0}\tMB",
        memory("VmHWM")
    );
}

/// The median time of words and similar rows in a bare table of the same texts and vectors: a GIN index over the words,
/// HNSW over the vectors, nothing of owners and documents.
async fn bare(options: &PgConnectOptions, all: &[Vec<f32>], asked: &[Vec<f32>]) -> f64 {
    let mut bare = PgConnection::connect_with(options).await.unwrap();
    let table = format!(
        "CREATE TABLE bare (id BIGINT PRIMARY KEY, text TEXT, words TSVECTOR, vector VECTOR({DIMENSIONS}));
         CREATE INDEX ON bare USING gin (words) WITH (fastupdate = off);
         CREATE INDEX ON bare USING hnsw (vector vector_ip_ops)"
    );
    bare.execute(AssertSqlSafe(table)).await.unwrap();
    for (n, vectors) in all.chunks(PASSAGES).enumerate() {
        let ids: Vec<i64> = (0..).skip(n * PASSAGES).take(vectors.len()).collect();
        let texts: Vec<String> = (1..).take(vectors.len()).map(|line| text(n, line)).collect();
        let vectors: Vec<String> = vectors.iter().map(|vector| written(vector)).collect();
        sqlx::query(
            "INSERT INTO bare SELECT id, text, to_tsvector('simple', text), vector::vector
             FROM UNNEST($1::bigint[], $2::text[], $3::text[]) AS new (id, text, vector)",
        )
        .bind(ids)
        .bind(texts)
        .bind(vectors)
        .execute(&mut bare)
        .await
        .unwrap();
    }
    // As wide as ours searches.
    let settings = format!("ANALYZE bare; SET hnsw.ef_search = {}", 2 * DEPTH);
    bare.execute(AssertSqlSafe(settings)).await.unwrap();
    let mut times = Vec::new();
    for (n, vector) in asked.iter().enumerate() {
        // Without the words that every passage has, which would make it slow for nothing.
        let any = format!("subject{} | {n}", n * 7);
        let begun = Instant::now();
        let _: Vec<(i64, String)> = query_as(
            "SELECT id, text FROM bare, to_tsquery('simple', $1) AS asked WHERE words @@ asked
             ORDER BY ts_rank(words, asked) DESC LIMIT $2",
        )
        .bind(any)
        .bind(DEPTH as i64)
        .fetch_all(&mut bare)
        .await
        .unwrap();
        let _: Vec<(i64, String)> =
            query_as("SELECT id, text FROM bare ORDER BY vector <#> (SELECT $1::text::vector) LIMIT $2")
                .bind(written(vector))
                .bind(DEPTH as i64)
                .fetch_all(&mut bare)
                .await
                .unwrap();
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    median(&format!("postgres: bare words and bare pgvector, {DEPTH} of each"), times)
}

/// A vector as pgvector reads it.
fn written(vector: &[f32]) -> String {
    format!("{vector:?}")
}

async fn postgres(url: &str) {
    let server = PgConnectOptions::from_str(url).unwrap().disable_statement_logging();
    let name = format!("clawbench_{}", uuid::Uuid::now_v7().simple());
    let mut admin = PgConnection::connect_with(&server).await.unwrap();
    admin.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    let options = server.clone().database(&name);
    let store = PostgresStore::connect(options.to_url_lossy().as_ref(), NodeId::local()).await.unwrap();
    let store = Arc::new(store);
    let (all, asked) = fill("postgres", &*store).await;
    let (_, both) = ours("postgres", &store, &all, &asked).await;
    drop(store);
    let mut own = PgConnection::connect_with(&options).await.unwrap();
    let indexes = "SELECT indexname::text, pg_relation_size(indexname::regclass) FROM pg_indexes
                   WHERE tablename IN ('passages', 'passage_embeddings') ORDER BY 2 DESC LIMIT 3";
    let sizes: Vec<(String, i64)> = query_as(indexes).fetch_all(&mut own).await.unwrap();
    for (index, bytes) in sizes {
        println!("postgres: index {index}\t{:.0}\tMB", bytes as f64 / 1e6);
    }
    own.close().await.unwrap();
    let has_vectors: Option<String> =
        sqlx::query_scalar("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
            .fetch_optional(&mut PgConnection::connect_with(&options).await.unwrap())
            .await
            .unwrap();
    if has_vectors.is_none() {
        println!("postgres: bare pgvector is not measured, the extension is missing");
        admin.execute(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).await.unwrap();
        return;
    }
    let bare = bare(&options, &all, &asked).await;
    println!(
        "postgres: hybrid search / bare words and bare pgvector\t{:.2}\tx\ttarget at most 1.5",
        both / bare
    );
    admin.execute(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).await.unwrap();
}

#[tokio::main]
async fn main() {
    if std::env::args().all(|word| word != "postgres") {
        sqlite().await;
    }
    match std::env::var("CLAWSMITH_TEST_POSTGRES") {
        Ok(url) => postgres(&url).await,
        Err(_) => println!("postgres: not measured, CLAWSMITH_TEST_POSTGRES names none"),
    }
}
