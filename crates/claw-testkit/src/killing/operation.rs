//! The operations a player can try, and the replies it can get.

use claw_core::port::UnixMillis;
use claw_core::store::{ApprovalState, JobState, Lease, NewApproval, NewJob, NewMessage, Worker};
use claw_core::{ApprovalId, CallId, JobId, SessionKey};
use serde::{Deserialize, Serialize};

/// A call of one method of a store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "try", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the method of its name, with what it is given")]
pub enum Operation {
    Enqueue { job: NewJob },
    Claim { now: UnixMillis, until: UnixMillis },
    Extend { right: Right, until: UnixMillis },
    FinishJob { right: Right },
    FailJob { right: Right, retry: Option<UnixMillis> },
    Reclaim { now: UnixMillis },
    Park { right: Right, until: UnixMillis },
    Wake { job: JobId },
    Cancel { job: JobId },
    AcceptMessage { message: NewMessage, job: NewJob },
    SayInRun { right: Right, said: Vec<NewMessage> },
    FinishRun { right: Right, said: Vec<NewMessage> },
    LogEvent { session: SessionKey, note: JobId },
    Request { question: NewApproval },
    Answer { approval: ApprovalId, approve: bool, at: UnixMillis },
    BeginCall { call: CallId, approval: Option<ApprovalId>, at: UnixMillis },
    FinishCall { call: CallId },
    Refuse { call: CallId },
}

/// A player's right to finish a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Right {
    /// The id of the job.
    pub job: JobId,
    /// The number of the attempt.
    pub attempt: u32,
    /// Until when.
    pub until: UnixMillis,
}

impl Right {
    /// Returns the lease in the hands of `worker`.
    pub fn of(self, worker: &Worker) -> Lease {
        Lease { job: self.job, worker: worker.clone(), attempt: self.attempt, until: self.until }
    }
}

impl From<&Lease> for Right {
    fn from(lease: &Lease) -> Self {
        Self { job: lease.job, attempt: lease.attempt, until: lease.until }
    }
}

/// The store's reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "got", rename_all = "snake_case")]
pub enum Reply {
    /// The operation happened.
    Done,
    /// A message was accepted, now or before.
    Accepted {
        /// The message's number.
        seq: u64,
        /// The message's job.
        job: JobId,
    },
    /// A job was leased, or there was none.
    Claimed {
        /// The lease.
        right: Option<Right>,
    },
    /// An attempt failed or was parked.
    Failed {
        /// The job's state afterwards.
        state: JobState,
    },
    /// A tree of jobs was cancelled.
    Cancelled {
        /// Jobs that ended at once.
        ended: Vec<JobId>,
        /// Jobs that have a request.
        told: Vec<JobId>,
    },
    /// Messages were given these numbers.
    Places {
        /// The numbers, in order.
        seqs: Vec<u64>,
    },
    /// An approval exists.
    Asked {
        /// The id of the approval.
        approval: ApprovalId,
        /// The approval's state.
        state: ApprovalState,
    },
    /// The operation was refused for a documented reason, and has not happened.
    Refused {
        /// The reason.
        why: String,
    },
    /// An error: it may have happened or not.
    Error {
        /// The error's message.
        why: String,
        /// True if a retry may help. An error that is not transient is a finding.
        transient: bool,
    },
}

/// An operation and its reply, if its player lived to get it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The attempted operation.
    pub operation: Operation,
    /// The reply; `None` if the player died before it.
    pub reply: Option<Reply>,
}

impl Step {
    /// Returns the reply if the operation has certainly happened.
    pub fn happened(&self) -> Option<&Reply> {
        self.reply.as_ref().filter(|reply| !matches!(reply, Reply::Refused { .. } | Reply::Error { .. }))
    }

    /// Returns whether it may have happened: everything but a refusal.
    pub fn may_have_happened(&self) -> bool {
        !matches!(self.reply, Some(Reply::Refused { .. }))
    }

    /// Returns whether it is unknown if it happened.
    pub fn is_unclear(&self) -> bool {
        matches!(self.reply, None | Some(Reply::Error { .. }))
    }
}
