//! Parking and cancelling runs.

use async_trait::async_trait;
use claw_core::store::{Cancel, Cancelled, JobState, Lease, Parking, Runs, StoreError, Topic};
use claw_core::{JobId, TenantId};
use sqlx::{query, query_as};
use uuid::Uuid;

use super::connections::Transaction;
use super::failure::failed;
use super::{PostgresStore, approvals, queue, sessions, uuid, without_nul};
use crate::row;
use crate::runs::{self as shared, CANCEL, Member, PARK};

#[async_trait]
impl Runs for PostgresStore {
    async fn park(&self, lease: &Lease, parking: Parking) -> Result<JobState, StoreError> {
        let mut transaction = self.begin(PARK).await?;
        queue::hold(&mut *transaction, lease).await?;
        let waits = approvals::are_awaited(&mut *transaction, &parking.approvals, lease, parking.at).await?;
        let state = queue::park(&mut *transaction, lease, waits.then_some(parking.until)).await?;
        transaction.commit().await.map_err(failed(PARK))?;
        self.listener.bells.ring(Topic::Work);
        Ok(state)
    }

    async fn cancel(&self, tenant: &TenantId, job: JobId, cancel: Cancel) -> Result<Cancelled, StoreError> {
        let mut transaction = self.begin(CANCEL).await?;
        let tree = lock_tree(&mut transaction, tenant, job).await?;
        let open: Vec<JobId> =
            tree.iter().filter(|member| !member.state.is_over()).map(|member| member.id).collect();
        if open.is_empty() {
            return Ok(shared::cancelled(&tree));
        }
        request(&mut transaction, &open, &cancel).await?;
        approvals::cancel_of_runs(&mut *transaction, tenant, &open).await?;
        let mut notes = Vec::new();
        for (run, session) in shared::endings(&tree) {
            let (note, event) = shared::ending(tenant, run, session, &cancel);
            sessions::say(&mut transaction, &note, run).await?;
            sessions::tell(&mut *transaction, tenant, session, cancel.at, &event).await?;
            notes.push(note);
        }
        transaction.commit().await.map_err(failed(CANCEL))?;
        self.listener.bells.ring(Topic::Work);
        self.listener.bells.ring(Topic::Approvals);
        self.ring_for(&notes);
        Ok(shared::cancelled(&tree))
    }
}

/// Locks a job and all its descendants, generation by generation: a child that is being accepted locks its
/// parent, so it exists when its generation is read.
async fn lock_tree(
    transaction: &mut Transaction,
    tenant: &TenantId,
    job: JobId,
) -> Result<Vec<Member>, StoreError> {
    type Row = (Uuid, String, Option<String>);
    let mut generation: Vec<Row> =
        query_as("SELECT id, state, session FROM jobs WHERE tenant = $1 AND id = $2 FOR UPDATE")
            .bind(tenant.as_str())
            .bind(uuid(job.as_bytes()))
            .fetch_all(&mut **transaction)
            .await
            .map_err(failed(CANCEL))?;
    let mut tree = Vec::new();
    let mut seen: Vec<Uuid> = Vec::new();
    while !generation.is_empty() {
        let ids: Vec<Uuid> = generation.iter().map(|(id, ..)| *id).collect();
        for (id, state, session) in &generation {
            let session = session.as_deref().map(|key| row::word("a job's session", key)).transpose()?;
            let id = row::id("a job's id", id.as_bytes())?;
            tree.push(Member { id, state: row::word("a job's state", state)?, session });
        }
        seen.extend(&ids);
        generation = query_as(
            "SELECT id, state, session FROM jobs
             WHERE tenant = $1 AND parent = ANY($2) AND id <> ALL($3) ORDER BY position FOR UPDATE",
        )
        .bind(tenant.as_str())
        .bind(&ids)
        .bind(&seen)
        .fetch_all(&mut **transaction)
        .await
        .map_err(failed(CANCEL))?;
    }
    Ok(tree)
}

/// Ends unleased jobs; leased ones get the cancel request. The first request stands.
async fn request(transaction: &mut Transaction, jobs: &[JobId], cancel: &Cancel) -> Result<(), StoreError> {
    let ids: Vec<Uuid> = jobs.iter().map(|id| uuid(id.as_bytes())).collect();
    query(
        "UPDATE jobs SET state = CASE WHEN state = 'leased' THEN state ELSE 'cancelled' END,
             cancel_by = CASE WHEN cancel_at IS NULL THEN $3 ELSE cancel_by END,
             cancel_at = coalesce(cancel_at, $2)
         WHERE id = ANY($1)",
    )
    .bind(&ids)
    .bind(cancel.at.0)
    .bind(without_nul(&cancel.by))
    .execute(&mut **transaction)
    .await
    .map(drop)
    .map_err(failed(CANCEL))
}
