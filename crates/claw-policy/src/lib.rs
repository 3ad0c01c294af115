//! Pure decisions: no clock, no I/O, no state, no async.

pub mod approval;
pub mod config;
pub mod diff;
pub mod entry;
pub mod explain;
pub mod group;
pub mod lint;
pub mod pipeline;
pub mod profile;
pub mod scrub;
