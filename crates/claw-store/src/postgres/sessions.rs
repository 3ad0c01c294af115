//! Conversations. The row of a session counts its messages and events; whoever adds one holds that row.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Accepted, Lease, Message, NewJob, NewMessage, SessionEvent, SessionLog, StoreError, Summary, Topic,
};
use claw_core::{JobId, SessionKey, TenantId};
use serde_json::Value;
use smol_str::SmolStr;
use sqlx::postgres::PgTransaction;
use sqlx::types::Json;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use super::failure::failed;
use super::{PostgresStore, queue, uuid};
use crate::row;

const ACCEPT: &str = "could not accept the message";
const SAY: &str = "could not store the message";
const TAKE: &str = "could not take what waits";
const SUMMARISE: &str = "could not keep the summary";
const FINISH: &str = "could not end the run";
const TELL: &str = "could not write the event";
const READ: &str = "could not read the conversation";

#[async_trait]
impl SessionLog for PostgresStore {
    async fn accept_message(&self, message: NewMessage, job: NewJob) -> Result<Accepted, StoreError> {
        let mut transaction = self.begin(ACCEPT).await?;
        let Some(seq) = say(&mut transaction, &message, job.id).await? else {
            return accepted(&mut transaction, &message).await;
        };
        queue::accept(&mut transaction, &job).await?;
        transaction.commit().await.map_err(failed(ACCEPT))?;
        self.listener.bells.ring(Topic::Work);
        self.listener.bells.ring(Topic::Sessions);
        Ok(Accepted { seq, job: job.id })
    }

    async fn say_in_run(&self, lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError> {
        let mut transaction = self.begin(SAY).await?;
        queue::hold(&mut *transaction, lease).await?;
        let places = say_all(&mut transaction, lease, &said).await?;
        transaction.commit().await.map_err(failed(SAY))?;
        self.listener.bells.ring(Topic::Sessions);
        Ok(places)
    }

    async fn take_waiting(&self, lease: &Lease) -> Result<usize, StoreError> {
        let mut transaction = self.begin(TAKE).await?;
        queue::hold(&mut *transaction, lease).await?;
        let taken = queue::take(&mut *transaction, lease).await?;
        if taken.is_empty() {
            return Ok(0);
        }
        query(
            "UPDATE messages SET job = $1
             WHERE job = ANY($2) AND (tenant, session) = (SELECT tenant, session FROM jobs WHERE id = $1)",
        )
        .bind(uuid(lease.job.as_bytes()))
        .bind(&taken)
        .execute(&mut *transaction)
        .await
        .map_err(failed(TAKE))?;
        transaction.commit().await.map_err(failed(TAKE))?;
        self.listener.bells.ring(Topic::Work);
        Ok(taken.len())
    }

    async fn summarise(
        &self,
        lease: &Lease,
        (tenant, session): (&TenantId, &SessionKey),
        summary: Summary,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin(SUMMARISE).await?;
        queue::hold(&mut *transaction, lease).await?;
        query(
            "INSERT INTO summaries (tenant, session, upto, text, at) VALUES ($1, $2, $3, $4::json, $5)
             ON CONFLICT (tenant, session, upto) DO UPDATE SET text = excluded.text, at = excluded.at",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .bind(row::number(summary.upto))
        .bind(row::text(&summary.text)?)
        .bind(summary.at.0)
        .execute(&mut *transaction)
        .await
        .map_err(failed(SUMMARISE))?;
        transaction.commit().await.map_err(failed(SUMMARISE))
    }

    async fn summary(&self, tenant: &TenantId, session: &SessionKey) -> Result<Option<Summary>, StoreError> {
        let found: Option<(i64, Json<String>, i64)> = query_as(
            "SELECT upto, text, at FROM summaries WHERE tenant = $1 AND session = $2
             ORDER BY upto DESC LIMIT 1",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_optional(&self.pool)
        .await
        .map_err(failed(READ))?;
        let summary = |(upto, Json(text), at): (i64, Json<String>, i64)| {
            Ok(Summary { upto: row::count(upto)?, text, at: UnixMillis(at) })
        };
        found.map(summary).transpose()
    }

    async fn finish_run(&self, lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError> {
        let mut transaction = self.begin(FINISH).await?;
        queue::finish(&mut *transaction, lease).await?;
        let places = say_all(&mut transaction, lease, &said).await?;
        transaction.commit().await.map_err(failed(FINISH))?;
        self.listener.bells.ring(Topic::Work);
        self.listener.bells.ring(Topic::Sessions);
        Ok(places)
    }

    async fn log_event(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        (at, kind, body): (UnixMillis, SmolStr, Value),
    ) -> Result<u64, StoreError> {
        let seq = query_scalar(
            "WITH counted AS (
                 INSERT INTO sessions (tenant, session, started, events) VALUES ($1, $2, $3, 1)
                 ON CONFLICT (tenant, session) DO UPDATE SET events = sessions.events + 1
                 RETURNING events
             )
             INSERT INTO events (tenant, session, seq, at, kind, body)
             SELECT $1, $2, events, $3, $4, $5::json FROM counted
             RETURNING seq",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .bind(at.0)
        .bind(kind.as_str())
        .bind(row::text(&body)?)
        .fetch_one(&self.pool)
        .await
        .map_err(failed(TELL))?;
        self.listener.bells.ring(Topic::Sessions);
        row::count(seq)
    }

    async fn messages(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let rows: Vec<Row> = query_as(
            "SELECT seq, id, role, content, at, job FROM messages
             WHERE tenant = $1 AND session = $2 AND seq > $3 ORDER BY seq LIMIT $4",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .bind(row::number(after))
        .bind(row::number(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))?;
        rows.into_iter().map(|row| message(tenant, session, row)).collect()
    }

    async fn events(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<SessionEvent>, StoreError> {
        let rows: Vec<(i64, i64, String, Json<Value>)> = query_as(
            "SELECT seq, at, kind, body FROM events
             WHERE tenant = $1 AND session = $2 AND seq > $3 ORDER BY seq LIMIT $4",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .bind(row::number(after))
        .bind(row::number(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))?;
        let event = |(seq, at, kind, Json(body)): (i64, i64, String, Json<Value>)| {
            Ok(SessionEvent { seq: row::count(seq)?, at: UnixMillis(at), kind: kind.into(), body })
        };
        rows.into_iter().map(event).collect()
    }
}

/// Place, id, role, content, time and job of a message.
pub(super) type Row = (i64, Uuid, String, Json<Value>, i64, Uuid);

/// A message from its row.
pub(super) fn message(tenant: &TenantId, session: &SessionKey, row: Row) -> Result<Message, StoreError> {
    let (seq, id, role, Json(content), at, job) = row;
    let new = NewMessage {
        id: row::id("a message's id", id.as_bytes())?,
        tenant: tenant.clone(),
        session: session.clone(),
        role: row::word("a message's role", &role)?,
        content,
        at: UnixMillis(at),
    };
    Ok(Message { new, seq: row::count(seq)?, run: row::id("a message's job", job.as_bytes())? })
}

/// Adds what was said in a run, in order; gives its places.
async fn say_all(
    transaction: &mut PgTransaction<'_>,
    lease: &Lease,
    said: &[NewMessage],
) -> Result<Vec<u64>, StoreError> {
    let mut places = Vec::with_capacity(said.len());
    for message in said {
        places.push(match say(transaction, message, lease.job).await? {
            Some(seq) => seq,
            None => accepted(transaction, message).await?.seq,
        });
    }
    Ok(places)
}

/// Adds a message and the event that tells of it, and gives its place. `None`, and nothing added, where a
/// message of this id is there already.
pub(super) async fn say(
    transaction: &mut PgTransaction<'_>,
    message: &NewMessage,
    job: JobId,
) -> Result<Option<u64>, StoreError> {
    let (seq, event): (i64, i64) = query_as(
        "INSERT INTO sessions (tenant, session, started) VALUES ($1, $2, $3)
         ON CONFLICT (tenant, session) DO UPDATE SET started = sessions.started
         RETURNING messages + 1, events + 1",
    )
    .bind(message.tenant.as_str())
    .bind(message.session.as_str())
    .bind(message.at.0)
    .fetch_one(&mut **transaction)
    .await
    .map_err(failed(SAY))?;
    let written = query(
        "WITH said AS (
             INSERT INTO messages (tenant, session, seq, id, role, content, at, job)
             VALUES ($1, $2, $3, $4, $5, $6::json, $7, $8)
             ON CONFLICT (tenant, id) DO NOTHING
             RETURNING tenant, session
         ), told AS (
             INSERT INTO events (tenant, session, seq, at, kind, body)
             SELECT tenant, session, $9, $7, $10, $11::json FROM said
         )
         UPDATE sessions SET messages = $3, events = $9
         FROM said WHERE sessions.tenant = said.tenant AND sessions.session = said.session",
    )
    .bind(message.tenant.as_str())
    .bind(message.session.as_str())
    .bind(seq)
    .bind(uuid(message.id.as_bytes()))
    .bind(message.role.name())
    .bind(row::text(&message.content)?)
    .bind(message.at.0)
    .bind(uuid(job.as_bytes()))
    .bind(event)
    .bind(row::MESSAGE)
    .bind(row::text(&row::message_event(message, row::count(seq)?))?)
    .execute(&mut **transaction)
    .await
    .map_err(failed(SAY))?;
    Ok(if written.rows_affected() == 1 { Some(row::count(seq)?) } else { None })
}

/// The answer of the first time to a message that is there.
pub(super) async fn accepted(
    transaction: &mut PgTransaction<'_>,
    message: &NewMessage,
) -> Result<Accepted, StoreError> {
    let (seq, job): (i64, Uuid) = query_as("SELECT seq, job FROM messages WHERE tenant = $1 AND id = $2")
        .bind(message.tenant.as_str())
        .bind(uuid(message.id.as_bytes()))
        .fetch_one(&mut **transaction)
        .await
        .map_err(failed(READ))?;
    Ok(Accepted { seq: row::count(seq)?, job: row::id("a message's job", job.as_bytes())? })
}
