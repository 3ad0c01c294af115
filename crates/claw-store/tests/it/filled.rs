//! Stores with something of everything in them.

mod rest;

use std::path::Path;

use claw_core::port::UnixMillis;
use claw_core::store::{
    Answer, Claim, DocumentKey, Documents, Failure, NewJob, NewMessage, RunEvent, SessionEventBody,
    SessionLog as _, Store, passages,
};
use claw_core::{CallId, JobId, NodeId, TenantId};
use claw_store::{SqliteStore, StoreLocation};
use claw_testkit::fixture::{NOW, job, job_of, message, question, session, tenant, worker};
use claw_testkit::killing::{Player, Random, World};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, SqliteConnection};

use crate::postgres::database::Database;

pub(crate) use rest::document;

/// Documents that are filled in and indexed, each line a passage.
const DOCUMENTS: [(&str, &str); 3] = [
    ("MEMORY.md", "a heron stands in the reeds\na stork on the roof"),
    ("memory/a.md", "the naïve heron \0 and its \u{1f980}"),
    ("memory/日本.md", ""),
];
/// The tables and columns that a copy derives from the rest, or leaves to be derived.
const DERIVED: [(&str, &str); 10] = [
    ("feed", "*"),
    ("sealed_marks", "*"),
    ("passages", "*"),
    ("passage_vectors", "*"),
    ("documents", "mark"),
    ("documents", "embedded"),
    ("documents", "embed_after"),
    ("documents", "embed_tries"),
    ("documents", "embed_error"),
    ("document_owners", "passages"),
];

/// Plays on a store as a few tenants, and adds something of everything, as hard to carry as it can be.
pub(crate) async fn fill(store: &impl Store, seed: u64) {
    for seed in seed..seed + 3 {
        let world = World::new(seed);
        let mut player = Player::new(store, &world, worker("player"), Random::part(seed, 1));
        player.play(150, |_, _| {}).await;
    }
    for (priority, at) in [(i16::MIN, i64::MIN), (i16::MAX, i64::MAX), (0, 0)] {
        let (accepted, visible) = (UnixMillis(at), UnixMillis(at));
        let payload = json!({ "nul": "a\0b", "number": u64::MAX, "least": i64::MIN, "part": 0.1, "at": at });
        store.enqueue(NewJob { priority, accepted, visible, payload, ..job() }).await.unwrap();
    }
    // Names that languages order otherwise than bytes do.
    for key in ["a:b", "B:b", "a:B", "ä:x", "z:x", "Z:1", "a:_", "a:-", "日本:語", "a:é", "a:e\u{301}"] {
        let text = format!("{key} \u{1f980} \0 \u{202e} \" \\ \u{10ffff}");
        store.accept_message(message(key, &text), job_of(key)).await.unwrap();
        let run = JobId::new();
        let event = SessionEventBody::Run { run, state: RunEvent::Reported { why: text } };
        store.log_event(&tenant("other"), &session(key), UnixMillis(i64::MIN), event).await.unwrap();
    }
    for length in [0, 1, 100_000, 3_000_000] {
        store.accept_message(message("cli:big", &"é".repeat(length)), job_of("cli:big")).await.unwrap();
    }
    let asked = store.request(question(CallId::new(), "rm \0 x")).await.unwrap();
    let answer = Answer { approve: false, by: "änn".to_owned(), at: NOW, reason: None, values: None };
    store.answer(&TenantId::main(), asked.id, answer).await.unwrap();
    let lanes = vec!["main".into()];
    let until = UnixMillis(NOW.0 + 1);
    let claim = Claim { worker: worker("a"), lanes, now: NOW, until };
    let (_, lease) = store.claim(claim.clone()).await.unwrap().unwrap();
    store.fail_job(&lease, Failure { error: "exit code 1\n\tä".to_owned(), retry: None }).await.unwrap();
    store.claim(claim).await.unwrap().unwrap();
    rest::fill(store).await;
}

/// Indexes the current version of a document.
pub(crate) async fn index(store: &impl Documents, key: &DocumentKey, version: u64) {
    let text = store.document(key).await.unwrap().unwrap().text;
    assert!(store.index_document(key, version, passages(&text)).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_table_is_left_empty() {
    // An unfinished copy is nothing to copy.
    const EMPTY: [&str; 1] = ["copy_progress"];
    let (directory, database) = (tempfile::tempdir().unwrap(), Database::create().await);
    let path = directory.path().join("a.db");
    file(&path, 1).await;
    fill(&database.store("local").await, 1).await;
    for place in [StoreLocation::File(path), database.url().parse().unwrap()] {
        let tables = claw_store::status(&place).await.unwrap().unwrap().tables;
        let empty: Vec<_> = tables.iter().filter(|table| table.rows == 0).map(|table| &table.name).collect();
        assert_eq!(empty, EMPTY, "{place}: `fill` puts something into every table, so that all are tried");
    }
}

/// A file that is filled.
pub(crate) async fn file(path: &Path, seed: u64) {
    let store = SqliteStore::open(path, NodeId::local()).await.unwrap();
    fill(&store, seed).await;
}

/// Adds messages to a file, so that a copy takes several batches.
pub(crate) async fn talk(path: &Path, messages: usize) {
    let store = SqliteStore::open(path, NodeId::local()).await.unwrap();
    for number in 0..messages {
        let said: NewMessage = message("cli:talk", &format!("{number} {}", "x".repeat(100_000)));
        store.accept_message(said, job_of("cli:talk")).await.unwrap();
    }
}

pub(crate) async fn beside(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

/// Runs a statement on a file.
pub(crate) async fn tamper(path: &Path, sql: &str) -> u64 {
    sqlx::query(AssertSqlSafe(sql)).execute(&mut beside(path).await).await.unwrap().rows_affected()
}

/// Lists the tables of a file, without those that SQLite or a virtual table keeps for itself.
pub(crate) async fn tables(path: &Path) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
         AND name NOT LIKE 'sqlite_%' AND name <> '_sqlx_migrations' ORDER BY name",
    )
    .fetch_all(&mut beside(path).await)
    .await
    .unwrap()
}

/// Every row of every table of a file, to the byte.
pub(crate) async fn dump(path: &Path) -> Vec<String> {
    dump_without(path, &[]).await
}

/// Dumps a file without what a copy does not carry.
pub(crate) async fn carried(path: &Path) -> Vec<String> {
    dump_without(path, &DERIVED).await
}

async fn dump_without(path: &Path, left_out: &[(&str, &str)]) -> Vec<String> {
    let is_left_out = |table: &str, column: &str| left_out.contains(&(table, column));
    let mut connection = beside(path).await;
    let mut rows = Vec::new();
    for table in tables(path).await.into_iter().filter(|table| !is_left_out(table, "*")) {
        let columns: Vec<String> = sqlx::query_scalar("SELECT name FROM pragma_table_info(?1)")
            .bind(&table)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let cell = |name: &String| format!("typeof(\"{name}\") || ' ' || hex(coalesce(\"{name}\", ''))");
        let kept = columns.iter().filter(|column| !is_left_out(&table, column));
        let cells = kept.map(cell).collect::<Vec<_>>().join(" || ', ' || ");
        let sql = format!("SELECT '{table}: ' || {cells} AS line FROM \"{table}\" ORDER BY line");
        let lines: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap();
        rows.extend(lines);
    }
    rows
}
