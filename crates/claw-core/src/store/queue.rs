//! Accepted jobs: each begins at least once and finishes once.
//!
//! A job is claimed under a lease that names the worker's node and boot. The holder of the lease may finish
//! the job. When the lease ends, because it expired or its node came back with another boot, the job can be
//! claimed again. A finished or cancelled job never begins again: no late lease brings it back.
//!
//! Parking and cancelling touch approvals and sessions too; they are in [`Runs`](super::Runs).

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use super::{Changes, StoreError};
use crate::id::{BootId, JobId, NodeId, SessionKey, TenantId, UserId};
use crate::port::UnixMillis;

/// The longest time to the end of a lease. A lease that ends later was given by a wrong clock.
pub const LONGEST_LEASE: Duration = Duration::from_secs(3600);

/// A job before it is accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewJob {
    /// Its id. The same id accepted again is the same job.
    pub id: JobId,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The kind of worker that takes it: `main`, `subagent`, `cron`, ...
    pub lane: SmolStr,
    /// The session, whose jobs run one at a time; `None` for a job outside a session.
    pub session: Option<SessionKey>,
    /// The priority: higher goes first; equal ones go in the order of acceptance.
    pub priority: i16,
    /// The order for the worker.
    pub payload: Value,
    /// The time of acceptance.
    pub accepted: UnixMillis,
    /// The earliest time at which it can be claimed.
    pub visible: UnixMillis,
    /// The most [tries](Job::tries); then it is dead.
    pub max_attempts: u16,
    /// The job's place below the job that started it; `None` for the root of a tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Lineage>,
}

/// Place of a job in the tree of jobs that started each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lineage {
    /// The job that started this one.
    pub parent: JobId,
    /// The first job of the tree.
    pub root: JobId,
    /// Number of jobs above this one: 1 for a child of the root.
    pub depth: u16,
}

impl NewJob {
    /// Returns the first job of its tree: itself if no job started it.
    pub fn root(&self) -> JobId {
        self.lineage.map_or(self.id, |lineage| lineage.root)
    }

    /// Returns the user that the payload names as `user`: the one that a run is for.
    pub fn user(&self) -> Option<&str> {
        self.payload.get("user")?.as_str().filter(|user| !user.contains('\0'))
    }

    /// Returns the number of jobs above this one in its tree; 0 for the root.
    pub fn depth(&self) -> u16 {
        self.lineage.map_or(0, |lineage| lineage.depth)
    }

    /// Returns the lineage of a job that this one starts.
    pub fn child(&self) -> Lineage {
        Lineage { parent: self.id, root: self.root(), depth: self.depth().saturating_add(1) }
    }
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// The job waits for a worker.
    Pending,
    /// A worker holds the job.
    Leased,
    /// The job waits for something outside, such as an approval, and takes no worker's slot. Its session
    /// stays busy.
    Parked,
    /// The job is finished and never begins again.
    Done,
    /// The job was ended on request and never begins again.
    Cancelled,
    /// The job failed too often; it is kept for inspection.
    Dead,
}

impl JobState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Leased, Self::Parked, Self::Done, Self::Cancelled, Self::Dead];

    /// Returns whether a job in this state will never run again.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled | Self::Dead)
    }

    /// Returns the state as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased => "leased",
            Self::Parked => "parked",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Dead => "dead",
        }
    }
}

/// A worker: a node, and the boot of the program on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Worker {
    /// The machine.
    pub node: NodeId,
    /// The boot of the program.
    pub boot: BootId,
}

/// A worker's request for a job.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The worker.
    pub worker: Worker,
    /// The lanes it takes work from.
    pub lanes: Vec<SmolStr>,
    /// The present time.
    pub now: UnixMillis,
    /// The end of the lease, unless it is extended.
    pub until: UnixMillis,
}

/// The right to finish a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// The worker that holds it.
    pub worker: Worker,
    /// The number of the attempt, counted from 1. A lease of an earlier attempt is void.
    pub attempt: u32,
    /// The time of its end.
    pub until: UnixMillis,
}

/// A stored job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The job as it was accepted.
    pub new: NewJob,
    /// Its state.
    pub state: JobState,
    /// The number of claims. It never falls, so that it can number leases.
    pub attempts: u32,
    /// The number of these claims that ended with parking.
    pub parks: u32,
    /// The last error; `None` if there was none.
    pub error: Option<String>,
    /// The present lease; `None` if no worker holds the job.
    pub lease: Option<Lease>,
    /// The request to end it early; `None` if nobody asked.
    pub cancel: Option<CancelRequest>,
}

impl Job {
    /// Returns the number of tries: claims that ended with parking do not count.
    pub const fn tries(&self) -> u32 {
        self.attempts.saturating_sub(self.parks)
    }
}

/// Request to end a job early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CancelRequest {
    /// Time of the request.
    pub at: UnixMillis,
    /// Name of the person or program that asked.
    pub by: String,
}

/// Filter and page of a list of jobs; a job must match every part that is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFilter {
    /// Only jobs of this session.
    pub session: Option<SessionKey>,
    /// Only jobs of the tree below this root, the root included.
    pub root: Option<JobId>,
    /// Only jobs in one of these states; empty for all states.
    pub states: Vec<JobState>,
    /// Only jobs accepted before this one: the last of the page before. An unknown id gives an empty page.
    pub after: Option<JobId>,
    /// Most jobs to return.
    pub limit: usize,
}

impl Default for JobFilter {
    fn default() -> Self {
        Self { session: None, root: None, states: Vec::new(), after: None, limit: usize::MAX }
    }
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error, scrubbed.
    pub error: String,
    /// The time of the next attempt; `None` if a retry is pointless.
    pub retry: Option<UnixMillis>,
}

/// The jobs of a lane, counted by state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneCount {
    /// The lane.
    pub lane: SmolStr,
    /// Waiting jobs, including those not yet visible.
    pub pending: u64,
    /// Leased jobs.
    pub leased: u64,
    /// Parked jobs.
    pub parked: u64,
    /// Dead jobs.
    pub dead: u64,
}

/// Stores accepted jobs; that one may have become claimable is announced as
/// [`Topic::Work`](super::Topic::Work).
#[async_trait]
pub trait Queue: Changes {
    /// Accepts a job. If its id exists, nothing changes. If the job's parent has a cancel request, the job
    /// begins with the same request.
    async fn enqueue(&self, job: NewJob) -> Result<(), StoreError>;
    /// Leases the best visible job of the lanes: highest priority, then the oldest. Jobs of one session run
    /// in the order of their acceptance: only its oldest job that is not over can be claimed, even if that
    /// one has to wait. A parked job can be claimed from its `visible` time on. A job that has used all its
    /// tries becomes dead instead.
    async fn claim(&self, claim: Claim) -> Result<Option<(Job, Lease)>, StoreError>;
    /// Extends a lease until `until`. [`StoreError::LeaseLost`] if it is lost.
    async fn extend(&self, lease: &Lease, until: UnixMillis) -> Result<Lease, StoreError>;
    /// Marks a job done. [`StoreError::LeaseLost`], and nothing changed, if the lease is lost.
    async fn finish_job(&self, lease: &Lease) -> Result<(), StoreError>;
    /// Gives a job back, to be retried at the failure's time, or marks it dead.
    async fn fail_job(&self, lease: &Lease, failure: Failure) -> Result<JobState, StoreError>;
    /// Makes abandoned jobs claimable: those with leases that ended by `now`, with leases of earlier boots of
    /// this worker's node, and with leases that end more than [`LONGEST_LEASE`] from `now`; and pending jobs
    /// that a wrong clock hides for longer than that. Returns their ids.
    async fn reclaim(&self, worker: &Worker, now: UnixMillis) -> Result<Vec<JobId>, StoreError>;
    /// Takes a job from its worker and makes it claimable from `now` on, even if it was to wait longer. The
    /// worker can no longer finish it. `false`, and nothing changed, if this tenant has no leased or pending
    /// job with that id.
    async fn release(&self, tenant: &TenantId, job: JobId, now: UnixMillis) -> Result<bool, StoreError>;
    /// Makes a parked job claimable at once. `false`, and nothing changed, if this tenant has no parked job
    /// with that id.
    async fn wake(&self, tenant: &TenantId, job: JobId) -> Result<bool, StoreError>;
    /// Returns those of the given jobs that have a cancel request. A worker calls this for its own runs when
    /// [`Topic::Work`](super::Topic::Work) rises.
    async fn cancel_requests(&self, jobs: &[JobId]) -> Result<Vec<JobId>, StoreError>;
    /// Returns one job; `None` if this tenant has no job with that id.
    async fn job(&self, tenant: &TenantId, id: JobId) -> Result<Option<Job>, StoreError>;
    /// Returns jobs of a tenant, the last accepted first.
    async fn jobs(&self, tenant: &TenantId, filter: &JobFilter) -> Result<Vec<Job>, StoreError>;
    /// Counts the jobs of a tenant that are not over and whose payload names this user as `user`; for `None`,
    /// those that name no user.
    async fn open_jobs_of(&self, tenant: &TenantId, user: Option<&UserId>) -> Result<u64, StoreError>;

    /// Counts the jobs of a tenant by lane and state.
    async fn lanes(&self, tenant: &TenantId) -> Result<Vec<LaneCount>, StoreError>;
}
