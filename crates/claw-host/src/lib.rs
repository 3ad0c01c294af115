//! The real world behind the ports: the clock, files, kept results, and what is remembered of calls.
//!
//! [`MemoryStore`] forgets with the process and is what an embedder gets by default; [`FileLedger`] keeps a
//! chain of lines that [`verify`](ledger::verify) can check.

mod agents;
mod approvals;
mod artifacts;
mod calls;
mod clock;
pub mod files;
pub mod ledger;
mod memory;

pub use agents::ConfiguredAgents;
pub use artifacts::{ArtifactLimits, FileArtifacts, MemoryArtifacts};
pub use clock::SystemClock;
pub use ledger::FileLedger;
pub use memory::{MemoryLimits, MemoryStore};
