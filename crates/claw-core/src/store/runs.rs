//! Runs that wait without a worker, and runs that are cancelled from anywhere.
//!
//! A run is a job of a session. These methods change its job, its approvals and its session in one
//! transaction, so that no wake-up is lost and no run ends unreported.

use async_trait::async_trait;
use serde_json::Value;

use super::{Approvals, JobState, Lease, Queue, SessionLog, StoreError};
use crate::id::{ApprovalId, JobId, TenantId};
use crate::port::UnixMillis;

/// The condition that a parked run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parking {
    /// Approvals that must all be pending for the run to wait. Each wakes the run when it is answered or
    /// closed, if its [`run`](super::NewApproval::run) names this job. Empty for a run that waits for
    /// something else.
    pub approvals: Vec<ApprovalId>,
    /// The present time: an approval that has expired by then is not waited for.
    pub at: UnixMillis,
    /// Time from which the run can be claimed even if nothing woke it.
    pub until: UnixMillis,
}

/// Request to end a run and all runs below it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cancel {
    /// Time of the request.
    pub at: UnixMillis,
    /// Name of the person or program that asks.
    pub by: String,
    /// Content of the system message for each session whose run ends at once.
    pub note: Value,
}

/// Effect of a [`Cancel`] on each run of the tree. All lists are empty if the tenant has no such run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cancelled {
    /// Runs that nobody held: they are cancelled now.
    pub ended: Vec<JobId>,
    /// Runs that a worker holds: each has a cancel request, and its worker ends it.
    pub told: Vec<JobId>,
    /// Runs that were over before.
    pub over: Vec<JobId>,
}

/// Parks and cancels runs.
#[async_trait]
pub trait Runs: Queue + SessionLog + Approvals {
    /// Ends the lease and parks its run until it is woken or `until` has come. If one of the approvals is
    /// missing, expired or no longer pending, or the run has a cancel request, the run becomes pending and
    /// claimable at once instead. Returns the state of the job. [`StoreError::LeaseLost`], and nothing
    /// changed, if the lease is lost.
    async fn park(&self, lease: &Lease, parking: Parking) -> Result<JobState, StoreError>;
    /// Cancels a run and all its descendants. A run that nobody holds ends at once, with the note and an event in its
    /// session; a leased one gets a cancel request, which its worker obeys. Pending approvals of all these runs are
    /// cancelled.
    async fn cancel(&self, tenant: &TenantId, job: JobId, cancel: Cancel) -> Result<Cancelled, StoreError>;
}
