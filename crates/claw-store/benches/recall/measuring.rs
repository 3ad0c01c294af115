//! The searches that are compared, and the share of the answering notes that each returns.

use std::sync::Arc;

use claw_core::port::{Embedder, MemoryHost as _, MemoryQuery, MemoryReader, UnixMillis};
use claw_core::store::{DocumentKey, Documents as _, Shelf};
use claw_core::{AgentId, NodeId, TenantId};
use claw_host::recall::StoredMemory;
use claw_store::SqliteStore;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};

use super::corpus::{Corpus, Question};

/// The number of hits requested.
const HITS: usize = 40;
/// Bytes of a chunk of 400 tokens.
const CHUNK: usize = 1_600;

/// Texts that a search returns, for each question in its order.
pub(crate) type Answers = Vec<Vec<String>>;

/// A search that ours is compared with: FTS5 over chunks.
#[derive(Clone, Copy)]
pub(crate) struct Baseline {
    pub(crate) name: &'static str,
    tokenizer: &'static str,
    between: &'static str,
}

/// The last one is the best.
pub(crate) const BASELINES: [Baseline; 3] = [
    Baseline { name: "all words", tokenizer: "unicode61", between: " AND " },
    Baseline { name: "any word", tokenizer: "unicode61", between: " OR " },
    Baseline { name: "any word, stems", tokenizer: "porter unicode61", between: " OR " },
];

/// The share of the notes that answer a question that a text holds whole.
pub(crate) fn share(question: &Question, text: &str) -> f64 {
    let whole = question.evidence.iter().filter(|note| text.contains(note.as_str())).count();
    whole as f64 / question.evidence.len() as f64
}

/// Joins the first hits.
pub(crate) fn first(hits: &[String], count: usize) -> String {
    hits[..count.min(hits.len())].join("\n\n")
}

/// Returns the first characters of all hits.
pub(crate) fn within(hits: &[String], room: usize) -> String {
    first(hits, hits.len()).chars().take(room).collect()
}

/// Asks `memory_search`, without an embedder by words alone.
pub(crate) async fn ours(corpus: &Corpus, embedder: Option<Arc<dyn Embedder>>) -> Answers {
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
    let mut answers = Vec::new();
    for question in &corpus.questions {
        let query = MemoryQuery { text: question.text.clone(), limit: HITS };
        let found = memory.search(&reader, &query).await.unwrap();
        answers.push(found.hits.into_iter().map(|hit| hit.text).collect());
    }
    answers
}

/// Asks FTS5.
pub(crate) async fn fts5(corpus: &Corpus, baseline: Baseline) -> Answers {
    let mut bare: SqliteConnection =
        SqliteConnectOptions::new().in_memory(true).disable_statement_logging().connect().await.unwrap();
    let tokenizer = baseline.tokenizer;
    let table = format!("CREATE VIRTUAL TABLE chunks USING fts5 (text, tokenize = '{tokenizer}')");
    bare.execute(AssertSqlSafe(table)).await.unwrap();
    for chunk in corpus.documents.values().flat_map(|text| chunks(text)) {
        let insert = sqlx::query("INSERT INTO chunks (text) VALUES ($1)").bind(chunk);
        insert.execute(&mut bare).await.unwrap();
    }
    let mut answers = Vec::new();
    for question in &corpus.questions {
        let words = question.text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
        let found =
            sqlx::query_scalar("SELECT text FROM chunks WHERE chunks MATCH $1 ORDER BY rank LIMIT $2")
                .bind(words.join(baseline.between))
                .bind(HITS as i64)
                .fetch_all(&mut bare)
                .await
                .unwrap();
        answers.push(found);
    }
    answers
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
