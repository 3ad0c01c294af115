//! Pure decisions: no clock, no I/O, no state, no async.
//!
//! - [`pipeline`] decides which tools a caller gets, with a trace; [`explain`], [`lint`] and [`diff`] put it
//!   into words.
//! - [`approval`] decides whether a planned call may run, must be asked about or is denied.
//! - [`control_files`] finds files of a workspace that make other programs run something; [`git_config`] tells
//!   which settings of git do not.
//! - [`rate_window`] limits the calls of a session by the figures of [`rate_config`].
//! - [`scrub`] removes secrets from text.
//! - [`shell`] judges shell commands.
//! - [`skill_attacks`] finds lines of a skill that look like an attack.
//!
//! Deterministic: the same input gives the same answer.

pub mod approval;
pub mod config;
pub mod control_files;
pub mod diff;
pub mod entry;
pub mod explain;
pub mod git_config;
pub mod group;
pub mod lint;
pub mod pipeline;
pub mod profile;
pub mod program;
pub mod rate_config;
pub mod rate_window;
pub mod sandbox_mode;
pub mod scrub;
pub mod shell;
pub mod skill_attacks;
