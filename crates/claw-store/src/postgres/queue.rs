//! Accepted work. Claimers pass over rows that others hold, and the unique index of leased sessions decides
//! between those who want two jobs of one session.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Claim, Failure, Job, JobState, LaneCount, Lease, NewJob, Queue, StoreError, Topic, Worker,
};
use claw_core::{JobId, SessionKey, TenantId};
use sqlx::postgres::{PgConnection, PgExecutor, PgRow};
use sqlx::types::Json;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use super::failure::{failed, is_taken, refused};
use super::{PostgresStore, get, uuid, without_nul};
use crate::row;

const ACCEPT: &str = "could not accept the job";
const CLAIM: &str = "could not claim a job";
const WRITE: &str = "could not change the job";
const READ: &str = "could not read jobs";

/// What [`job`] reads.
macro_rules! columns {
    () => {
        "id, tenant, lane, session, priority, payload, accepted, visible, max_attempts,
         state, attempts, error, node, boot, until"
    };
}

#[async_trait]
impl Queue for PostgresStore {
    async fn enqueue(&self, job: NewJob) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failed(ACCEPT))?;
        accept(&mut connection, &job).await?;
        self.listener.bells.ring(Topic::Work);
        Ok(())
    }

    async fn claim(&self, claim: Claim) -> Result<Option<(Job, Lease)>, StoreError> {
        loop {
            let Some(job) = self.take(&claim).await? else { return Ok(None) };
            if let Some(lease) = job.lease.clone() {
                return Ok(Some((job, lease)));
            }
        }
    }

    async fn extend(&self, lease: &Lease, until: UnixMillis) -> Result<Lease, StoreError> {
        let extended = query(
            "UPDATE jobs SET until = $5
             WHERE id = $1 AND state = 'leased' AND node = $2 AND boot = $3 AND attempts = $4",
        )
        .bind(uuid(lease.job.as_bytes()))
        .bind(lease.worker.node.as_str())
        .bind(uuid(lease.worker.boot.as_bytes()))
        .bind(i32::from(lease.attempt))
        .bind(until.0)
        .execute(&self.pool)
        .await
        .map_err(failed(WRITE))?;
        match extended.rows_affected() {
            0 => Err(lost(lease)),
            _ => Ok(Lease { until, ..lease.clone() }),
        }
    }

    async fn finish_job(&self, lease: &Lease) -> Result<(), StoreError> {
        finish(&self.pool, lease).await?;
        self.listener.bells.ring(Topic::Work);
        Ok(())
    }

    async fn fail_job(&self, lease: &Lease, failure: Failure) -> Result<JobState, StoreError> {
        let state: Option<String> = query_scalar(
            "UPDATE jobs SET
                 state = CASE WHEN $6::bigint IS NULL OR attempts >= max_attempts THEN 'dead' ELSE 'pending' END,
                 visible = coalesce($6, visible), error = $5, node = NULL, boot = NULL, until = NULL
             WHERE id = $1 AND state = 'leased' AND node = $2 AND boot = $3 AND attempts = $4
             RETURNING state",
        )
        .bind(uuid(lease.job.as_bytes()))
        .bind(lease.worker.node.as_str())
        .bind(uuid(lease.worker.boot.as_bytes()))
        .bind(i32::from(lease.attempt))
        .bind(without_nul(&failure.error))
        .bind(failure.retry.map(|at| at.0))
        .fetch_optional(&self.pool)
        .await
        .map_err(failed(WRITE))?;
        let state = state.ok_or_else(|| lost(lease))?;
        self.listener.bells.ring(Topic::Work);
        row::word("a job's state", &state)
    }

    async fn reclaim(&self, worker: &Worker, now: UnixMillis) -> Result<Vec<JobId>, StoreError> {
        // What is locked is being finished, extended or reclaimed right now.
        let ids: Vec<Uuid> = query_scalar(
            "UPDATE jobs SET state = 'pending', node = NULL, boot = NULL, until = NULL
             WHERE id IN (
                 SELECT id FROM jobs
                 WHERE state = 'leased' AND (until <= $3 OR (node = $1 AND boot < $2))
                 FOR UPDATE SKIP LOCKED
             )
             RETURNING id",
        )
        .bind(worker.node.as_str())
        .bind(uuid(worker.boot.as_bytes()))
        .bind(now.0)
        .fetch_all(&self.pool)
        .await
        .map_err(failed(WRITE))?;
        if !ids.is_empty() {
            self.listener.bells.ring(Topic::Work);
        }
        ids.iter().map(|id| row::id("a job's id", id.as_bytes())).collect()
    }

    async fn job(&self, tenant: &TenantId, id: JobId) -> Result<Option<Job>, StoreError> {
        let found = query(concat!("SELECT ", columns!(), " FROM jobs WHERE tenant = $1 AND id = $2"))
            .bind(tenant.as_str())
            .bind(uuid(id.as_bytes()))
            .fetch_optional(&self.pool)
            .await
            .map_err(failed(READ))?;
        found.as_ref().map(job).transpose()
    }

    async fn lanes(&self, tenant: &TenantId) -> Result<Vec<LaneCount>, StoreError> {
        let rows: Vec<(String, i64, i64, i64)> = query_as(
            "SELECT lane, count(*) FILTER (WHERE state = 'pending'),
                    count(*) FILTER (WHERE state = 'leased'), count(*) FILTER (WHERE state = 'dead')
             FROM jobs WHERE tenant = $1 AND state <> 'done' GROUP BY lane ORDER BY lane",
        )
        .bind(tenant.as_str())
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))?;
        let count = |(lane, pending, leased, dead): (String, i64, i64, i64)| {
            let (pending, leased, dead) = (row::count(pending)?, row::count(leased)?, row::count(dead)?);
            Ok(LaneCount { lane: lane.into(), pending, leased, dead })
        };
        rows.into_iter().map(count).collect()
    }
}

impl PostgresStore {
    /// Moves the best job on: to a lease or, where it was begun as often as it may, out of the way.
    async fn take(&self, claim: &Claim) -> Result<Option<Job>, StoreError> {
        let lanes: Vec<&str> = claim.lanes.iter().map(|lane| lane.as_str()).collect();
        loop {
            let taken = query(concat!(
                "UPDATE jobs SET (state, attempts, node, boot, until) = (
                     SELECT 'leased', attempts + 1, $3, $4::uuid, $5::bigint WHERE attempts < max_attempts
                     UNION ALL
                     SELECT 'dead', attempts, NULL, NULL, NULL WHERE attempts >= max_attempts
                 )
                 WHERE id = (
                     SELECT id FROM jobs AS next
                     WHERE state = 'pending' AND lane = ANY($1) AND visible <= $2 AND NOT EXISTS (
                         SELECT FROM jobs AS busy
                         WHERE busy.tenant = next.tenant AND busy.session = next.session AND busy.state = 'leased'
                     )
                     ORDER BY priority DESC, accepted, position
                     LIMIT 1
                     FOR UPDATE SKIP LOCKED
                 )
                 RETURNING ",
                columns!()
            ))
            .bind(&lanes)
            .bind(claim.now.0)
            .bind(claim.worker.node.as_str())
            .bind(uuid(claim.worker.boot.as_bytes()))
            .bind(claim.until.0)
            .fetch_optional(&self.pool)
            .await;
            match taken {
                // Another of its session was leased at the same moment; look again, past it.
                Err(error) if is_taken(&error, "jobs_session") => {}
                Err(error) => return Err(failed(CLAIM)(error)),
                Ok(row) => return row.as_ref().map(job).transpose(),
            }
        }
    }
}

/// Stores a job, unless it was accepted before.
pub(super) async fn accept(connection: &mut PgConnection, job: &NewJob) -> Result<(), StoreError> {
    let accepted = query(
        "INSERT INTO jobs (id, tenant, lane, session, priority, payload, accepted, visible, max_attempts, state)
         VALUES ($1, $2, $3, $4, $5, $6::json, $7, $8, $9, 'pending')
         ON CONFLICT (id) DO NOTHING",
    )
    .bind(uuid(job.id.as_bytes()))
    .bind(job.tenant.as_str())
    .bind(job.lane.as_str())
    .bind(job.session.as_ref().map(SessionKey::as_str))
    .bind(job.priority)
    .bind(row::text(&job.payload)?)
    .bind(job.accepted.0)
    .bind(job.visible.0)
    .bind(i32::from(job.max_attempts))
    .execute(&mut *connection)
    .await
    .map_err(failed(ACCEPT))?;
    if accepted.rows_affected() == 1 {
        return Ok(());
    }
    let ours: bool = query_scalar("SELECT EXISTS (SELECT FROM jobs WHERE id = $1 AND tenant = $2)")
        .bind(uuid(job.id.as_bytes()))
        .bind(job.tenant.as_str())
        .fetch_one(connection)
        .await
        .map_err(failed(ACCEPT))?;
    if ours { Ok(()) } else { Err(refused(ACCEPT, "its id is taken; give it a new one")) }
}

/// Sees that the lease holds, and keeps it so until the transaction ends.
pub(super) async fn hold(executor: impl PgExecutor<'_>, lease: &Lease) -> Result<(), StoreError> {
    let held = query(
        "SELECT 1 FROM jobs
         WHERE id = $1 AND state = 'leased' AND node = $2 AND boot = $3 AND attempts = $4 FOR UPDATE",
    )
    .bind(uuid(lease.job.as_bytes()))
    .bind(lease.worker.node.as_str())
    .bind(uuid(lease.worker.boot.as_bytes()))
    .bind(i32::from(lease.attempt))
    .fetch_optional(executor)
    .await
    .map_err(failed(WRITE))?;
    held.map_or_else(|| Err(lost(lease)), |_| Ok(()))
}

/// Marks a job done, where the lease still holds.
pub(super) async fn finish(executor: impl PgExecutor<'_>, lease: &Lease) -> Result<(), StoreError> {
    let finished = query(
        "UPDATE jobs SET state = 'done', node = NULL, boot = NULL, until = NULL
         WHERE id = $1 AND state = 'leased' AND node = $2 AND boot = $3 AND attempts = $4",
    )
    .bind(uuid(lease.job.as_bytes()))
    .bind(lease.worker.node.as_str())
    .bind(uuid(lease.worker.boot.as_bytes()))
    .bind(i32::from(lease.attempt))
    .execute(executor)
    .await
    .map_err(failed(WRITE))?;
    if finished.rows_affected() == 0 { Err(lost(lease)) } else { Ok(()) }
}

fn job(row: &PgRow) -> Result<Job, StoreError> {
    let id: Uuid = get(row, "id")?;
    let id: JobId = row::id("a job's id", id.as_bytes())?;
    let session: Option<&str> = get(row, "session")?;
    let attempts = row::count(get::<i32>(row, "attempts")?.into())?;
    let Json(payload) = get(row, "payload")?;
    let new = NewJob {
        id,
        tenant: row::word("a job's tenant", get(row, "tenant")?)?,
        lane: get::<&str>(row, "lane")?.into(),
        session: session.map(|session| row::word("a job's session", session)).transpose()?,
        priority: get(row, "priority")?,
        payload,
        accepted: UnixMillis(get(row, "accepted")?),
        visible: UnixMillis(get(row, "visible")?),
        max_attempts: row::count(get::<i32>(row, "max_attempts")?.into())?,
    };
    Ok(Job {
        new,
        state: row::word("a job's state", get(row, "state")?)?,
        attempts,
        error: get(row, "error")?,
        lease: lease(row, id, attempts)?,
    })
}

fn lease(row: &PgRow, job: JobId, attempt: u16) -> Result<Option<Lease>, StoreError> {
    let Some(boot) = get::<Option<Uuid>>(row, "boot")? else { return Ok(None) };
    let node = row::word("a job's node", get(row, "node")?)?;
    let boot = row::id("a job's boot", boot.as_bytes())?;
    Ok(Some(Lease { job, worker: Worker { node, boot }, attempt, until: UnixMillis(get(row, "until")?) }))
}

fn lost(lease: &Lease) -> StoreError {
    StoreError::LeaseLost { job: lease.job }
}
