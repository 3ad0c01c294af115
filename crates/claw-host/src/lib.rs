//! The real world behind the ports: the clock, files, kept results, transactions over a workspace, skills and
//! the records of calls. Commands run in `claw-sandbox`.
//!
//! [`MemoryStore`] lives as long as the process and is an embedder's default; `claw-store` has the persistent
//! stores.

mod agents;
mod approvals;
mod artifacts;
mod blobs;
mod calls;
mod clock;
pub mod files;
mod memory;
pub mod project;
pub mod recall;
pub mod secret_files;
pub mod skills;
pub mod transaction;

pub use agents::AgentResolver;
pub use artifacts::{ArtifactKeeping, ArtifactLimits, FileArtifacts, IndexedArtifacts, MemoryArtifacts};
pub use clock::SystemClock;
pub use memory::{MemoryLimits, MemoryStore};
