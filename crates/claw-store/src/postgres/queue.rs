//! The queue of accepted work. Claimers skip locked rows, and a unique index keeps two jobs of one session
//! from being leased at once.
//!
//! Locks are taken in one order everywhere: jobs (parents before children), then approvals, then sessions.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Claim, Failure, Job, JobEnd, JobFilter, JobState, LONGEST_LEASE, LaneCount, Lease, NewJob, Queue,
    StoreError, Topic, Worker,
};
use claw_core::{JobId, SessionKey, TenantId, UserId};
use sqlx::postgres::{PgExecutor, PgRow};
use sqlx::types::Json;
use sqlx::{Postgres, query, query_as, query_scalar};
use uuid::Uuid;

use super::connections::Link;
use super::failure::{failed, is_taken, refused};
use super::{PostgresStore, get, uuid, without_nul};
use crate::{row, runs};

const ACCEPT: &str = "could not accept the job";
const CLAIM: &str = "could not claim a job";
const WRITE: &str = "could not change the job";
const READ: &str = "could not read jobs";

/// The columns that [`job`] reads.
macro_rules! columns {
    () => {
        "id, tenant, lane, session, priority, payload, accepted, visible, max_attempts,
         state, attempts, error, node, boot, until, parent, root, depth, parks, cancel_at, cancel_by"
    };
}

#[async_trait]
impl Queue for PostgresStore {
    async fn enqueue(&self, job: NewJob) -> Result<(), StoreError> {
        if job.lineage.is_none() {
            let mut connection = self.pool.acquire().await.map_err(failed(ACCEPT))?;
            accept(&mut connection, &job).await?;
        } else {
            let mut transaction = self.begin(ACCEPT).await?;
            lock_parent(&mut transaction, &job).await?;
            accept(&mut transaction, &job).await?;
            transaction.commit().await.map_err(failed(ACCEPT))?;
        }
        self.listener.bells.ring(Topic::Work);
        Ok(())
    }

    async fn claim(&self, claim: Claim) -> Result<Option<(Job, Lease)>, StoreError> {
        self.wake_due(&claim).await?;
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
        .bind(i64::from(lease.attempt))
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
        finish(&self.pool, lease, JobEnd::Done).await?;
        self.listener.bells.ring(Topic::Work);
        Ok(())
    }

    async fn fail_job(&self, lease: &Lease, failure: Failure) -> Result<JobState, StoreError> {
        let state: Option<String> = query_scalar(
            "UPDATE jobs SET
                 state = CASE WHEN $6::bigint IS NULL OR attempts - parks >= max_attempts THEN 'dead' ELSE 'pending' END,
                 visible = coalesce($6, visible), error = $5, node = NULL, boot = NULL, until = NULL
             WHERE id = $1 AND state = 'leased' AND node = $2 AND boot = $3 AND attempts = $4
             RETURNING state",
        )
        .bind(uuid(lease.job.as_bytes()))
        .bind(lease.worker.node.as_str())
        .bind(uuid(lease.worker.boot.as_bytes()))
        .bind(i64::from(lease.attempt))
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
        // A locked job is being finished, extended or reclaimed right now.
        let ids: Vec<Uuid> = query_scalar(
            "WITH abandoned AS (
                 SELECT id FROM jobs
                 WHERE state = 'leased' AND (until <= $3 OR until > $4 OR (node = $1 AND boot < $2))
                 FOR UPDATE SKIP LOCKED
             ), hidden AS (
                 SELECT id FROM jobs WHERE state = 'pending' AND visible > $4 FOR UPDATE SKIP LOCKED
             )
             UPDATE jobs SET state = 'pending', visible = least(visible, $3), node = NULL, boot = NULL, until = NULL
             WHERE id IN (SELECT id FROM abandoned UNION ALL SELECT id FROM hidden)
             RETURNING id",
        )
        .bind(worker.node.as_str())
        .bind(uuid(worker.boot.as_bytes()))
        .bind(now.0)
        .bind(now.plus(LONGEST_LEASE).0)
        .fetch_all(&self.pool)
        .await
        .map_err(failed(WRITE))?;
        if !ids.is_empty() {
            self.listener.bells.ring(Topic::Work);
        }
        ids.iter().map(|id| row::id("a job's id", id.as_bytes())).collect()
    }

    async fn release(&self, tenant: &TenantId, job: JobId, now: UnixMillis) -> Result<bool, StoreError> {
        let released = query(
            "UPDATE jobs SET state = 'pending', visible = least(visible, $3), node = NULL, boot = NULL, until = NULL
             WHERE id = $1 AND tenant = $2 AND state IN ('leased', 'pending')",
        )
        .bind(uuid(job.as_bytes()))
        .bind(tenant.as_str())
        .bind(now.0)
        .execute(&self.pool)
        .await
        .map_err(failed(WRITE))?;
        self.listener.bells.ring(Topic::Work);
        Ok(released.rows_affected() > 0)
    }

    async fn wake(&self, tenant: &TenantId, job: JobId) -> Result<bool, StoreError> {
        let woken = wake(&self.pool, tenant, job).await?;
        if woken {
            self.listener.bells.ring(Topic::Work);
        }
        Ok(woken)
    }

    async fn cancel_requests(&self, jobs: &[JobId]) -> Result<Vec<JobId>, StoreError> {
        let ids: Vec<Uuid> = jobs.iter().map(|id| uuid(id.as_bytes())).collect();
        let found: Vec<Uuid> =
            query_scalar("SELECT id FROM jobs WHERE id = ANY($1) AND cancel_at IS NOT NULL")
                .bind(&ids)
                .fetch_all(&self.pool)
                .await
                .map_err(failed(READ))?;
        found.iter().map(|id| row::id("a job's id", id.as_bytes())).collect()
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

    async fn jobs(&self, tenant: &TenantId, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        let select = concat!("SELECT ", columns!());
        let mut asked = runs::list::<Postgres, _>(select, tenant, filter, |id| uuid(id.as_bytes()));
        let found = asked.build().fetch_all(&self.pool).await.map_err(failed(READ))?;
        found.iter().map(job).collect()
    }

    async fn open_jobs_of(&self, tenant: &TenantId, user: Option<&UserId>) -> Result<u64, StoreError> {
        let count: i64 = query_scalar(
            "SELECT count(*) FROM jobs WHERE tenant = $1 AND user_id IS NOT DISTINCT FROM $2
             AND state IN ('pending', 'leased', 'parked')",
        )
        .bind(tenant.as_str())
        .bind(user.map(UserId::as_str))
        .fetch_one(&self.pool)
        .await
        .map_err(failed(READ))?;
        row::count(count)
    }

    async fn lanes(&self, tenant: &TenantId) -> Result<Vec<LaneCount>, StoreError> {
        let rows: Vec<(String, i64, i64, i64, i64)> = query_as(
            "SELECT lane, count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'leased'),
                    count(*) FILTER (WHERE state = 'parked'), count(*) FILTER (WHERE state = 'dead')
             FROM jobs WHERE tenant = $1 AND state IN ('pending', 'leased', 'parked', 'dead')
             GROUP BY lane ORDER BY lane",
        )
        .bind(tenant.as_str())
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))?;
        let count = |(lane, pending, leased, parked, dead): (String, i64, i64, i64, i64)| {
            let (pending, leased) = (row::count(pending)?, row::count(leased)?);
            let (parked, dead) = (row::count(parked)?, row::count(dead)?);
            Ok(LaneCount { lane: lane.into(), pending, leased, parked, dead })
        };
        rows.into_iter().map(count).collect()
    }
}

impl PostgresStore {
    /// Makes parked jobs pending once they are due, so that a claim finds them in its one index.
    async fn wake_due(&self, claim: &Claim) -> Result<(), StoreError> {
        let lanes: Vec<&str> = claim.lanes.iter().map(|lane| lane.as_str()).collect();
        query(
            "UPDATE jobs SET state = 'pending' WHERE id IN (
                 SELECT id FROM jobs WHERE state = 'parked' AND visible <= $1 AND lane = ANY($2)
                 FOR UPDATE SKIP LOCKED)",
        )
        .bind(claim.now.0)
        .bind(&lanes)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(failed(CLAIM))
    }

    /// Leases the best job or, if it has used up its attempts, marks it as dead.
    async fn take(&self, claim: &Claim) -> Result<Option<Job>, StoreError> {
        let lanes: Vec<&str> = claim.lanes.iter().map(|lane| lane.as_str()).collect();
        loop {
            let taken = query(concat!(
                "UPDATE jobs SET (state, attempts, node, boot, until) = (
                     SELECT 'leased', attempts + 1, $3, $4::uuid, $5::bigint WHERE attempts - parks < max_attempts
                     UNION ALL
                     SELECT 'dead', attempts, NULL, NULL, NULL WHERE attempts - parks >= max_attempts
                 )
                 WHERE id = (
                     SELECT id FROM jobs AS next
                     WHERE state = 'pending' AND lane = ANY($1) AND visible <= $2 AND NOT EXISTS (
                         SELECT FROM jobs AS older
                         WHERE older.tenant = next.tenant AND older.session = next.session
                           AND older.position < next.position
                           AND older.state IN ('pending', 'leased', 'parked') AND older.session IS NOT NULL
                     ) AND NOT EXISTS (
                         SELECT FROM jobs AS busy
                         WHERE busy.tenant = next.tenant AND busy.session = next.session
                           AND busy.state IN ('leased', 'parked') AND busy.session IS NOT NULL
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

/// Locks the parent of a job until the transaction ends, so that no cancel slips in between. Comes before any
/// session is locked.
pub(super) async fn lock_parent(connection: &mut Link<'_>, job: &NewJob) -> Result<(), StoreError> {
    let Some(lineage) = job.lineage else { return Ok(()) };
    query("SELECT FROM jobs WHERE tenant = $1 AND id = $2 FOR SHARE")
        .bind(job.tenant.as_str())
        .bind(uuid(lineage.parent.as_bytes()))
        .fetch_optional(connection)
        .await
        .map(drop)
        .map_err(failed(ACCEPT))
}

/// Stores a job, unless it was accepted before. It inherits the cancel request of its parent. Jobs of one
/// session are numbered one at a time, so that the order of their positions is the order of their commits.
pub(super) async fn accept(connection: &mut Link<'_>, job: &NewJob) -> Result<(), StoreError> {
    let accepted = query(
        "INSERT INTO jobs (id, tenant, lane, session, priority, payload, accepted, visible, max_attempts, state,
                           parent, root, depth, user_id, cancel_at, cancel_by)
         SELECT $1, $2, $3, $4, $5, $6::json, $7, $8, $9, 'pending', $10, $11, $12, $13,
                (SELECT parent.cancel_at FROM jobs AS parent WHERE parent.id = $10 AND parent.tenant = $2),
                (SELECT parent.cancel_by FROM jobs AS parent WHERE parent.id = $10 AND parent.tenant = $2)
         FROM (SELECT CASE WHEN $4::text IS NOT NULL
                      THEN pg_advisory_xact_lock(hashtextextended(concat_ws(' ', $2, $4), 1)) END) AS numbered
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
    .bind(job.lineage.map(|lineage| uuid(lineage.parent.as_bytes())))
    .bind(uuid(job.root().as_bytes()))
    .bind(i32::from(job.depth()))
    .bind(job.user())
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

/// Checks that the lease holds, and locks the job until the transaction ends.
pub(super) async fn hold(executor: impl PgExecutor<'_>, lease: &Lease) -> Result<(), StoreError> {
    let held = query(
        "SELECT 1 FROM jobs
         WHERE id = $1 AND state = 'leased' AND node = $2 AND boot = $3 AND attempts = $4 FOR UPDATE",
    )
    .bind(uuid(lease.job.as_bytes()))
    .bind(lease.worker.node.as_str())
    .bind(uuid(lease.worker.boot.as_bytes()))
    .bind(i64::from(lease.attempt))
    .fetch_optional(executor)
    .await
    .map_err(failed(WRITE))?;
    held.map_or_else(|| Err(lost(lease)), |_| Ok(()))
}

/// Marks as done the jobs that wait in the session of a lease's job, have not begun and ask for the same;
/// returns their ids. Jobs being claimed right now are skipped.
pub(super) async fn take(
    executor: impl PgExecutor<'_>,
    lease: &Lease,
    priority: i16,
) -> Result<Vec<Uuid>, StoreError> {
    query_scalar(
        "UPDATE jobs SET state = 'done' WHERE id IN (
             SELECT other.id FROM jobs AS mine JOIN jobs AS other
                 ON other.tenant = mine.tenant AND other.session = mine.session
                AND other.lane = mine.lane AND other.payload::text = mine.payload::text
             WHERE mine.id = $1 AND other.state = 'pending' AND other.attempts = 0
               AND other.priority >= $2 AND other.cancel_at IS NULL
             FOR UPDATE OF other SKIP LOCKED)
         RETURNING id",
    )
    .bind(uuid(lease.job.as_bytes()))
    .bind(priority)
    .fetch_all(executor)
    .await
    .map_err(failed(WRITE))
}

/// Ends the job of a lease; returns its tenant.
pub(super) async fn finish(
    executor: impl PgExecutor<'_>,
    lease: &Lease,
    end: JobEnd,
) -> Result<String, StoreError> {
    let tenant: Option<String> = query_scalar(
        "UPDATE jobs SET state = $5, node = NULL, boot = NULL, until = NULL
         WHERE id = $1 AND state = 'leased' AND node = $2 AND boot = $3 AND attempts = $4
         RETURNING tenant",
    )
    .bind(uuid(lease.job.as_bytes()))
    .bind(lease.worker.node.as_str())
    .bind(uuid(lease.worker.boot.as_bytes()))
    .bind(i64::from(lease.attempt))
    .bind(end.name())
    .fetch_optional(executor)
    .await
    .map_err(failed(WRITE))?;
    tenant.ok_or_else(|| lost(lease))
}

/// Parks the job of a lease until then, or makes it claimable at once if that is `None` or the job has a
/// cancel request; returns the job's new state.
pub(super) async fn park(
    executor: impl PgExecutor<'_>,
    lease: &Lease,
    until: Option<UnixMillis>,
) -> Result<JobState, StoreError> {
    let state: Option<String> = query_scalar(
        "UPDATE jobs SET parks = parks + 1, node = NULL, boot = NULL, until = NULL,
             state = CASE WHEN $5::bigint IS NULL OR cancel_at IS NOT NULL THEN 'pending' ELSE 'parked' END,
             visible = CASE WHEN $5::bigint IS NULL OR cancel_at IS NOT NULL
                            THEN least(visible, accepted) ELSE $5 END
         WHERE id = $1 AND state = 'leased' AND node = $2 AND boot = $3 AND attempts = $4
         RETURNING state",
    )
    .bind(uuid(lease.job.as_bytes()))
    .bind(lease.worker.node.as_str())
    .bind(uuid(lease.worker.boot.as_bytes()))
    .bind(i64::from(lease.attempt))
    .bind(until.map(|at| at.0))
    .fetch_optional(executor)
    .await
    .map_err(failed(WRITE))?;
    row::word("a job's state", &state.ok_or_else(|| lost(lease))?)
}

/// Makes a parked job claimable; returns `false` if it is not parked.
pub(super) async fn wake(
    executor: impl PgExecutor<'_>,
    tenant: &TenantId,
    job: JobId,
) -> Result<bool, StoreError> {
    let woken = query(
        "UPDATE jobs SET state = 'pending', visible = least(visible, accepted)
         WHERE id = $1 AND tenant = $2 AND state = 'parked'",
    )
    .bind(uuid(job.as_bytes()))
    .bind(tenant.as_str())
    .execute(executor)
    .await
    .map_err(failed(WRITE))?;
    Ok(woken.rows_affected() > 0)
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
        lineage: runs::lineage(
            get::<Option<Uuid>>(row, "parent")?
                .map(|id| row::id("a job's parent", id.as_bytes()))
                .transpose()?,
            row::id("a job's root", get::<Uuid>(row, "root")?.as_bytes())?,
            row::count(get::<i32>(row, "depth")?.into())?,
        ),
    };
    Ok(Job {
        new,
        state: row::word("a job's state", get(row, "state")?)?,
        attempts,
        parks: row::count(get::<i32>(row, "parks")?.into())?,
        error: get(row, "error")?,
        lease: lease(row, id, attempts)?,
        cancel: runs::cancel_request(get(row, "cancel_at")?, get(row, "cancel_by")?)?,
    })
}

fn lease(row: &PgRow, job: JobId, attempt: u32) -> Result<Option<Lease>, StoreError> {
    let Some(boot) = get::<Option<Uuid>>(row, "boot")? else { return Ok(None) };
    let node = row::word("a job's node", get(row, "node")?)?;
    let boot = row::id("a job's boot", boot.as_bytes())?;
    Ok(Some(Lease { job, worker: Worker { node, boot }, attempt, until: UnixMillis(get(row, "until")?) }))
}

fn lost(lease: &Lease) -> StoreError {
    StoreError::LeaseLost { job: lease.job }
}
