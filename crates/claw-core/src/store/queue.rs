//! Work that was accepted and must be done: at least once begun, once finished.
//!
//! A job is claimed under a lease that names the worker's node and boot. The holder of the lease may finish
//! the job; when the lease ends, because its time is over or its node came back with another boot, the job can be
//! claimed again. A finished or cancelled job is never begun again: no lease, however late, brings it back.
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

/// The longest that a lease can hold without being extended. One that ends later was given by a clock that was wrong.
pub const LONGEST_LEASE: Duration = Duration::from_secs(3600);

/// Work to be accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewJob {
    /// Its id. The same id accepted again is the same job.
    pub id: JobId,
    /// Whose data it is.
    pub tenant: TenantId,
    /// Which kind of worker takes it: `main`, `subagent`, `cron`, ...
    pub lane: SmolStr,
    /// Jobs of one session run one at a time.
    pub session: Option<SessionKey>,
    /// Higher goes first; equal ones in the order they were accepted.
    pub priority: i16,
    /// What to do.
    pub payload: Value,
    /// When it was accepted.
    pub accepted: UnixMillis,
    /// Not claimed before.
    pub visible: UnixMillis,
    /// How many [tries](Job::tries) it may have; then it is dead.
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
    /// Returns the first job of its tree: itself where nobody started it.
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

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Waits for a worker.
    Pending,
    /// A worker has it.
    Leased,
    /// Waits for something outside, such as an approval, and takes no worker's slot. Its session stays busy.
    Parked,
    /// Finished, and never begun again.
    Done,
    /// Ended on request, and never begun again.
    Cancelled,
    /// Failed too often; kept to be looked at.
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

    /// The state as a word.
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

/// Who works: a node, and which of its lives.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Worker {
    /// Which machine.
    pub node: NodeId,
    /// Which life of the program on it.
    pub boot: BootId,
}

/// What a worker asks for.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Who asks.
    pub worker: Worker,
    /// The lanes it takes work from.
    pub lanes: Vec<SmolStr>,
    /// The time.
    pub now: UnixMillis,
    /// Until when the lease holds, if it is not extended.
    pub until: UnixMillis,
}

/// The right to finish a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Which job.
    pub job: JobId,
    /// Whose right it is.
    pub worker: Worker,
    /// Which attempt this is, counted from 1. A lease of an earlier attempt is worth nothing.
    pub attempt: u32,
    /// Until when.
    pub until: UnixMillis,
}

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// What was accepted.
    pub new: NewJob,
    /// Where it stands.
    pub state: JobState,
    /// How often it was claimed. It never falls, so that it can number leases.
    pub attempts: u32,
    /// How many of these claims ended with parking.
    pub parks: u32,
    /// What went wrong last.
    pub error: Option<String>,
    /// Who has it.
    pub lease: Option<Lease>,
    /// The request to end it early; `None` where nobody asked.
    pub cancel: Option<CancelRequest>,
}

impl Job {
    /// Returns how often the job was tried: claims that ended with parking do not count.
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

/// Filter and page of a list of jobs; every part that is given must agree.
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

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong, scrubbed.
    pub error: String,
    /// When to try again; `None` where trying again is of no use.
    pub retry: Option<UnixMillis>,
}

/// How many jobs of a lane stand where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneCount {
    /// Which lane.
    pub lane: SmolStr,
    /// Waiting, those not yet visible included.
    pub pending: u64,
    /// In work.
    pub leased: u64,
    /// Parked.
    pub parked: u64,
    /// Given up.
    pub dead: u64,
}

/// Keeps accepted work; that some may have become claimable is told as [`Topic::Work`](super::Topic::Work).
#[async_trait]
pub trait Queue: Changes {
    /// Accepts a job. One whose id was accepted before is left as it is. If the job's parent has a cancel request,
    /// the job begins with the same request.
    async fn enqueue(&self, job: NewJob) -> Result<(), StoreError>;
    /// Leases the best visible job of the lanes: highest priority, then the oldest. Jobs of one session run in the
    /// order of their acceptance: only its oldest job that is not over can be claimed, whatever keeps that one
    /// waiting. A parked job can be claimed from its `visible` on. A job that had all its tries becomes dead instead.
    async fn claim(&self, claim: Claim) -> Result<Option<(Job, Lease)>, StoreError>;
    /// Keeps a lease until then. [`StoreError::LeaseLost`] where it is lost.
    async fn extend(&self, lease: &Lease, until: UnixMillis) -> Result<Lease, StoreError>;
    /// Marks a job done. [`StoreError::LeaseLost`], and nothing changed, where the lease is lost.
    async fn finish_job(&self, lease: &Lease) -> Result<(), StoreError>;
    /// Gives a job back: to be tried again then, or dead.
    async fn fail_job(&self, lease: &Lease, failure: Failure) -> Result<JobState, StoreError>;
    /// Makes claimable what nobody works on: leases that ended by `now`, all leases of earlier boots of this
    /// worker's node, and leases that end more than [`LONGEST_LEASE`] from `now`. Gives their ids.
    async fn reclaim(&self, worker: &Worker, now: UnixMillis) -> Result<Vec<JobId>, StoreError>;
    /// Takes a job from whoever has it and makes it claimable by `now`, whatever time it was to wait for. A worker
    /// that had it cannot finish it any more. `false`, and nothing changed, where this tenant has no job of that id
    /// that is leased or pending.
    async fn release(&self, tenant: &TenantId, job: JobId, now: UnixMillis) -> Result<bool, StoreError>;
    /// Makes a parked job claimable at once. `false`, and nothing changed, where this tenant has no parked job of
    /// that id.
    async fn wake(&self, tenant: &TenantId, job: JobId) -> Result<bool, StoreError>;
    /// Returns those of the given jobs that have a cancel request. A worker asks this for its own runs when
    /// [`Topic::Work`](super::Topic::Work) rises.
    async fn cancel_requests(&self, jobs: &[JobId]) -> Result<Vec<JobId>, StoreError>;
    /// One job; `None` where this tenant has none of that id.
    async fn job(&self, tenant: &TenantId, id: JobId) -> Result<Option<Job>, StoreError>;
    /// Jobs of a tenant, the last accepted first.
    async fn jobs(&self, tenant: &TenantId, filter: &JobFilter) -> Result<Vec<Job>, StoreError>;
    /// How many jobs of a tenant are not over whose payload names this user as `user`; for `None`, names nobody.
    async fn open_jobs_of(&self, tenant: &TenantId, user: Option<&UserId>) -> Result<u64, StoreError>;

    /// How many jobs of a tenant stand where, by lane.
    async fn lanes(&self, tenant: &TenantId) -> Result<Vec<LaneCount>, StoreError>;
}
