//! The real world behind the ports: the clock, and what is remembered of calls.
//!
//! [`MemoryStore`] forgets with the process and is what an embedder gets by default; [`FileLedger`] keeps a
//! chain of lines that [`verify`](ledger::verify) can check.

mod approvals;
mod calls;
mod clock;
pub mod ledger;
mod memory;

pub use clock::SystemClock;
pub use ledger::FileLedger;
pub use memory::{MemoryLimits, MemoryStore};
