//! `clawsmith policy`: explain, lint, diff, replay, test.

mod diff;
mod explain;
mod lint;
mod replay;
mod test;

use clap::Subcommand;

use crate::cli::Session;
use crate::failure::Outcome;

/// The operations on the policy.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Explain why a caller has a tool or not, and what would have to change.
    Explain(explain::Explain),
    /// List rules that match nothing, change nothing, or allow what another denies.
    Lint(lint::Lint),
    /// Show the tools that each agent gains and loses between two configurations.
    Diff(diff::Diff),
    /// Show which recorded calls another configuration would decide differently.
    Replay(replay::Replay),
    /// Check assertions about who may call what.
    Test(test::Test),
}

impl Policy {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Explain(explain) => explain.run(session),
            Self::Lint(lint) => lint.run(session),
            Self::Diff(diff) => diff.run(session),
            Self::Replay(replay) => replay.run(session),
            Self::Test(test) => test.run(session),
        }
    }
}
