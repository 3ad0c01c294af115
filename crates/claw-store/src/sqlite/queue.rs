//! The queue of accepted work, with its leases.
//!
//! Most operations are one statement, which is its own transaction. A statement that returns rows is always
//! read to its end (`fetch_all`): SQLite commits there, and nothing holds before it.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Claim, Failure, Job, JobEnd, JobFilter, JobState, LONGEST_LEASE, LaneCount, Lease, NewJob, Queue,
    StoreError, Topic, Worker,
};
use claw_core::{JobId, TenantId, UserId};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteExecutor, SqliteRow};
use sqlx::{QueryBuilder, query, query_as, query_scalar};

use super::SqliteStore;
use super::error::{column, failed};
use crate::{row, runs};

const WRITE: &str = "could not write to the queue";
const READ: &str = "could not read the queue";

/// Changes the job of a lease, with parameters from the fifth on; changes nothing if the lease is lost.
/// Returns the job's state and tenant.
macro_rules! as_holder {
    ($lease:expr, $set:literal) => {
        query(concat!(
            "UPDATE jobs SET ",
            $set,
            " WHERE id = $1 AND state = 'leased' AND node = $2 AND boot = $3 AND attempts = $4",
            " RETURNING state, tenant"
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
            // The first of each lane by its index, and parked jobs that are due; then the best of those.
            let taken = query(
                "UPDATE jobs SET
                     state = iif(attempts - parks < max_attempts, 'leased', 'dead'),
                     attempts = attempts + (attempts - parks < max_attempts),
                     node = $3, boot = $4, until = $5
                 WHERE position = (
                     SELECT position FROM (
                         SELECT best.position, best.priority, best.accepted
                         FROM json_each($1) AS lanes JOIN jobs AS best ON best.position = (
                             SELECT next.position FROM jobs AS next
                             WHERE next.state = 'pending' AND next.lane = lanes.value AND next.visible <= $2
                               AND NOT EXISTS (
                                   SELECT 1 FROM jobs AS older INDEXED BY jobs_open
                                   WHERE older.state IN ('pending', 'leased', 'parked')
                                     AND older.session IS NOT NULL AND older.tenant = next.tenant
                                     AND older.session = next.session AND older.position < next.position)
                               AND NOT EXISTS (
                                   SELECT 1 FROM jobs AS busy
                                   WHERE busy.state IN ('leased', 'parked') AND busy.session IS NOT NULL
                                     AND busy.tenant = next.tenant AND busy.session = next.session)
                             ORDER BY next.priority DESC, next.accepted, next.position LIMIT 1)
                         UNION ALL
                         SELECT due.position, due.priority, due.accepted FROM jobs AS due
                         WHERE due.state = 'parked' AND due.visible <= $2
                           AND due.lane IN (SELECT lanes.value FROM json_each($1) AS lanes))
                     ORDER BY priority DESC, accepted, position LIMIT 1)
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
        finish(&self.writer, lease, JobEnd::Done).await?;
        self.bells.ring(Topic::Work);
        Ok(())
    }

    async fn fail_job(&self, lease: &Lease, failure: Failure) -> Result<JobState, StoreError> {
        let given_back = as_holder!(
            lease,
            "state = iif(attempts - parks < max_attempts AND $5 IS NOT NULL, 'pending', 'dead'),
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
            "UPDATE jobs SET state = 'pending', visible = min(visible, $1) WHERE position IN (
                 SELECT position FROM jobs
                 WHERE state = 'leased' AND (until <= $1 OR until > $4 OR node = $2 AND boot < $3)
                 UNION ALL
                 SELECT position FROM jobs WHERE state = 'pending' AND visible > $4)
             RETURNING id",
        )
        .bind(now.0)
        .bind(worker.node.as_str())
        .bind(&worker.boot.as_bytes()[..])
        .bind(now.plus(LONGEST_LEASE).0)
        .fetch_all(&self.writer)
        .await
        .map_err(failed(WRITE))?;
        if !reclaimed.is_empty() {
            self.bells.ring(Topic::Work);
        }
        reclaimed.iter().map(|id| row::id("a job's id", id)).collect()
    }

    async fn release(&self, tenant: &TenantId, job: JobId, now: UnixMillis) -> Result<bool, StoreError> {
        let released = query(
            "UPDATE jobs SET state = 'pending', visible = min(visible, $3)
             WHERE id = $1 AND tenant = $2 AND state IN ('leased', 'pending')",
        )
        .bind(&job.as_bytes()[..])
        .bind(tenant.as_str())
        .bind(now.0)
        .execute(&self.writer)
        .await
        .map_err(failed(WRITE))?;
        self.bells.ring(Topic::Work);
        Ok(released.rows_affected() > 0)
    }

    async fn wake(&self, tenant: &TenantId, job: JobId) -> Result<bool, StoreError> {
        let woken = wake(&self.writer, tenant, job).await?;
        if woken {
            self.bells.ring(Topic::Work);
        }
        Ok(woken)
    }

    async fn cancel_requests(&self, jobs: &[JobId]) -> Result<Vec<JobId>, StoreError> {
        let Some((first, rest)) = jobs.split_first() else { return Ok(Vec::new()) };
        let mut asked =
            QueryBuilder::<Sqlite>::new("SELECT id FROM jobs WHERE cancel_at IS NOT NULL AND id IN (");
        asked.push_bind(first.as_bytes().to_vec());
        for job in rest {
            asked.push(", ").push_bind(job.as_bytes().to_vec());
        }
        asked.push(")");
        let found: Vec<Vec<u8>> =
            asked.build_query_scalar().fetch_all(&self.readers).await.map_err(failed(READ))?;
        found.iter().map(|id| row::id("a job's id", id)).collect()
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

    async fn jobs(&self, tenant: &TenantId, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        let mut asked = runs::list::<Sqlite, _>("SELECT *", tenant, filter, |id| id.as_bytes().to_vec());
        let found = asked.build().fetch_all(&self.readers).await.map_err(failed(READ))?;
        found.iter().map(job).collect()
    }

    async fn open_jobs_of(&self, tenant: &TenantId, user: Option<&UserId>) -> Result<u64, StoreError> {
        let count: i64 = query_scalar(
            "SELECT count(*) FROM jobs WHERE tenant = $1 AND user_id IS $2
             AND state IN ('pending', 'leased', 'parked')",
        )
        .bind(tenant.as_str())
        .bind(user.map(UserId::as_str))
        .fetch_one(&self.readers)
        .await
        .map_err(failed(READ))?;
        row::count(count)
    }

    async fn lanes(&self, tenant: &TenantId) -> Result<Vec<LaneCount>, StoreError> {
        let counts: Vec<(String, i64, i64, i64, i64)> = query_as(
            "SELECT lane, sum(state = 'pending'), sum(state = 'leased'), sum(state = 'parked'), sum(state = 'dead')
             FROM jobs WHERE tenant = $1 AND state IN ('pending', 'leased', 'parked', 'dead')
             GROUP BY lane ORDER BY lane",
        )
        .bind(tenant.as_str())
        .fetch_all(&self.readers)
        .await
        .map_err(failed(READ))?;
        let lane = |(lane, pending, leased, parked, dead): (String, _, _, _, _)| {
            let [pending, leased] = [row::count(pending)?, row::count(leased)?];
            let [parked, dead] = [row::count(parked)?, row::count(dead)?];
            Ok(LaneCount { lane: lane.into(), pending, leased, parked, dead })
        };
        counts.into_iter().map(lane).collect()
    }
}

/// Accepts a job, unless its id was accepted before. It inherits the cancel request of its parent.
pub(super) async fn enqueue(executor: impl SqliteExecutor<'_>, job: &NewJob) -> Result<(), StoreError> {
    query(
        "INSERT INTO jobs (id, tenant, lane, session, priority, payload, accepted, visible, max_attempts, state,
                           parent, root, depth, user_id, cancel_at, cancel_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10, $11, $12, $13,
                 (SELECT parent.cancel_at FROM jobs AS parent WHERE parent.id = $10 AND parent.tenant = $2),
                 (SELECT parent.cancel_by FROM jobs AS parent WHERE parent.id = $10 AND parent.tenant = $2))
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
    .bind(job.lineage.map(|lineage| lineage.parent.as_bytes().to_vec()))
    .bind(job.root().as_bytes().to_vec())
    .bind(job.depth())
    .bind(job.user())
    .execute(executor)
    .await
    .map(drop)
    .map_err(failed(WRITE))
}

/// Checks that the lease holds, and keeps it so until the transaction ends.
pub(super) async fn hold(executor: impl SqliteExecutor<'_>, lease: &Lease) -> Result<(), StoreError> {
    state_after(as_holder!(lease, "state = state"), executor, lease).await.map(drop)
}

/// Marks as done the jobs that wait in the session of a lease's job, have not begun and ask for the same;
/// returns their ids.
pub(super) async fn take(
    executor: impl SqliteExecutor<'_>,
    lease: &Lease,
    priority: i16,
) -> Result<Vec<Vec<u8>>, StoreError> {
    query_scalar(
        "UPDATE jobs SET state = 'done' WHERE position IN (
             SELECT other.position FROM jobs AS mine JOIN jobs AS other
                 ON other.tenant = mine.tenant AND other.session = mine.session
                AND other.lane = mine.lane AND other.payload = mine.payload
             WHERE mine.id = $1 AND other.state = 'pending' AND other.attempts = 0
               AND other.priority >= $2 AND other.cancel_at IS NULL)
         RETURNING id",
    )
    .bind(&lease.job.as_bytes()[..])
    .bind(priority)
    .fetch_all(executor)
    .await
    .map_err(failed(WRITE))
}

/// Ends the job of a lease; returns its tenant.
pub(super) async fn finish(
    executor: impl SqliteExecutor<'_>,
    lease: &Lease,
    end: JobEnd,
) -> Result<String, StoreError> {
    let ended = as_holder!(lease, "state = $5").bind(end.name());
    let ended = ended.fetch_all(executor).await.map_err(failed(WRITE))?;
    let job = ended.first().ok_or(StoreError::LeaseLost { job: lease.job })?;
    column(job, "tenant")
}

/// Parks the job of a lease until then, or makes it claimable at once if that is `None` or the job has a
/// cancel request; returns the job's new state.
pub(super) async fn park(
    executor: impl SqliteExecutor<'_>,
    lease: &Lease,
    until: Option<UnixMillis>,
) -> Result<JobState, StoreError> {
    let parked = as_holder!(
        lease,
        "state = iif($5 IS NULL OR cancel_at IS NOT NULL, 'pending', 'parked'), parks = parks + 1,
         visible = iif($5 IS NULL OR cancel_at IS NOT NULL, min(visible, accepted), $5)"
    )
    .bind(until.map(|at| at.0));
    state_after(parked, executor, lease).await
}

/// Makes a parked job claimable; returns `false` if it is not parked.
pub(super) async fn wake(
    executor: impl SqliteExecutor<'_>,
    tenant: &TenantId,
    job: JobId,
) -> Result<bool, StoreError> {
    let woken = query(
        "UPDATE jobs SET state = 'pending', visible = min(visible, accepted)
         WHERE id = $1 AND tenant = $2 AND state = 'parked'",
    )
    .bind(&job.as_bytes()[..])
    .bind(tenant.as_str())
    .execute(executor)
    .await
    .map_err(failed(WRITE))?;
    Ok(woken.rows_affected() > 0)
}

/// Makes the change; returns the job's new state.
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
        lineage: runs::lineage(
            column::<Option<&[u8]>>(found, "parent")?.map(|id| row::id("a job's parent", id)).transpose()?,
            row::id("a job's root", column(found, "root")?)?,
            column(found, "depth")?,
        ),
    };
    let cancel = runs::cancel_request(column(found, "cancel_at")?, column(found, "cancel_by")?)?;
    let (parks, error) = (column(found, "parks")?, column(found, "error")?);
    Ok(Job { new, state, attempts, parks, error, lease, cancel })
}
