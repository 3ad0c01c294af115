//! `clawsmith doctor`: the state of the deployment, its problems, and how to fix each.

use std::collections::HashSet;
use std::process::ExitCode;

use clap::Args;
use claw_terminal::{Cell, Table};
use clawsmith::app::{Finding, FindingState, Setup};

use crate::cli::Session;
use crate::exit_code::Outcome;
use crate::opened::runtime;

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
                let fix = error.advice().unwrap_or("clawsmith config check").to_owned();
                // The first place that it names, on one line.
                let what = error.message().lines().take(2).collect::<Vec<_>>().join(": ");
                vec![Finding::bad("configuration", what, fix)]
            }
        };
        let bad = findings.iter().filter(|finding| finding.state == FindingState::Bad).count();
        session.shown(&findings, |out| {
            out.table(&Table::of(
                &findings,
                &[
                    ("", &|finding| match finding.state {
                        FindingState::Good => Cell::good("good"),
                        FindingState::Worth => Cell::warning("note"),
                        FindingState::Bad => Cell::bad("bad"),
                    }),
                    ("what", &|finding| Cell::strong(finding.topic)),
                    ("finding", &|finding| Cell::new(&finding.what)),
                ],
            ))?;
            let mut told = HashSet::new();
            let fixes = findings.iter().filter_map(|finding| Some((finding.topic, finding.fix.as_ref()?)));
            for (topic, fix) in fixes {
                if told.is_empty() {
                    out.line("")?;
                    out.heading("What to do")?;
                }
                if told.insert((topic, fix)) {
                    out.prose(format_args!("{topic}: {fix}"))?;
                }
            }
            Ok(())
        })?;
        Ok(ExitCode::from(u8::from(bad > 0)))
    }
}
