//! Stores with something of everything in them.

use std::path::Path;

use claw_core::port::UnixMillis;
use claw_core::store::{Answer, Claim, Failure, NewJob, NewMessage, SessionLog as _, Store};
use claw_core::{CallId, NodeId, TenantId};
use claw_store::SqliteStore;
use claw_testkit::fixture::{NOW, job, job_of, message, question, session, tenant, worker};
use claw_testkit::killing::{Player, Random, World};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, SqliteConnection};

/// Plays on a store as a few tenants, and adds what is hard to carry.
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
        let event = (UnixMillis(i64::MIN), "note".into(), json!({ "text": text }));
        store.log_event(&tenant("other"), &session(key), event).await.unwrap();
    }
    for length in [0, 1, 100_000, 3_000_000] {
        store.accept_message(message("cli:big", &"é".repeat(length)), job_of("cli:big")).await.unwrap();
    }
    let asked = store.request(question(CallId::new(), "rm \0 x")).await.unwrap();
    let answer = Answer { approve: false, by: "änn".to_owned(), at: NOW };
    store.answer(&TenantId::main(), asked.id, answer).await.unwrap();
    let lanes = vec!["main".into()];
    let until = UnixMillis(NOW.0 + 1);
    let claim = Claim { worker: worker("a"), lanes, now: NOW, until };
    let (_, lease) = store.claim(claim.clone()).await.unwrap().unwrap();
    store.fail_job(&lease, Failure { error: "exit code 1\n\tä".to_owned(), retry: None }).await.unwrap();
    store.claim(claim).await.unwrap().unwrap();
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

/// The tables of a file, without those that SQLite or a virtual table keeps for itself.
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
    let mut connection = beside(path).await;
    let mut rows = Vec::new();
    for table in tables(path).await {
        let columns: Vec<String> = sqlx::query_scalar("SELECT name FROM pragma_table_info(?1)")
            .bind(&table)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let cell = |name: &String| format!("typeof(\"{name}\") || ' ' || hex(coalesce(\"{name}\", ''))");
        let cells = columns.iter().map(cell).collect::<Vec<_>>().join(" || ', ' || ");
        let sql = format!("SELECT '{table}: ' || {cells} AS line FROM \"{table}\" ORDER BY line");
        let lines: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap();
        rows.extend(lines);
    }
    rows
}
