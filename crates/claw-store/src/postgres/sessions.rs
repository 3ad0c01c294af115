//! Sessions. The row of a session counts its messages and events; a writer that adds one locks that row.

use std::collections::HashSet;

use async_trait::async_trait;
use claw_core::port::{Owner, UnixMillis};
use claw_core::store::{
    Accepted, Announce, EndEvent, FeedEvent, Finish, Finished, Lease, Message, NewEvent, NewJob, NewMessage,
    SessionEvent, SessionEventBody, SessionLog, StoreError, Summary, Topic,
};
use claw_core::{JobId, SessionKey, TenantId};
use serde_json::Value;
use sqlx::postgres::PgExecutor;
use sqlx::types::Json;
use sqlx::{query, query_as, query_scalar};
use tokio::sync::watch;
use uuid::Uuid;

use super::connections::Transaction;
use super::failure::failed;
use super::{PostgresStore, queue, session_owners, uuid};
use crate::session_owners::RAISE_LAST;
use crate::{row, runs};

const ACCEPT: &str = "could not accept the message";
const SAY: &str = "could not store the message";
const TAKE: &str = "could not take waiting messages";
const SUMMARISE: &str = "could not store the summary";
const FINISH: &str = "could not end the run";
const TELL: &str = "could not write the event";
const READ: &str = "could not read the session";

#[async_trait]
impl SessionLog for PostgresStore {
    async fn accept_message(&self, message: NewMessage, job: NewJob) -> Result<Accepted, StoreError> {
        let mut transaction = self.begin(ACCEPT).await?;
        queue::lock_parent(&mut transaction, &job).await?;
        let Some(seq) = say(&mut transaction, &message, job.id).await? else {
            return accepted(&mut transaction, &message).await;
        };
        queue::accept(&mut transaction, &job).await?;
        transaction.commit().await.map_err(failed(ACCEPT))?;
        self.listener.bells.ring(Topic::Work);
        self.ring_for([&message]);
        Ok(Accepted { seq, job: job.id })
    }

    async fn say_in_run(&self, lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError> {
        let mut transaction = self.begin(SAY).await?;
        queue::hold(&mut *transaction, lease).await?;
        let places = say_all(&mut transaction, lease, &said).await?;
        transaction.commit().await.map_err(failed(SAY))?;
        self.ring_for(&said);
        Ok(places)
    }

    async fn take_waiting(&self, lease: &Lease, priority: i16) -> Result<usize, StoreError> {
        let mut transaction = self.begin(TAKE).await?;
        queue::hold(&mut *transaction, lease).await?;
        let taken = queue::take(&mut *transaction, lease, priority).await?;
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
        Owner { tenant, session }: &Owner,
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

    async fn finish_run(&self, lease: &Lease, finish: Finish) -> Result<Finished, StoreError> {
        let Finish { said, end, announce, event } = finish;
        let mut transaction = self.begin(FINISH).await?;
        let parent = match &announce {
            Some(announce) => lock_parent(&mut transaction, announce).await?,
            None => None,
        };
        let tenant = queue::finish(&mut *transaction, lease, end).await?;
        if let Some(announce) = &announce {
            lock_sessions(&mut transaction, said.iter().chain([&announce.message])).await?;
        }
        let places = say_all(&mut transaction, lease, &said).await?;
        let announced = match &announce {
            Some(announce) => {
                runs::check_tenant(&tenant, announce)?;
                Some(self::announce(&mut transaction, parent, announce).await?)
            }
            None => None,
        };
        let told = match event {
            Some(EndEvent { session, at, body }) => {
                let owner = Owner { tenant: row::word("a run's tenant", &tenant)?, session };
                tell(&mut *transaction, &owner.tenant, &owner.session, at, &body).await?;
                Some(owner)
            }
            None => None,
        };
        transaction.commit().await.map_err(failed(FINISH))?;
        self.listener.bells.ring(Topic::Work);
        if let Some(owner) = told {
            self.listener.bells.ring(Topic::Sessions);
            self.listener.sessions.ring(&owner);
        }
        self.ring_for(said.iter().chain(announce.as_ref().map(|announce| &announce.message)));
        Ok(Finished { places, announced })
    }

    async fn log_event(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        at: UnixMillis,
        event: SessionEventBody,
    ) -> Result<u64, StoreError> {
        let seq = tell(&self.pool, tenant, session, at, &event).await?;
        self.listener.bells.ring(Topic::Sessions);
        self.listener.sessions.ring(&Owner { tenant: tenant.clone(), session: session.clone() });
        Ok(seq)
    }

    async fn log_events(&self, mut events: Vec<NewEvent>) -> Result<(), StoreError> {
        // Rows of sessions are locked in one order, so that no two writers wait for each other.
        events.sort_by(|one, other| {
            let key = |event: &NewEvent| (event.owner.tenant.clone(), event.owner.session.clone());
            key(one).cmp(&key(other))
        });
        let mut transaction = self.begin(TELL).await?;
        for NewEvent { owner, at, body } in &events {
            tell(&mut *transaction, &owner.tenant, &owner.session, *at, body).await?;
        }
        transaction.commit().await.map_err(failed(TELL))?;
        self.listener.bells.ring(Topic::Sessions);
        let owners: HashSet<Owner> = events.into_iter().map(|event| event.owner).collect();
        owners.iter().for_each(|owner| self.listener.sessions.ring(owner));
        Ok(())
    }

    fn session_changes(&self, of: &Owner) -> watch::Receiver<u64> {
        self.listener.sessions.listen(of)
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
            Ok(SessionEvent { seq: row::count(seq)?, at: UnixMillis(at), what: row::event(&kind, body)? })
        };
        rows.into_iter().map(event).collect()
    }

    async fn feed(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<Vec<FeedEvent>, StoreError> {
        let rows: Vec<(i64, String, i64, i64, String, Json<Value>)> = query_as(
            "SELECT feed.place, events.session, events.seq, events.at, events.kind, events.body
             FROM feed JOIN events USING (tenant, session, seq)
             WHERE feed.tenant = $1 AND feed.place > $2 ORDER BY feed.place LIMIT $3",
        )
        .bind(tenant.as_str())
        .bind(row::number(after))
        .bind(row::number(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))?;
        let event = |(place, session, seq, at, kind, body): (i64, String, i64, i64, String, Json<Value>)| {
            let what = row::event(&kind, body.0)?;
            let event = SessionEvent { seq: row::count(seq)?, at: UnixMillis(at), what };
            let session = SessionKey::new(session)
                .map_err(|error| row::damaged("an event's session", error.to_string()))?;
            Ok(FeedEvent { feed: row::count(place)?, session, event })
        };
        rows.into_iter().map(event).collect()
    }

    async fn feed_end(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let last: i64 = query_scalar("SELECT coalesce(max(place), 0) FROM feed WHERE tenant = $1")
            .bind(tenant.as_str())
            .fetch_one(&self.pool)
            .await
            .map_err(failed(READ))?;
        row::count(last)
    }
}

impl PostgresStore {
    /// Rings for the sessions that these messages are in.
    pub(super) fn ring_for<'m>(&self, messages: impl IntoIterator<Item = &'m NewMessage>) {
        self.listener.bells.ring(Topic::Sessions);
        runs::sessions(messages).iter().for_each(|session| self.listener.sessions.ring(session));
    }
}

/// State and session of a parent run.
type Parent = (String, Option<String>);

/// Locks the parent of an announcement. Comes before the child's job is ended.
async fn lock_parent(
    transaction: &mut Transaction,
    announce: &Announce,
) -> Result<Option<Parent>, StoreError> {
    let found = query_as("SELECT state, session FROM jobs WHERE tenant = $1 AND id = $2 FOR UPDATE")
        .bind(announce.message.tenant.as_str())
        .bind(uuid(announce.parent.as_bytes()))
        .fetch_optional(&mut **transaction)
        .await
        .map_err(failed(FINISH))?;
    queue::lock_parent(transaction, &announce.job).await?;
    Ok(found)
}

/// Locks the sessions of these messages in the order of their keys, as every writer to several sessions does.
async fn lock_sessions(
    transaction: &mut Transaction,
    messages: impl Iterator<Item = &NewMessage> + Send,
) -> Result<(), StoreError> {
    let (tenants, sessions): (Vec<&str>, Vec<&str>) =
        messages.map(|message| (message.tenant.as_str(), message.session.as_str())).unzip();
    query(
        "SELECT FROM sessions WHERE (tenant, session) IN (SELECT * FROM unnest($1::text[], $2::text[]))
         ORDER BY tenant COLLATE \"C\", session COLLATE \"C\" FOR UPDATE",
    )
    .bind(&tenants)
    .bind(&sessions)
    .fetch_all(&mut **transaction)
    .await
    .map(drop)
    .map_err(failed(FINISH))
}

/// Stores the announcement of a run that ended; wakes its parent, or accepts a job that answers.
async fn announce(
    transaction: &mut Transaction,
    parent: Option<Parent>,
    announce: &Announce,
) -> Result<Accepted, StoreError> {
    let Announce { parent: id, party, message, job } = announce;
    if let Some((state, session)) = parent {
        runs::check_session(session.as_deref(), announce)?;
        if state == "parked" {
            let Some(seq) = say(transaction, message, *id).await? else {
                return accepted(transaction, message).await;
            };
            let within = Owner { tenant: message.tenant.clone(), session: message.session.clone() };
            raise_last(transaction, &within, message.at).await?;
            queue::wake(&mut **transaction, &message.tenant, *id).await?;
            return Ok(Accepted { seq, job: *id });
        }
    }
    match session_owners::accept(transaction, party, message, job).await? {
        Some(accepted) => Ok(accepted),
        None => accepted(transaction, message).await,
    }
}

/// Adds an event; returns its number.
pub(super) async fn tell(
    executor: impl PgExecutor<'_>,
    tenant: &TenantId,
    session: &SessionKey,
    at: UnixMillis,
    event: &SessionEventBody,
) -> Result<u64, StoreError> {
    let (kind, body) = row::event_columns(event)?;
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
    .bind(kind)
    .bind(body)
    .fetch_one(executor)
    .await
    .map_err(failed(TELL))?;
    row::count(seq)
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

/// Adds the messages of a run, in order; returns their numbers.
async fn say_all(
    transaction: &mut Transaction,
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
    for (owner, at) in runs::last_times(said) {
        raise_last(transaction, &owner, at).await?;
    }
    Ok(places)
}

/// Raises the time of the session's last message.
async fn raise_last(transaction: &mut Transaction, of: &Owner, at: UnixMillis) -> Result<(), StoreError> {
    query(RAISE_LAST)
        .bind(of.tenant.as_str())
        .bind(of.session.as_str())
        .bind(at.0)
        .execute(&mut **transaction)
        .await
        .map(drop)
        .map_err(failed(SAY))
}

/// Adds a message and its event, and returns its number. Returns `None` and adds nothing if a message of this
/// id exists.
pub(super) async fn say(
    transaction: &mut Transaction,
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
    let (kind, body) = row::event_columns(&row::message_event(message, row::count(seq)?, job))?;
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
    .bind(kind)
    .bind(body)
    .execute(&mut **transaction)
    .await
    .map_err(failed(SAY))?;
    Ok(if written.rows_affected() == 1 { Some(row::count(seq)?) } else { None })
}

/// Returns the first answer to a message that exists.
pub(super) async fn accepted(
    transaction: &mut Transaction,
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
