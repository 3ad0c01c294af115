//! The real world behind the ports: the clock, files, kept results, transactions over a workspace, background
//! commands, skills, and memory over a store. Commands run in `claw-sandbox`; `claw-store` and `claw-store-memory` have the stores.

mod agents;
mod clock;
pub mod files;
mod kept_results;
mod processes;
pub mod project_instructions;
pub mod recall;
pub mod secret_files;
pub mod skills;
pub mod transaction;

pub use agents::AgentResolver;
pub use clock::SystemClock;
pub use kept_results::{ArtifactKeeping, ArtifactLimits, FileArtifacts, IndexedArtifacts, MemoryArtifacts};
pub use processes::{ProcessKeeping, ProcessLimits, ProcessTable};
