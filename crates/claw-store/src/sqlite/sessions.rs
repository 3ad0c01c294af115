//! Sessions: messages and their events.

use std::collections::HashMap;

use async_trait::async_trait;
use claw_core::port::{Owner, UnixMillis};
use claw_core::store::{
    Accepted, Announce, EndEvent, FeedEvent, Finish, Finished, Lease, Message, NewEvent, NewJob, NewMessage,
    SessionEvent, SessionEventBody, SessionLog, StoreError, Summary, Topic,
};
use claw_core::{JobId, SessionKey, TenantId};
use sqlx::sqlite::{SqliteConnection, SqliteExecutor};
use sqlx::{QueryBuilder, query, query_as, query_scalar};
use tokio::sync::watch;

use super::batch::parts;
use super::error::failed;
use super::{SqliteStore, queue, session_owners};
use crate::session_owners::RAISE_LAST;
use crate::{row, runs};

const WRITE: &str = "could not write to the session";
const READ: &str = "could not read the session";

#[async_trait]
impl SessionLog for SqliteStore {
    async fn accept_message(&self, message: NewMessage, job: NewJob) -> Result<Accepted, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let Some(seq) = say(&mut transaction, &message, job.id).await? else {
            return accepted(&mut transaction, &message).await;
        };
        queue::enqueue(&mut *transaction, &job).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.bells.ring(Topic::Work);
        self.ring_for([&message]);
        Ok(Accepted { seq, job: job.id })
    }

    async fn say_in_run(&self, lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        queue::hold(&mut *transaction, lease).await?;
        let places = say_all(&mut transaction, lease, &said).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring_for(&said);
        Ok(places)
    }

    async fn take_waiting(&self, lease: &Lease, priority: i16) -> Result<usize, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        queue::hold(&mut *transaction, lease).await?;
        let taken = queue::take(&mut *transaction, lease, priority).await?;
        if taken.is_empty() {
            return Ok(0);
        }
        for job in &taken {
            query(
                "UPDATE messages SET job = $1
                 WHERE job = $2 AND (tenant, session) = (SELECT tenant, session FROM jobs WHERE id = $1)",
            )
            .bind(&lease.job.as_bytes()[..])
            .bind(job)
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        }
        transaction.commit().await.map_err(failed(WRITE))?;
        self.bells.ring(Topic::Work);
        Ok(taken.len())
    }

    async fn summarise(
        &self,
        lease: &Lease,
        Owner { tenant, session }: &Owner,
        summary: Summary,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write(WRITE).await?;
        queue::hold(&mut *transaction, lease).await?;
        query(
            "INSERT INTO summaries (tenant, session, upto, text, at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenant, session, upto) DO UPDATE SET text = excluded.text, at = excluded.at",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .bind(row::number(summary.upto))
        .bind(row::text(&summary.text)?)
        .bind(summary.at.0)
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))
    }

    async fn summary(&self, tenant: &TenantId, session: &SessionKey) -> Result<Option<Summary>, StoreError> {
        let found: Option<(i64, String, i64)> = query_as(
            "SELECT upto, text, at FROM summaries WHERE tenant = $1 AND session = $2
             ORDER BY upto DESC LIMIT 1",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_optional(&self.readers)
        .await
        .map_err(failed(READ))?;
        let summary = |(upto, text, at): (i64, String, i64)| {
            Ok(Summary { upto: row::count(upto)?, text: row::json("a summary", &text)?, at: UnixMillis(at) })
        };
        found.map(summary).transpose()
    }

    async fn finish_run(&self, lease: &Lease, finish: Finish) -> Result<Finished, StoreError> {
        let Finish { said, end, announce, event } = finish;
        let mut transaction = self.write(WRITE).await?;
        let tenant = queue::finish(&mut *transaction, lease, end).await?;
        let places = say_all(&mut transaction, lease, &said).await?;
        let announced = match &announce {
            Some(announce) => Some(self::announce(&mut transaction, &tenant, announce).await?),
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
        transaction.commit().await.map_err(failed(WRITE))?;
        self.bells.ring(Topic::Work);
        if let Some(owner) = told {
            self.bells.ring(Topic::Sessions);
            self.session_bells.ring(&owner);
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
        let seq = tell(&self.writer, tenant, session, at, &event).await?;
        self.bells.ring(Topic::Sessions);
        self.session_bells.ring(&Owner { tenant: tenant.clone(), session: session.clone() });
        Ok(seq)
    }

    async fn log_events(&self, events: Vec<NewEvent>) -> Result<(), StoreError> {
        let mut sessions: HashMap<&Owner, Vec<&NewEvent>> = HashMap::new();
        for event in &events {
            sessions.entry(&event.owner).or_default().push(event);
        }
        let mut transaction = self.write(WRITE).await?;
        for (owner, events) in &sessions {
            tell_all(&mut transaction, owner, events).await?;
        }
        transaction.commit().await.map_err(failed(WRITE))?;
        self.bells.ring(Topic::Sessions);
        sessions.keys().for_each(|owner| self.session_bells.ring(owner));
        Ok(())
    }

    fn session_changes(&self, of: &Owner) -> watch::Receiver<u64> {
        self.session_bells.listen(of)
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
        .fetch_all(&self.readers)
        .await
        .map_err(failed(READ))?;
        rows.iter().map(|row| message(tenant, session, row)).collect()
    }

    async fn events(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<SessionEvent>, StoreError> {
        let rows: Vec<(i64, i64, String, String)> = query_as(
            "SELECT seq, at, kind, body FROM events
             WHERE tenant = $1 AND session = $2 AND seq > $3 ORDER BY seq LIMIT $4",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .bind(row::number(after))
        .bind(row::number(limit))
        .fetch_all(&self.readers)
        .await
        .map_err(failed(READ))?;
        let event = |(seq, at, kind, body): &(i64, i64, String, String)| {
            let what = row::event(kind, row::json("an event", body)?)?;
            Ok(SessionEvent { seq: row::count(*seq)?, at: UnixMillis(*at), what })
        };
        rows.iter().map(event).collect()
    }

    async fn feed(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<Vec<FeedEvent>, StoreError> {
        let rows: Vec<(i64, String, i64, i64, String, String)> = query_as(
            "SELECT feed.place, events.session, events.seq, events.at, events.kind, events.body
             FROM feed JOIN events USING (tenant, session, seq)
             WHERE feed.tenant = $1 AND feed.place > $2 ORDER BY feed.place LIMIT $3",
        )
        .bind(tenant.as_str())
        .bind(row::number(after))
        .bind(row::number(limit))
        .fetch_all(&self.readers)
        .await
        .map_err(failed(READ))?;
        let event = |(place, session, seq, at, kind, body): (i64, String, i64, i64, String, String)| {
            let what = row::event(&kind, row::json("an event", &body)?)?;
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
            .fetch_one(&self.readers)
            .await
            .map_err(failed(READ))?;
        row::count(last)
    }
}

impl SqliteStore {
    /// Rings for the sessions that these messages are in.
    pub(super) fn ring_for<'m>(&self, messages: impl IntoIterator<Item = &'m NewMessage>) {
        self.bells.ring(Topic::Sessions);
        runs::sessions(messages).iter().for_each(|session| self.session_bells.ring(session));
    }
}

/// Place, id, role, content, time and job of a message.
pub(super) type Row = (i64, Vec<u8>, String, String, i64, Vec<u8>);

/// A message from its row.
pub(super) fn message(tenant: &TenantId, session: &SessionKey, row: &Row) -> Result<Message, StoreError> {
    let (seq, id, role, content, at, job) = row;
    let new = NewMessage {
        id: row::id("a message's id", id)?,
        tenant: tenant.clone(),
        session: session.clone(),
        role: row::word("a message's role", role)?,
        content: row::json("a message", content)?,
        at: UnixMillis(*at),
    };
    Ok(Message { new, seq: row::count(*seq)?, run: row::id("a message's job", job)? })
}

/// Stores the messages of a run, in order; returns their numbers.
async fn say_all(
    connection: &mut SqliteConnection,
    lease: &Lease,
    said: &[NewMessage],
) -> Result<Vec<u64>, StoreError> {
    let mut places = Vec::with_capacity(said.len());
    for message in said {
        places.push(match say(connection, message, lease.job).await? {
            Some(seq) => seq,
            None => accepted(connection, message).await?.seq,
        });
    }
    for (owner, at) in runs::last_times(said) {
        raise_last(connection, &owner, at).await?;
    }
    Ok(places)
}

/// Raises the time of the session's last message.
async fn raise_last(connection: &mut SqliteConnection, of: &Owner, at: UnixMillis) -> Result<(), StoreError> {
    query(RAISE_LAST)
        .bind(of.tenant.as_str())
        .bind(of.session.as_str())
        .bind(at.0)
        .execute(&mut *connection)
        .await
        .map(drop)
        .map_err(failed(WRITE))
}

/// Stores a message and its event; returns `None` and stores nothing if its id is known.
pub(super) async fn say(
    connection: &mut SqliteConnection,
    message: &NewMessage,
    job: JobId,
) -> Result<Option<u64>, StoreError> {
    let NewMessage { tenant, session, .. } = message;
    let place: Vec<i64> = query_scalar(
        "INSERT INTO messages (tenant, session, id, role, content, at, job, seq)
         VALUES ($1, $2, $3, $4, $5, $6, $7,
             (SELECT coalesce(max(seq), 0) + 1 FROM messages WHERE tenant = $1 AND session = $2))
         ON CONFLICT (tenant, id) DO NOTHING RETURNING seq",
    )
    .bind(tenant.as_str())
    .bind(session.as_str())
    .bind(&message.id.as_bytes()[..])
    .bind(message.role.name())
    .bind(row::text(&message.content)?)
    .bind(message.at.0)
    .bind(&job.as_bytes()[..])
    .fetch_all(&mut *connection)
    .await
    .map_err(failed(WRITE))?;
    let Some(seq) = place.first() else { return Ok(None) };
    let seq = row::count(*seq)?;
    let event = row::message_event(message, seq, job);
    tell(connection, tenant, session, message.at, &event).await?;
    Ok(Some(seq))
}

/// Returns the answer that was given when the message was stored.
pub(super) async fn accepted(
    connection: &mut SqliteConnection,
    message: &NewMessage,
) -> Result<Accepted, StoreError> {
    let (seq, job): (i64, Vec<u8>) = query_as("SELECT seq, job FROM messages WHERE tenant = $1 AND id = $2")
        .bind(message.tenant.as_str())
        .bind(&message.id.as_bytes()[..])
        .fetch_one(connection)
        .await
        .map_err(failed(READ))?;
    Ok(Accepted { seq: row::count(seq)?, job: row::id("a message's job", &job)? })
}

/// Stores the announcement of a run of this tenant that ended; wakes its parent, or accepts a job that answers.
async fn announce(
    connection: &mut SqliteConnection,
    tenant: &str,
    announce: &Announce,
) -> Result<Accepted, StoreError> {
    runs::check_tenant(tenant, announce)?;
    let Announce { parent, party, message, job } = announce;
    let found: Option<(String, Option<String>)> =
        query_as("SELECT state, session FROM jobs WHERE id = $1 AND tenant = $2")
            .bind(&parent.as_bytes()[..])
            .bind(tenant)
            .fetch_optional(&mut *connection)
            .await
            .map_err(failed(READ))?;
    if let Some((state, session)) = found {
        runs::check_session(session.as_deref(), announce)?;
        if state == "parked" {
            let Some(seq) = say(connection, message, *parent).await? else {
                return accepted(connection, message).await;
            };
            let within = Owner { tenant: message.tenant.clone(), session: message.session.clone() };
            raise_last(connection, &within, message.at).await?;
            queue::wake(connection, &message.tenant, *parent).await?;
            return Ok(Accepted { seq, job: *parent });
        }
    }
    match session_owners::accept(connection, party, message, job).await? {
        Some(accepted) => Ok(accepted),
        None => accepted(connection, message).await,
    }
}

/// Adds events of one session, in this order.
async fn tell_all(
    connection: &mut SqliteConnection,
    owner: &Owner,
    events: &[&NewEvent],
) -> Result<(), StoreError> {
    let last: i64 =
        query_scalar("SELECT coalesce(max(seq), 0) FROM events WHERE tenant = $1 AND session = $2")
            .bind(owner.tenant.as_str())
            .bind(owner.session.as_str())
            .fetch_one(&mut *connection)
            .await
            .map_err(failed(WRITE))?;
    let mut rows = Vec::with_capacity(events.len());
    for (seq, event) in (last + 1..).zip(events) {
        rows.push((seq, event.at.0, row::event_columns(&event.body)?));
    }
    for part in parts(&rows) {
        let mut insert = QueryBuilder::new("INSERT INTO events (tenant, session, at, kind, body, seq) ");
        insert.push_values(part, |mut row, (seq, at, (kind, body))| {
            row.push_bind(owner.tenant.as_str())
                .push_bind(owner.session.as_str())
                .push_bind(*at)
                .push_bind(*kind)
                .push_bind(body.as_str())
                .push_bind(*seq);
        });
        insert.build().execute(&mut *connection).await.map_err(failed(WRITE))?;
    }
    Ok(())
}

/// Adds an event; returns its number.
pub(super) async fn tell(
    executor: impl SqliteExecutor<'_>,
    tenant: &TenantId,
    session: &SessionKey,
    at: UnixMillis,
    event: &SessionEventBody,
) -> Result<u64, StoreError> {
    let (kind, body) = row::event_columns(event)?;
    let place: Vec<i64> = query_scalar(
        "INSERT INTO events (tenant, session, at, kind, body, seq)
         VALUES ($1, $2, $3, $4, $5,
             (SELECT coalesce(max(seq), 0) + 1 FROM events WHERE tenant = $1 AND session = $2))
         RETURNING seq",
    )
    .bind(tenant.as_str())
    .bind(session.as_str())
    .bind(at.0)
    .bind(kind)
    .bind(body)
    .fetch_all(executor)
    .await
    .map_err(failed(WRITE))?;
    place.first().map_or_else(
        || Err(row::damaged("the log of events", "it has no sequence number")),
        |seq| row::count(*seq),
    )
}
