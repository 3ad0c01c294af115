//! `clawsmith policy replay`: the ledger's calls, judged by another configuration.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use claw_terminal::{Cell, Table};
use clawsmith::app::Setup;
use clawsmith::app::replay::{Replay as Found, ReplayVerdict, ago, since};

use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_existing_app;

/// The configuration to try.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The other configuration.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The time to go back: days (`7d`) or hours (`12h`).
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = since)]
    since: Duration,
}

impl Replay {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let other = Setup::read(Some(&self.file), &session.around)?;
        let found = with_existing_app(&setup, async |app| Ok(app.replay(other, ago(self.since)).await?))?;
        let found = found.ok_or_else(|| Failure::failed("nothing is recorded yet: there is no store"))?;
        if session.out.json {
            session.out.json(&found)?;
            return Ok(ExitCode::SUCCESS);
        }
        print(session, &found)
    }
}

fn print(session: &mut Session, found: &Found) -> Outcome {
    let Found { calls, same, skipped, changes } = found;
    session.out.line(format_args!(
        "{calls} recorded calls: {same} decided alike, {} otherwise, {skipped} not judged",
        calls - same - skipped
    ))?;
    if changes.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    session.out.line("")?;
    let mut table = Table::new(["calls", "agent", "tool", "now", "then", "why", "for example"]);
    for change in changes {
        table.row([
            Cell::new(change.calls),
            Cell::strong(&change.agent),
            Cell::strong(&change.tool),
            verdict(change.before),
            verdict(change.after),
            Cell::new(&change.reason),
            Cell::quiet(&change.example),
        ]);
    }
    session.out.table(&table)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn verdict(verdict: ReplayVerdict) -> Cell {
    match verdict {
        ReplayVerdict::Allow => Cell::good("allow"),
        ReplayVerdict::Ask => Cell::warning("ask"),
        ReplayVerdict::Deny => Cell::bad("deny"),
    }
}
