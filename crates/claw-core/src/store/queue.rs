//! Work that was accepted and must be done: at least once begun, once finished.
//!
//! A job is claimed under a lease that names the worker's node and boot. Whoever holds the lease may finish
//! it; when the lease ends, because its time is over or its node came back with another boot, the job can be
//! claimed again. Finished is finished: no lease, however late, brings a job back.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use super::{Changes, StoreError};
use crate::id::{BootId, JobId, NodeId, SessionKey, TenantId};
use crate::port::UnixMillis;

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
    /// How often it may be begun; then it is dead.
    pub max_attempts: u16,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Waits for a worker.
    Pending,
    /// A worker has it.
    Leased,
    /// Finished, and never begun again.
    Done,
    /// Failed too often; kept to be looked at.
    Dead,
}

impl JobState {
    /// The state as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased => "leased",
            Self::Done => "done",
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
    pub attempt: u16,
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
    /// How often it was begun.
    pub attempts: u16,
    /// What went wrong last.
    pub error: Option<String>,
    /// Who has it.
    pub lease: Option<Lease>,
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
    /// Given up.
    pub dead: u64,
}

/// Keeps accepted work; that some may have become claimable is told as [`Topic::Work`](super::Topic::Work).
#[async_trait]
pub trait Queue: Changes {
    /// Accepts a job. One whose id was accepted before is left as it is.
    async fn enqueue(&self, job: NewJob) -> Result<(), StoreError>;
    /// Leases the best visible job of the lanes: highest priority, then the oldest, none whose session has a
    /// leased job. A job that has been begun as often as it may becomes dead instead.
    async fn claim(&self, claim: Claim) -> Result<Option<(Job, Lease)>, StoreError>;
    /// Keeps a lease until then. [`StoreError::LeaseLost`] where it is lost.
    async fn extend(&self, lease: &Lease, until: UnixMillis) -> Result<Lease, StoreError>;
    /// Marks a job done. [`StoreError::LeaseLost`], and nothing changed, where the lease is lost.
    async fn finish_job(&self, lease: &Lease) -> Result<(), StoreError>;
    /// Gives a job back: to be tried again then, or dead.
    async fn fail_job(&self, lease: &Lease, failure: Failure) -> Result<JobState, StoreError>;
    /// Makes claimable what nobody works on: leases that ended by `now`, and all leases of earlier boots of
    /// this worker's node. Gives their ids.
    async fn reclaim(&self, worker: &Worker, now: UnixMillis) -> Result<Vec<JobId>, StoreError>;
    /// One job; `None` where this tenant has none of that id.
    async fn job(&self, tenant: &TenantId, id: JobId) -> Result<Option<Job>, StoreError>;
    /// How many jobs of a tenant stand where, by lane.
    async fn lanes(&self, tenant: &TenantId) -> Result<Vec<LaneCount>, StoreError>;
}
