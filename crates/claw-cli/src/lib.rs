//! The command line `clawsmith`, as a library so that generators and tests can use its parts.
//!
//! [`run`] is the whole program. One file per subcommand lies in `command`; `compose` is where the concrete
//! parts of Clawsmith meet; [`config`] is `clawsmith.toml`.

mod caller;
mod cli;
mod command;
mod compose;
pub mod config;
mod failure;
mod installation;
mod log;
mod output;

pub use cli::{command, run};
