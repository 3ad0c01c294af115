//! Questions to people.

use async_trait::async_trait;
use claw_core::store::{Answer, Approval, ApprovalState, Approvals, NewApproval, StoreError};
use claw_core::tool::Digest;
use claw_core::{ApprovalId, CallId, TenantId};
use sqlx::sqlite::{SqliteConnection, SqliteExecutor};
use sqlx::{query, query_as};
use tokio::sync::watch;

use super::SqliteStore;
use super::error::failed;
use crate::row;

const WRITE: &str = "could not write the approval";
const READ: &str = "could not read approvals";

/// Id, state, request and who answered.
type Row = (Vec<u8>, String, String, Option<String>);

#[async_trait]
impl Approvals for SqliteStore {
    async fn request(&self, new: NewApproval) -> Result<Approval, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let dropped = cancel_others(&mut transaction, &new).await?;
        let found = find(&mut transaction, &new).await?;
        let known = found.is_some();
        let approval = match found {
            Some(found) => found,
            None => insert(&mut transaction, new).await?,
        };
        if dropped || !known {
            transaction.commit().await.map_err(failed(WRITE))?;
            self.changes.approvals.ring();
        }
        Ok(approval)
    }

    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        get(&self.readers, tenant, id).await
    }

    async fn pending(&self, tenant: &TenantId) -> Result<Vec<Approval>, StoreError> {
        let rows: Vec<Row> = query_as(
            "SELECT id, state, request, answered_by FROM approvals
             WHERE tenant = $1 AND state = 'pending' ORDER BY asked, id",
        )
        .bind(tenant.as_str())
        .fetch_all(&self.readers)
        .await
        .map_err(failed(READ))?;
        rows.into_iter().map(approval).collect()
    }

    async fn answer(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        answer: Answer,
    ) -> Result<Approval, StoreError> {
        let state = if answer.approve { ApprovalState::Approved } else { ApprovalState::Denied };
        self.change(tenant, id, |approval| match approval.state {
            ApprovalState::Pending => {
                approval.answered_by = Some(answer.by);
                Ok(state)
            }
            state => Err(StoreError::ApprovalState { id, state: state.name() }),
        })
        .await
    }

    async fn close(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        state: ApprovalState,
    ) -> Result<Approval, StoreError> {
        use ApprovalState::{Approved, Cancelled, Expired, Pending};
        self.change(tenant, id, |approval| match (approval.state, state) {
            (Pending, Expired | Cancelled) | (Approved, Cancelled) => Ok(state),
            (over, Expired | Cancelled) => Ok(over),
            (now, _) => Err(StoreError::ApprovalState { id, state: now.name() }),
        })
        .await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.approvals.listen()
    }
}

impl SqliteStore {
    /// Moves a question to the state that `next` gives.
    async fn change(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        next: impl FnOnce(&mut Approval) -> Result<ApprovalState, StoreError> + Send,
    ) -> Result<Approval, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let mut approval = get(&mut *transaction, tenant, id).await?.ok_or_else(|| missing(id))?;
        approval.state = next(&mut approval)?;
        query("UPDATE approvals SET state = $1, answered_by = $2 WHERE id = $3")
            .bind(approval.state.name())
            .bind(&approval.answered_by)
            .bind(&id.as_bytes()[..])
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.changes.approvals.ring();
        Ok(approval)
    }
}

/// Marks an approval used by the call that it covers.
pub(super) async fn spend(
    connection: &mut SqliteConnection,
    id: ApprovalId,
    (tenant, call, digest): (&TenantId, CallId, Digest),
) -> Result<(), StoreError> {
    let asked = get(&mut *connection, tenant, id).await?;
    let covers = |asked: &Approval| asked.request.call == call && asked.request.digest == digest;
    let asked = asked.filter(covers).ok_or_else(|| missing(id))?;
    if asked.state != ApprovalState::Approved {
        return Err(StoreError::ApprovalState { id, state: asked.state.name() });
    }
    query("UPDATE approvals SET state = 'used' WHERE id = $1")
        .bind(&id.as_bytes()[..])
        .execute(connection)
        .await
        .map(drop)
        .map_err(failed(WRITE))
}

/// Cancels what the same call asked otherwise and may still use.
async fn cancel_others(connection: &mut SqliteConnection, new: &NewApproval) -> Result<bool, StoreError> {
    let cancelled = query(
        "UPDATE approvals SET state = 'cancelled'
         WHERE tenant = $1 AND call = $2 AND digest <> $3 AND state IN ('pending', 'approved')",
    )
    .bind(new.tenant.as_str())
    .bind(&new.call.as_bytes()[..])
    .bind(new.digest.to_string())
    .execute(connection)
    .await
    .map_err(failed(WRITE))?;
    Ok(cancelled.rows_affected() > 0)
}

/// The last question of the same call about the same thing, unless it was cancelled.
async fn find(connection: &mut SqliteConnection, new: &NewApproval) -> Result<Option<Approval>, StoreError> {
    let row: Option<Row> = query_as(
        "SELECT id, state, request, answered_by FROM approvals
         WHERE tenant = $1 AND call = $2 AND digest = $3 ORDER BY id DESC LIMIT 1",
    )
    .bind(new.tenant.as_str())
    .bind(&new.call.as_bytes()[..])
    .bind(new.digest.to_string())
    .fetch_optional(connection)
    .await
    .map_err(failed(READ))?;
    let found = row.map(approval).transpose()?;
    Ok(found.filter(|found| found.state != ApprovalState::Cancelled))
}

async fn insert(connection: &mut SqliteConnection, new: NewApproval) -> Result<Approval, StoreError> {
    let id = ApprovalId::new();
    query(
        "INSERT INTO approvals (id, tenant, session, call, digest, state, request, asked, expires)
         VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7, $8)",
    )
    .bind(&id.as_bytes()[..])
    .bind(new.tenant.as_str())
    .bind(new.session.as_str())
    .bind(&new.call.as_bytes()[..])
    .bind(new.digest.to_string())
    .bind(row::text(&new)?)
    .bind(new.asked.0)
    .bind(new.expires.0)
    .execute(connection)
    .await
    .map_err(failed(WRITE))?;
    Ok(Approval { id, request: new, state: ApprovalState::Pending, answered_by: None })
}

async fn get(
    executor: impl SqliteExecutor<'_>,
    tenant: &TenantId,
    id: ApprovalId,
) -> Result<Option<Approval>, StoreError> {
    let row: Option<Row> =
        query_as("SELECT id, state, request, answered_by FROM approvals WHERE id = $1 AND tenant = $2")
            .bind(&id.as_bytes()[..])
            .bind(tenant.as_str())
            .fetch_optional(executor)
            .await
            .map_err(failed(READ))?;
    row.map(approval).transpose()
}

fn approval((id, state, request, answered_by): Row) -> Result<Approval, StoreError> {
    Ok(Approval {
        id: row::id("an approval's id", &id)?,
        request: row::json("an approval", &request)?,
        state: row::word("an approval's state", &state)?,
        answered_by,
    })
}

fn missing(id: ApprovalId) -> StoreError {
    StoreError::ApprovalState { id, state: "missing" }
}
