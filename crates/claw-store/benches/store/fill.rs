//! Inserts many rows at once, past the store, as if they had been accepted one by one.
//!
//! Every other message belongs to one long session; the rest belong to sessions of 100 messages, 50 of which
//! run at the same time. Each message has its event and its job; the last tenth of the jobs are pending.

use claw_core::port::UnixMillis;
use claw_core::store::{EntryEvent, Outcome, Record};
use claw_core::{AgentId, CallId, NodeId, SessionKey, TenantId};
use claw_store::chain::{Columns, Head};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, query};
use uuid::Uuid;

/// The content of each message: with its quotes, a hundred bytes.
pub(crate) const CONTENT: &str =
    "Please look at the report of last week, and tell me which of the figures in it changed since then.";
/// The messages of a short session.
pub(crate) const SHORT: u64 = 100;
/// Ledger entries inserted by one statement.
const PAGE: usize = 500;

/// Returns the number of short sessions among so many messages.
pub(crate) fn short_sessions(messages: usize) -> u64 {
    messages as u64 / 2 / SHORT
}

/// Returns SQL for the numbers from 0, each with its session and its place there.
fn numbers(series: &str) -> String {
    format!(
        "n (k, session, seq) AS (
             SELECT k, CASE k % 2 WHEN 0 THEN 'bench:long' ELSE 'bench:' || (k / 2 / 5000 * 50 + k / 2 % 50) END,
                    CASE k % 2 WHEN 0 THEN k / 2 + 1 ELSE k / 2 % 5000 / 50 + 1 END
             FROM {series}
         )"
    )
}

pub(crate) async fn sqlite(connection: &mut SqliteConnection, messages: usize) {
    let series = format!(
        "(WITH RECURSIVE up (k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM up WHERE k + 1 < {messages})
          SELECT k FROM up)"
    );
    let numbers = numbers(&series);
    let id = "unhex(printf('%032x', k))";
    let mut transaction = connection.begin().await.unwrap();
    for sql in [
        format!(
            "WITH {numbers} INSERT INTO messages (tenant, session, seq, id, role, content, at, job)
             SELECT 'main', session, seq, {id}, 'user', '\"{CONTENT}\"', 1, {id} FROM n"
        ),
        format!(
            "WITH {numbers} INSERT INTO events (tenant, session, seq, at, kind, body)
             SELECT 'main', session, seq, 1, 'message',
                    printf('{{\"id\":\"00000000-0000-7000-8000-%012x\",\"role\":\"user\",\"seq\":%d}}', k, seq)
             FROM n"
        ),
        format!(
            "WITH {numbers} INSERT INTO jobs
                 (id, tenant, lane, session, priority, payload, accepted, visible, max_attempts, state,
                  root, depth)
             SELECT {id}, 'main', 'main', iif(k < {done}, session, 'bench:waits:' || k), 0,
                    printf('{{\"message\":\"00000000-0000-7000-8000-%012x\"}}', k), 1, 1, 3,
                    iif(k < {done}, 'done', 'pending'), {id}, 0
             FROM n",
            done = messages - messages / 10
        ),
    ] {
        transaction.execute(AssertSqlSafe(sql)).await.unwrap();
    }
    transaction.commit().await.unwrap();
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").await.unwrap();
}

pub(crate) async fn postgres(connection: &mut PgConnection, messages: usize) {
    let numbers = numbers(&format!("generate_series(0, {messages} - 1) AS k"));
    let id = "lpad(to_hex(k), 32, '0')::uuid";
    let mut transaction = connection.begin().await.unwrap();
    // A million announcements of the same thing.
    transaction.execute("ALTER TABLE jobs DISABLE TRIGGER USER").await.unwrap();
    for sql in [
        format!(
            "WITH {numbers} INSERT INTO messages (tenant, session, seq, id, role, content, at, job)
             SELECT 'main', session, seq, {id}, 'user', '\"{CONTENT}\"', 1, {id} FROM n"
        ),
        format!(
            "WITH {numbers} INSERT INTO events (tenant, session, seq, at, kind, body)
             SELECT 'main', session, seq, 1, 'message',
                    json_build_object('id', {id}, 'role', 'user', 'seq', seq) FROM n"
        ),
        "INSERT INTO sessions (tenant, session, started, messages, events)
         SELECT tenant, session, 1, max(seq), max(seq) FROM messages GROUP BY tenant, session"
            .to_owned(),
        format!(
            "WITH {numbers} INSERT INTO jobs
                 (id, tenant, lane, session, priority, payload, accepted, visible, max_attempts, state,
                  root, depth)
             SELECT {id}, 'main', 'main', CASE WHEN k < {done} THEN session ELSE 'bench:waits:' || k END, 0,
                    json_build_object('message', {id}), 1, 1, 3, CASE WHEN k < {done} THEN 'done' ELSE 'pending' END,
                    {id}, 0
             FROM n",
            done = messages - messages / 10
        ),
        "ALTER TABLE jobs ENABLE TRIGGER USER".to_owned(),
    ] {
        transaction.execute(AssertSqlSafe(sql)).await.unwrap();
    }
    transaction.commit().await.unwrap();
    connection.execute("VACUUM ANALYZE").await.unwrap();
    connection.execute("CHECKPOINT").await.unwrap();
}

/// Jobs that wait, each of its own session.
pub(crate) async fn sqlite_jobs(connection: &mut SqliteConnection, jobs: usize) {
    query(
        "WITH RECURSIVE up (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM up WHERE k < $1)
         INSERT INTO jobs (id, tenant, lane, session, priority, payload, accepted, visible, max_attempts, state,
                  root, depth)
         SELECT randomblob(16), 'main', 'main', 'bench:' || k, 0, '{\"message\":\"hello\"}', 1, 1, 3, 'pending', randomblob(16), 0
         FROM up",
    )
    .bind(jobs as i64)
    .execute(connection)
    .await
    .unwrap();
}

/// The same on PostgreSQL.
pub(crate) async fn postgres_jobs(connection: &mut PgConnection, jobs: usize) {
    query(
        "INSERT INTO jobs (id, tenant, lane, session, priority, payload, accepted, visible, max_attempts, state,
                  root, depth)
         SELECT gen_random_uuid(), 'main', 'main', 'bench:' || k, 0, '{\"message\":\"hello\"}', 1, 1, 3, 'pending', gen_random_uuid(), 0
         FROM generate_series(1, $1) AS k",
    )
    .bind(jobs as i64)
    .execute(connection)
    .await
    .unwrap();
}

/// An entry of the ledger as the store would keep it.
struct Line {
    seq: i64,
    call: CallId,
    text: String,
}

const SESSION: &str = "bench:ledger";

/// The lines of a chain, and its head.
fn chain(entries: usize) -> (Vec<Line>, Head) {
    let node = NodeId::local();
    let mut head = Head::start();
    let mut lines = Vec::with_capacity(entries);
    for _ in 0..entries {
        let call = CallId::new();
        let record = Record {
            context: None,
            at: UnixMillis(1),
            tenant: TenantId::main(),
            session: SessionKey::new(SESSION).unwrap(),
            agent: AgentId::new("bench").unwrap(),
            user: None,
            call,
            tool: "read_file".to_owned(),
            event: EntryEvent::Outcome {
                outcome: Outcome::Done,
                micros: 1_234,
                bytes: 2_048,
                error: None,
                changes: None,
            },
        };
        debug_assert_eq!(Columns::of(&record).event, "outcome");
        let (text, next) = head.next(&node, &record).unwrap();
        head = next;
        lines.push(Line { seq: head.count as i64, call, text });
    }
    (lines, head)
}

macro_rules! ledger {
    ($connection:expr, $entries:expr, $id:expr) => {{
        let (lines, head) = chain($entries);
        let mut transaction = $connection.begin().await.unwrap();
        for page in lines.chunks(PAGE) {
            let mut insert = sqlx::QueryBuilder::new(
                "INSERT INTO ledger (tenant, node, seq, at, session, call, event, outcome, line) ",
            );
            insert.push_values(page, |mut row, line| {
                row.push("'main', 'local'").push_bind(line.seq).push("1").push_bind(SESSION);
                row.push_bind($id(line.call)).push("'outcome', 'done'").push_bind(&line.text);
            });
            insert.build().execute(&mut *transaction).await.unwrap();
        }
        query("INSERT INTO ledger_head (tenant, node, count, head) VALUES ('main', 'local', $1, $2)")
            .bind(head.count as i64)
            .bind(head.hash.to_string())
            .execute(&mut *transaction)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
    }};
}

pub(crate) async fn sqlite_ledger(connection: &mut SqliteConnection, entries: usize) {
    ledger!(connection, entries, |call: CallId| call.as_bytes().to_vec());
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").await.unwrap();
}

pub(crate) async fn postgres_ledger(connection: &mut PgConnection, entries: usize) {
    ledger!(connection, entries, |call: CallId| Uuid::from_bytes(*call.as_bytes()));
    connection.execute("VACUUM ANALYZE ledger").await.unwrap();
}
