//! The recall of memory search: the share of relevant notes that it returns, against FTS5 over chunks of 400
//! tokens.
//!
//! Prints `name<TAB>value<TAB>unit` lines: the share of the notes that answer, within 5 hits, within 10, and within the
//! first 5,000 characters returned.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

mod corpus;

use std::collections::BTreeMap;
use std::sync::Arc;

use claw_core::port::{MemoryHost as _, MemoryQuery, MemoryReader, UnixMillis};
use claw_core::store::{DocumentKey, Documents as _, Shelf};
use claw_core::{AgentId, NodeId, TenantId};
use claw_host::recall::StoredMemory;
use claw_store::SqliteStore;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};

use self::corpus::{Corpus, Kind, Question};

/// The number of hits requested.
const HITS: usize = 40;
/// Characters that a prompt has room for.
const ROOM: usize = 5_000;
/// Bytes of a chunk of 400 tokens.
const CHUNK: usize = 1_600;

/// Shares of evidence: within 5 hits, within 10, within [`ROOM`]; and how many characters 5 hits have.
#[derive(Default, Clone, Copy)]
struct Shares {
    five: f64,
    ten: f64,
    room: f64,
    length: f64,
    questions: f64,
}

impl Shares {
    fn add(&mut self, question: &Question, hits: &[String]) {
        let whole =
            |text: &str| question.evidence.iter().filter(|note| text.contains(note.as_str())).count() as f64;
        let share = |text: &str| whole(text) / question.evidence.len() as f64;
        let first = |count: usize| hits[..count.min(hits.len())].join("\n\n");
        let room: String = first(hits.len()).chars().take(ROOM).collect();
        self.five += share(&first(5));
        self.ten += share(&first(10));
        self.room += share(&room);
        self.length += first(5).chars().count() as f64;
        self.questions += 1.0;
    }

    fn print(&self, name: &str) {
        let percent = |sum: f64| 100.0 * sum / self.questions;
        println!("{name}: evidence in 5 hits\t{:.1}\t%", percent(self.five));
        println!("{name}: evidence in 10 hits\t{:.1}\t%", percent(self.ten));
        println!("{name}: evidence in 5,000 characters\t{:.1}\t%", percent(self.room));
        println!("{name}: characters of 5 hits\t{:.0}\t", self.length / self.questions);
    }
}

async fn measure(name: &str, corpus: &Corpus, mut search: impl AsyncFnMut(&str) -> Vec<String>) {
    let mut all = Shares::default();
    let mut kinds: BTreeMap<Kind, Shares> = BTreeMap::new();
    for question in &corpus.questions {
        let hits = search(&question.text).await;
        all.add(question, &hits);
        kinds.entry(question.kind).or_default().add(question, &hits);
    }
    all.print(name);
    for kind in Kind::ALL {
        if let Some(shares) = kinds.get(&kind) {
            let percent = 100.0 * shares.room / shares.questions;
            println!("{name}: {}, evidence in 5,000 characters\t{percent:.1}\t%", kind.name());
        }
    }
}

async fn ours(corpus: &Corpus) {
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
    let memory = StoredMemory::new(Arc::new(store), None);
    let reader = MemoryReader { tenant, agent, user: None };
    measure("memory_search, words", corpus, async |text| {
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

async fn fts5(name: &str, corpus: &Corpus, tokenizer: &str, between: &str) {
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
    measure(name, corpus, async |text| {
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
    .await;
}

#[tokio::main]
async fn main() {
    let corpus = corpus::corpus();
    println!("recall: notes\t{}\t", corpus.notes);
    println!("recall: questions\t{}\t", corpus.questions.len());
    ours(&corpus).await;
    fts5("FTS5, all words", &corpus, "unicode61", " AND ").await;
    fts5("FTS5, any word", &corpus, "unicode61", " OR ").await;
    fts5("FTS5, any word, stems", &corpus, "porter unicode61", " OR ").await;
}
