//! `clawsmith policy test`: assertions about verdicts, for CI.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use claw_terminal::{Cell, Table};
use clawsmith::app::policy::{PolicyTestOutcome, PolicyTests};

use super::replay::verdict;
use crate::cli::Session;
use crate::command::tools::runtime;
use crate::failure::{Failure, Outcome};

/// The assertions.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The file of assertions.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Test {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let text = std::fs::read_to_string(&self.file).map_err(|error| {
            Failure::usage(format!("`{}` cannot be read", self.file.display())).because(error)
        })?;
        let tests = PolicyTests::parse(&text)?;
        let workspace = session.around.directory.clone();
        let outcomes = runtime()?.block_on(setup.test_policy(&tests, &workspace))?;
        let failed = outcomes.iter().filter(|outcome| !outcome.passed).count();
        match session.out.json {
            true => session.out.json(&outcomes)?,
            false => print(session, &outcomes, failed)?,
        }
        Ok(ExitCode::from(u8::from(failed > 0)))
    }
}

fn print(session: &mut Session, outcomes: &[PolicyTestOutcome], failed: usize) -> Result<(), Failure> {
    let mut table = Table::new(["test", "holds", "expected", "found", "why"]);
    for outcome in outcomes {
        table.row([
            Cell::strong(&outcome.name),
            if outcome.passed { Cell::good("yes") } else { Cell::bad("no") },
            verdict(outcome.expected),
            verdict(outcome.found),
            Cell::new(&outcome.reason),
        ]);
    }
    session.out.table(&table)?;
    session.out.line(format_args!("\n{} of {} hold", outcomes.len() - failed, outcomes.len()))?;
    Ok(())
}
