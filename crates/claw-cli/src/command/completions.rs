//! `clawsmith completions`: completion scripts for shells.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::cli::Session;
use crate::exit_code::Outcome;

/// The shell to complete for.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::cli::command(), "clawsmith", &mut script);
        session.out.raw(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
