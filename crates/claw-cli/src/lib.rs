//! The command line `clawsmith`, as a library so that generators and tests can use its parts.
//!
//! [`run`] is the whole program. Each subcommand is a file in `command`: arguments in, an operation of
//! [`clawsmith::app`], rendering out.

mod caller;
mod choice;
mod cli;
mod command;
mod exit_code;
mod help;
mod log;
mod opened;

pub use cli::{command, run};
