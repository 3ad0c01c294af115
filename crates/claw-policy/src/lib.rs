//! Pure decisions: no clock, no I/O, no state, no async.
//!
//! - [`pipeline`]: which tools a caller gets, with the trace that decided; [`explain`], [`lint`] and [`diff`]
//!   put that into words.
//! - [`approval`]: whether a planned call may run, must be asked about or is denied.
//! - [`control`]: which files of a workspace make other programs run something.
//! - [`rate`]: how many calls a session may make.
//! - [`scrub`]: what is secret.
//! - [`shell`]: what a shell command would do.
//! - [`skill`]: which lines of a skill look like an attack.
//!
//! Deterministic: the same input gives the same answer.

pub mod approval;
pub mod config;
pub mod control;
pub mod diff;
pub mod entry;
pub mod explain;
pub mod group;
pub mod lint;
pub mod nearest;
pub mod pipeline;
pub mod profile;
pub mod program;
pub mod rate;
pub mod sandbox;
pub mod scrub;
pub mod shell;
pub mod skill;
