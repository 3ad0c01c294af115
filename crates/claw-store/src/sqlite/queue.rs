//! Work, and who has it.
//!
//! Most of it is one statement, which is its own transaction. One that gives rows back is always read to its
//! end (`fetch_all`): SQLite commits there, so before it nothing may be believed.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Claim, Failure, Job, JobState, LaneCount, Lease, NewJob, Queue, StoreError, Topic, Worker,
};
use claw_core::{JobId, TenantId};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteExecutor, SqliteRow};
use sqlx::{query, query_as, query_scalar};

use super::SqliteStore;
use super::error::{column, failed};
use crate::row;

const WRITE: &str = "could not write to the queue";
const READ: &str = "could not read the queue";

/// A change of the job that a lease is for, from its fifth parameter on; nothing where the lease is lost.
macro_rules! as_holder {
    ($lease:expr, $set:literal) => {
        query(concat!(
            "UPDATE jobs SET ",
            $set,
            " WHERE id = $1 AND state = 'leased' AND node = $2 AND boot = $3 AND attempts = $4",
            " RETURNING state"
        ))
        .bind(&$lease.job.as_bytes()[..])
        .bind($lease.worker.node.as_str())
        .bind(&$lease.worker.boot.as_bytes()[..])
        .bind($lease.attempt)
    };
}

#[async_trait]
impl Queue for SqliteStore {
    async fn enqueue(&self, job: NewJob) -> Result<(), StoreError> {
        enqueue(&self.writer, &job).await?;
        self.bells.ring(Topic::Work);
        Ok(())
    }

    async fn claim(&self, claim: Claim) -> Result<Option<(Job, Lease)>, StoreError> {
        let lanes = row::text(&claim.lanes)?;
        loop {
            // The first of each lane by its index, then the best of those.
            let taken = query(
                "UPDATE jobs SET
                     state = iif(attempts < max_attempts, 'leased', 'dead'),
                     attempts = attempts + (attempts < max_attempts),
                     node = $3, boot = $4, until = $5
                 WHERE position = (
                     SELECT best.position
                     FROM json_each($1) AS lanes JOIN jobs AS best ON best.position = (
                         SELECT next.position FROM jobs AS next
                         WHERE next.state = 'pending' AND next.lane = lanes.value AND next.visible <= $2
                           AND NOT EXISTS (
                               SELECT 1 FROM jobs AS busy
                               WHERE busy.state = 'leased' AND busy.session IS NOT NULL
                                 AND busy.tenant = next.tenant AND busy.session = next.session)
                         ORDER BY next.priority DESC, next.accepted, next.position LIMIT 1)
                     ORDER BY best.priority DESC, best.accepted, best.position LIMIT 1)
                 RETURNING *",
            )
            .bind(&lanes)
            .bind(claim.now.0)
            .bind(claim.worker.node.as_str())
            .bind(&claim.worker.boot.as_bytes()[..])
            .bind(claim.until.0)
            .fetch_all(&self.writer)
            .await
            .map_err(failed(WRITE))?;
            let Some(taken) = taken.first() else { return Ok(None) };
            let job = job(taken)?;
            // Without a lease it had been begun as often as it may, and is dead now.
            if let Some(lease) = job.lease.clone() {
                return Ok(Some((job, lease)));
            }
        }
    }

    async fn extend(&self, lease: &Lease, until: UnixMillis) -> Result<Lease, StoreError> {
        let extended = as_holder!(lease, "until = $5").bind(until.0);
        state_after(extended, &self.writer, lease).await?;
        Ok(Lease { until, ..lease.clone() })
    }

    async fn finish_job(&self, lease: &Lease) -> Result<(), StoreError> {
        finish(&self.writer, lease).await?;
        self.bells.ring(Topic::Work);
        Ok(())
    }

    async fn fail_job(&self, lease: &Lease, failure: Failure) -> Result<JobState, StoreError> {
        let given_back = as_holder!(
            lease,
            "state = iif(attempts < max_attempts AND $5 IS NOT NULL, 'pending', 'dead'),
             visible = coalesce($5, visible), error = $6"
        )
        .bind(failure.retry.map(|at| at.0))
        .bind(failure.error);
        let state = state_after(given_back, &self.writer, lease).await?;
        self.bells.ring(Topic::Work);
        Ok(state)
    }

    async fn reclaim(&self, worker: &Worker, now: UnixMillis) -> Result<Vec<JobId>, StoreError> {
        let reclaimed: Vec<Vec<u8>> = query_scalar(
            "UPDATE jobs SET state = iif(attempts < max_attempts, 'pending', 'dead')
             WHERE state = 'leased' AND (until <= $1 OR node = $2 AND boot < $3) RETURNING id",
        )
        .bind(now.0)
        .bind(worker.node.as_str())
        .bind(&worker.boot.as_bytes()[..])
        .fetch_all(&self.writer)
        .await
        .map_err(failed(WRITE))?;
        if !reclaimed.is_empty() {
            self.bells.ring(Topic::Work);
        }
        reclaimed.iter().map(|id| row::id("a job's id", id)).collect()
    }

    async fn job(&self, tenant: &TenantId, id: JobId) -> Result<Option<Job>, StoreError> {
        let found = query("SELECT * FROM jobs WHERE id = $1 AND tenant = $2")
            .bind(&id.as_bytes()[..])
            .bind(tenant.as_str())
            .fetch_optional(&self.readers)
            .await
            .map_err(failed(READ))?;
        found.as_ref().map(job).transpose()
    }

    async fn lanes(&self, tenant: &TenantId) -> Result<Vec<LaneCount>, StoreError> {
        let counts: Vec<(String, i64, i64, i64)> = query_as(
            "SELECT lane, sum(state = 'pending'), sum(state = 'leased'), sum(state = 'dead')
             FROM jobs WHERE tenant = $1 AND state <> 'done' GROUP BY lane ORDER BY lane",
        )
        .bind(tenant.as_str())
        .fetch_all(&self.readers)
        .await
        .map_err(failed(READ))?;
        let lane = |(lane, pending, leased, dead): (String, _, _, _)| {
            let [pending, leased, dead] = [row::count(pending)?, row::count(leased)?, row::count(dead)?];
            Ok(LaneCount { lane: lane.into(), pending, leased, dead })
        };
        counts.into_iter().map(lane).collect()
    }
}

/// Accepts a job, unless its id was accepted before.
pub(super) async fn enqueue(executor: impl SqliteExecutor<'_>, job: &NewJob) -> Result<(), StoreError> {
    query(
        "INSERT INTO jobs (id, tenant, lane, session, priority, payload, accepted, visible, max_attempts, state)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending')
         ON CONFLICT (id) DO NOTHING",
    )
    .bind(&job.id.as_bytes()[..])
    .bind(job.tenant.as_str())
    .bind(job.lane.as_str())
    .bind(job.session.as_ref().map(|session| session.as_str()))
    .bind(job.priority)
    .bind(row::text(&job.payload)?)
    .bind(job.accepted.0)
    .bind(job.visible.0)
    .bind(job.max_attempts)
    .execute(executor)
    .await
    .map(drop)
    .map_err(failed(WRITE))
}

/// Sees that the lease holds, and keeps it so until the transaction ends.
pub(super) async fn hold(executor: impl SqliteExecutor<'_>, lease: &Lease) -> Result<(), StoreError> {
    state_after(as_holder!(lease, "state = state"), executor, lease).await.map(drop)
}

/// Marks the job of a lease done.
pub(super) async fn finish(executor: impl SqliteExecutor<'_>, lease: &Lease) -> Result<(), StoreError> {
    state_after(as_holder!(lease, "state = 'done'"), executor, lease).await.map(drop)
}

/// Makes the change; gives where the job stands then.
async fn state_after(
    change: Query<'_, Sqlite, SqliteArguments>,
    executor: impl SqliteExecutor<'_>,
    lease: &Lease,
) -> Result<JobState, StoreError> {
    let changed = change.fetch_all(executor).await.map_err(failed(WRITE))?;
    let job = changed.first().ok_or(StoreError::LeaseLost { job: lease.job })?;
    row::word("a job's state", column(job, "state")?)
}

fn job(found: &SqliteRow) -> Result<Job, StoreError> {
    let id = row::id("a job's id", column(found, "id")?)?;
    let session: Option<&str> = column(found, "session")?;
    let state = row::word("a job's state", column(found, "state")?)?;
    let attempts = column(found, "attempts")?;
    let lease = match state {
        JobState::Leased => Some(Lease {
            job: id,
            worker: Worker {
                node: row::word("a job's node", column(found, "node")?)?,
                boot: row::id("a job's boot", column(found, "boot")?)?,
            },
            attempt: attempts,
            until: UnixMillis(column(found, "until")?),
        }),
        _ => None,
    };
    let new = NewJob {
        id,
        tenant: row::word("a job's tenant", column(found, "tenant")?)?,
        lane: column::<&str>(found, "lane")?.into(),
        session: session.map(|session| row::word("a job's session", session)).transpose()?,
        priority: column(found, "priority")?,
        payload: row::json("a job's payload", column(found, "payload")?)?,
        accepted: UnixMillis(column(found, "accepted")?),
        visible: UnixMillis(column(found, "visible")?),
        max_attempts: column(found, "max_attempts")?,
    };
    Ok(Job { new, state, attempts, error: column(found, "error")?, lease })
}
