//! Running commands: on the host, or in the kernel sandbox.

mod child;
mod confine;
mod environment;
mod generated_directories;
mod home_and_tmp;
mod identify_files;
mod local;
mod output;
mod pending_changes;
mod process;
mod programs;
mod search_path;
mod terminal;

pub(crate) use confine::closed_ports;
pub(crate) use environment::environment;
pub(crate) use identify_files::{TEMPORARY, is_writable, named};
pub use local::{GENERATED, LocalShell, ShellOptions};
pub(crate) use local::{no_dry_run, no_layer};
pub use output::OutputLimits;
pub(crate) use output::{Decoder, Output};
pub use process::{Command, Finished, Input, Process, Reason, Streams};
pub use programs::{
    CredentialedPrograms, Harmless, NoCredentials, ProgramRules, check_program, digest_program,
};
pub(crate) use terminal::END;
pub use terminal::Terminal;
