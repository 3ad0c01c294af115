//! The ledger, approvals and blobs in memory, without SQL: the default of an embedder, and of most tests.
//!
//! `claw-store` has the stores that outlive the process.

mod approvals;
mod blobs;
mod calls;
mod store;

pub use store::{MemoryLimits, MemoryStore};
