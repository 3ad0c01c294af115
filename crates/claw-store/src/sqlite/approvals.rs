//! Approvals: answered once, used once.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Answer, Approval, ApprovalState, Approvals, Lease, NewApproval, Record, StoreError, Topic,
};
use claw_core::tool::Digest;
use claw_core::{ApprovalId, JobId, TenantId};
use serde_json::{Map, Value};
use sqlx::sqlite::{SqliteConnection, SqliteExecutor};
use sqlx::{query, query_as, query_scalar};

use super::error::failed;
use super::{SqliteStore, queue};
use crate::row::{self, is_lapsed, missing, wrong_state};

const WRITE: &str = "could not write the approval";
const READ: &str = "could not read approvals";

/// Id, state, request, answerer and reason.
type Row = (Vec<u8>, String, String, Option<String>, Option<String>);

#[async_trait]
impl Approvals for SqliteStore {
    async fn request(&self, new: NewApproval) -> Result<Approval, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let ended = end_others(&mut transaction, &new).await?;
        let found = find(&mut transaction, &new).await?;
        let known = found.is_some();
        let approval = match found {
            Some(found) => found,
            None => insert(&mut transaction, new).await?,
        };
        if ended || !known {
            transaction.commit().await.map_err(failed(WRITE))?;
            self.bells.ring(Topic::Approvals);
        }
        Ok(approval)
    }

    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        get(&self.readers, tenant, id).await
    }

    async fn pending(&self, tenant: &TenantId, now: UnixMillis) -> Result<Vec<Approval>, StoreError> {
        let rows: Vec<Row> = query_as(
            "SELECT id, state, request, answered_by, reason FROM approvals
             WHERE tenant = $1 AND state = 'pending' AND expires > $2 ORDER BY asked, id",
        )
        .bind(tenant.as_str())
        .bind(now.0)
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
        let mut transaction = self.write(WRITE).await?;
        let answered = self::answer(&mut transaction, tenant, id, answer).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.bells.ring(Topic::Approvals);
        self.ring_for_run(&answered);
        if answered.state == ApprovalState::Expired { Err(wrong_state(&answered)) } else { Ok(answered) }
    }

    async fn take_values(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
    ) -> Result<Option<Map<String, Value>>, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let taken: Option<(Option<String>, String)> = query_as(
            "SELECT input_values, request FROM approvals WHERE tenant = $1 AND id = $2 AND state = 'approved'",
        )
        .bind(tenant.as_str())
        .bind(&id.as_bytes()[..])
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed(READ))?;
        let Some(values) =
            taken.map(|(values, request)| row::input_values(values, &request)).transpose()?.flatten()
        else {
            return Ok(None);
        };
        query("UPDATE approvals SET state = 'used', input_values = NULL WHERE id = $1")
            .bind(&id.as_bytes()[..])
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.bells.ring(Topic::Approvals);
        Ok(Some(values))
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
            _ => Err(wrong_state(approval)),
        })
        .await
    }
}

impl SqliteStore {
    /// Expires an approval whose time is over by `now`, and returns its current state.
    pub(super) async fn lapse(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        now: UnixMillis,
    ) -> Result<Approval, StoreError> {
        let next = |approval: &mut Approval| {
            Ok(if is_lapsed(approval, now) { ApprovalState::Expired } else { approval.state })
        };
        self.change(tenant, id, next).await
    }

    /// Rings for the run that an approval may have woken.
    pub(super) fn ring_for_run(&self, approval: &Approval) {
        if approval.request.run.is_some() {
            self.bells.ring(Topic::Work);
        }
    }

    /// Moves an approval to the state that `next` returns.
    async fn change(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        next: impl FnOnce(&mut Approval) -> Result<ApprovalState, StoreError> + Send,
    ) -> Result<Approval, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let approval = change(&mut transaction, tenant, id, next).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.bells.ring(Topic::Approvals);
        self.ring_for_run(&approval);
        Ok(approval)
    }
}

/// Answers an approval, or expires it if its time is over.
pub(super) async fn answer(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    id: ApprovalId,
    mut answer: Answer,
) -> Result<Approval, StoreError> {
    forget_values(&mut *connection, tenant, answer.at).await?;
    let values = answer.values.take();
    let answered = change(&mut *connection, tenant, id, |approval| by_answer(approval, answer)).await?;
    if let Some(values) = values.filter(|_| answered.state == ApprovalState::Approved) {
        query("UPDATE approvals SET input_values = $2 WHERE id = $1")
            .bind(&id.as_bytes()[..])
            .bind(row::text(&values)?)
            .execute(connection)
            .await
            .map_err(failed(WRITE))?;
    }
    Ok(answered)
}

/// Expires answered requests for input whose process ended before it took the values, and forgets the values.
async fn forget_values(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    now: UnixMillis,
) -> Result<(), StoreError> {
    query(
        "UPDATE approvals SET state = 'expired', input_values = NULL
         WHERE tenant = $1 AND state = 'approved' AND input_values IS NOT NULL AND expires <= $2",
    )
    .bind(tenant.as_str())
    .bind(now.0)
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed(WRITE))
}

fn by_answer(approval: &mut Approval, answer: Answer) -> Result<ApprovalState, StoreError> {
    match approval.state {
        _ if is_lapsed(approval, answer.at) => Ok(ApprovalState::Expired),
        ApprovalState::Pending => {
            approval.answered_by = Some(answer.by);
            approval.reason = answer.reason;
            Ok(if answer.approve { ApprovalState::Approved } else { ApprovalState::Denied })
        }
        _ => Err(wrong_state(approval)),
    }
}

/// Moves an approval to the state that `next` returns. If it is then not pending, the run that waits for it
/// is woken.
async fn change(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    id: ApprovalId,
    next: impl FnOnce(&mut Approval) -> Result<ApprovalState, StoreError>,
) -> Result<Approval, StoreError> {
    let mut approval = get(&mut *connection, tenant, id).await?.ok_or_else(|| missing(id))?;
    approval.state = next(&mut approval)?;
    query(
        "UPDATE approvals SET state = $1, answered_by = $2, reason = $4,
             input_values = CASE WHEN $1 = 'approved' THEN input_values END
         WHERE id = $3",
    )
    .bind(approval.state.name())
    .bind(&approval.answered_by)
    .bind(&id.as_bytes()[..])
    .bind(&approval.reason)
    .execute(&mut *connection)
    .await
    .map_err(failed(WRITE))?;
    if let Some(run) = approval.request.run.filter(|_| approval.state != ApprovalState::Pending) {
        queue::wake(connection, tenant, run).await?;
    }
    Ok(approval)
}

/// Returns whether an approval is pending at this time and wakes the run of this lease.
pub(super) async fn is_awaited(
    connection: &mut SqliteConnection,
    id: ApprovalId,
    lease: &Lease,
    at: UnixMillis,
) -> Result<bool, StoreError> {
    query_scalar(
        "SELECT EXISTS (SELECT 1 FROM approvals JOIN jobs ON jobs.tenant = approvals.tenant
                        WHERE jobs.id = $1 AND approvals.run = $1 AND approvals.id = $2
                          AND approvals.state = 'pending' AND approvals.expires > $3)",
    )
    .bind(&lease.job.as_bytes()[..])
    .bind(&id.as_bytes()[..])
    .bind(at.0)
    .fetch_one(connection)
    .await
    .map_err(failed(READ))
}

/// Cancels the pending approvals of a run.
pub(super) async fn cancel_of_run(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    run: JobId,
) -> Result<(), StoreError> {
    query(
        "UPDATE approvals SET state = 'cancelled'
         WHERE tenant = $1 AND run = $2 AND run IS NOT NULL AND state = 'pending'",
    )
    .bind(tenant.as_str())
    .bind(&run.as_bytes()[..])
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed(WRITE))
}

/// Marks an approval as used by the call that it covers; returns `false` and changes nothing if it has
/// expired.
pub(super) async fn spend(
    connection: &mut SqliteConnection,
    id: ApprovalId,
    digest: Digest,
    intent: &Record,
) -> Result<bool, StoreError> {
    let covers = |asked: &Approval| {
        let (asked, by) = (&asked.request, intent);
        (asked.call, asked.digest, &asked.session, &asked.agent) == (by.call, digest, &by.session, &by.agent)
    };
    let asked = get(&mut *connection, &intent.tenant, id).await?;
    let asked = asked.filter(covers).ok_or_else(|| missing(id))?;
    if is_lapsed(&asked, intent.at) {
        return Ok(false);
    }
    if asked.state != ApprovalState::Approved {
        return Err(wrong_state(&asked));
    }
    query("UPDATE approvals SET state = 'used' WHERE id = $1")
        .bind(&id.as_bytes()[..])
        .execute(connection)
        .await
        .map_err(failed(WRITE))?;
    Ok(true)
}

/// Ends approvals of the same call that it may no longer use: they expired, or it asks for something else
/// now.
async fn end_others(connection: &mut SqliteConnection, new: &NewApproval) -> Result<bool, StoreError> {
    let ended = query(
        "UPDATE approvals SET state = CASE WHEN expires <= $6 THEN 'expired' ELSE 'cancelled' END, input_values = NULL
         WHERE tenant = $1 AND session = $2 AND agent = $3 AND call = $4 AND state IN ('pending', 'approved')
           AND (digest <> $5 OR expires <= $6)",
    )
    .bind(new.tenant.as_str())
    .bind(new.session.as_str())
    .bind(new.agent.as_str())
    .bind(&new.call.as_bytes()[..])
    .bind(new.digest.to_string())
    .bind(new.asked.0)
    .execute(connection)
    .await
    .map_err(failed(WRITE))?;
    Ok(ended.rows_affected() > 0)
}

/// Returns the last approval of the same call for the same action, unless it was cancelled.
async fn find(connection: &mut SqliteConnection, new: &NewApproval) -> Result<Option<Approval>, StoreError> {
    let row: Option<Row> = query_as(
        "SELECT id, state, request, answered_by, reason FROM approvals
         WHERE tenant = $1 AND session = $2 AND agent = $3 AND call = $4 AND digest = $5
         ORDER BY id DESC LIMIT 1",
    )
    .bind(new.tenant.as_str())
    .bind(new.session.as_str())
    .bind(new.agent.as_str())
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
        "INSERT INTO approvals (id, tenant, session, agent, call, digest, state, request, asked, expires, run)
         VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8, $9, $10)",
    )
    .bind(&id.as_bytes()[..])
    .bind(new.tenant.as_str())
    .bind(new.session.as_str())
    .bind(new.agent.as_str())
    .bind(&new.call.as_bytes()[..])
    .bind(new.digest.to_string())
    .bind(row::text(&new)?)
    .bind(new.asked.0)
    .bind(new.expires.0)
    .bind(new.run.map(|run| run.as_bytes().to_vec()))
    .execute(connection)
    .await
    .map_err(failed(WRITE))?;
    Ok(Approval { id, request: new, state: ApprovalState::Pending, answered_by: None, reason: None })
}

async fn get(
    executor: impl SqliteExecutor<'_>,
    tenant: &TenantId,
    id: ApprovalId,
) -> Result<Option<Approval>, StoreError> {
    let row: Option<Row> = query_as(
        "SELECT id, state, request, answered_by, reason FROM approvals WHERE id = $1 AND tenant = $2",
    )
    .bind(&id.as_bytes()[..])
    .bind(tenant.as_str())
    .fetch_optional(executor)
    .await
    .map_err(failed(READ))?;
    row.map(approval).transpose()
}

fn approval((id, state, request, answered_by, reason): Row) -> Result<Approval, StoreError> {
    Ok(Approval {
        id: row::id("an approval's id", &id)?,
        request: row::json("an approval", &request)?,
        state: row::word("an approval's state", &state)?,
        answered_by,
        reason,
    })
}
