//! The same work by the bare driver: strings in, strings out, prepared statements, one transaction.

use claw_core::store::{Claim, NewJob, NewMessage};
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, query, query_as, query_scalar};
use uuid::Uuid;

/// Copies the schema of the written tables from the store in `from`.
pub(crate) async fn sqlite_schema(from: &mut SqliteConnection, to: &mut SqliteConnection) {
    let tables: Vec<String> = query_scalar(
        "SELECT sql FROM sqlite_master
         WHERE tbl_name IN ('messages', 'events', 'jobs') AND sql IS NOT NULL ORDER BY type DESC",
    )
    .fetch_all(from)
    .await
    .unwrap();
    for sql in tables {
        to.execute(AssertSqlSafe(sql)).await.unwrap();
    }
}

pub(crate) async fn sqlite_append(
    connection: &mut SqliteConnection,
    message: &NewMessage,
    content: &str,
    job: &NewJob,
    payload: &str,
) {
    let (tenant, session) = (message.tenant.as_str(), message.session.as_str());
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let seq: Vec<i64> = query_scalar(
        "INSERT INTO messages (tenant, session, id, role, content, at, job, seq)
         VALUES ($1, $2, $3, $4, $5, $6, $7,
             (SELECT coalesce(max(seq), 0) + 1 FROM messages WHERE tenant = $1 AND session = $2))
         ON CONFLICT (tenant, id) DO NOTHING RETURNING seq",
    )
    .bind(tenant)
    .bind(session)
    .bind(&message.id.as_bytes()[..])
    .bind("user")
    .bind(content)
    .bind(message.at.0)
    .bind(&job.id.as_bytes()[..])
    .fetch_all(&mut *transaction)
    .await
    .unwrap();
    let body = format!(r#"{{"id":"{}","role":"user","seq":{}}}"#, message.id, seq[0]);
    query(
        "INSERT INTO events (tenant, session, at, kind, body, seq)
         VALUES ($1, $2, $3, $4, $5,
             (SELECT coalesce(max(seq), 0) + 1 FROM events WHERE tenant = $1 AND session = $2))
         RETURNING seq",
    )
    .bind(tenant)
    .bind(session)
    .bind(message.at.0)
    .bind("message")
    .bind(body)
    .fetch_all(&mut *transaction)
    .await
    .unwrap();
    query(
        "INSERT INTO jobs (id, tenant, lane, session, priority, payload, accepted, visible, max_attempts, state,
                           root, depth)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $1, 0) ON CONFLICT (id) DO NOTHING",
    )
    .bind(&job.id.as_bytes()[..])
    .bind(tenant)
    .bind(job.lane.as_str())
    .bind(session)
    .bind(job.priority)
    .bind(payload)
    .bind(job.accepted.0)
    .bind(job.visible.0)
    .bind(job.max_attempts)
    .execute(&mut *transaction)
    .await
    .unwrap();
    transaction.commit().await.unwrap();
}

pub(crate) async fn postgres_append(
    connection: &mut PgConnection,
    message: &NewMessage,
    content: &str,
    job: &NewJob,
    payload: &str,
) {
    let (tenant, session) = (message.tenant.as_str(), message.session.as_str());
    let mut transaction = connection.begin().await.unwrap();
    let (seq, event): (i64, i64) = query_as(
        "INSERT INTO sessions (tenant, session, started) VALUES ($1, $2, $3)
         ON CONFLICT (tenant, session) DO UPDATE SET started = sessions.started
         RETURNING messages + 1, events + 1",
    )
    .bind(tenant)
    .bind(session)
    .bind(message.at.0)
    .fetch_one(&mut *transaction)
    .await
    .unwrap();
    let body = format!(r#"{{"id":"{}","role":"user","seq":{seq}}}"#, message.id);
    query(
        "WITH said AS (
             INSERT INTO messages (tenant, session, seq, id, role, content, at, job)
             VALUES ($1, $2, $3, $4, $5, $6::json, $7, $8)
             ON CONFLICT (tenant, id) DO NOTHING RETURNING tenant, session
         ), told AS (
             INSERT INTO events (tenant, session, seq, at, kind, body)
             SELECT tenant, session, $9, $7, $10, $11::json FROM said
         )
         UPDATE sessions SET messages = $3, events = $9
         FROM said WHERE sessions.tenant = said.tenant AND sessions.session = said.session",
    )
    .bind(tenant)
    .bind(session)
    .bind(seq)
    .bind(Uuid::from_bytes(*message.id.as_bytes()))
    .bind("user")
    .bind(content)
    .bind(message.at.0)
    .bind(Uuid::from_bytes(*job.id.as_bytes()))
    .bind(event)
    .bind("message")
    .bind(body)
    .execute(&mut *transaction)
    .await
    .unwrap();
    query(
        "INSERT INTO jobs (id, tenant, lane, session, priority, payload, accepted, visible, max_attempts, state,
                           root, depth)
         VALUES ($1, $2, $3, $4, $5, $6::json, $7, $8, $9, 'pending', $1, 0) ON CONFLICT (id) DO NOTHING",
    )
    .bind(Uuid::from_bytes(*job.id.as_bytes()))
    .bind(tenant)
    .bind(job.lane.as_str())
    .bind(session)
    .bind(job.priority)
    .bind(payload)
    .bind(job.accepted.0)
    .bind(job.visible.0)
    .bind(i32::from(job.max_attempts))
    .execute(&mut *transaction)
    .await
    .unwrap();
    transaction.commit().await.unwrap();
}

/// Takes the best job of one lane with a single-purpose statement; returns whether there was one.
pub(crate) async fn sqlite_claim(pool: &SqlitePool, claim: &Claim) -> bool {
    let taken: Vec<(Vec<u8>, String)> = query_as(
        "UPDATE jobs SET state = 'leased', attempts = attempts + 1, node = $3, boot = $4, until = $5
         WHERE position = (
             SELECT position FROM jobs AS next
             WHERE state = 'pending' AND lane = $1 AND visible <= $2 AND NOT EXISTS (
                 SELECT 1 FROM jobs AS busy WHERE busy.state = 'leased' AND busy.session IS NOT NULL
                 AND busy.tenant = next.tenant AND busy.session = next.session)
             ORDER BY priority DESC, accepted, position LIMIT 1)
         RETURNING id, payload",
    )
    .bind(claim.lanes[0].as_str())
    .bind(claim.now.0)
    .bind(claim.worker.node.as_str())
    .bind(&claim.worker.boot.as_bytes()[..])
    .bind(claim.until.0)
    .fetch_all(pool)
    .await
    .unwrap();
    !taken.is_empty()
}

/// The same on PostgreSQL.
pub(crate) async fn postgres_claim(pool: &PgPool, claim: &Claim) -> bool {
    let taken: Option<(Uuid, String)> = query_as(
        "UPDATE jobs SET state = 'leased', attempts = attempts + 1, node = $3, boot = $4, until = $5
         WHERE id = (
             SELECT id FROM jobs AS next
             WHERE state = 'pending' AND lane = $1 AND visible <= $2 AND NOT EXISTS (
                 SELECT FROM jobs AS busy
                 WHERE busy.tenant = next.tenant AND busy.session = next.session AND busy.state = 'leased')
             ORDER BY priority DESC, accepted, position LIMIT 1 FOR UPDATE SKIP LOCKED)
         RETURNING id, payload::text",
    )
    .bind(claim.lanes[0].as_str())
    .bind(claim.now.0)
    .bind(claim.worker.node.as_str())
    .bind(Uuid::from_bytes(*claim.worker.boot.as_bytes()))
    .bind(claim.until.0)
    .fetch_optional(pool)
    .await
    .unwrap();
    taken.is_some()
}
