//! The real world behind the ports: the clock, and what is remembered of calls.
//!
//! [`MemoryStore`] forgets with the process and is what an embedder gets by default.

mod approvals;
mod calls;
mod clock;
mod memory;

pub use clock::SystemClock;
pub use memory::{MemoryLimits, MemoryStore};
