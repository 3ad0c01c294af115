//! What the system must remember: one trait per aggregate, one method one transaction.
//!
//! Methods that span aggregates have names of their own: [`Ledger::begin_call`] marks an approval used and
//! writes the intent together.

mod approvals;
mod ledger;

pub use approvals::{Answer, Approval, ApprovalState, Approvals, NewApproval};
pub use ledger::{Entry, Event as EntryEvent, Ledger, Outcome, Record, Tally};

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
