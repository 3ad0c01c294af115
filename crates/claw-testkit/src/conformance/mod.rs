//! Conformance suites that every implementation of a store must pass.
//!
//! ```
//! # tokio_test(async {
//! claw_testkit::conformance::calls(async || claw_store_memory::MemoryStore::new()).await;
//! # });
//! # fn tokio_test(f: impl Future<Output = ()>) {
//! #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(f);
//! # }
//! ```

mod access;
mod agents;
mod artifact_index;
mod artifacts;
mod blobs;
mod bridge;
mod calls;
mod conversations;
mod custom_tools;
mod documents;
mod graph;
mod mcp;
mod memories;
mod processes;
mod queue;
mod rules;
mod runs;
mod sealed;
mod secrets;
mod seen;
mod session_log;
mod skills;
mod undo_index;
mod usage;
mod workspace_files;

pub use artifact_index::artifact_index;
mod settings;
pub use access::access;
pub use agents::agents;
pub use artifacts::artifacts;
pub use blobs::{blob_room, blobs};
pub use bridge::bridge;
pub use calls::calls;
pub use conversations::conversations;
pub use custom_tools::custom_tools;
pub use documents::documents;
pub use graph::graph;
pub use mcp::mcp;
pub use memories::memories;
pub use processes::processes;
pub use queue::queue;
pub use rules::rules;
pub use runs::{runs, runs_in_store};
pub use sealed::sealed_values;
pub use secrets::{programs, secrets};
pub use seen::seen_index;
pub use session_log::session_log;
pub use settings::settings;
pub use skills::{skills, version as skill_version};
pub use undo_index::undo_index;
pub use usage::{offers, usage};
pub use workspace_files::workspace_files;
