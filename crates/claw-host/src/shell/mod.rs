//! Running commands: on the host, or in the kernel sandbox.

mod environment;
mod local;
mod output;
mod process;
mod programs;
mod sight;

pub use local::{LocalShell, ShellOptions};
pub use output::OutputLimits;
pub use process::{Command, Finished, Input, Process, Reason, Streams};
pub use programs::{CredentialedPrograms, NoCredentials, check_program, digest_program};
