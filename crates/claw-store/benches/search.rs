//! The cost of a search over 100,000 passages, against the bare driver asking the bare index for the same
//! words.
//!
//! Prints `name<TAB>value<TAB>unit` lines. PostgreSQL is measured if `CLAWSMITH_TEST_POSTGRES` names one
//! (`scripts/with-postgres.sh cargo bench -p claw-store --bench search`); its database is dropped at the end.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::str::FromStr as _;
use std::time::{Duration, Instant};

use claw_core::port::UnixMillis;
use claw_core::store::{DocumentKey, Documents, Passage, PassageQuery, Shelf};
use claw_core::{AgentId, NodeId, TenantId};
use claw_store::{PostgresStore, SqliteStore};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, query_as};

const DOCUMENTS: usize = 500;
const PASSAGES: usize = 200;
const WORDS: usize = 120;
const VOCABULARY: usize = 50_000;
const NOW: UnixMillis = UnixMillis(0);

/// The queries: a name, the question as people write it, the words for the bare index. Words are `w` and
/// their rank: `w0` is in nearly everything, `w5` in five of six.
const QUESTIONS: [(&str, &str, &[&str]); 4] = [
    ("a rare word", "w30000", &["w30000"]),
    ("three words in between", "w900 w1500 w2500", &["w900", "w1500", "w2500"]),
    (
        "a question with empty words",
        "what is the w1 of w900 and the w2 with w2500?",
        &["the", "w1", "w900", "w2", "w2500"],
    ),
    ("a common word alone", "w5", &["w5"]),
];

/// A generator of the same numbers every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A place in a table, between 0 and 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Words with a frequency by rank: the second half as often as the first, the third a third as often.
struct Corpus {
    random: Random,
    sums: Vec<f64>,
}

impl Corpus {
    fn new() -> Self {
        let mut sum = 0.0;
        let sums = (1..=VOCABULARY).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self { random: Random(0x5eed), sums: sums.collect() }
    }

    fn word(&mut self) -> usize {
        let place = self.random.unit() * self.sums.last().unwrap();
        self.sums.partition_point(|sum| *sum < place).min(VOCABULARY - 1)
    }

    fn passage(&mut self) -> String {
        let words: Vec<String> = (0..WORDS).map(|_| format!("w{}", self.word())).collect();
        format!("the {}", words.join(" "))
    }
}

fn agent() -> AgentId {
    AgentId::new("bench").unwrap()
}

fn key(n: usize) -> DocumentKey {
    let (tenant, agent) = (TenantId::main(), Some(agent()));
    DocumentKey { tenant, agent, user: None, shelf: Shelf::Memory, path: format!("memory/{n}.md") }
}

/// Fills the store and returns, for each question, its time when a tenth was stored.
async fn fill(name: &str, store: &impl Documents) -> Vec<f64> {
    let mut corpus = Corpus::new();
    let mut early = Vec::new();
    let mut asking = Duration::ZERO;
    let begun = Instant::now();
    for n in 0..DOCUMENTS {
        if n == DOCUMENTS / 10 {
            let begun = Instant::now();
            for (what, text, _) in QUESTIONS {
                early.push(ask(&format!("{name}, a tenth of it: {what}"), store, text).await);
            }
            asking = begun.elapsed();
        }
        let line = |line| Passage {
            first_line: line,
            last_line: line,
            heading: String::new(),
            text: corpus.passage(),
        };
        let passages = (1..=PASSAGES as u64).map(line).collect();
        store.put_document(&key(n), "", None, NOW).await.unwrap();
        assert!(store.index_document(&key(n), 1, passages).await.unwrap());
    }
    let rate = (DOCUMENTS * PASSAGES) as f64 / (begun.elapsed() - asking).as_secs_f64();
    println!("{name}: passages indexed\t{rate:.0}\t1/s");
    early
}

/// A question's times in milliseconds: over a tenth of the passages, and over all.
struct Times {
    early: f64,
    now: f64,
}

impl Times {
    /// Returns the growth of the time while the number of passages grew tenfold.
    fn growth(&self) -> f64 {
        self.now / self.early
    }
}

/// Prints ratios to the bare driver: data beyond a processor's caches costs both more.
fn print_beside(name: &str, ours: &Times, bare: &Times) {
    println!("{name} / bare\t{:.2}\tx", ours.now / bare.now);
    println!("{name}, 100,000 passages / 10,000\t{:.1}\tx\ttarget at most 10", ours.growth());
    println!("{name}, bare, 100,000 passages / 10,000\t{:.1}\tx", bare.growth());
}

/// The median, in milliseconds.
async fn measure(name: &str, mut ask: impl AsyncFnMut() -> usize) -> f64 {
    let runs = 41;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..=runs {
        let begun = Instant::now();
        assert!(ask().await > 0, "{name} finds nothing");
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    // The first warms up.
    times.remove(0);
    times.sort_by(f64::total_cmp);
    println!("{name}\t{:.2}\tms median\t{:.2}\tms at most", times[runs / 2], times[runs - 1]);
    times[runs / 2]
}

async fn ask(name: &str, store: &impl Documents, text: &str) -> f64 {
    let question = PassageQuery {
        tenant: TenantId::main(),
        agent: agent(),
        user: None,
        text: text.to_owned(),
        limit: 10,
    };
    measure(name, async || store.search_passages(&question).await.unwrap().len()).await
}

async fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bench.db");
    let store = SqliteStore::open(&path, NodeId::local()).await.unwrap();
    let early = fill("sqlite", &store).await;
    let size = std::fs::metadata(&path).unwrap().len() as f64 / 1e6;
    println!("sqlite: file\t{size:.0}\tMB");
    let mut tenth = bare_sqlite(&directory.path().join("tenth.db"), DOCUMENTS / 10).await;
    let mut bare = bare_sqlite(&directory.path().join("bare.db"), DOCUMENTS).await;
    for ((name, text, words), early) in QUESTIONS.into_iter().zip(early) {
        let name = format!("sqlite: {name}");
        let ours = Times { early, now: ask(&name, &store, text).await };
        let asked = words.join(" OR ");
        let early = ask_bare_sqlite(&format!("{name}, bare, a tenth of it"), &mut tenth, &asked).await;
        let now = ask_bare_sqlite(&format!("{name}, bare"), &mut bare, &asked).await;
        print_beside(&name, &ours, &Times { early, now });
    }
}

async fn ask_bare_sqlite(name: &str, bare: &mut SqliteConnection, asked: &str) -> f64 {
    measure(name, async || {
        let found: Vec<(i64, String)> = query_as(
            "SELECT p.id, p.text FROM (SELECT rowid AS id, rank FROM bare WHERE bare MATCH $1 ORDER BY rank
             LIMIT 10) AS f JOIN passages AS p ON p.id = f.id ORDER BY f.rank",
        )
        .bind(asked)
        .fetch_all(&mut *bare)
        .await
        .unwrap();
        found.len()
    })
    .await
}

/// Stores the passages of so many documents in a table with a default FTS5 index, and nothing else.
async fn bare_sqlite(path: &std::path::Path, documents: usize) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut bare = options.disable_statement_logging().connect().await.unwrap();
    bare.execute(
        "PRAGMA journal_mode = WAL;
         CREATE TABLE passages (id INTEGER PRIMARY KEY, text TEXT);
         CREATE VIRTUAL TABLE bare USING fts5 (text, content = 'passages', content_rowid = 'id');",
    )
    .await
    .unwrap();
    let mut corpus = Corpus::new();
    let begun = Instant::now();
    for _ in 0..documents {
        let mut transaction = bare.begin().await.unwrap();
        for _ in 0..PASSAGES {
            let text = corpus.passage();
            let insert = sqlx::query("INSERT INTO passages (text) VALUES ($1)").bind(&text);
            let id = insert.execute(&mut *transaction).await.unwrap().last_insert_rowid();
            let insert = sqlx::query("INSERT INTO bare (rowid, text) VALUES ($1, $2)").bind(id).bind(&text);
            insert.execute(&mut *transaction).await.unwrap();
        }
        transaction.commit().await.unwrap();
    }
    if documents < DOCUMENTS {
        return bare;
    }
    let rate = (documents * PASSAGES) as f64 / begun.elapsed().as_secs_f64();
    println!("sqlite: passages indexed, bare\t{rate:.0}\t1/s");
    println!("sqlite: file, bare\t{:.0}\tMB", std::fs::metadata(path).unwrap().len() as f64 / 1e6);
    bare
}

async fn postgres(url: &str) {
    let server = PgConnectOptions::from_str(url).unwrap().disable_statement_logging();
    let name = format!("clawbench_{}", uuid::Uuid::now_v7().simple());
    let mut admin = PgConnection::connect_with(&server).await.unwrap();
    admin.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    let options = server.clone().database(&name);
    let store = PostgresStore::connect(options.to_url_lossy().as_ref(), NodeId::local()).await.unwrap();
    let early = fill("postgres", &store).await;

    let mut bare = PgConnection::connect_with(&options).await.unwrap();
    let begun = Instant::now();
    bare_postgres(&mut bare, "bare", DOCUMENTS).await;
    let rate = (DOCUMENTS * PASSAGES) as f64 / begun.elapsed().as_secs_f64();
    println!("postgres: passages indexed, bare and in one statement\t{rate:.0}\t1/s");
    bare_postgres(&mut bare, "tenth", DOCUMENTS / 10).await;
    bare.execute("VACUUM ANALYZE").await.unwrap();
    for ((name, text, words), early) in QUESTIONS.into_iter().zip(early) {
        let name = format!("postgres: {name}");
        let ours = Times { early, now: ask(&name, &store, text).await };
        let asked = words.join(" | ");
        let early = format!("{name}, bare, a tenth of it");
        let early = ask_bare_postgres(&early, &mut bare, "tenth", &asked).await;
        let now = ask_bare_postgres(&format!("{name}, bare"), &mut bare, "bare", &asked).await;
        print_beside(&name, &ours, &Times { early, now });
    }
    drop(store);
    bare.close().await.unwrap();
    admin.execute(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).await.unwrap();
}

/// Stores the passages of the first documents in a table with a default index.
async fn bare_postgres(bare: &mut PgConnection, table: &str, documents: usize) {
    let passages = documents * PASSAGES;
    let sql = format!(
        "CREATE TABLE {table} (id BIGINT PRIMARY KEY, text TEXT, words TSVECTOR);
         CREATE INDEX {table}_words ON {table} USING gin (words);
         INSERT INTO {table}
         SELECT id, convert_from(text, 'UTF8'), to_tsvector('simple', convert_from(text, 'UTF8'))
         FROM passages ORDER BY id LIMIT {passages};"
    );
    bare.execute(AssertSqlSafe(sql)).await.unwrap();
}

async fn ask_bare_postgres(name: &str, bare: &mut PgConnection, table: &str, asked: &str) -> f64 {
    measure(name, async || {
        let found: Vec<(i64, String)> = query_as(AssertSqlSafe(format!(
            "SELECT id, text FROM {table}, to_tsquery('simple', $1) AS asked WHERE words @@ asked
             ORDER BY ts_rank_cd(words, asked) DESC LIMIT 10"
        )))
        .bind(asked)
        .fetch_all(&mut *bare)
        .await
        .unwrap();
        found.len()
    })
    .await
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
