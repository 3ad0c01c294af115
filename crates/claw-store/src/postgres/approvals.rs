//! Questions to people: answered once, used once.

use async_trait::async_trait;
use claw_core::store::{
    Answer, Approval, ApprovalState, Approvals, EntryEvent, NewApproval, Record, StoreError,
};
use claw_core::{ApprovalId, TenantId};
use sqlx::postgres::{PgRow, PgTransaction};
use sqlx::query;
use sqlx::types::Json;
use tokio::sync::watch;
use uuid::Uuid;

use super::changes::Topic;
use super::failure::failed;
use super::{PostgresStore, get, uuid, without_nul};
use crate::row;

const WRITE: &str = "could not keep the question";
const READ: &str = "could not read questions";

#[async_trait]
impl Approvals for PostgresStore {
    async fn request(&self, new: NewApproval) -> Result<Approval, StoreError> {
        let mut transaction = self.begin(WRITE).await?;
        lock_call(&mut transaction, &new).await?;
        let asked = match cancel_others_and_find(&mut transaction, &new).await? {
            Some(found) => found,
            None => insert(&mut transaction, new).await?,
        };
        transaction.commit().await.map_err(failed(WRITE))?;
        self.changes.ring(Topic::Approvals);
        Ok(asked)
    }

    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        let row =
            query("SELECT id, state, answered_by, request FROM approvals WHERE tenant = $1 AND id = $2")
                .bind(tenant.as_str())
                .bind(uuid(id.as_bytes()))
                .fetch_optional(&self.pool)
                .await
                .map_err(failed(READ))?;
        row.as_ref().map(approval).transpose()
    }

    async fn pending(&self, tenant: &TenantId) -> Result<Vec<Approval>, StoreError> {
        let rows = query(
            "SELECT id, state, answered_by, request FROM approvals
             WHERE tenant = $1 AND state = 'pending' ORDER BY asked, id",
        )
        .bind(tenant.as_str())
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))?;
        rows.iter().map(approval).collect()
    }

    async fn answer(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        answer: Answer,
    ) -> Result<Approval, StoreError> {
        let state = if answer.approve { ApprovalState::Approved } else { ApprovalState::Denied };
        let answered = query(
            "UPDATE approvals SET state = $3, answered_by = $4
             WHERE tenant = $1 AND id = $2 AND state = 'pending'
             RETURNING id, state, answered_by, request",
        )
        .bind(tenant.as_str())
        .bind(uuid(id.as_bytes()))
        .bind(state.name())
        .bind(without_nul(&answer.by))
        .fetch_optional(&self.pool)
        .await
        .map_err(failed(WRITE))?;
        let Some(row) = answered else {
            return Err(wrong_state(&self.existing(tenant, id).await?));
        };
        self.changes.ring(Topic::Approvals);
        approval(&row)
    }

    async fn close(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        state: ApprovalState,
    ) -> Result<Approval, StoreError> {
        if !matches!(state, ApprovalState::Expired | ApprovalState::Cancelled) {
            return Err(wrong_state(&self.existing(tenant, id).await?));
        }
        let closed = query(
            "UPDATE approvals SET state = $3
             WHERE tenant = $1 AND id = $2
               AND (state = 'pending' OR (state = 'approved' AND $3 = 'cancelled'))
             RETURNING id, state, answered_by, request",
        )
        .bind(tenant.as_str())
        .bind(uuid(id.as_bytes()))
        .bind(state.name())
        .fetch_optional(&self.pool)
        .await
        .map_err(failed(WRITE))?;
        let Some(row) = closed else {
            return self.existing(tenant, id).await;
        };
        self.changes.ring(Topic::Approvals);
        approval(&row)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe(Topic::Approvals)
    }
}

impl PostgresStore {
    /// A question as it stands, where a change did not apply to it.
    async fn existing(&self, tenant: &TenantId, id: ApprovalId) -> Result<Approval, StoreError> {
        self.approval(tenant, id).await?.ok_or_else(|| missing(id))
    }
}

/// Marks the approval that an intent names used, in the transaction that writes the intent.
pub(super) async fn spend(transaction: &mut PgTransaction<'_>, intent: &Record) -> Result<(), StoreError> {
    let EntryEvent::Intent { approval: Some(id), digest, .. } = &intent.event else { return Ok(()) };
    // What is about something else is as good as not there.
    let found = query(
        "SELECT id, state, answered_by, request FROM approvals
         WHERE tenant = $1 AND id = $2 AND call = $3 AND digest = $4 FOR UPDATE",
    )
    .bind(intent.tenant.as_str())
    .bind(uuid(id.as_bytes()))
    .bind(uuid(intent.call.as_bytes()))
    .bind(digest.to_string())
    .fetch_optional(&mut **transaction)
    .await
    .map_err(failed(READ))?;
    let found = approval(&found.ok_or_else(|| missing(*id))?)?;
    if found.state != ApprovalState::Approved {
        return Err(wrong_state(&found));
    }
    query("UPDATE approvals SET state = 'used' WHERE tenant = $1 AND id = $2")
        .bind(intent.tenant.as_str())
        .bind(uuid(id.as_bytes()))
        .execute(&mut **transaction)
        .await
        .map_err(failed(WRITE))?;
    Ok(())
}

/// Lets one transaction at a time put a question of this call: the first has no row yet to be locked.
async fn lock_call(transaction: &mut PgTransaction<'_>, new: &NewApproval) -> Result<(), StoreError> {
    query("SELECT pg_advisory_xact_lock(hashtextextended($1 || ' ' || $2::text, 0))")
        .bind(new.tenant.as_str())
        .bind(uuid(new.call.as_bytes()))
        .execute(&mut **transaction)
        .await
        .map(drop)
        .map_err(failed(WRITE))
}

async fn cancel_others_and_find(
    transaction: &mut PgTransaction<'_>,
    new: &NewApproval,
) -> Result<Option<Approval>, StoreError> {
    let found = query(
        "WITH others AS (
             UPDATE approvals SET state = 'cancelled'
             WHERE tenant = $1 AND call = $2 AND digest <> $3 AND state IN ('pending', 'approved')
         )
         SELECT id, state, answered_by, request FROM approvals
         WHERE tenant = $1 AND call = $2 AND digest = $3 AND state <> 'cancelled'",
    )
    .bind(new.tenant.as_str())
    .bind(uuid(new.call.as_bytes()))
    .bind(new.digest.to_string())
    .fetch_optional(&mut **transaction)
    .await
    .map_err(failed(WRITE))?;
    found.as_ref().map(approval).transpose()
}

async fn insert(transaction: &mut PgTransaction<'_>, new: NewApproval) -> Result<Approval, StoreError> {
    let id = ApprovalId::new();
    query(
        "INSERT INTO approvals (id, tenant, session, call, digest, state, request, asked, expires)
         VALUES ($1, $2, $3, $4, $5, 'pending', $6::json, $7, $8)",
    )
    .bind(uuid(id.as_bytes()))
    .bind(new.tenant.as_str())
    .bind(new.session.as_str())
    .bind(uuid(new.call.as_bytes()))
    .bind(new.digest.to_string())
    .bind(row::text(&new)?)
    .bind(new.asked.0)
    .bind(new.expires.0)
    .execute(&mut **transaction)
    .await
    .map_err(failed(WRITE))?;
    Ok(Approval { id, request: new, state: ApprovalState::Pending, answered_by: None })
}

fn approval(row: &PgRow) -> Result<Approval, StoreError> {
    let id: Uuid = get(row, "id")?;
    let Json(request) = get(row, "request")?;
    Ok(Approval {
        id: row::id("an approval's id", id.as_bytes())?,
        request,
        state: row::word("an approval's state", get(row, "state")?)?,
        answered_by: get(row, "answered_by")?,
    })
}

fn wrong_state(approval: &Approval) -> StoreError {
    StoreError::ApprovalState { id: approval.id, state: approval.state.name() }
}

fn missing(id: ApprovalId) -> StoreError {
    StoreError::ApprovalState { id, state: "missing" }
}
