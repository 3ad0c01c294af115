//! `clawsmith doctor`: the state of the deployment, its problems, and how to fix each.

use std::process::ExitCode;

use clap::Args;
use claw_terminal::{Cell, Table};
use clawsmith::app::{Finding, FindingState, Setup};

use super::tools::runtime;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};

/// The options of the examination.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Also ask each model for one word, which costs a request each.
    #[arg(long)]
    probe: bool,
}

impl Doctor {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let findings = match Setup::load(session.globals.config.as_deref(), &session.around) {
            Ok(setup) => runtime()?.block_on(setup.examine(self.probe)),
            Err(error) => {
                let failure = Failure::from(error);
                let fix = failure.advice().unwrap_or("clawsmith config check").to_owned();
                vec![Finding::bad("configuration", failure.in_short(), fix)]
            }
        };
        let bad = findings.iter().filter(|finding| finding.state == FindingState::Bad).count();
        if session.out.json {
            session.out.json(&findings)?;
            return Ok(ExitCode::from(u8::from(bad > 0)));
        }
        let mut table = Table::new(["", "what", "how it stands"]);
        for finding in &findings {
            let mark = match finding.state {
                FindingState::Good => Cell::good("good"),
                FindingState::Worth => Cell::warning("note"),
                FindingState::Bad => Cell::bad("bad"),
            };
            table.row([mark, Cell::strong(finding.topic), Cell::new(&finding.what)]);
        }
        session.out.table(&table)?;
        let mut fixes = findings.iter().filter_map(|finding| Some((finding.topic, finding.fix.as_ref()?)));
        if let Some(first) = fixes.next() {
            session.out.line("")?;
            session.out.heading("What to do")?;
            let mut told = std::collections::HashSet::new();
            for (topic, fix) in std::iter::once(first).chain(fixes).filter(|fix| told.insert(*fix)) {
                session.out.prose(format_args!("{topic}: {fix}"))?;
            }
        }
        Ok(ExitCode::from(u8::from(bad > 0)))
    }
}
