//! Whose conversations are.

use async_trait::async_trait;
use claw_core::store::{
    Accepted, Circle, Conversation, ConversationPage, Conversations, Message, NewJob, NewMessage, Party,
    StoreError, Topic,
};
use claw_core::{SessionKey, TenantId};
use sqlx::query_scalar;

use super::connections::Transaction;
use super::failure::failed;
use super::{PostgresStore, queue, sessions};
use crate::conversations::{self as shared, ACCEPT, READ, Row};
use crate::row;

const COLUMNS: &str = shared::columns!("c.job::text");

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
        (tenant, circle): (&TenantId, &Circle),
        session: &SessionKey,
        before: u64,
        limit: usize,
    ) -> Result<Option<Vec<Message>>, StoreError> {
        let mut asked = shared::said(tenant, circle, session, (before, limit));
        let rows: Vec<sessions::Row> =
            asked.build_query_as().fetch_all(&self.pool).await.map_err(failed(READ))?;
        if rows.is_empty() && self.conversation(tenant, circle, session).await?.is_none() {
            return Ok(None);
        }
        let messages = rows.into_iter().rev().map(|row| sessions::message(tenant, session, row));
        messages.collect::<Result<_, _>>().map(Some)
    }
}

/// Stores a message of this party and the job that answers it; `None`, and nothing stored, where its id is known.
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
