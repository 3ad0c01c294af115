//! The recall of memory search: the share of relevant notes that it returns, against FTS5 over chunks of 400
//! tokens.
//!
//! Two sets: the one that the ranking was chosen on, and one that was held out. Prints `name<TAB>value<TAB>unit` lines: the
//! share of the notes that answer, within 5 hits, within 10, and within the first 2,500, 5,000 and 10,000 characters
//! returned; for ours also within as many characters as 5 and 10 chunks of FTS5 with stems have for the same question. Vectors are measured if `CLAWSMITH_BENCH_MODEL` names the directory of a local model
//! (`scripts/with-word-vectors.sh` makes one). `tuning` or `held-out` as an argument measures one set alone.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

mod corpus;
mod held_out;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use claw_core::port::{Embedder, MemoryHost as _, MemoryQuery, MemoryReader, UnixMillis};
use claw_core::store::{DocumentKey, Documents as _, Shelf};
use claw_core::{AgentId, NodeId, TenantId};
use claw_host::recall::StoredMemory;
use claw_llm::LocalEmbedder;
use claw_store::SqliteStore;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};

use self::corpus::{Corpus, Kind, Question};

/// The number of hits requested.
const HITS: usize = 40;
/// Characters that a prompt has room for; the second is the one that kinds are compared by.
const ROOMS: [usize; 3] = [2_500, 5_000, 10_000];
/// Bytes of a chunk of 400 tokens.
const CHUNK: usize = 1_600;

/// Shares of evidence: within 5 hits, within 10, within each of [`ROOMS`]; and how many characters 5 hits have.
#[derive(Default, Clone, Copy)]
struct Shares {
    five: f64,
    ten: f64,
    rooms: [f64; 3],
    length: f64,
    questions: f64,
}

impl Shares {
    fn add(&mut self, question: &Question, hits: &[String]) {
        let share = |text: &str| share(question, text);
        let first = |count: usize| hits[..count.min(hits.len())].join("\n\n");
        self.five += share(&first(5));
        self.ten += share(&first(10));
        for (sum, room) in self.rooms.iter_mut().zip(ROOMS) {
            *sum += share(&first(hits.len()).chars().take(room).collect::<String>());
        }
        self.length += first(5).chars().count() as f64;
        self.questions += 1.0;
    }

    fn print(&self, name: &str) {
        let percent = |sum: f64| 100.0 * sum / self.questions;
        println!("{name}: evidence in 5 hits\t{:.1}\t%", percent(self.five));
        println!("{name}: evidence in 10 hits\t{:.1}\t%", percent(self.ten));
        for (sum, room) in self.rooms.iter().zip(ROOMS) {
            println!("{name}: evidence in {room} characters\t{:.1}\t%", percent(*sum));
        }
        println!("{name}: characters of 5 hits\t{:.0}\t", self.length / self.questions);
    }
}

/// Measures a search, and returns the characters that 5 and 10 of its hits have, for each question. `lengths` are those of
/// another search to compare it with.
async fn measure(
    name: &str,
    corpus: &Corpus,
    lengths: &[[usize; 2]],
    mut search: impl AsyncFnMut(&str) -> Vec<String>,
) -> Vec<[usize; 2]> {
    let mut own = Vec::new();
    let mut alike = [0.0; 2];
    let mut all = Shares::default();
    let mut kinds: BTreeMap<Kind, Shares> = BTreeMap::new();
    for (at, question) in corpus.questions.iter().enumerate() {
        let hits = search(&question.text).await;
        all.add(question, &hits);
        kinds.entry(question.kind).or_default().add(question, &hits);
        let whole = |count: usize| hits[..count.min(hits.len())].join("\n\n").chars().count();
        own.push([whole(5), whole(10)]);
        if let Some(lengths) = lengths.get(at) {
            for (sum, length) in alike.iter_mut().zip(lengths) {
                *sum += share(question, &hits.join("\n\n").chars().take(*length).collect::<String>());
            }
        }
    }
    all.print(name);
    if !lengths.is_empty() {
        for (sum, hits) in alike.iter().zip([5, 10]) {
            let percent = 100.0 * sum / all.questions;
            println!(
                "{name}: evidence in the length of FTS5's first {hits} chunks with stems\t{percent:.1}\t%"
            );
        }
    }
    for kind in Kind::ALL {
        if let Some(shares) = kinds.get(&kind) {
            let percent = 100.0 * shares.rooms[1] / shares.questions;
            println!("{name}: {}, evidence in 5000 characters\t{percent:.1}\t%", kind.name());
        }
    }
    own
}

/// The share of the notes that answer a question that a text holds whole.
fn share(question: &Question, text: &str) -> f64 {
    let whole = question.evidence.iter().filter(|note| text.contains(note.as_str())).count();
    whole as f64 / question.evidence.len() as f64
}

async fn ours(name: &str, corpus: &Corpus, lengths: &[[usize; 2]], embedder: Option<Arc<dyn Embedder>>) {
    let store = SqliteStore::memory(NodeId::local()).await.unwrap();
    let (tenant, agent) = (TenantId::main(), AgentId::new("bench").unwrap());
    for (path, text) in &corpus.documents {
        let key = DocumentKey {
            tenant: tenant.clone(),
            agent: Some(agent.clone()),
            user: None,
            shelf: Shelf::Memory,
            path: path.clone(),
        };
        store.put_document(&key, text, None, UnixMillis(0)).await.unwrap();
    }
    let memory = StoredMemory::new(Arc::new(store), embedder);
    memory.indexer().run().await.unwrap();
    let reader = MemoryReader { tenant, agent, user: None };
    measure(name, corpus, lengths, async |text| {
        let found =
            memory.search(&reader, &MemoryQuery { text: text.to_owned(), limit: HITS }).await.unwrap();
        found.hits.into_iter().map(|hit| hit.text).collect()
    })
    .await;
}

/// Paragraphs of a document in chunks of about 400 tokens.
fn chunks(text: &str) -> Vec<String> {
    let mut chunks = vec![String::new()];
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        if chunks.last().is_some_and(|chunk| !chunk.is_empty() && chunk.len() + paragraph.len() > CHUNK) {
            chunks.push(String::new());
        }
        let chunk = chunks.last_mut().unwrap();
        if !chunk.is_empty() {
            chunk.push_str("\n\n");
        }
        chunk.push_str(paragraph.trim());
    }
    chunks
}

async fn fts5(name: &str, corpus: &Corpus, tokenizer: &str, between: &str) -> Vec<[usize; 2]> {
    let mut bare: SqliteConnection =
        SqliteConnectOptions::new().in_memory(true).disable_statement_logging().connect().await.unwrap();
    let table = format!("CREATE VIRTUAL TABLE chunks USING fts5 (text, tokenize = '{tokenizer}')");
    bare.execute(AssertSqlSafe(table)).await.unwrap();
    for text in corpus.documents.values() {
        for chunk in chunks(text) {
            sqlx::query("INSERT INTO chunks (text) VALUES ($1)")
                .bind(chunk)
                .execute(&mut bare)
                .await
                .unwrap();
        }
    }
    measure(name, corpus, &[], async |text| {
        let words: Vec<String> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| format!("\"{word}\""))
            .collect();
        sqlx::query_scalar("SELECT text FROM chunks WHERE chunks MATCH $1 ORDER BY rank LIMIT $2")
            .bind(words.join(between))
            .bind(HITS as i64)
            .fetch_all(&mut bare)
            .await
            .unwrap()
    })
    .await
}

async fn set(name: &str, corpus: &Corpus, embedder: Option<Arc<dyn Embedder>>) {
    println!("{name}: notes\t{}\t", corpus.notes);
    println!("{name}: questions\t{}\t", corpus.questions.len());
    let mut lengths = Vec::new();
    for (baseline, tokenizer, between) in [
        ("all words", "unicode61", " AND "),
        ("any word", "unicode61", " OR "),
        ("any word, stems", "porter unicode61", " OR "),
    ] {
        lengths = fts5(&format!("{name}, FTS5, {baseline}"), corpus, tokenizer, between).await;
    }
    ours(&format!("{name}, memory_search, words"), corpus, &lengths, None).await;
    if embedder.is_some() {
        ours(&format!("{name}, memory_search, words and vectors"), corpus, &lengths, embedder).await;
    }
}

#[tokio::main]
async fn main() {
    let model = std::env::var_os("CLAWSMITH_BENCH_MODEL");
    let embedder = model.map(|directory| -> Arc<dyn Embedder> {
        Arc::new(LocalEmbedder::open(Path::new(&directory)).unwrap())
    });
    let is_asked = |name: &str| {
        let sets: Vec<String> =
            std::env::args().filter(|word| ["tuning", "held-out"].contains(&word.as_str())).collect();
        sets.is_empty() || sets.iter().any(|set| set == name)
    };
    if is_asked("tuning") {
        set("tuning", &corpus::corpus(), embedder.clone()).await;
    }
    if is_asked("held-out") {
        set("held-out", &held_out::corpus(), embedder).await;
    }
}
