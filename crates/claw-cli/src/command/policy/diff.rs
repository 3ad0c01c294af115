//! `clawsmith policy diff`: the tools that each agent gains and loses by a change of configuration.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use claw_policy::diff::diff;
use clawsmith::app;
use clawsmith::config::{Loaded, Surroundings};

use crate::cli::Session;
use crate::failure::{Failure, Outcome};

/// The configurations to compare.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The configuration of before.
    #[arg(value_name = "A")]
    before: PathBuf,
    /// The configuration of after.
    #[arg(value_name = "B")]
    after: PathBuf,
}

impl Diff {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        // The same variables would be laid over both and hide what differs.
        let around = Surroundings { directory: session.around.directory.clone(), variables: Vec::new() };
        let before = Loaded::load(Some(&self.before), &around)?;
        let after = Loaded::load(Some(&self.after), &around)?;
        let difference = diff(&before.config.policy(), &after.config.policy(), &app::catalogue())
            .map_err(|error| Failure::usage(error.to_string()))?;
        if session.out.json {
            session.out.json(&difference)?;
        } else {
            session.out.foreign(&difference.to_string())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
