//! The real world behind the ports: the clock, files, kept results, commands and their sandbox, and the
//! records of calls.
//!
//! [`MemoryStore`] lives as long as the process and is an embedder's default; `claw-store` has the persistent
//! stores.

#![cfg_attr(
    not(feature = "docker"),
    expect(dead_code, unused_imports, reason = "the Docker sandbox shares these parts of the kernel's")
)]

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
pub mod sandbox;
mod secret_files;
pub mod shell;
pub mod skills;
pub mod transaction;

pub use agents::AgentResolver;
pub use artifacts::{ArtifactKeeping, ArtifactLimits, FileArtifacts, IndexedArtifacts, MemoryArtifacts};
pub use clock::SystemClock;
pub use memory::{MemoryLimits, MemoryStore};
