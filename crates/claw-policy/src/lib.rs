//! Pure decisions: no clock, no I/O, no state, no async.

pub mod approval;
pub mod rate;
pub mod scrub;
