//! Running commands: on the host, or in the kernel sandbox.

mod child;
mod environment;
mod local;
mod output;
mod process;
mod programs;
mod sight;
mod terminal;

pub use local::{LocalShell, ShellOptions};
pub use output::OutputLimits;
pub use process::{Command, Finished, Input, Process, Reason, Streams};
pub use terminal::Terminal;
pub use programs::{CredentialedPrograms, check_program, digest_program};
