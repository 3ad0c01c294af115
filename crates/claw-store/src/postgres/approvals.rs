//! Approvals: answered once, used once.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Answer, Approval, ApprovalState, Approvals, EntryEvent, Lease, NewApproval, Record, StoreError, Topic,
};
use claw_core::{ApprovalId, JobId, TenantId};
use serde_json::{Map, Value};
use sqlx::postgres::{PgExecutor, PgRow};
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use super::connections::Transaction;
use super::failure::failed;
use super::{PostgresStore, get, queue, uuid, without_nul};
use crate::row::{self, is_lapsed, missing, wrong_state};

const WRITE: &str = "could not store the approval";
const READ: &str = "could not read approvals";

#[async_trait]
impl Approvals for PostgresStore {
    async fn request(&self, new: NewApproval) -> Result<Approval, StoreError> {
        let mut transaction = self.begin(WRITE).await?;
        lock_call(&mut transaction, &new).await?;
        end_others(&mut transaction, &new).await?;
        let asked = match find(&mut transaction, &new).await? {
            Some(found) => found,
            None => insert(&mut transaction, new).await?,
        };
        transaction.commit().await.map_err(failed(WRITE))?;
        self.listener.bells.ring(Topic::Approvals);
        Ok(asked)
    }

    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        let row = query(
            "SELECT id, state, answered_by, reason, request FROM approvals WHERE tenant = $1 AND id = $2",
        )
        .bind(tenant.as_str())
        .bind(uuid(id.as_bytes()))
        .fetch_optional(&self.pool)
        .await
        .map_err(failed(READ))?;
        row.as_ref().map(approval).transpose()
    }

    async fn pending(&self, tenant: &TenantId, now: UnixMillis) -> Result<Vec<Approval>, StoreError> {
        let rows = query(
            "SELECT id, state, answered_by, reason, request FROM approvals
             WHERE tenant = $1 AND state = 'pending' AND expires > $2 ORDER BY asked, id",
        )
        .bind(tenant.as_str())
        .bind(now.0)
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
        let mut transaction = self.begin(WRITE).await?;
        let Some(answered) = self::answer(&mut transaction, tenant, id, &answer).await? else {
            transaction.rollback().await.map_err(failed(WRITE))?;
            return Err(wrong_state(&self.existing(tenant, id).await?));
        };
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring_for_approval(&answered);
        if answered.state == ApprovalState::Expired { Err(wrong_state(&answered)) } else { Ok(answered) }
    }

    async fn take_values(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
    ) -> Result<Option<Map<String, Value>>, StoreError> {
        let mut transaction = self.begin(WRITE).await?;
        let taken = query(
            "SELECT input_values, request::text AS request FROM approvals
             WHERE tenant = $1 AND id = $2 AND state = 'approved' FOR UPDATE",
        )
        .bind(tenant.as_str())
        .bind(uuid(id.as_bytes()))
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed(READ))?;
        let Some(taken) = taken else { return Ok(None) };
        let request: String = get(&taken, "request")?;
        let Some(values) = row::input_values(get(&taken, "input_values")?, &request)? else {
            return Ok(None);
        };
        query("UPDATE approvals SET state = 'used', input_values = NULL WHERE tenant = $1 AND id = $2")
            .bind(tenant.as_str())
            .bind(uuid(id.as_bytes()))
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.listener.bells.ring(Topic::Approvals);
        Ok(Some(values))
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
        let mut transaction = self.begin(WRITE).await?;
        lock_run(&mut transaction, tenant, id).await?;
        let closed = query(
            "UPDATE approvals SET state = $3, input_values = NULL
             WHERE tenant = $1 AND id = $2
               AND (state = 'pending' OR (state = 'approved' AND $3 = 'cancelled'))
             RETURNING id, state, answered_by, reason, request",
        )
        .bind(tenant.as_str())
        .bind(uuid(id.as_bytes()))
        .bind(state.name())
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        let Some(row) = closed else {
            transaction.rollback().await.map_err(failed(WRITE))?;
            return self.existing(tenant, id).await;
        };
        let closed = approval(&row)?;
        wake_run(&mut transaction, &closed).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring_for_approval(&closed);
        Ok(closed)
    }
}

impl PostgresStore {
    /// Expires an approval whose time is over by `now`, and returns its current state.
    pub(super) async fn lapse(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        now: UnixMillis,
    ) -> Result<Approval, StoreError> {
        let mut transaction = self.begin(WRITE).await?;
        lock_run(&mut transaction, tenant, id).await?;
        let lapsed = query(
            "UPDATE approvals SET state = 'expired', input_values = NULL
             WHERE tenant = $1 AND id = $2 AND state IN ('pending', 'approved') AND expires <= $3
             RETURNING id, state, answered_by, reason, request",
        )
        .bind(tenant.as_str())
        .bind(uuid(id.as_bytes()))
        .bind(now.0)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        let Some(row) = lapsed else {
            transaction.rollback().await.map_err(failed(WRITE))?;
            return self.existing(tenant, id).await;
        };
        let lapsed = approval(&row)?;
        wake_run(&mut transaction, &lapsed).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring_for_approval(&lapsed);
        Ok(lapsed)
    }

    /// Rings for an approval that changed, and for the run that it may have woken.
    pub(super) fn ring_for_approval(&self, approval: &Approval) {
        self.listener.bells.ring(Topic::Approvals);
        if approval.request.run.is_some() {
            self.listener.bells.ring(Topic::Work);
        }
    }

    /// Returns the current approval, after a change did not apply to it.
    pub(super) async fn existing(&self, tenant: &TenantId, id: ApprovalId) -> Result<Approval, StoreError> {
        self.approval(tenant, id).await?.ok_or_else(|| missing(id))
    }
}

/// Answers an approval, or expires it if its time is over, and wakes its run; returns `None` and changes
/// nothing if none is pending.
pub(super) async fn answer(
    transaction: &mut Transaction,
    tenant: &TenantId,
    id: ApprovalId,
    answer: &Answer,
) -> Result<Option<Approval>, StoreError> {
    lock_run(transaction, tenant, id).await?;
    forget_values(transaction, tenant, answer.at).await?;
    let state = if answer.approve { ApprovalState::Approved } else { ApprovalState::Denied };
    let answered = query(
        "UPDATE approvals
         SET state = CASE WHEN expires <= $5 THEN 'expired' ELSE $3 END,
             answered_by = CASE WHEN expires <= $5 THEN answered_by ELSE $4 END,
             reason = CASE WHEN expires <= $5 THEN reason ELSE $6 END,
             input_values = CASE WHEN expires <= $5 THEN NULL ELSE $7 END
         WHERE tenant = $1 AND id = $2
           AND (state = 'pending' OR (state = 'approved' AND expires <= $5))
         RETURNING id, state, answered_by, reason, request",
    )
    .bind(tenant.as_str())
    .bind(uuid(id.as_bytes()))
    .bind(state.name())
    .bind(without_nul(&answer.by))
    .bind(answer.at.0)
    .bind(answer.reason.as_deref().map(without_nul))
    .bind(answer.values.as_ref().map(row::text).transpose()?)
    .fetch_optional(&mut **transaction)
    .await
    .map_err(failed(WRITE))?;
    let answered = answered.as_ref().map(approval).transpose()?;
    if let Some(answered) = &answered {
        wake_run(transaction, answered).await?;
    }
    Ok(answered)
}

/// Expires answered requests for input whose process ended before it took the values, and forgets the values.
async fn forget_values(
    transaction: &mut Transaction,
    tenant: &TenantId,
    now: UnixMillis,
) -> Result<(), StoreError> {
    query(
        "UPDATE approvals SET state = 'expired', input_values = NULL
         WHERE tenant = $1 AND state = 'approved' AND input_values IS NOT NULL AND expires <= $2",
    )
    .bind(tenant.as_str())
    .bind(now.0)
    .execute(&mut **transaction)
    .await
    .map(drop)
    .map_err(failed(WRITE))
}

/// Locks the run that an approval wakes. This comes before the approval itself, as in parking: whichever
/// comes later sees what the other did.
async fn lock_run(
    transaction: &mut Transaction,
    tenant: &TenantId,
    id: ApprovalId,
) -> Result<(), StoreError> {
    query(
        "SELECT FROM jobs WHERE tenant = $1
           AND id = (SELECT run FROM approvals WHERE tenant = $1 AND id = $2) FOR UPDATE",
    )
    .bind(tenant.as_str())
    .bind(uuid(id.as_bytes()))
    .fetch_optional(&mut **transaction)
    .await
    .map(drop)
    .map_err(failed(WRITE))
}

/// Wakes the run that waits for an approval.
async fn wake_run(transaction: &mut Transaction, approval: &Approval) -> Result<(), StoreError> {
    if let Some(run) = approval.request.run {
        queue::wake(&mut **transaction, &approval.request.tenant, run).await?;
    }
    Ok(())
}

/// Returns whether all these approvals are pending at this time and wake the run of this lease.
pub(super) async fn are_awaited(
    executor: impl PgExecutor<'_>,
    approvals: &[ApprovalId],
    lease: &Lease,
    at: UnixMillis,
) -> Result<bool, StoreError> {
    let mut ids: Vec<Uuid> = approvals.iter().map(|id| uuid(id.as_bytes())).collect();
    ids.sort();
    ids.dedup();
    let awaited: i64 = query_scalar(
        "SELECT count(*) FROM approvals JOIN jobs ON jobs.tenant = approvals.tenant
         WHERE jobs.id = $1 AND approvals.run = $1 AND approvals.id = ANY($2)
           AND approvals.state = 'pending' AND approvals.expires > $3",
    )
    .bind(uuid(lease.job.as_bytes()))
    .bind(&ids)
    .bind(at.0)
    .fetch_one(executor)
    .await
    .map_err(failed(READ))?;
    Ok(usize::try_from(awaited).is_ok_and(|awaited| awaited == ids.len()))
}

/// Cancels the pending approvals of these runs.
pub(super) async fn cancel_of_runs(
    executor: impl PgExecutor<'_>,
    tenant: &TenantId,
    runs: &[JobId],
) -> Result<(), StoreError> {
    let runs: Vec<Uuid> = runs.iter().map(|run| uuid(run.as_bytes())).collect();
    query(
        "UPDATE approvals SET state = 'cancelled' WHERE tenant = $1 AND run = ANY($2) AND state = 'pending'",
    )
    .bind(tenant.as_str())
    .bind(&runs)
    .execute(executor)
    .await
    .map(drop)
    .map_err(failed(WRITE))
}

/// Marks the approval that an intent names as used, in the intent's transaction; returns `false` and changes
/// nothing if it has expired.
pub(super) async fn spend(transaction: &mut Transaction, intent: &Record) -> Result<bool, StoreError> {
    let EntryEvent::Intent { approval: Some(id), digest, .. } = &intent.event else { return Ok(true) };
    // An approval of another action counts as missing.
    let found = query(
        "SELECT id, state, answered_by, reason, request FROM approvals
         WHERE tenant = $1 AND id = $2 AND session = $3 AND agent = $4 AND call = $5 AND digest = $6
         FOR UPDATE",
    )
    .bind(intent.tenant.as_str())
    .bind(uuid(id.as_bytes()))
    .bind(intent.session.as_str())
    .bind(intent.agent.as_str())
    .bind(uuid(intent.call.as_bytes()))
    .bind(digest.to_string())
    .fetch_optional(&mut **transaction)
    .await
    .map_err(failed(READ))?;
    let found = approval(&found.ok_or_else(|| missing(*id))?)?;
    if is_lapsed(&found, intent.at) {
        return Ok(false);
    }
    if found.state != ApprovalState::Approved {
        return Err(wrong_state(&found));
    }
    query("UPDATE approvals SET state = 'used' WHERE tenant = $1 AND id = $2")
        .bind(intent.tenant.as_str())
        .bind(uuid(id.as_bytes()))
        .execute(&mut **transaction)
        .await
        .map_err(failed(WRITE))?;
    Ok(true)
}

/// Serializes the requests of this call: the first has no row yet that could be locked.
async fn lock_call(transaction: &mut Transaction, new: &NewApproval) -> Result<(), StoreError> {
    query("SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(' ', $1, $2, $3, $4), 0))")
        .bind(new.tenant.as_str())
        .bind(new.session.as_str())
        .bind(new.agent.as_str())
        .bind(uuid(new.call.as_bytes()))
        .execute(&mut **transaction)
        .await
        .map(drop)
        .map_err(failed(WRITE))
}

/// Ends approvals of the same call that it may no longer use: they expired, or it asks for something else
/// now.
async fn end_others(transaction: &mut Transaction, new: &NewApproval) -> Result<(), StoreError> {
    query(
        "UPDATE approvals SET state = CASE WHEN expires <= $6 THEN 'expired' ELSE 'cancelled' END, input_values = NULL
         WHERE tenant = $1 AND session = $2 AND agent = $3 AND call = $4 AND state IN ('pending', 'approved')
           AND (digest <> $5 OR expires <= $6)",
    )
    .bind(new.tenant.as_str())
    .bind(new.session.as_str())
    .bind(new.agent.as_str())
    .bind(uuid(new.call.as_bytes()))
    .bind(new.digest.to_string())
    .bind(new.asked.0)
    .execute(&mut **transaction)
    .await
    .map(drop)
    .map_err(failed(WRITE))
}

/// Returns the approval of the same call for the same action, unless it was cancelled. A statement of its
/// own, so that it sees an answer for which [`end_others`] had to wait.
async fn find(transaction: &mut Transaction, new: &NewApproval) -> Result<Option<Approval>, StoreError> {
    let found = query(
        "SELECT id, state, answered_by, reason, request FROM approvals
         WHERE tenant = $1 AND session = $2 AND agent = $3 AND call = $4 AND digest = $5
           AND state <> 'cancelled'",
    )
    .bind(new.tenant.as_str())
    .bind(new.session.as_str())
    .bind(new.agent.as_str())
    .bind(uuid(new.call.as_bytes()))
    .bind(new.digest.to_string())
    .fetch_optional(&mut **transaction)
    .await
    .map_err(failed(READ))?;
    found.as_ref().map(approval).transpose()
}

async fn insert(transaction: &mut Transaction, new: NewApproval) -> Result<Approval, StoreError> {
    let id = ApprovalId::new();
    query(
        "INSERT INTO approvals (id, tenant, session, agent, call, digest, state, request, asked, expires, run)
         VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7::json, $8, $9, $10)",
    )
    .bind(uuid(id.as_bytes()))
    .bind(new.tenant.as_str())
    .bind(new.session.as_str())
    .bind(new.agent.as_str())
    .bind(uuid(new.call.as_bytes()))
    .bind(new.digest.to_string())
    .bind(row::text(&new)?)
    .bind(new.asked.0)
    .bind(new.expires.0)
    .bind(new.run.map(|run| uuid(run.as_bytes())))
    .execute(&mut **transaction)
    .await
    .map_err(failed(WRITE))?;
    Ok(Approval { id, request: new, state: ApprovalState::Pending, answered_by: None, reason: None })
}

fn approval(row: &PgRow) -> Result<Approval, StoreError> {
    let id: Uuid = get(row, "id")?;
    let Json(request) = get(row, "request")?;
    Ok(Approval {
        id: row::id("an approval's id", id.as_bytes())?,
        request,
        state: row::word("an approval's state", get(row, "state")?)?,
        answered_by: get(row, "answered_by")?,
        reason: get(row, "reason")?,
    })
}
