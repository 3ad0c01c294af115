//! What the system must remember: one trait per aggregate, one method one transaction.
//!
//! Methods that span aggregates have names of their own: [`Ledger::begin_call`] marks an approval used and
//! writes the intent together.

mod approvals;
mod changes;
mod documents;
mod ledger;
mod queue;
mod sessions;
mod undo;

pub use approvals::{Answer, Approval, ApprovalState, Approvals, NewApproval};
pub use changes::{Bells, Changes, Topic};
pub use documents::{Document, DocumentCard, DocumentKey, Documents, Found, Passage, PassageQuery, Shelf};
pub use ledger::{Entry, Event as EntryEvent, Ledger, Outcome, Record, Tally};
pub use queue::{Claim, Failure, Job, JobState, LaneCount, Lease, NewJob, Queue, Worker};
pub use sessions::{Accepted, Message, NewMessage, Role, SessionEvent, SessionLog};
pub use undo::{FileState, NewUndo, Undo, UndoFilter, UndoIndex};

/// Everything a deployment remembers.
pub trait Store: CallStore + Documents + Queue + SessionLog {}

impl<S: CallStore + Documents + Queue + SessionLog> Store for S {}

/// Everything the road remembers calls by.
pub trait CallStore: Ledger + Approvals {}

impl<S: Ledger + Approvals> CallStore for S {}

/// A store that could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The call id has an intent already: it ran, or may have.
    #[error("call `{call}` was begun before and is never run again; its outcome is {outcome}")]
    AlreadyBegun {
        /// Which call.
        call: crate::CallId,
        /// What became of it; unknown where nothing was recorded.
        outcome: Outcome,
    },
    /// The approval is not there, or not in the state that the step needs.
    #[error("approval `{id}` is {state}; only a pending one can be answered and only an approved one used")]
    ApprovalState {
        /// Which approval.
        id: crate::ApprovalId,
        /// `pending`, `used`, ..., or `missing`.
        state: &'static str,
    },
    /// The job is not this worker's any more: its lease ended and someone else may have it.
    #[error("job `{job}` is not leased to this worker any more; drop what it made and claim again")]
    LeaseLost {
        /// Which job.
        job: crate::JobId,
    },
    /// The document is not as the writer saw it.
    #[error("`{path}` {}; read it again and write what should be there now", stale(.now))]
    Stale {
        /// Which document.
        path: String,
        /// Its version now; `None` where it is not there.
        now: Option<u64>,
    },
    /// The database refused or could not be reached. What was asked has not happened, or is not known to.
    #[error("{what}: {why}")]
    Database {
        /// What was being done.
        what: &'static str,
        /// Why it failed, without values of rows.
        why: String,
        /// Whether trying again later may help.
        transient: bool,
    },
    /// What is stored does not read as it should.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// Which file or row.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The store itself failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

fn stale(now: &Option<u64>) -> String {
    match now {
        Some(version) => format!("was changed since it was read (it is at version {version})"),
        None => "is not there any more".to_owned(),
    }
}
