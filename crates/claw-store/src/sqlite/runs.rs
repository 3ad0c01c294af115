//! Parking and cancelling runs.

use async_trait::async_trait;
use claw_core::store::{Cancel, Cancelled, JobState, Lease, Parking, Runs, StoreError, Topic};
use claw_core::{JobId, TenantId};
use sqlx::sqlite::SqliteConnection;
use sqlx::{query, query_as};

use super::error::failed;
use super::{SqliteStore, approvals, queue, sessions};
use crate::row;
use crate::runs::{self as shared, CANCEL, Member, PARK};

#[async_trait]
impl Runs for SqliteStore {
    async fn park(&self, lease: &Lease, parking: Parking) -> Result<JobState, StoreError> {
        let mut transaction = self.write(PARK).await?;
        let mut until = Some(parking.until);
        for approval in parking.approvals {
            if !approvals::is_awaited(&mut transaction, approval, lease, parking.at).await? {
                until = None;
            }
        }
        let state = queue::park(&mut *transaction, lease, until).await?;
        transaction.commit().await.map_err(failed(PARK))?;
        self.bells.ring(Topic::Work);
        Ok(state)
    }

    async fn cancel(&self, tenant: &TenantId, job: JobId, cancel: Cancel) -> Result<Cancelled, StoreError> {
        let mut transaction = self.write(CANCEL).await?;
        let tree = tree(&mut transaction, tenant, job).await?;
        for member in tree.iter().filter(|member| !member.state.is_over()) {
            request(&mut transaction, member.id, &cancel).await?;
            approvals::cancel_of_run(&mut transaction, tenant, member.id).await?;
        }
        let mut notes = Vec::new();
        for (run, session) in shared::endings(&tree) {
            let (note, event) = shared::ending(tenant, run, session, &cancel);
            sessions::say(&mut transaction, &note, run).await?;
            sessions::tell(&mut *transaction, tenant, session, cancel.at, &event).await?;
            notes.push(note);
        }
        let cancelled = shared::cancelled(&tree);
        if !(cancelled.ended.is_empty() && cancelled.told.is_empty()) {
            transaction.commit().await.map_err(failed(CANCEL))?;
            self.bells.ring(Topic::Work);
            self.bells.ring(Topic::Approvals);
            self.ring_for(&notes);
        }
        Ok(cancelled)
    }
}

/// A job and all its descendants, in the order of their acceptance.
async fn tree(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    job: JobId,
) -> Result<Vec<Member>, StoreError> {
    let rows: Vec<(Vec<u8>, String, Option<String>)> = query_as(
        "WITH RECURSIVE tree (position, id) AS (
             SELECT position, id FROM jobs WHERE tenant = $1 AND id = $2
             UNION
             SELECT child.position, child.id FROM tree
             JOIN jobs AS child ON child.tenant = $1 AND child.parent = tree.id AND child.parent IS NOT NULL
         )
         SELECT jobs.id, jobs.state, jobs.session FROM tree JOIN jobs ON jobs.position = tree.position
         ORDER BY tree.position",
    )
    .bind(tenant.as_str())
    .bind(&job.as_bytes()[..])
    .fetch_all(connection)
    .await
    .map_err(failed(CANCEL))?;
    let member = |(id, state, session): &(Vec<u8>, String, Option<String>)| {
        let session = session.as_deref().map(|session| row::word("a job's session", session)).transpose()?;
        Ok(Member { id: row::id("a job's id", id)?, state: row::word("a job's state", state)?, session })
    };
    rows.iter().map(member).collect()
}

/// Ends an unleased job; a leased one gets the cancel request. The first request stands.
async fn request(connection: &mut SqliteConnection, job: JobId, cancel: &Cancel) -> Result<(), StoreError> {
    query(
        "UPDATE jobs SET state = iif(state = 'leased', state, 'cancelled'),
             cancel_by = iif(cancel_at IS NULL, $3, cancel_by), cancel_at = coalesce(cancel_at, $2)
         WHERE id = $1",
    )
    .bind(&job.as_bytes()[..])
    .bind(cancel.at.0)
    .bind(&cancel.by)
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed(CANCEL))
}
