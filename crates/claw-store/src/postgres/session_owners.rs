//! Sessions and their owners.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Accepted, Circle, Conversation, ConversationPage, Conversations, Fork, Message, MessagePage, NewJob,
    NewMessage, Party, StoreError, Topic,
};
use claw_core::{JobId, SessionKey, TenantId};
use sqlx::{query, query_scalar};

use super::connections::Transaction;
use super::failure::failed;
use super::{PostgresStore, queue, sessions, uuid};
use crate::row;
use crate::session_owners::{self as shared, ACCEPT, CHANGE, READ, Row};

const COLUMNS: &str = shared::columns!("c.job::text");
/// Sets the message counter of a forked session.
const COUNT_FORKED: &str = "INSERT INTO sessions (tenant, session, started, messages)
     SELECT tenant, $3, started, messages FROM sessions WHERE tenant = $1 AND session = $2
     ON CONFLICT (tenant, session) DO UPDATE SET messages = excluded.messages";
const UNCOUNT: &str = "DELETE FROM sessions WHERE tenant = $1 AND session = $2";

#[async_trait]
impl Conversations for PostgresStore {
    async fn accept_from(
        &self,
        party: &Party,
        message: NewMessage,
        job: NewJob,
    ) -> Result<Accepted, StoreError> {
        let mut transaction = self.begin(ACCEPT).await?;
        queue::lock_parent(&mut transaction, &job).await?;
        let Some(accepted) = accept(&mut transaction, party, &message, &job).await? else {
            return sessions::accepted(&mut transaction, &message).await;
        };
        transaction.commit().await.map_err(failed(ACCEPT))?;
        self.listener.bells.ring(Topic::Work);
        self.ring_for([&message]);
        Ok(accepted)
    }

    async fn accept_after(
        &self,
        last: JobId,
        party: &Party,
        message: NewMessage,
        job: NewJob,
    ) -> Result<Accepted, StoreError> {
        let mut transaction = self.begin(ACCEPT).await?;
        queue::lock_parent(&mut transaction, &job).await?;
        // From here on the session's row is locked: another message has been committed, or comes later.
        let Some(accepted) = accept(&mut transaction, party, &message, &job).await? else {
            return sessions::accepted(&mut transaction, &message).await;
        };
        let is_latest: i64 = query_scalar(shared::IS_LATEST)
            .bind(message.tenant.as_str())
            .bind(message.session.as_str())
            .bind(uuid(last.as_bytes()))
            .bind(uuid(job.id.as_bytes()))
            .fetch_one(&mut *transaction)
            .await
            .map_err(failed(ACCEPT))?;
        if is_latest != 1 {
            transaction.rollback().await.map_err(failed(ACCEPT))?;
            return Err(shared::went_on(&message.session, last));
        }
        transaction.commit().await.map_err(failed(ACCEPT))?;
        self.listener.bells.ring(Topic::Work);
        self.ring_for([&message]);
        Ok(accepted)
    }

    async fn conversations(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        page: &ConversationPage,
    ) -> Result<Vec<Conversation>, StoreError> {
        let mut asked = shared::list(COLUMNS, tenant, circle, page);
        let rows: Vec<Row> = asked.build_query_as().fetch_all(&self.pool).await.map_err(failed(READ))?;
        rows.iter().map(shared::conversation).collect()
    }

    async fn conversation(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
    ) -> Result<Option<Conversation>, StoreError> {
        let mut asked = shared::one(COLUMNS, tenant, circle, session);
        let row: Option<Row> =
            asked.build_query_as().fetch_optional(&self.pool).await.map_err(failed(READ))?;
        row.as_ref().map(shared::conversation).transpose()
    }

    async fn said_in(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
        page: MessagePage,
    ) -> Result<Option<Vec<Message>>, StoreError> {
        let mut asked = shared::said(tenant, circle, session, page);
        let rows: Vec<sessions::Row> =
            asked.build_query_as().fetch_all(&self.pool).await.map_err(failed(READ))?;
        if rows.is_empty() && self.conversation(tenant, circle, session).await?.is_none() {
            return Ok(None);
        }
        let messages = rows.into_iter().rev().map(|row| sessions::message(tenant, session, row));
        messages.collect::<Result<_, _>>().map(Some)
    }

    async fn rename_conversation(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
        title: Option<&str>,
    ) -> Result<bool, StoreError> {
        if self.conversation(tenant, circle, session).await?.is_none() {
            return Ok(false);
        }
        let mut transaction = self.begin(CHANGE).await?;
        let renamed = query(shared::RENAME).bind(tenant.as_str()).bind(session.as_str()).bind(title);
        let renamed = renamed.execute(&mut *transaction).await.map_err(failed(CHANGE))?;
        transaction.commit().await.map_err(failed(CHANGE))?;
        Ok(renamed.rows_affected() > 0)
    }

    async fn fork_conversation(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
        Fork { to, at }: Fork<'_>,
    ) -> Result<bool, StoreError> {
        if self.conversation(tenant, circle, session).await?.is_none() {
            return Ok(false);
        }
        let mut transaction = self.begin(CHANGE).await?;
        let forked = query(shared::FORK)
            .bind(tenant.as_str())
            .bind(session.as_str())
            .bind(to.as_str())
            .bind(at.0)
            .execute(&mut *transaction)
            .await
            .map_err(failed(CHANGE))?;
        if forked.rows_affected() == 0 {
            return Err(shared::taken(to));
        }
        for part in [
            COUNT_FORKED,
            shared::fork_messages!("gen_random_uuid()"),
            shared::FORK_SUMMARIES,
            shared::FORK_MARK,
        ] {
            let copied = query(part).bind(tenant.as_str()).bind(session.as_str()).bind(to.as_str());
            copied.execute(&mut *transaction).await.map_err(failed(CHANGE))?;
        }
        transaction.commit().await.map_err(failed(CHANGE))?;
        Ok(true)
    }

    async fn remove_conversation(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
    ) -> Result<bool, StoreError> {
        if self.conversation(tenant, circle, session).await?.is_none() {
            return Ok(false);
        }
        let mut transaction = self.begin(CHANGE).await?;
        let open = query_scalar(shared::OPEN_RUNS).bind(tenant.as_str()).bind(session.as_str());
        let open: i64 = open.fetch_one(&mut *transaction).await.map_err(failed(CHANGE))?;
        if open > 0 {
            return Err(shared::busy(session));
        }
        for part in shared::REMOVE.iter().chain(&[UNCOUNT]) {
            let removed = query(*part).bind(tenant.as_str()).bind(session.as_str());
            removed.execute(&mut *transaction).await.map_err(failed(CHANGE))?;
        }
        transaction.commit().await.map_err(failed(CHANGE))?;
        Ok(true)
    }

    async fn mark_untrusted(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        let marked = query(shared::MARK).bind(tenant.as_str()).bind(session.as_str()).bind(at.0);
        marked.execute(&self.pool).await.map(drop).map_err(failed(CHANGE))
    }

    async fn is_untrusted(&self, tenant: &TenantId, session: &SessionKey) -> Result<bool, StoreError> {
        let marks = query_scalar(shared::MARKS).bind(tenant.as_str()).bind(session.as_str());
        let marks: i64 = marks.fetch_one(&self.pool).await.map_err(failed(READ))?;
        Ok(marks > 0)
    }
}

/// Stores a message of this party and the job that answers it; returns `None` and stores nothing if its id is
/// known.
pub(super) async fn accept(
    transaction: &mut Transaction,
    party: &Party,
    message: &NewMessage,
    job: &NewJob,
) -> Result<Option<Accepted>, StoreError> {
    shared::check(party)?;
    let Some(seq) = sessions::say(transaction, message, job.id).await? else { return Ok(None) };
    let kept: Option<String> = query_scalar(shared::keep!("::json"))
        .bind(message.tenant.as_str())
        .bind(message.session.as_str())
        .bind(party.agent.as_str())
        .bind(shared::owner(party))
        .bind(party.channel.as_str())
        .bind(party.chat.as_deref())
        .bind(shared::peer(party.peer))
        .bind(job.lane.as_str())
        .bind(message.at.0)
        .bind(row::text(&job.payload)?)
        .fetch_optional(&mut **transaction)
        .await
        .map_err(failed(ACCEPT))?;
    if kept.is_none() {
        return Err(shared::not_theirs(&message.session));
    }
    queue::accept(transaction, job).await?;
    Ok(Some(Accepted { seq, job: job.id }))
}
