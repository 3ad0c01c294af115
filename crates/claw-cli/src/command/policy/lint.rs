//! `clawsmith policy lint`: rules that probably do not work as intended.

use std::process::ExitCode;

use clap::Args;
use claw_policy::lint::Severity;

use crate::cli::Session;
use crate::failure::Outcome;

/// The options of linting.
#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// Take every finding for an error.
    #[arg(long)]
    strict: bool,
}

impl Lint {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        // Looking at a file does nothing under its rules.
        let setup = session.read()?;
        let findings = setup.policy_findings();
        if session.out.json {
            session.out.json(&findings)?;
        } else {
            for finding in &findings {
                session.out.prose(finding)?;
            }
            if findings.is_empty() {
                session.out.line("No problems found.")?;
            }
        }
        let bad = findings.iter().any(|finding| self.strict || finding.severity == Severity::Error);
        Ok(ExitCode::from(u8::from(bad)))
    }
}
