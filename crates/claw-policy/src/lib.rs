//! Pure decisions: no clock, no I/O, no state, no async.

pub mod approval;
pub mod config;
pub mod entry;
pub mod group;
pub mod nearest;
pub mod pipeline;
pub mod profile;
pub mod rate;
pub mod scrub;
