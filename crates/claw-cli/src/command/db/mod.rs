//! `clawsmith db`: the store, for whoever runs it.

mod migrate;
mod status;

use clap::Subcommand;

use crate::cli::Session;
use crate::failure::Outcome;

/// What to do with the store.
#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Show where the store is, its schema, its size and how many rows it holds.
    #[command(after_help = "Looking changes nothing and makes nothing.

Examples:
  clawsmith db status
  clawsmith db status --json | jq .schema")]
    Status,
    /// Bring the schema up to date, and say what was applied.
    #[command(
        after_help = "Every start does the same, one program at a time; this is for doing it beforehand. \
A store that is not there is made.

Examples:
  clawsmith db migrate
  CLAWSMITH_STORE__URL=postgres://claw@db/claw clawsmith db migrate --json"
    )]
    Migrate,
}

impl Db {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Status => status::run(session),
            Self::Migrate => migrate::run(session),
        }
    }
}
