//! Running commands: on the host, or in the kernel sandbox.

mod environment;
mod local;
mod output;
mod process;
mod sight;

pub(crate) use environment::environment;
pub use local::{LocalShell, ShellOptions};
pub use output::OutputLimits;
pub(crate) use output::{Decoder, Output};
pub use process::{Command, Finished, Input, Process, Reason, Streams};
pub(crate) use sight::named;
